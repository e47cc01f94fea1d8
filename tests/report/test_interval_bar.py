"""The drawing of a number between its margin and its interval, and numbers in three digits."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from overfit_cli.claims.rules import Margin, judge_estimate, judge_theorem
from overfit_cli.core.claim import Interval, Measurement, number_parts
from overfit_cli.core.text import three_digits
from overfit_cli.report.interval_bar import (
    WIDTH,
    interval_bar,
    is_a_point,
    margin_in_words,
    requirement_in_words,
)
from overfit_cli.report.page import _typeset
from overfit_cli.stats.intervals import Estimate


def measured(
    value: float | None,
    ends: tuple[float, float] | None,
    margin: tuple[float, float] | None,
) -> Measurement:
    interval = Interval(*ends, "95 %") if ends else None
    return Measurement(verdict="holds", value=value, interval=interval, margin=margin)


class Drawn:
    """A bar that there is, with the ends of what is drawn on it."""

    def __init__(self, measurement: Measurement) -> None:
        bar = interval_bar(measurement)
        assert bar is not None
        assert bar.margin is not None
        assert bar.interval is not None
        self.bar, self.value, self.target = bar, bar.value, bar.target
        self.margin, self.interval = (
            (begin, begin + width) for begin, width in (bar.margin, bar.interval)
        )


def test_what_lies_inside_the_margin_is_drawn_inside_it() -> None:
    drawn = Drawn(measured(1.97, (1.83, 2.07), (1.75, 2.25)))
    (low, high), (least, most) = drawn.interval, drawn.margin
    assert 0 < least < low < drawn.value < high < most < WIDTH
    assert (drawn.value - least) / (most - least) == pytest.approx((1.97 - 1.75) / 0.5)
    assert not drawn.bar.log


def test_numbers_over_a_decade_have_a_logarithmic_scale() -> None:
    drawn = Drawn(measured(10.0, (8.0, 12.0), (1.0, 100.0)))
    assert drawn.bar.log
    assert drawn.value == pytest.approx(WIDTH / 2)
    assert "logarithmic" in drawn.bar.words


def test_an_open_end_reaches_the_edge() -> None:
    drawn = Drawn(measured(-2.0, (-3.0, math.inf), (-math.inf, 0.0)))
    assert drawn.margin[0] == 0
    assert drawn.margin[1] < WIDTH
    assert drawn.interval[1] == pytest.approx(WIDTH)


def test_nothing_is_drawn_without_a_number_and_something_around_it() -> None:
    assert interval_bar(measured(None, (0.0, 1.0), (0.0, 1.0))) is None
    assert interval_bar(measured(math.nan, (0.0, 1.0), None)) is None
    assert interval_bar(measured(3.0, None, None)) is None


def test_an_unknown_interval_leaves_the_margin() -> None:
    bar = interval_bar(measured(1.0, (math.nan, math.nan), (0.5, 2.0)))
    assert bar is not None
    assert (bar.interval, bar.margin is None) == (None, False)


def test_a_margin_is_written_by_its_ends() -> None:
    assert margin_in_words((1.75, 2.25)) == "margin 1.75 to 2.25"
    assert margin_in_words((-math.inf, 5e-324)) == "margin below 0"
    assert margin_in_words((0.8, math.inf)) == "margin above 0.8"
    assert margin_in_words((-math.inf, math.inf)) == margin_in_words(None) == ""


def test_numbers_have_three_digits() -> None:
    numbers = [1013.4, 1.9666, -0.00012345, 5.2e-7, 0]
    assert list(map(three_digits, numbers)) == ["1010", "1.97", "−0.000123", "5.2·10⁻⁷", "0"]


def test_a_number_and_its_interval_are_texts_apart() -> None:
    assert number_parts(1013.4, Interval(988.1, 1056.0, "95 %")) == ["1010", "[988, 1060]"]
    assert number_parts(12345.0, None) == ["12345"]
    assert number_parts(-3.0, None) == ["−3"]
    assert number_parts(None, None) == ["–"]


def test_the_number_that_a_claim_states_is_drawn_and_written_beside_its_margin() -> None:
    margin = Margin(least=1.9, because="2, less a tenth", target=2.0)
    judged = judge_estimate(Estimate(1.93, 1.91, 1.95, "95 %", 10), margin)
    assert requirement_in_words(judged) == "stated: 2; holds above 1.9"
    assert requirement_in_words(judged, "paper") == "paper: 2; holds above 1.9"
    drawn = Drawn(judged)
    assert drawn.target is not None
    assert drawn.margin[0] < drawn.interval[0] < drawn.value < drawn.target < WIDTH


def test_the_band_of_a_theorem_is_the_share_that_it_requires() -> None:
    judged = judge_theorem(pd.Series([True] * 12), pd.Series(range(12)))
    assert requirement_in_words(judged) == "must be 1, without an exception"
    drawn = Drawn(judged)
    assert drawn.target is None
    assert drawn.value < drawn.interval[1] < drawn.margin[0] < drawn.margin[1] < WIDTH


def test_an_interval_whose_ends_agree_is_a_tick_of_no_width() -> None:
    judged = measured(2.0, (2.0, 2.0), (1.0, 3.0))
    drawn = Drawn(judged)
    assert drawn.interval == pytest.approx((drawn.value, drawn.value))
    assert is_a_point(judged)
    assert is_a_point(measured(2.0, (1.9999, 2.0001), None))
    assert not is_a_point(measured(2.0, (1.99, 2.01), None))


@pytest.mark.parametrize(
    ("text", "typeset"),
    [
        (
            "λ_B² and N·SNR^p of W_Q, σ̃_p, (1 − ηα)^t",
            "λ<sub>B</sub>² and N·SNR<sup>p</sup> of W<sub>Q</sub>, σ̃<sub>p</sub>, "
            "(1 − ηα)<sup>t</sup>",
        ),
        ("e^(16B), train_loss, x_<b>", "e<sup>(16B)</sup>, train_loss, x_&lt;b&gt;"),
        ("the power -2 of ‖μ‖, from -0.5", "the power −2 of ‖μ‖, from −0.5"),
        ("at most 3e-9", 'at most <span class="number">3·10⁻⁹</span>'),
        ("below 1e+12", 'below <span class="number">10¹²</span>'),
        ("ε^(1/(2M²)) or n^o(1)", "ε<sup>(1/(2M²))</sup> or n<sup>o(1)</sup>"),
        ("min_h ‖W_O,h‖", "min<sub>h</sub> ‖W<sub>O,h</sub>‖"),
        ("d_h^−0.507 and w_j,0", "d<sub>h</sub><sup>−0.507</sup> and w<sub>j,0</sub>"),
        ("‖X‖²_{2,∞}", "‖X‖²<sub>{2,∞}</sub>"),
        ("fig1-exponent on 2026-11-27, seeds 0-9", "fig1-exponent on 2026-11-27, seeds 0-9"),
    ],
)
def test_indices_powers_and_numbers_of_a_text_are_typeset_and_names_are_not(
    text: str, typeset: str
) -> None:
    assert _typeset(text) == typeset
