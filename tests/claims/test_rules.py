"""Rules that give verdicts, on numbers whose truth is known, and beside a slow oracle."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from overfit_cli import Measurement
from overfit_cli.claims.parts import (
    FEW,
    FEWEST,
    Margin,
    Part,
    Statistic,
    Worlds,
    factor_margin,
    tolerance_margin,
)
from overfit_cli.claims.rules import (
    FEWEST_SEEDS_OF_THEOREM,
    Requirements,
    decide,
    judge,
    judge_estimate,
    judge_theorem,
    mark_vacuous,
)
from overfit_cli.claims.stated import worst_verdict
from overfit_cli.core.arrays import Floats
from overfit_cli.core.claim import Verdict
from overfit_cli.stats.intervals import (
    Estimate,
    level_of_each,
    mean_estimate,
    set_level,
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
    assert judge_estimate(number(low, high), ONE_TO_TWO).verdict == verdict


@pytest.mark.parametrize("seeds", [1, 4])
def test_fewer_seeds_than_the_margin_names_decide_nothing(seeds: int) -> None:
    for low, high in ((1.2, 1.8), (3.0, 4.0)):
        found = judge_estimate(number(low, high, seeds), ONE_TO_TWO)
        assert found.verdict == "inconclusive"
        assert f"It needs 5 seeds; these cells have {seeds}." in found.note


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
    across = (min(holds + fails), max(holds + fails))
    for ends, verdict in ((holds, "holds"), (fails, "fails"), (across, "inconclusive")):
        assert judge_estimate(number(*ends), margin).verdict == verdict


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
    parts = [Part.of(values, Margin(1.3, 1.7))]
    assert judge(parts).verdict == "holds"
    assert judge(parts, among=20).verdict == "inconclusive"
    with set_level(level_of_each(20)):
        assert judge(parts).verdict == "inconclusive"


# Several numbers together


def test_of_several_that_hold_the_one_with_the_least_room_is_told() -> None:
    spread = 0.1 * np.array([-1.0, -0.5, 0.0, 0.0, 0.5, 1.0])
    far, near = (
        Part.of(at + spread, ONE_TO_TWO, called=name) for at, name in ((1.5, "far"), (1.8, "near"))
    )
    found = judge([far, near], note="Exponents.", details={"cells": 12})
    assert found.verdict == "holds"
    assert found.value == pytest.approx(1.8)
    assert found.note == "The worst is near. Exponents."
    assert [*found.details] == [
        "cells",
        "far",
        "far, from",
        "far, to",
        "near",
        "near, from",
        "near, to",
    ]
    below = Part.of(0.5 + spread, ONE_TO_TWO, called="below")
    assert judge([far, below]).verdict == "fails"
    assert judge([far, Part.of(1.0 + spread, ONE_TO_TWO)]).verdict == "inconclusive"


def test_one_of_many_parts_that_fails_barely_refutes_nothing() -> None:
    barely = Part.of(np.linspace(-0.08, 0.4, 8), Margin(most=0.0), called="barely")
    assert judge([barely]).verdict == "fails"
    found = judge([barely, *[Part.of(np.linspace(-2, -1, 8), Margin(most=0.0))] * 8])
    assert found.verdict == "inconclusive"
    assert found.note.endswith("By itself it fails; of so many settings one may.")


@pytest.mark.parametrize(
    ("verdicts", "verdict"),
    [
        (["holds", "holds"], "holds"),
        (["holds", "not run"], "not run"),
        (["not run", "vacuous"], "vacuous"),
        (["vacuous", "inconclusive", "holds"], "inconclusive"),
        (["inconclusive", "fails", "holds"], "fails"),
        (["holds by far", "holds"], "holds"),
        (["holds by far", "holds by far"], "holds by far"),
    ],
)
def test_the_worst_verdict_stands_for_all(verdicts: list[Verdict], verdict: Verdict) -> None:
    assert worst_verdict(verdicts) == worst_verdict(reversed(verdicts)) == verdict


# Shares of seeds, and theorems that one cell refutes


def cases(seeds: int, wrong: int, cells: int = 3) -> tuple[pd.Series[bool], pd.Series[int]]:
    """Whether cells are wrong: the first cell of each of the first `wrong` seeds."""
    seed = pd.Series([number for number in range(seeds) for _ in range(cells)])
    first = pd.Series(np.tile(np.arange(cells) == 0, seeds))
    broken: pd.Series[bool] = first & (seed < wrong)
    return broken, seed


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
    ("decades", "verdict"), [(-3.1, "holds by far"), (-2.9, "holds"), (0.1, "fails")]
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
    part = Part.of_cells(~broken, lost, seed, Margin(least=0.5))
    interval = judge([part]).interval
    assert interval is not None
    assert interval.low == pytest.approx(stats.binomtest(17, 20).proportion_ci().low)
    assert interval.high == 1.0


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
    values = np.linspace(-1.0, 1.0, 10)
    outer = mean_estimate(values)
    with set_level(0.9):
        inner = mean_estimate(values)
    between = (outer.high + inner.high) / 2
    assert judge([Part.of(values, Margin(-between, between))]).verdict == "holds"
    assert judge([Part.of(values, Margin(most=between))]).verdict == "inconclusive"  # its own level
    assert (
        judge([Part.of(values - 2 * between, Margin(-between, between))]).verdict == "inconclusive"
    )


def test_equivalence_errs_one_time_in_twenty_at_an_end_of_its_margin() -> None:
    draws = np.random.default_rng(0).normal(1.0, 0.1, (2000, 10))
    verdicts = decide(Worlds([Part.of(draws[0], Margin(0.0, 1.0))], [draws], [draws]), 0.05).verdict
    assert (verdicts > 0).mean() == pytest.approx(0.05, abs=0.015)
    assert (verdicts < 0).mean() == pytest.approx(0.025, abs=0.012)


# The rule beside a slow oracle


def slow_ends(part: Part, low: Floats, high: Floats, alpha: float) -> tuple[float, float]:
    """The ends of a part's interval in one world, each from its definition."""
    count = len(low)
    if part.statistic == "median":
        inside = [
            k for k in range(1, count // 2 + 1) if 2 * stats.binom.cdf(k - 1, count, 0.5) <= alpha
        ]
        if not inside:
            return -INF, INF
        return float(sorted(low)[max(inside) - 1]), float(sorted(high)[count - max(inside)])
    if part.statistic in ("share", "no exception"):
        ends = [
            stats.binomtest(int(end.sum()), count).proportion_ci(1 - alpha, "exact")
            for end in (low, high)
        ]
        return float(ends[0].low), float(ends[1].high)
    if part.statistic == "geometric mean":
        with np.errstate(divide="ignore"):
            logs = np.log(low), np.log(high)
        low_end, high_end = slow_mean_ends(*logs, (-INF, INF), alpha)
        return math.exp(low_end), math.exp(high_end)
    return slow_mean_ends(low, high, part.within, alpha)


def slow_mean_ends(
    low: Floats, high: Floats, within: tuple[float, float], alpha: float
) -> tuple[float, float]:
    count, (least, most) = len(low), within
    if count < 2 or not np.isfinite([low, high]).all():
        return within
    centre = (low.mean() + high.mean()) / 2
    deviation = math.sqrt(
        sum(max((a - centre) ** 2, (b - centre) ** 2) for a, b in zip(low, high, strict=True))
        / (count - 1)
    )
    if count < FEW and deviation <= 4 * np.finfo(float).eps * abs(centre):
        unseen = 1 - (alpha / 2) ** (1 / count)
        return low.mean() - unseen * (low.mean() - least), high.mean() + unseen * (
            most - high.mean()
        )
    half = stats.t.ppf(1 - alpha / 2, count - 1) * deviation / math.sqrt(count)
    return max(low.mean() - half, least), min(high.mean() + half, most)


def slow_verdict(parts: list[Part], alpha: float) -> int:
    """1 where every part holds, -1 where enough of them fail, by the sentences of the rule."""

    def holds(part: Part) -> bool:
        least, most = part.margin.least, part.margin.most
        if part.statistic == "no exception" and not part.low.all():
            return False
        is_double = part.statistic == "no exception" or math.isfinite(most - least)
        low, high = slow_ends(part, part.low, part.high, 2 * alpha if is_double else alpha)
        is_point_at_end = low == high and low in (least, most)
        return (
            len(part.low) >= part.margin.fewest_seeds
            and least <= low <= high <= most
            and not is_point_at_end
        )

    def fails(part: Part, error: float) -> bool:
        if part.statistic == "no exception":
            return not part.high.all()
        low, high = slow_ends(part, part.low, part.high, error)
        below, above = -INF < high < part.margin.least, part.margin.most < low < INF
        return len(part.low) >= part.margin.fewest_seeds and (below or above)

    if all(map(holds, parts)):
        return 1
    if any(part.statistic == "no exception" and fails(part, alpha) for part in parts):
        return -1
    count = len(parts)
    for fewest in {1, math.ceil(count / 2), count}:
        if sum(fails(part, alpha * fewest / count) for part in parts) >= fewest:
            return -1
    return 0


def random_part(random: np.random.Generator, statistic: Statistic) -> Part:
    """A part whose verdict is open: few or many seeds, unknown, missed and equal numbers."""
    seeds = int(random.integers(3, 25))
    centre, spread = random.normal(0, 0.4), random.choice([0.0, 0.1, 0.4])
    low = centre + spread * random.standard_normal(seeds)
    if statistic == "geometric mean":
        low = np.exp(low)
    if statistic in ("share", "no exception") or random.random() < 0.1:
        low = (random.random(seeds) < random.choice([0.1, 0.6, 1.0])).astype(float)
    high, within = low.copy(), (-INF, INF)
    lost = random.random(seeds) < random.choice([0.0, 0.0, 0.1])
    if statistic in ("share", "no exception"):
        low, high = np.where(lost, 0.0, low), np.where(lost, 1.0, high)
    elif random.random() < 0.5:
        high = np.where(lost, INF, high)  # missed targets: an edge, and infinity
    else:
        low, high = np.where(lost, low - 0.1, low), np.where(lost, high + 0.2, high)
    if statistic == "geometric mean":
        low, high = low.clip(min=0.0), high.clip(min=0.0)
    if statistic == "mean" and random.random() < 0.3:
        within = (-3.0, 3.0)
        low, high = low.clip(*within), high.clip(*within)
    margins = [(-INF, 0.5), (0.1, INF), (-0.5, 0.5), (0.2, 0.9), (-INF, 0.0)]
    if statistic == "no exception":
        margins = [(2 / 3, INF)]
    if statistic == "geometric mean":
        margins = [(0.5, 2.0), (-INF, 1.5)]
    least, most = margins[int(random.integers(len(margins)))]
    if statistic == "mean" and set(low) <= {0.0, 1.0}:
        within = (-1.0, 3.0)  # else it is a share
    return Part(
        "", low, high, Margin(least, most, fewest_seeds=FEWEST[statistic]), statistic, "", within
    )


@pytest.mark.parametrize("number", range(6))
def test_the_rule_is_that_of_a_slow_oracle(number: int) -> None:
    random, told = np.random.default_rng(number), list[int]()
    for _ in range(80):
        kinds = random.choice([*FEWEST][:5], size=int(random.integers(1, 6)))
        parts = [random_part(random, kind) for kind in kinds]
        alpha = float(random.choice([0.05, 0.02]))
        with set_level(1 - alpha):
            verdict = judge(parts).verdict
        told.append({"holds": 1, "fails": -1, "inconclusive": 0}[verdict])
        assert told[-1] == slow_verdict(parts, alpha), parts
    assert {*told} == {1, 0, -1}


def test_many_worlds_are_judged_at_once_as_each_is_by_itself() -> None:
    random = np.random.default_rng(0)
    for kind in ("median", "mean", "share"):
        parts = [random_part(random, kind) for _ in range(3)]
        seeds = 11
        low = [random.normal(0.3, 0.3, (20, seeds)) for _ in parts]
        low = [(one > 0.2).astype(float) for one in low] if kind == "share" else low
        high = [
            np.where(random.random(one.shape) < 0.02, 1.0 if kind == "share" else INF, one)
            for one in low
        ]
        together = decide(Worlds(parts, low, high), 0.05).verdict.tolist()
        for world, verdict in enumerate(together):
            of_world = [
                Part("", a[world], b[world], part.margin, part.statistic, "", part.within)
                for part, a, b in zip(parts, low, high, strict=True)
            ]
            assert slow_verdict(of_world, 0.05) == verdict


def test_equal_numbers_bound_a_mean_by_the_limits_of_what_they_can_be() -> None:
    equal = np.full(10, 0.999)
    unbounded = judge([Part.of(equal, Margin(least=0.9))])
    assert unbounded.verdict == "inconclusive"
    assert unbounded.note.startswith("Of fewer than 30 equal numbers nothing is known")
    assert judge([Part.of(equal, Margin(least=0.5), within=(0.0, 1.0))]).verdict == "holds"
    assert judge([Part.of(equal, Margin(least=0.9), within=(0.0, 1.0))]).verdict == "inconclusive"
    assert judge([Part.of(np.full(30, 0.999), Margin(least=0.9))]).verdict == "holds"
    assert judge([Part.of(equal, Margin(least=0.9), "median")]).verdict == "holds"


def test_a_mean_of_zeros_and_ones_seldom_holds_wrongly() -> None:
    random = np.random.default_rng(2)
    draws = (random.random((2000, 6)) < 0.25).astype(float)
    held = [judge([Part.of(one, Margin(most=0.2))]).verdict == "holds" for one in draws]
    assert np.mean(held) == 0.0


@pytest.mark.parametrize(
    ("low", "verdict"), [(2.0, "fails"), (0.5, "inconclusive"), (INF, "inconclusive")]
)
def test_a_target_that_was_missed_lies_beyond_its_edge_and_can_fail(
    low: float, verdict: Verdict
) -> None:
    missed = Part.of(np.full(8, low), Margin(most=1.0), "median", up_to=np.full(8, INF))
    assert judge([missed]).verdict == verdict
    assert judge([missed, Part.of(np.zeros(8), Margin(most=1.0), "median")]).verdict == verdict
