"""The drawing of a number between its margin and its interval, and numbers in three digits."""

from __future__ import annotations

import math

import pytest

from overfit_cli.core.claim import Interval, Measurement
from overfit_cli.report.interval_bar import WIDTH, interval_bar, margin_in_words, three_digits
from overfit_cli.report.page import number_parts


def measured(
    value: float | None,
    ends: tuple[float, float] | None,
    margin: tuple[float, float] | None,
) -> Measurement:
    interval = Interval(*ends, "95 %") if ends else None
    return Measurement(verdict="holds", value=value, interval=interval, margin=margin)


def test_what_lies_inside_the_margin_is_drawn_inside_it() -> None:
    bar = interval_bar(measured(1.97, (1.83, 2.07), (1.75, 2.25)))
    assert bar is not None
    assert bar.margin is not None
    assert bar.interval is not None
    assert not bar.log
    begin, width = bar.margin
    assert 0 < begin < bar.interval[0] < bar.value < sum(bar.interval) < begin + width < WIDTH
    share = (bar.value - begin) / width
    assert share == pytest.approx((1.97 - 1.75) / 0.5)


def test_numbers_over_a_decade_have_a_logarithmic_scale() -> None:
    bar = interval_bar(measured(10.0, (8.0, 12.0), (1.0, 100.0)))
    assert bar is not None
    assert bar.margin is not None
    assert bar.log
    assert bar.value == pytest.approx(WIDTH / 2)
    assert "logarithmic" in bar.words


def test_an_open_end_reaches_the_edge() -> None:
    bar = interval_bar(measured(-2.0, (-3.0, math.inf), (-math.inf, 0.0)))
    assert bar is not None
    assert bar.margin is not None
    assert bar.interval is not None
    assert bar.margin[0] == 0
    assert sum(bar.margin) < WIDTH
    assert sum(bar.interval) == pytest.approx(WIDTH)


@pytest.mark.parametrize(
    "measurement",
    [
        measured(None, (0.0, 1.0), (0.0, 1.0)),
        measured(math.nan, (0.0, 1.0), None),
        measured(3.0, None, None),
    ],
)
def test_nothing_is_drawn_without_a_number_and_something_around_it(
    measurement: Measurement,
) -> None:
    assert interval_bar(measurement) is None


def test_an_unknown_interval_leaves_the_margin() -> None:
    bar = interval_bar(measured(1.0, (math.nan, math.nan), (0.5, 2.0)))
    assert bar is not None
    assert (bar.interval, bar.margin is None) == (None, False)


@pytest.mark.parametrize(
    ("margin", "words"),
    [
        ((1.75, 2.25), "margin 1.75 to 2.25"),
        ((-math.inf, 5e-324), "margin below 0"),
        ((0.8, math.inf), "margin above 0.8"),
        ((-math.inf, math.inf), ""),
        (None, ""),
    ],
)
def test_a_margin_is_written_by_its_ends(margin: tuple[float, float] | None, words: str) -> None:
    assert margin_in_words(margin) == words


@pytest.mark.parametrize(
    ("number", "text"),
    [(1013.4, "1010"), (1.9666, "1.97"), (-0.00012345, "-0.000123"), (5.2e-7, "5.2e-07"), (0, "0")],
)
def test_numbers_have_three_digits(number: float, text: str) -> None:
    assert three_digits(number) == text


def test_a_number_and_its_interval_are_texts_apart() -> None:
    assert number_parts(measured(1013.4, (988.1, 1056.0), None)) == ["1010", "[988, 1060]"]
    assert number_parts(measured(12345.0, None, None)) == ["12345"]
    assert number_parts(measured(None, None, None)) == ["–"]
