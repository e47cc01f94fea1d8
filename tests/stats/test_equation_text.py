"""Equations as a paper prints them, and as a terminal does: they say what the user wrote."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

from overfit_cli.figures.labels import typeset
from overfit_cli.figures.picture import Picture, file_content
from overfit_cli.stats.equations import equation_in_mathtext, parse_equation

SYMBOLS = {
    "n": "N",
    "snr": r"\mathrm{SNR}",
    "sigma": r"\tilde{\sigma}_p",
    "init_divisor": r"\mathrm{init\_divisor}",
}

# An equation, its mathtext without the braces around names, and how it reads in a terminal.
WRITTEN = [
    ("n * snr**2 = 1000", r"N \cdot \mathrm{SNR}^{2} = 1000", "N·SNR² = 1000"),
    ("n=1e-7", r"N = 10^{-7}", "N = 10⁻⁷"),
    ("n = 3.5e6", r"N = 3.5 \cdot 10^{6}", "N = 3.5·10⁶"),
    ("n = 0.001", "N = 0.001", "N = 0.001"),
    ("n / snr / 2 = 1", r"N / \mathrm{SNR} / 2 = 1", "N / SNR / 2 = 1"),
    (
        "n / (snr * 2) = 1",
        r"N / \left(\mathrm{SNR} \cdot 2\right) = 1",
        "N / (SNR·2) = 1",
    ),
    ("n / 2e6 = snr", r"N / \left(2 \cdot 10^{6}\right) = \mathrm{SNR}", "N / (2·10⁶) = SNR"),
    ("n = -snr", r"N = -\mathrm{SNR}", "N = -SNR"),
    ("n = -snr / 2", r"N = -\mathrm{SNR} / 2", "N = -SNR / 2"),
    ("n - (-snr * 2) = 1", r"N - \left(-\mathrm{SNR} \cdot 2\right) = 1", "N - (-SNR·2) = 1"),
    ("n = (1 - snr) / 2", r"N = \left(1 - \mathrm{SNR}\right) / 2", "N = (1 - SNR) / 2"),
    ("n = -(snr + 1)", r"N = -\left(\mathrm{SNR} + 1\right)", "N = -(SNR + 1)"),
    ("(-n)**2 = snr", r"\left(-N\right)^{2} = \mathrm{SNR}", "(-N)² = SNR"),
    ("-n**2 = snr", r"-N^{2} = \mathrm{SNR}", "-N² = SNR"),
    ("n - (snr - 1) = 0", r"N - \left(\mathrm{SNR} - 1\right) = 0", "N - (SNR - 1) = 0"),
    ("n - snr - 1 = 0", r"N - \mathrm{SNR} - 1 = 0", "N - SNR - 1 = 0"),
    ("n + -snr = 1", r"N + \left(-\mathrm{SNR}\right) = 1", "N + (-SNR) = 1"),
    ("2**n**2 = snr", r"2^{N^{2}} = \mathrm{SNR}", "2^(N²) = SNR"),
    ("(2**n)**2 = snr", r"\left(2^{N}\right)^{2} = \mathrm{SNR}", "(2^N)² = SNR"),
    ("1e6**2 = n", r"\left(10^{6}\right)^{2} = N", "(10⁶)² = N"),
    (
        "n**(snr / 2) = (snr + 1) * n",
        r"N^{\mathrm{SNR} / 2} = \left(\mathrm{SNR} + 1\right) \cdot N",
        "N^(SNR / 2) = (SNR + 1)·N",
    ),
    (
        "log(n * snr) = sqrt(n + 1)",
        r"\log\left(N \cdot \mathrm{SNR}\right) = \sqrt{N + 1}",
        "log(N·SNR) = √(N + 1)",
    ),
    ("exp(-n) = sigma**2", r"\exp\left(-N\right) = \tilde{\sigma}_p^{2}", "exp(-N) = σ̃_p²"),
    ("init_divisor = n", r"\mathrm{init\_divisor} = N", "init_divisor = N"),
    (
        "log(n)**2 = log(snr + 1)**1.75",
        r"\log^{2}\left(N\right) = \log^{1.75}\left(\mathrm{SNR} + 1\right)",
        "log²(N) = log^(1.75)(SNR + 1)",
    ),
    (
        "log(n**2) = log(n)**snr",
        r"\log\left(N^{2}\right) = \log\left(N\right)^{\mathrm{SNR}}",
        "log(N²) = log(N)^(SNR)",
    ),
]


RAISED, LOWERED = "[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+", str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


def mathtext(text: str) -> str:
    return equation_in_mathtext(parse_equation(text, list(SYMBOLS)), SYMBOLS.__getitem__)


@pytest.mark.parametrize(("text", "written", "plain"), WRITTEN)
def test_an_equation_is_written_as_papers_do(text: str, written: str, plain: str) -> None:
    found = mathtext(text)
    for symbol in SYMBOLS.values():
        found = found.replace(f"{{{symbol}}}", symbol)
    assert found == f"${written}$"
    assert typeset(mathtext(text)) == plain


def test_all_of_them_can_be_drawn() -> None:
    """What mathtext doesn't know is an error, and a letter that the font lacks is a warning."""
    figure = Picture(4, 4)
    for place, (text, _, _) in enumerate(WRITTEN):
        figure.text(0.1, place / len(WRITTEN), mathtext(text))
    assert len(file_content(figure, "png")) > 5000


def random_side(chance: random.Random, depth: int) -> str:
    """A side of an equation, with no more parentheses than it needs or with many."""
    kind = chance.randrange(8) if depth else chance.choice([0, 1])
    if kind == 0:
        return chance.choice(["n", "snr"])
    if kind == 1:
        return chance.choice(["2", "0.5", "3e6", "1e-7", "1e5"])
    if kind == 2:
        return f"-{random_side(chance, depth - 1)}"
    if kind == 3:
        name = chance.choice(["log", "exp", "sqrt"])
        return f"{name}({random_side(chance, depth - 1)})"
    sides = [random_side(chance, depth - 1) for _ in range(2)]
    sides = [f"({side})" if chance.random() < 0.5 else side for side in sides]
    return chance.choice([" + ", " - ", " * ", " / ", "**"]).join(sides)


def with_powers_behind(text: str) -> str:
    """A text with each `log**(2)(n)` as `log(n)**(2)`, the innermost last."""
    while match := re.search(r"log\*\*(\([^()]*\)|[\d.]+)\(", text):
        depth, end = 1, match.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        inner = text[match.end() : end]
        text = f"{text[: match.start()]}log({inner}**{match[1]}{text[end:]}"
    return text


@pytest.mark.parametrize("seed", range(200))
def test_what_is_read_back_is_the_same_equation(seed: int) -> None:
    chance = random.Random(seed)
    text = f"n * {random_side(chance, 3)} = {random_side(chance, 3)}"
    read = re.sub(
        RAISED, lambda power: f"^({power[0].translate(LOWERED)})", typeset(mathtext(text))
    )
    for sign, spelled in (("·", "*"), ("^", "**"), ("√", "sqrt"), ("N", "n"), ("SnR", "snr")):
        read = read.replace(sign, spelled)
    read = with_powers_behind(read)
    one, other = (parse_equation(each, ("n", "snr")) for each in (text, read))
    values = {"n": np.array([0.3, 1.0, 2.5]), "snr": np.array([0.7, 1.3, 0.1])}
    np.testing.assert_allclose(one.difference(values), other.difference(values), rtol=1e-12)
