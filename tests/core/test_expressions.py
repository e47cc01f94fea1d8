"""The one language: what a text means, how it is typeset, and what is refused; Python judges."""

from __future__ import annotations

import math
import random
import re
import time

import numpy as np
import pytest

from overfit_cli.core.errors import BadValue
from overfit_cli.core.expressions import (
    Among,
    Extreme,
    Names,
    compare,
    quoted,
    read_conditions,
    read_equation,
    read_expression,
    read_number,
)
from overfit_cli.core.parameters import ParameterInfo
from overfit_cli.figures.labels import typeset
from overfit_cli.figures.picture import Picture, file_content

SYMBOLS = {
    "n": "N",
    "snr": r"\mathrm{SNR}",
    "sigma": r"\tilde{\sigma}_p",
    "init_divisor": r"\mathrm{init\_divisor}",
}


def number(name: str) -> ParameterInfo:
    return ParameterInfo(name, "float", 1.0, name, "", "", (), "a number")


KERNEL = ParameterInfo(
    "kernel", "literal", "softmax", "", "", "", ("softmax", "gaussian"), "one of softmax, gaussian"
)
NUMBERS = Names({name: number(name) for name in SYMBOLS})
ODD = ("acc (%)", "a.b+", "n / snr", "σ2", "layer1_width")
NAMES = Names(
    {**NUMBERS, "SNR": NUMBERS["snr"], "kernel": KERNEL, **{name: number(name) for name in ODD}}
).with_brackets(Names({**NUMBERS, "kernel": KERNEL}))
ROWS = {
    "n": np.array([2.0, 5.0, 5.0, 20.0, np.nan]),
    "snr": np.array([1.0, 1.0, 0.1 + 0.2, 4.0, 3.0]),
    "kernel": np.array(["softmax", "gaussian", "softmax", "softmax", "gaussian"], object),
    "acc (%)": np.array([90.0, 80.0, 70.0, 60.0, 50.0]),
}


# Arithmetic is Python's


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


@pytest.mark.parametrize("seed", range(300))
def test_a_random_expression_is_what_python_makes_of_it(seed: int) -> None:
    chance = random.Random(seed)
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
    start = time.perf_counter()
    assert np.isinf(read_expression("9**9**9**9", NUMBERS).value({}))
    assert time.perf_counter() - start < 1


@pytest.mark.parametrize("text", ["-" * 150 + "3", "(" * 90 + "3" + ")" * 90])
def test_a_deep_but_short_text_is_computed(text: str) -> None:
    assert read_expression(text, NUMBERS).value({}) == 3


@pytest.mark.parametrize("given", [0.05, "0.05", "1/20", "log(2)/log(2) - 19 / 20", "5e-2"])
def test_a_number_may_be_an_expression_of_numbers(given: float | str) -> None:
    assert read_number(given, "threshold") == pytest.approx(0.05)


@pytest.mark.parametrize("given", ["nan", "1/0", "loss", "1_0", "", "2*", math.inf])
def test_what_is_no_finite_number_is_refused(given: float | str) -> None:
    with pytest.raises(BadValue, match="it takes a finite number"):
        read_number(given, "threshold")


def test_a_name_may_have_any_letters_in_backquotes_and_be_an_expression() -> None:
    assert read_expression("2 * `acc (%)` / `a.b+`", NAMES).names == {"acc (%)", "a.b+"}
    assert read_expression("σ2 * layer1_width", NAMES).names == {"σ2", "layer1_width"}
    assert read_expression("2 * n / snr", NAMES).names == {"n", "snr"}
    assert read_expression("2 * (n / snr)", NAMES).names == {"n / snr"}
    assert [quoted(name) for name in ("n", "σ2", "a.b+")] == ["n", "σ2", "`a.b+`"]


def test_brackets_choose_values_and_are_refused_where_names_have_none() -> None:
    text = "n[kernel=softmax, snr is largest] - n[best snr]"
    expression = read_expression(text, NAMES)
    first, second = expression.refs
    assert (first.name, {*first.pins}, {*second.pins}) == ("n", {"kernel", "snr"}, {"snr"})
    assert first.at == (Among("kernel", ("softmax",)), Extreme("snr", "largest"))
    assert expression.value({str(first): np.array(3), str(second): np.array(1)}) == 2
    with pytest.raises(BadValue, match="no brackets here"):
        read_expression("n[snr=1]", NUMBERS)


