"""The one language: what a text means, how it is typeset, and what is refused; Python judges."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from overfit_cli.core.errors import BadValue
from overfit_cli.core.expressions import (
    Among,
    Extreme,
    Names,
    quoted,
    read_conditions,
    read_equation,
    read_expression,
    read_number,
)
from overfit_cli.core.parameters import ParameterInfo
from overfit_cli.figures.labels import typeset
from overfit_cli.figures.picture import Picture, file_content

SYMBOLS = {"n": "N", "snr": r"\mathrm{SNR}", "sigma": r"\tilde{\sigma}_p"}
SYMBOLS["init_divisor"] = r"\mathrm{init\_divisor}"
KERNELS: Any = {"choices": ("softmax", "gaussian"), "accepts": "one of softmax, gaussian"}
KERNEL = ParameterInfo("kernel", "literal", **KERNELS)
NUMBERS = Names({name: ParameterInfo(name) for name in SYMBOLS})
ODD = ("acc (%)", "a.b+", "n / snr", "σ2", "layer1_width")
WITH_KERNEL = Names({**NUMBERS, "kernel": KERNEL})
OTHERS = {"SNR": NUMBERS["snr"], **{name: ParameterInfo(name) for name in ODD}}
NAMES = Names({**WITH_KERNEL, **OTHERS}).with_brackets(WITH_KERNEL)
ROWS = {
    "n": np.array([2.0, 5.0, 5.0, 20.0, np.nan]),
    "snr": np.array([1.0, 1.0, 0.1 + 0.2, 4.0, 3.0]),
    "kernel": np.array(["softmax", "gaussian", "softmax", "softmax", "gaussian"], object),
    "acc (%)": np.array([90.0, 80.0, 70.0, 60.0, 50.0]),
}


def random_side(chance: random.Random, depth: int) -> str:
    """A side of an equation, with no more parentheses than it needs or with many."""
    kind = chance.randrange(8) if depth else chance.choice([0, 1])
    if kind == 0:
        return chance.choice(["n", "snr"])
    if kind == 1:
        return chance.choice(["2", "0.5", "3e6", "1e-7", "1e5", ".25"])
    if kind == 2:
        return f"-{random_side(chance, depth - 1)}"
    if kind == 3:
        name = chance.choice(["log", "exp", "sqrt", "floor", "ceil", "round"])
        return f"{name}({random_side(chance, depth - 1)})"
    sides = [random_side(chance, depth - 1) for _ in range(2)]
    sides = [f"({side})" if chance.random() < 0.5 else side for side in sides]
    return chance.choice([" + ", " - ", " * ", " / ", "**"]).join(sides)


def by_python(text: str, **values: np.float64) -> float:
    functions = {name: getattr(np, name) for name in ("log", "exp", "sqrt", "floor", "ceil")}
    functions["round"] = np.rint
    text = re.sub(r"(?<![\w.])((?:\d+\.?\d*|\.\d+)(?:e-?\d+)?)", r"float64(\1)", text)
    with np.errstate(all="ignore"):
        return float(eval(text, {"float64": np.float64, **functions}, dict(values)))


def test_a_random_expression_is_what_python_makes_of_it() -> None:
    chance = random.Random(0)
    for _ in range(300):
        text = random_side(chance, 4)
        n, snr = np.float64(chance.uniform(0.3, 3)), np.float64(chance.uniform(0.1, 2))
        values = {"n": np.array(n), "snr": np.array(snr)}
        found = float(read_expression(text, NUMBERS).value(values))
        assert found == pytest.approx(by_python(text, n=n, snr=snr), rel=1e-12, nan_ok=True), text


def test_values_have_the_shape_of_all_and_are_not_finite_where_undefined() -> None:
    values = {"n": np.arange(4)[:, None], "snr": np.ones((1, 5))}
    assert read_equation("n = 3", NUMBERS).difference(values).shape == (4, 5)
    for text in ("log(n)", "1 / n", "sqrt(n - 9)", "exp(999 + n)"):
        found = read_expression(text, NUMBERS).value({"n": np.array([0.0])})
        assert not np.isfinite(found).any(), text
    assert np.isinf(read_expression("9**9**9**9", NUMBERS).value({})), "whole ones would never end"


def test_a_number_may_be_an_expression_of_numbers_also_a_deep_but_short_one() -> None:
    deep = ("-" * 150 + "0.05", "(" * 90 + "0.05" + ")" * 90)
    for given in (0.05, "0.05", "1/20", "log(2)/log(2) - 19 / 20", "5e-2", *deep):
        assert read_number(given, "threshold") == pytest.approx(0.05)


def test_a_name_may_have_any_letters_in_backquotes_and_be_an_expression() -> None:
    assert read_expression("2 * `acc (%)` / `a.b+`", NAMES).names == {"acc (%)", "a.b+"}
    assert read_expression("σ2 * layer1_width", NAMES).names == {"σ2", "layer1_width"}
    assert read_expression("2 * n / snr", NAMES).names == {"n", "snr"}
    assert read_expression("2 * (n / snr)", NAMES).names == {"n / snr"}
    assert [quoted(name) for name in ("n", "σ2", "a.b+")] == ["n", "σ2", "`a.b+`"]


def test_brackets_choose_values() -> None:
    text = "n[kernel=softmax, snr is largest] - n[best snr]"
    expression = read_expression(text, NAMES)
    first, second = expression.refs
    assert (first.name, {*first.pins}, {*second.pins}) == ("n", {"kernel", "snr"}, {"snr"})
    assert first.at == (Among("kernel", ("softmax",)), Extreme("snr", "largest"))
    assert expression.value({str(first): np.array(3), str(second): np.array(1)}) == 2


HOLD = {  # in which of the five rows
    "00000": ["snr < 0.3"],
    "00010": ["n > 5", "snr is largest"],
    "00100": ["SNR = 0.3", "snr = 3/10", "snr is smallest and n > 0"],
    "00110": ["kernel = softmax and n > 2"],
    "01001": ["kernel = gaussian", "kernel != softmax"],
    "01100": ["n = 5"],
    "01110": ["n=3:20", "n=5:"],
    "10010": ["n == 2,20", "n != 5"],
    "10100": ["kernel=softmax, n=2:5", "snr < 2 and n = 2,5 and kernel = softmax"],
    "10110": ["n*snr != 5"],
    "01010": ["2 < 2*n/snr/2 <= 5"],
    "11011": ["snr > 0.3"],
    "11100": ["n = :5", "`acc (%)` >= 70"],
    "11110": ["n ≥ 2·snr"],
    "11111": ["kernel=softmax,gaussian"],
}


def test_conditions_hold_where_they_read_so() -> None:
    for holds, text in ((holds, text) for holds, texts in HOLD.items() for text in texts):
        tests = read_conditions(text, NAMES)
        found = np.logical_and.reduce([np.broadcast_to(test.holds(ROWS), 5) for test in tests])
        assert "".join("01"[int(each)] for each in found) == holds, text


Reader = Callable[[str, Names, str], object]
NO_NUMBERS = ["1/0", "9**9**9**9"]
UNREADABLE = "|n +|(n|n^2|n + * snr|n)|2 n|n snr|log(n, 2)|n // 2|n if snr else n|1_000|0x10|n[|"
REFUSED: list[tuple[Reader, str, list[str]]] = [
    (read_expression, "can't be read; it takes names, numbers, + -", UNREADABLE.split("|")),
    (read_expression, "'m' is no name here; known: ", ["m * snr"]),
    (read_expression, "is no name here", ["log", "n.real", "nan"]),
    (read_expression, "did you mean 'log'?", ["lg(n)"]),
    (read_expression, "'n' is not a function", ["n(3)"]),
    (read_expression, "is not a function", ["__import__(os)"]),
    (read_expression, "can't be read", ["log()", "2(n)", "+n", "n = \x00", "３"]),
    (read_expression, "too large", ["1e999"]),
    (read_expression, "kernel is no number; write kernel=VALUE", ["kernel"]),
    (read_expression, "names have no brackets here", ["n[snr=1]"]),
    (read_expression, "more than 200 names, numbers and signs", ["(" * 400, "n" + "+n" * 300]),
    (read_expression, "more than 1000 characters", ["9" * 2000]),
    (lambda text, _, option: read_number(text, option), "it takes a finite number", NO_NUMBERS),
    (read_conditions, "write NAME=VALUE", ["n", "n =", "n=:", "n > 2 and"]),
    (read_conditions, "'two' is no name here", ["n = two"]),
    (read_conditions, "one of softmax, gaussian", ["kernel = soft"]),
    (read_conditions, "kernel is no number", ["kernel > softmax"]),
    (read_conditions, "none of its values is largest", ["kernel is largest"]),
    (read_conditions, "the best is written in brackets", ["best n"]),
    (read_equation, "an equation has one equals sign", ["n * snr", "n = 3 = snr", "n <= 3", ""]),
    (read_equation, "can't be read", ["= 3", "n ="]),
    (read_equation, "names no parameter and no column", ["1 = 2"]),
]


@pytest.mark.parametrize(("read", "why", "texts"), REFUSED)
def test_what_is_not_of_the_language_is_refused_in_a_sentence(
    read: Reader, why: str, texts: list[str]
) -> None:
    for text in texts:
        with pytest.raises(BadValue) as refused:
            read(text, WITH_KERNEL, "given")
        sentence = str(refused.value)
        assert sentence.startswith("given=") and why in sentence
        assert sentence.isprintable() and len(sentence) < 450


def test_an_equation_has_a_label_and_its_tidied_text() -> None:
    law = read_equation("  the boundary:  n *\n snr**2=1000 ", NUMBERS)
    assert (law.label, law.text) == ("the boundary", "n * snr**2 = 1000")
    assert law.names == {"n", "snr"}
    gap = law.difference({"n": np.array([10.0, 10.0]), "snr": np.array([5.0, 10.0])})
    assert gap.tolist() == [-750.0, 0.0]


WRITTEN = {  # and how its mathtext reads in a terminal
    "n * snr**2 = 1000": "N·SNR² = 1000",
    "n=1e-7": "N = 10⁻⁷",
    "n = 3.5e6": "N = 3.5·10⁶",
    "n / snr / 2 = 1": "N / SNR / 2 = 1",
    "n = -snr / 2": "N = -SNR / 2",
    "n - (-snr * 2) = 1": "N - (-SNR·2) = 1",
    "n = -(snr + 1)": "N = -(SNR + 1)",
    "n - snr - 1 = 0": "N - SNR - 1 = 0",
    "2**n**2 = snr": "2^(N²) = SNR",
    "log(n * snr) = sqrt(n + 1)": "log(N·SNR) = √(N + 1)",
    "exp(-n) = sigma**2": "exp(-N) = σ̃_p²",
    "init_divisor = n": "init_divisor = N",
    "log(n)**2 = log(snr + 1)**1.75": "log²(N) = log^(1.75)(SNR + 1)",
}
RAISED, LOWERED = "[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+", str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


def mathtext(text: str) -> str:
    return f"${read_equation(text, NUMBERS).mathtext(SYMBOLS.__getitem__)}$"


@pytest.mark.parametrize("text", WRITTEN)
def test_an_equation_is_written_as_papers_do(text: str) -> None:
    assert typeset(mathtext(text)) == WRITTEN[text]
    high = r"${N} / \left({\mathrm{SNR}} \cdot 2\right) = \log^{1.75}\left({N}\right)$"
    assert mathtext("n / (snr*2) = log(n)**1.75") == high, "parentheses fit what they hold"


def test_all_of_them_can_be_drawn() -> None:
    """What mathtext doesn't know is an error, and a letter that the font lacks is a warning."""
    figure = Picture(4, 4)
    others = ["n = floor(snr)", "n = ceil(snr) + round(snr)"]
    for place, text in enumerate([*WRITTEN, *others]):
        figure.text(0.1, place / 30, mathtext(text))
    bracket = read_expression("n[kernel=softmax]", NAMES).mathtext(lambda name: name)
    figure.text(0.1, 0.9, f"${bracket}$")
    assert len(file_content(figure, "png")) > 5000


def test_what_is_read_back_is_the_same_equation() -> None:
    chance = random.Random(0)
    values = {"n": np.array([0.3, 1.0, 2.5]), "snr": np.array([0.7, 1.3, 0.1])}
    for _ in range(100):
        text = f"n * {random_side(chance, 3)} = {random_side(chance, 3)}"
        if re.search("floor|ceil|round|log", text):  # brackets of their own, and log²(n)
            continue
        read = re.sub(
            RAISED, lambda power: f"^({power[0].translate(LOWERED)})", typeset(mathtext(text))
        )
        for sign, spelled in (("·", "*"), ("^", "**"), ("√", "sqrt"), ("N", "n"), ("SnR", "snr")):
            read = read.replace(sign, spelled)
        one, other = (read_equation(each, NUMBERS).difference(values) for each in (text, read))
        np.testing.assert_allclose(one, other, rtol=1e-12, err_msg=text)
