"""Rules that give verdicts, on numbers whose truth is known."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from overfit_cli import Measurement
from overfit_cli.claims.rules import (
    FEWEST_SEEDS_OF_THEOREM,
    Margin,
    Requirements,
    factor_margin,
    joint_verdict,
    judge_estimate,
    judge_estimates,
    judge_instance,
    judge_theorem,
    mark_vacuous,
    share_of_seeds,
    tolerance_margin,
)
from overfit_cli.core.claim import Verdict
from overfit_cli.stats.intervals import (
    Estimate,
    level_of_each,
    mean_estimate,
    set_level,
    share_estimate,
)

INF, NAN = math.inf, math.nan
ONE_TO_TWO = Margin(1.0, 2.0, "the paper's constants")


def number(low: float, high: float, seeds: int = 10) -> Estimate:
    """An estimate with this interval."""
    return Estimate((low + high) / 2, low, high, f"95 % t over {seeds} seeds", seeds)


# One number


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (1.2, 1.8, "holds"),  # inside
        (1.0, 2.0, "holds"),  # as wide as the margin itself
        (0.2, 0.9, "fails"),  # below
        (2.1, 3.0, "fails"),  # above
        (0.9, 1.5, "inconclusive"),  # across the lower end
        (1.5, 2.1, "inconclusive"),  # across the upper end
        (0.5, 2.5, "inconclusive"),  # the margin lies inside the interval
        (0.5, 1.0, "inconclusive"),  # it touches the lower end from outside
        (2.0, 3.0, "inconclusive"),  # it touches the upper end from outside
        (1.5, 1.5, "holds"),  # every seed has the same number, inside
        (2.0, 2.0, "inconclusive"),
        (NAN, NAN, "inconclusive"),  # no interval
        (-INF, INF, "inconclusive"),
        (2.5, INF, "fails"),  # at least 2.5, whatever its other end is
        (INF, INF, "inconclusive"),  # beyond what was measured
    ],
)
def test_the_whole_interval_decides(low: float, high: float, verdict: Verdict) -> None:
    assert ONE_TO_TWO.verdict(number(low, high)) == verdict


@pytest.mark.parametrize("seeds", [0, 1, 4])
def test_fewer_seeds_than_the_margin_names_decide_nothing(seeds: int) -> None:
    for low, high in ((1.2, 1.8), (3.0, 4.0)):
        found = judge_estimate(number(low, high, seeds), ONE_TO_TWO)
        assert found.verdict == "inconclusive"
        assert f"It needs 5 seeds; these cells have {seeds} seed" in found.note


@pytest.mark.parametrize(
    ("margin", "holds", "fails"),
    [
        (Margin(most=0.0), (-2.0, -1.0), (1.0, 2.0)),
        (Margin(least=0.0), (1.0, 2.0), (-2.0, -1.0)),
        (tolerance_margin(2.0, 0.1, "a tenth"), (1.95, 2.05), (2.2, 2.3)),
        (factor_margin(10.0, 2.0, "twice"), (6.0, 19.0), (21.0, 30.0)),
    ],
)
def test_a_margin_of_one_side_and_one_around_a_value(
    margin: Margin, holds: tuple[float, float], fails: tuple[float, float]
) -> None:
    assert margin.verdict(number(*holds)) == "holds"
    assert margin.verdict(number(*fails)) == "fails"
    assert margin.verdict(number(min(holds + fails), max(holds + fails))) == "inconclusive"


def test_a_margin_says_where_the_interval_must_lie_and_why() -> None:
    assert str(ONE_TO_TWO) == "from 1 to 2"
    assert str(Margin(most=0.5)) == "below 0.5"
    assert str(Margin(least=0.5)) == "above 0.5"
    assert ONE_TO_TWO.in_words("the exponent") == (
        "the exponent has its whole interval from 1 to 2 (the paper's constants); at least 5 seeds"
    )


def test_the_measurement_has_the_number_its_interval_and_what_else_is_said() -> None:
    found = judge_estimate(number(1.2, 1.8), ONE_TO_TWO, note="An exponent.", details={"curves": 3})
    assert (found.value, found.note, found.details) == (1.5, "An exponent.", {"curves": 3})
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == (1.2, 1.8)
    assert found.by_chance


def test_a_stricter_level_may_leave_open_what_one_interval_decides() -> None:
    values = 1.5 + 0.05 * np.array([-5.0, -3.0, -1.0, 1.0, 3.0, 5.0])
    margin = Margin(1.3, 1.7)
    assert judge_estimate(mean_estimate(values), margin).verdict == "holds"
    with set_level(level_of_each(20)):
        assert judge_estimate(mean_estimate(values), margin).verdict == "inconclusive"


# Several numbers together


@pytest.mark.parametrize(
    ("second", "verdict"),
    [
        ((1.1, 1.9), "holds"),
        ((2.5, 3.0), "fails"),
        ((1.5, 2.5), "inconclusive"),
        ((NAN, NAN), "inconclusive"),
    ],
)
def test_several_numbers_hold_where_all_do_and_fail_where_one_does(
    second: tuple[float, float], verdict: Verdict
) -> None:
    both = {
        "at 1": (number(1.4, 1.6), ONE_TO_TWO),
        "at 2": (number(*second), ONE_TO_TWO),
    }
    found = judge_estimates(both, note="Exponents.")
    assert found.verdict == verdict
    assert found.note.startswith("at 2: Exponents.")
    swapped = judge_estimates(dict(reversed(both.items())))
    assert (swapped.verdict, swapped.interval) == (found.verdict, found.interval) or math.isnan(
        second[0]
    )


def test_of_several_that_hold_the_one_with_the_least_room_is_told() -> None:
    found = judge_estimates(
        {"far": (number(1.4, 1.6), ONE_TO_TWO), "near": (number(1.75, 1.95), ONE_TO_TWO)}
    )
    assert found.value == pytest.approx(1.85)
    assert found.details == pytest.approx(
        {"far": 1.5, "far, from": 1.4, "far, to": 1.6}
        | {"near": 1.85, "near, from": 1.75, "near, to": 1.95}
    )


@pytest.mark.parametrize(
    ("verdicts", "verdict"),
    [
        (["holds", "holds"], "holds"),
        (["holds", "not run"], "not run"),
        (["not run", "vacuous"], "vacuous"),
        (["vacuous", "inconclusive", "holds"], "inconclusive"),
        (["inconclusive", "fails", "holds"], "fails"),
    ],
)
def test_the_worst_verdict_stands_for_all(verdicts: list[Verdict], verdict: Verdict) -> None:
    assert joint_verdict(verdicts) == joint_verdict(reversed(verdicts)) == verdict


# Shares of seeds, and theorems that one cell refutes


def cases(seeds: int, wrong: int, cells: int = 3) -> tuple[pd.Series[bool], pd.Series[int]]:
    """Whether cells are wrong: the first cell of each of the first `wrong` seeds."""
    seed = pd.Series([number for number in range(seeds) for _ in range(cells)])
    first = pd.Series(np.tile(np.arange(cells) == 0, seeds))
    broken: pd.Series[bool] = first & (seed < wrong)
    return broken, seed


def test_a_seed_is_right_where_all_its_cells_are() -> None:
    broken, seed = cases(seeds=10, wrong=3)
    found = share_of_seeds(~broken, seed)
    assert (found.value, found.seeds) == (0.7, 10)
    assert 0 < found.low < 0.7 < found.high < 1
    assert share_of_seeds(~broken & False, seed).low == 0.0
    assert share_of_seeds(broken | True, seed).high == 1.0


@pytest.mark.parametrize(
    ("seeds", "wrong", "verdict"),
    [
        (FEWEST_SEEDS_OF_THEOREM, 0, "holds"),
        (FEWEST_SEEDS_OF_THEOREM - 1, 0, "inconclusive"),
        (1, 0, "inconclusive"),
        (50, 1, "fails"),  # one exception refutes a theorem
        (1, 1, "fails"),
    ],
)
def test_a_theorem_holds_without_exception_on_enough_seeds(
    seeds: int, wrong: int, verdict: Verdict
) -> None:
    found = judge_theorem(*cases(seeds, wrong), note="A bound.", details={"cells": 9})
    assert found.verdict == verdict
    assert found.value == (seeds - wrong) / seeds
    assert found.note.startswith("The share of seeds without an exception. A bound.")
    assert ("It needs 10 seeds" in found.note) == (verdict == "inconclusive")
    # No other draw takes an exception back; that there is none is a matter of seeds.
    assert found.by_chance == (wrong == 0)


def test_many_claims_together_need_more_seeds_without_an_exception() -> None:
    with set_level(level_of_each(10)):
        assert judge_theorem(*cases(FEWEST_SEEDS_OF_THEOREM, 0)).verdict == "inconclusive"
        assert judge_theorem(*cases(20, 0)).verdict == "holds"
        assert judge_theorem(*cases(5, 1)).verdict == "fails"


# What nothing is drawn for, and what could not have been otherwise


def test_what_is_not_drawn_is_decided_by_one_number_without_an_interval() -> None:
    assert judge_instance(True, 0.0).verdict == "holds"
    assert judge_instance(False, 0.0).verdict == "fails"
    assert judge_instance(True, NAN).verdict == judge_instance(False, NAN).verdict == "inconclusive"
    found = judge_instance(True, 1.0, note="An example.")
    assert (found.interval, found.by_chance) == (None, False)
    assert found.note == "Nothing is drawn. An example."


@pytest.mark.parametrize("verdict", ["holds", "fails", "inconclusive"])
def test_what_could_not_have_been_otherwise_says_nothing(verdict: Verdict) -> None:
    before = Measurement(verdict=verdict, value=0.5, details={"cells": 2}, note="Measured.")
    found = mark_vacuous(before, "The bound is above 1.", {"bound": 7.0})
    assert (found.verdict, found.value, found.by_chance) == ("vacuous", 0.5, False)
    assert found.details == {"cells": 2, "bound": 7.0}
    assert found.note == "Measured. The bound is above 1."


def requirements(*missed: float) -> Requirements:
    """One requirement, with the distance of each cell to it."""
    return Requirements({"decades of heads missing": pd.Series(missed)}, "there are too few heads")


def test_a_theorem_is_judged_on_the_cells_that_meet_its_hypotheses() -> None:
    broken, seed = cases(seeds=20, wrong=20, cells=1)
    met = [0.0] * 19 + [2.5]
    refuted = judge_theorem(broken, seed, requirements=requirements(*met))
    assert (refuted.verdict, refuted.value) == ("fails", 0.0)
    assert refuted.details["cells that meet its hypotheses"] == 19
    elsewhere = judge_theorem(seed == 19, seed, requirements=requirements(*met))
    assert elsewhere.verdict == "holds"  # the exception misses the hypothesis
    few = judge_theorem(seed < 0, seed, requirements=requirements(*[0.0] * 9, *[1.0] * 11))
    assert few.verdict == "inconclusive"
    assert few.note.endswith("It needs 10 seeds; these cells have 9.")


def test_a_theorem_is_vacuous_where_no_cell_meets_its_hypotheses() -> None:
    broken, seed = cases(seeds=20, wrong=20, cells=1)
    found = judge_theorem(broken, seed, requirements=requirements(*[0.5] * 19, math.nan))
    assert (found.verdict, found.by_chance) == ("vacuous", False)
    assert found.note == "No cell meets its hypotheses: there are too few heads."
    assert found.details["decades of heads missing, least"] == 0.5


@pytest.mark.parametrize(
    ("decades", "verdict"), [(-3.1, "vacuous"), (-2.9, "holds"), (0.1, "fails")]
)
def test_a_bound_that_all_cells_lie_far_below_could_not_have_been_broken(
    decades: float, verdict: Verdict
) -> None:
    seed = pd.Series(range(12))
    over = pd.Series(decades, seed.index)
    assert judge_theorem(over > 0, seed, decades_over=over).verdict == verdict


def test_a_cell_that_failed_refutes_nothing_and_lets_nothing_hold() -> None:
    broken, seed = cases(seeds=20, wrong=1, cells=1)
    unknown: pd.Series[bool] = seed == 0
    found = judge_theorem(broken, seed, unknown=unknown)
    assert found.verdict == "inconclusive"
    assert found.details["cells that failed or are absent"] == 1
    another = judge_theorem(broken | (seed == 7), seed, unknown=unknown)
    assert another.verdict == "fails"  # whatever the lost cell is


def test_a_share_of_seeds_allows_for_both_outcomes_of_a_cell_that_failed() -> None:
    broken, seed = cases(seeds=20, wrong=0, cells=2)
    lost: pd.Series[bool] = pd.Series(range(40)) < 6  # three whole seeds
    found, known = share_of_seeds(~broken, seed, lost), share_of_seeds(~broken, seed)
    assert found.high == known.high == 1.0
    assert found.low == pytest.approx(share_estimate(17, 20).low)


def test_a_lost_cell_whose_hypothesis_is_lost_too_may_be_one_that_meets_it() -> None:
    seed = pd.Series(range(20))
    lost: pd.Series[bool] = seed < 3
    known = [math.nan] * 3 + [-1.0] * 17
    found = judge_theorem(seed < 0, seed, unknown=lost, requirements=requirements(*known))
    assert found.verdict == "inconclusive"
    missed = [1.0] * 3 + [-1.0] * 17
    found = judge_theorem(seed < 0, seed, unknown=lost, requirements=requirements(*missed))
    assert found.verdict == "holds"


# Equivalence: two one-sided tests


def test_equivalence_holds_by_the_90_percent_interval_and_fails_by_the_95() -> None:
    margin = Margin(1.0, 2.0)
    near = Estimate(1.5, 0.95, 2.05, "95 % t over 10 seeds", 10, inner=(1.02, 1.98))
    assert margin.verdict(near) == "holds"
    assert Margin(least=1.0).verdict(near) == "inconclusive"  # one side keeps its level
    beyond = Estimate(2.5, 1.95, 3.05, "95 % t over 10 seeds", 10, inner=(2.05, 2.95))
    assert margin.verdict(beyond) == "inconclusive"


def test_equivalence_errs_one_time_in_twenty_at_an_end_of_its_margin() -> None:
    draws = np.random.default_rng(0).normal(1.0, 0.1, (2000, 10))
    verdicts = [Margin(0.0, 1.0).verdict(mean_estimate(values)) for values in draws]
    assert verdicts.count("holds") / 2000 == pytest.approx(0.05, abs=0.015)
    assert verdicts.count("fails") / 2000 == pytest.approx(0.025, abs=0.012)


def test_seeds_that_nearly_repeat_another_do_not_count() -> None:
    values = 1.5 + 0.1 * np.random.default_rng(0).normal(size=3)
    copies = np.tile(values, 7) * (1 + 1e-9 * np.arange(21))
    found = judge_estimate(mean_estimate(copies), Margin(1.0, 2.0))
    assert found.verdict == "inconclusive"
    assert "It needs 5 seeds; these cells have 21 seeds, of which 3 differ." in found.note
    counts = mean_estimate(np.tile([1.0, 1.5, 2.0], 7))  # short decimals agree by chance
    assert counts.seeds == 21
