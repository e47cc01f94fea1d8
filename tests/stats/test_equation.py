from __future__ import annotations

import time

import numpy as np
import pytest

from overfit_cli import UserError
from overfit_cli.stats.equations import parse_equation

AXES = ("n", "snr")


def test_a_law_is_zero_where_it_holds_and_signed_elsewhere() -> None:
    law = parse_equation("n * snr**2 = 1000", AXES)
    gap = law.difference({"n": np.array([10, 10, 10]), "snr": np.array([5.0, 10.0, 20.0])})
    assert gap.tolist() == [-750.0, 0.0, 3000.0]


@pytest.mark.parametrize(
    ("text", "left_minus_right"),
    [
        ("n = snr", 2 - 3),
        ("-n + 1 = snr / 2", -2 + 1 - 3 / 2),
        ("n ** -snr = (n - snr) * 4e-1", 2**-3 - (2 - 3) * 0.4),
        ("log(n) = exp(snr)", np.log(2) - np.exp(3)),
        ("sqrt(n * snr) = .5", np.sqrt(6) - 0.5),
        ("--n = - -snr", 2 - 3),
    ],
)
def test_the_arithmetic_is_pythons(text: str, left_minus_right: float) -> None:
    gap = parse_equation(text, AXES).difference({"n": np.array(2), "snr": np.array(3)})
    assert float(gap) == pytest.approx(left_minus_right)


def test_the_difference_has_the_shape_of_all_values_even_those_that_the_law_does_not_name() -> None:
    law = parse_equation("n = 3", AXES)
    gap = law.difference({"n": np.arange(4)[:, None], "snr": np.ones((1, 5))})
    assert gap.shape == (4, 5)
    assert gap.dtype == np.float64


def test_a_law_knows_its_names_and_its_tidied_text() -> None:
    law = parse_equation("  n *\n 2 =  7 ", AXES)
    assert law.names == {"n"}
    assert law.text == "n * 2 = 7"


def test_a_name_may_have_any_letters_and_digits() -> None:
    law = parse_equation("σ2 * layer1_width / a0b = 6", ("σ2", "layer1_width", "a0b"))
    values = {"σ2": np.array(2.0), "layer1_width": np.array(9.0), "a0b": np.array(3.0)}
    assert law.names == values.keys()
    assert float(law.difference(values)) == 0.0


@pytest.mark.parametrize("text", ["log(n) = snr", "1 / n = snr", "sqrt(n - 9) = 1", "exp(999+n)=n"])
def test_the_difference_is_not_finite_where_a_side_is_undefined(text: str) -> None:
    gap = parse_equation(text, AXES).difference({"n": np.array([0.0]), "snr": np.array([1.0])})
    assert not np.isfinite(gap).any()


def test_a_tower_of_powers_is_infinite_and_quick() -> None:
    start = time.perf_counter()
    gap = parse_equation("9**9**9**9 = n", AXES).difference({"n": np.array([1.0])})
    assert np.isinf(gap).all()
    assert time.perf_counter() - start < 1


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("n * snr", "0 equals signs, not one"),
        ("n == 3", "2 equals signs"),
        ("n = 3 = snr", "2 equals signs"),
        ("n <= 3", "'<'"),
        ("= 3", "one side is empty"),
        ("n =  ", "one side is empty"),
        ("", "0 equals signs"),
        ("1 = 2", "names none of them"),
        ("n^2 = 3", "powers are written **"),
        ("m * snr = 3", "'m' is not an axis here; known: n, snr"),
        ("n * srn = 3", "did you mean 'snr'?"),
        ("log = n", "log takes one number"),
        ("n(3) = 3", "'n' is not a function"),
        ("log(n, 2) = 3", "','"),
        ("log() = n", "log takes one number"),
        ("n // 2 = 3", "not arithmetic"),
        ("n.real = 3", "not arithmetic"),
        ("__import__ = n", "'__import__'"),
        ("__import__('os').system('ls') = n", '"\'"'),
        ("n if snr else n = 3", "not arithmetic"),
        ("not n = 3", "not arithmetic"),
        ("n = True", "not arithmetic"),
        ("n = 3j", "not arithmetic"),
        ("n = nan", "'nan'"),
        ("n = inf", "'inf'"),
        ("n = 1e999", "too large"),
        ("n = (3", "not arithmetic"),
        ("n) * (n = 3", "not arithmetic"),
        ("n snr = 3", "not arithmetic"),
        ("n = 1or 2", "not arithmetic"),
        ("n = \x00", "'\\x00'"),
        ("n = ３", "'３'"),
        ("n = " + "9" * 5000, "longer than 200"),
        ("n = " + "(" * 195, "not arithmetic"),
    ],
)
def test_what_is_no_law_is_refused_in_a_sentence(text: str, why: str) -> None:
    with pytest.raises(UserError) as refused:
        parse_equation(text, AXES)
    sentence = str(refused.value)
    assert sentence.startswith("law=")
    assert why in sentence
    assert "one equation in n and snr" in sentence
    assert sentence[-1] in ".?" or "known: " in sentence
    assert sentence.isprintable()
    assert len(sentence) < 450


@pytest.mark.parametrize("deep", ["-" * 190 + "3", "(" * 90 + "3" + ")" * 90])
def test_a_deep_but_short_text_is_computed(deep: str) -> None:
    assert parse_equation(f"n = {deep}", AXES).difference({"n": np.array(3)}) == 0