# Conditions


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("n = 5", "01100"),
        ("n == 2,20", "10010"),
        ("n != 5", "10010"),
        ("n=3:20", "01110"),
        ("n=5:", "01110"),
        ("n = :5", "11100"),
        ("n > 5", "00010"),
        ("1 < 2*n/snr/2 <= 5", "11010"),
        ("n ≥ 2·snr", "11110"),
        ("n*snr != 5", "10110"),
        ("SNR = 0.3", "00100"),
        ("snr = 3/10", "00100"),
        ("snr < 0.3", "00000"),
        ("kernel = gaussian", "01001"),
        ("kernel=softmax,gaussian", "11111"),
        ("kernel != softmax", "01001"),
        ("kernel = softmax and n > 2", "00110"),
        ("kernel=softmax, n=2:5", "10100"),
        ("n = 2,5, kernel = softmax", "10100"),
        ("snr < 2 and n = 2,5 and kernel = softmax", "10100"),
        ("`acc (%)` >= 70", "11100"),
        ("snr is largest", "00010"),
        ("snr is smallest and n > 0", "00100"),
    ],
)
def test_conditions_hold_where_they_read_so(text: str, holds: str) -> None:
    tests = read_conditions(text, NAMES)
    found = np.logical_and.reduce([np.broadcast_to(test.holds(ROWS), 5) for test in tests])
    assert "".join("01"[int(each)] for each in found) == holds


@pytest.mark.parametrize("seed", range(40))
def test_random_comparisons_are_numpys(seed: int) -> None:
    chance = random.Random(seed)
    signs = [chance.choice(["<", "<=", ">", ">=", "=", "!="]) for _ in range(2)]
    sides = [random_side(chance, 2) for _ in range(2)]
    values = {"n": np.array([0.7, 1.0, 2.0]), "snr": np.array([1.3, 1.0, 0.1])}
    [test] = read_conditions(f"{sides[0]} {signs[0]} n + 0 {signs[1]} {sides[1]}", NUMBERS)
    a, b, c = (read_expression(side, NUMBERS).value(values) for side in (sides[0], "n", sides[1]))
    wanted = compare(a, signs[0], b) & compare(b, signs[1], c)
    assert (np.broadcast_to(test.holds(values), 3) == wanted).all()


def test_numbers_that_round_off_alone_tells_apart_are_the_same() -> None:
    assert compare(np.array([1.0, np.nan]), "=", np.array(1 + 1e-12)).tolist() == [True, False]
    assert not compare(np.array([np.nan]), "!=", np.array(1.0)).any()


# Refusals are one sentence with the text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "ends too early"),
        ("n +", "ends too early"),
        ("n + * snr", "can't be read from '* snr' on"),
        ("(n", "a ( is not closed"),
        ("n)", "can't be read from ')' on"),
        ("2 n", "can't be read from 'n' on"),
        ("n snr", "can't be read from 'snr' on"),
        ("n^2", "powers are written **"),
        ("m * snr", "'m' is no name here; known: "),
        ("n * srn", "did you mean 'snr'?"),
        ("log", "'log' is no name here"),
        ("n(3)", "'n' is not a function"),
        ("lg(n)", "did you mean 'log'?"),
        ("log(n, 2)", "can't be read from ', 2)' on"),
        ("log()", "can't be read"),
        ("n // 2", "can't be read from '/ 2' on"),
        ("n.real", "'n.real' is no name here"),
        ("__import__('os').system('ls')", "can't be read"),
        ("n if snr else n", "can't be read from 'if snr else n' on"),
        ("1_000", "can't be read from '_000' on"),
        ("0x10", "can't be read from 'x10' on"),
        ("1e999", "too large"),
        ("nan", "'nan' is no name here"),
        ("n = \x00", "can't be read"),
        ("３", "can't be read"),
        ("n[", "can't be read from '[' on"),
        ("kernel", "kernel is no number; write kernel=VALUE"),
        ("(" * 400, "more than 200 names, numbers and signs"),
        ("n" + "+n" * 300, "more than 200 names, numbers and signs"),
        ("9" * 2000, "more than 1000 characters"),
    ],
)
def test_what_is_no_expression_is_refused_in_a_sentence(text: str, why: str) -> None:
    with pytest.raises(BadValue) as refused:
        read_expression(text, Names({**NUMBERS, "kernel": KERNEL}), "theory")
    sentence = str(refused.value)
    assert sentence.startswith("theory=")
    assert why in sentence
    assert sentence.isprintable()
    assert len(sentence) < 450


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("n", "write NAME=VALUE"),
        ("n =", "write NAME=VALUE"),
        ("n > 2 and", "write NAME=VALUE"),
        ("n=:", "a range has an end"),
        ("n = two", "'two' is no name here"),
        ("kernel = soft", "one of softmax, gaussian"),
        ("kernel > softmax", "kernel is no number"),
        ("kernel is largest", "none of its values is largest"),
        ("best n", "the best is written in brackets"),
        ("1 < 2", "names no parameter and no column"),
    ],
)
def test_what_is_no_condition_is_refused_in_a_sentence(text: str, why: str) -> None:
    with pytest.raises(BadValue, match=re.escape(why)):
        read_conditions(text, NAMES)


