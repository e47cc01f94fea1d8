"""A number as it is told: drawn between its margin and its interval, in digits and in words."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from overfit_cli.claims.parts import Margin
from overfit_cli.claims.rules import MET, judge_estimate, judge_theorem
from overfit_cli.core.claim import Interval, Measurement, number_with_interval
from overfit_cli.core.text import three_digits
from overfit_cli.report import words
from overfit_cli.report.page import WIDTH, bar
from overfit_cli.report.words import counts_in_words, margin_in_words, requirement_in_words
from overfit_cli.stats.intervals import Estimate

Pair = tuple[float, float]
INF, NAN = math.inf, math.nan


def measured(value: float | None, ends: Pair | None, margin: Pair | None) -> Measurement:
    interval = Interval(*ends, "95 %") if ends else None
    return Measurement(verdict="holds", value=value, interval=interval, margin=margin)


TARGET = judge_estimate(Estimate(1.93, 1.91, 1.95, "95 %", 10), Margin(least=1.9, target=2.0))
THEOREM = judge_theorem(pd.Series([True] * 12), pd.Series(range(12)))


@pytest.mark.parametrize(
    ("measurement", "order", "scale"),
    [
        (measured(1.97, (1.83, 2.07), (1.75, 2.25)), "0 M[ I[ v ]I ]M W", "linear"),
        (measured(10.0, (8.0, 12.0), (1.0, 100.0)), "0 M[ I[ v ]I ]M W", "logarithmic"),
        (measured(-2.0, (-3.0, INF), (-INF, 0.0)), "0 I[ v ]M ]I", "linear"),
        (measured(2.0, (2.0, 2.0), (1.0, 3.0)), "0 M[ v ]M W", "linear"),
        (TARGET, "0 M[ I[ v ]I t W", "linear"),
        (THEOREM, "0 v ]I M[ ]M W", "linear"),
    ],
)
def test_a_margin_an_interval_and_a_value_are_drawn_in_their_order(
    measurement: Measurement, order: str, scale: str
) -> None:
    drawn = bar(measurement)
    assert drawn is not None
    places = {"0": 0.0, "W": WIDTH, "v": drawn["value"], "t": drawn["target"]}
    for sign, name in (("M", "margin"), ("I", "interval")):
        places[f"{sign}["], places[f"]{sign}"] = drawn[name]
    found = [places[name] for name in order.split()]
    assert found == sorted(set(found))
    assert drawn["scale"] == scale
    assert all(0 <= place <= WIDTH for place in places.values() if place is not None)


def test_nothing_is_drawn_without_a_number_and_something_around_it() -> None:
    assert bar(measured(None, (0.0, 1.0), (0.0, 1.0))) is None
    assert bar(measured(math.nan, (0.0, 1.0), None)) is bar(measured(3.0, None, None)) is None
    drawn = bar(measured(1.0, (math.nan, math.nan), (0.5, 2.0)))  # the interval is unknown
    assert drawn is not None
    assert (drawn["interval"], drawn["margin"] is None) == (None, False)


def in_words(details: dict[str, float]) -> str:
    return words.describe_measurement(Measurement(verdict="holds", details=details))


MISSED = {"heads missing, least": 1.0, "heads missing, most": 2.5, MET: 0.0}


@pytest.mark.parametrize(
    ("tell", "given", "told"),
    [
        (requirement_in_words, [measured(2.0, None, (1.75, 2.25))], "holds from 1.75 to 2.25"),
        (requirement_in_words, [measured(2.0, None, (-INF, 2.25))], "holds below 2.25"),
        (requirement_in_words, [measured(2.0, None, None)], ""),
        (requirement_in_words, [TARGET], "stated: 2; holds above 1.9"),
        (requirement_in_words, [TARGET, "paper"], "paper: 2; holds above 1.9"),
        (requirement_in_words, [THEOREM, "paper"], "must be 1, without an exception"),
        (margin_in_words, [(1.75, 2.25)], "margin 1.75 to 2.25"),
        (margin_in_words, [(-INF, 5e-324)], "margin below 0"),
        (margin_in_words, [(0.8, INF)], "margin above 0.8"),
        (margin_in_words, [(-INF, INF)], ""),
        (margin_in_words, [None], ""),
        (three_digits, [1013.4], "1010"),
        (three_digits, [1.9666], "1.97"),
        (three_digits, [-0.00012345], "−0.000123"),
        (three_digits, [5.2e-7], "5.2·10⁻⁷"),
        (three_digits, [0], "0"),
        (number_with_interval, [1013.4, Interval(988.1, 1056.0, "95 %")], "1010 [988, 1060]"),
        (number_with_interval, [12345.0, None], "12345"),
        (number_with_interval, [-3.0, None], "−3"),
        (number_with_interval, [None, None], "–"),
        (in_words, [{"d = 3": 7.916, "seeds": 10}], "d = 3 7.92; seeds 10."),
        (in_words, [{"seeds": 10}], "Seeds 10."),
        (in_words, [{"power": 2, "power, from": 1.5, "power, to": 2.5}], "Power 2 [1.5, 2.5]."),
        (in_words, [{"cells, from": 3.0}], "Cells, from 3."),
        (in_words, [{"decades, least": NAN, "decades, most": NAN}], "Decades not known."),
        (in_words, [{"loss": NAN}], "Loss not known."),
        (in_words, [{"loss, most": 3}], "Loss, most 3."),
        (in_words, [MISSED], f"Heads missing (met at 0 or less) 1 to 2.5; {MET} 0."),
        (counts_in_words, [["holds", "vacuous"]], "1 hold, 0 fail, 1 vacuous."),
        (counts_in_words, [["holds", "not run"]], "1 hold, 0 fail, 1 not run."),
    ],
)
def test_numbers_are_told_in_three_digits_and_few_words(
    tell: Callable[..., str], given: list[Any], told: str
) -> None:
    assert tell(*given) == told


@pytest.mark.parametrize(
    ("text", "typeset"),
    [
        ("λ_B² and N·SNR^p of W_Q", "λ<sub>B</sub>² and N·SNR<sup>p</sup> of W<sub>Q</sub>"),
        ("σ̃_p, (1 − ηα)^t", "σ̃<sub>p</sub>, (1 − ηα)<sup>t</sup>"),
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
    assert words.typeset(text) == typeset