@pytest.mark.parametrize("text", ["n * snr", "n = 3 = snr", "n <= 3", "= 3", "n =", "", "1 = 2"])
def test_what_is_no_equation_is_refused(text: str) -> None:
    with pytest.raises(BadValue, match="law="):
        read_equation(text, NUMBERS)


def test_an_equation_has_a_label_and_its_tidied_text() -> None:
    law = read_equation("  the boundary:  n *\n snr**2=1000 ", NUMBERS)
    assert (law.label, law.text) == ("the boundary", "n * snr**2 = 1000")
    assert law.names == {"n", "snr"}
    gap = law.difference({"n": np.array([10.0, 10.0]), "snr": np.array([5.0, 10.0])})
    assert gap.tolist() == [-750.0, 0.0]


# Typesetting

# An equation, its mathtext without the braces around names, and how it reads in a terminal.
WRITTEN = [
    ("n * snr**2 = 1000", r"N \cdot \mathrm{SNR}^{2} = 1000", "N·SNR² = 1000"),
    ("n=1e-7", r"N = 10^{-7}", "N = 10⁻⁷"),
    ("n = 3.5e6", r"N = 3.5 \cdot 10^{6}", "N = 3.5·10⁶"),
    ("n / snr / 2 = 1", r"N / \mathrm{SNR} / 2 = 1", "N / SNR / 2 = 1"),
    ("n / (snr*2) = 1", r"N / \left(\mathrm{SNR} \cdot 2\right) = 1", "N / (SNR·2) = 1"),
    ("n / 2e6 = snr", r"N / \left(2 \cdot 10^{6}\right) = \mathrm{SNR}", "N / (2·10⁶) = SNR"),
    ("n = -snr / 2", r"N = -\mathrm{SNR} / 2", "N = -SNR / 2"),
    ("n - (-snr * 2) = 1", r"N - \left(-\mathrm{SNR} \cdot 2\right) = 1", "N - (-SNR·2) = 1"),
    ("n = -(snr + 1)", r"N = -\left(\mathrm{SNR} + 1\right)", "N = -(SNR + 1)"),
    ("(-n)**2 = snr", r"\left(-N\right)^{2} = \mathrm{SNR}", "(-N)² = SNR"),
    ("n - (snr - 1) = 0", r"N - \left(\mathrm{SNR} - 1\right) = 0", "N - (SNR - 1) = 0"),
    ("n - snr - 1 = 0", r"N - \mathrm{SNR} - 1 = 0", "N - SNR - 1 = 0"),
    ("2**n**2 = snr", r"2^{N^{2}} = \mathrm{SNR}", "2^(N²) = SNR"),
    ("(2**n)**2 = snr", r"\left(2^{N}\right)^{2} = \mathrm{SNR}", "(2^N)² = SNR"),
    ("1e6**2 = n", r"\left(10^{6}\right)^{2} = N", "(10⁶)² = N"),
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
]
RAISED, LOWERED = "[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+", str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


def mathtext(text: str) -> str:
    return f"${read_equation(text, NUMBERS).mathtext(SYMBOLS.__getitem__)}$"


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
    others = ["n = floor(snr)", "n = ceil(snr) + round(snr)"]
    for place, text in enumerate([*(text for text, _, _ in WRITTEN), *others]):
        figure.text(0.1, place / 30, mathtext(text))
    bracket = read_expression("n[kernel=softmax]", NAMES).mathtext(lambda name: name)
    figure.text(0.1, 0.9, f"${bracket}$")
    assert len(file_content(figure, "png")) > 5000


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


@pytest.mark.parametrize("seed", range(100))
def test_what_is_read_back_is_the_same_equation(seed: int) -> None:
    chance = random.Random(seed)
    text = f"n * {random_side(chance, 3)} = {random_side(chance, 3)}"
    if re.search("floor|ceil|round", text):  # they have brackets of their own
        return
    read = re.sub(
        RAISED, lambda power: f"^({power[0].translate(LOWERED)})", typeset(mathtext(text))
    )
    for sign, spelled in (("·", "*"), ("^", "**"), ("√", "sqrt"), ("N", "n"), ("SnR", "snr")):
        read = read.replace(sign, spelled)
    one, other = (read_equation(each, NUMBERS) for each in (text, with_powers_behind(read)))
    values = {"n": np.array([0.3, 1.0, 2.5]), "snr": np.array([0.7, 1.3, 0.1])}
    np.testing.assert_allclose(one.difference(values), other.difference(values), rtol=1e-12)
