"""Rules that give verdicts: on numbers whose truth is known, beside a slow oracle, and in rates."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from calibration.sentences import WORLDS, rate
from overfit_cli.claims import parts as made
from overfit_cli.claims.parts import FEWEST, Margin, Part, Statistic, fewest_seeds
from overfit_cli.claims.rules import judge, judge_estimate, rates, seeds_to_decide
from overfit_cli.claims.sentences import read
from overfit_cli.claims.stated import Measure, worst_verdict
from overfit_cli.core.arrays import Floats
from overfit_cli.core.claim import Interval, Measurement, UndecidedError, Verdict
from overfit_cli.core.parameters import StudyParameters
from overfit_cli.stats.intervals import FEW, Estimate, level_of_each, set_level

INF, NAN = math.inf, math.nan
Pair = tuple[float, float]
Ends = list[Pair]
ONE_TO_TWO = Margin(1.0, 2.0, "the paper's constants")


def number(low: float, high: float, seeds: int = 10) -> Estimate:
    """An estimate with this interval."""
    return Estimate((low + high) / 2, low, high, f"95 % t over {seeds} seeds", seeds)


# One number

ACROSS = [(0.9, 1.5), (1.5, 2.1), (0.5, 2.5)]
TOUCHING = [(0.5, 1.0), (2.0, 3.0), (2.0, 2.0)]
WITHOUT_AN_END = [(NAN, NAN), (-INF, INF), (INF, INF)]  # the last lies beyond what was measured


@pytest.mark.parametrize(
    ("margin", "holds", "fails", "neither"),
    [
        # It may be as wide as the margin itself, and a point: every seed has the same number.
        (ONE_TO_TWO, [(1.2, 1.8), (1.0, 2.0), (1.5, 1.5)], [(0.2, 0.9), (2.1, 3.0)], ACROSS),
        (ONE_TO_TWO, [], [(2.5, INF)], TOUCHING + WITHOUT_AN_END),
        (Margin(most=0.0), [(-2.0, -1.0)], [(1.0, 2.0)], [(-2.0, 2.0)]),
        (Margin(least=0.0), [(1.0, 2.0)], [(-2.0, -1.0)], [(-2.0, 2.0)]),
        (made.tolerance_margin(2.0, 0.1), [(1.95, 2.05)], [(2.2, 2.3)], [(1.95, 2.3)]),
    ],
)
def test_a_whole_interval_decides(margin: Margin, holds: Ends, fails: Ends, neither: Ends) -> None:
    for verdict, intervals in (("holds", holds), ("fails", fails), ("inconclusive", neither)):
        for ends in intervals:
            assert judge_estimate(number(*ends), margin).verdict == verdict, ends
    for ends in holds + fails:
        few = judge_estimate(number(*ends, seeds=4), margin)
        assert few.verdict == "inconclusive"
        assert "It needs 5 seeds; these cells have 4." in few.note


def test_a_margin_and_a_measurement_say_what_they_are_of() -> None:
    assert [str(Margin(most=0.5)), str(Margin(least=0.5))] == ["below 0.5", "above 0.5"]
    assert ONE_TO_TWO.in_words("the exponent") == (
        "the exponent has its whole interval from 1 to 2 (the paper's constants); at least 5 seeds"
    )
    found = judge_estimate(number(1.2, 1.8), ONE_TO_TWO, note="An exponent.", details={"curves": 3})
    assert (found.value, found.note, found.details) == (1.5, "An exponent.", {"curves": 3})
    assert (found.interval, found.by_chance) == (Interval(1.2, 1.8, "95 % t over 10 seeds"), True)


# Several numbers together


def test_of_several_that_hold_the_one_with_the_least_room_is_told() -> None:
    spread = 0.1 * np.array([-1.0, -0.5, 0.0, 0.0, 0.5, 1.0])
    far, near, below, at_end = (
        Part.of(at + spread, ONE_TO_TWO, called=name)
        for at, name in ((1.5, "far"), (1.8, "near"), (0.5, "below"), (1.0, "at its end"))
    )
    found = judge([far, near], note="Exponents.", details={"cells": 12})
    assert (found.verdict, found.note) == ("holds", "The worst is near. Exponents.")
    assert found.value == pytest.approx(1.8)
    of_each = [f"{name}{end}" for name in ("far", "near") for end in ("", ", from", ", to")]
    assert [*found.details] == ["cells", *of_each]
    assert judge([far, below]).verdict == "fails"
    assert judge([far, at_end]).verdict == "inconclusive"


def test_a_stricter_level_leaves_open_what_one_interval_decides_and_so_do_many_parts() -> None:
    even = [Part.of(1.5 + 0.05 * np.array([-5, -3, -1, 1, 3, 5]), Margin(1.3, 1.7))]
    assert (judge(even).verdict, judge(even, among=20).verdict) == ("holds", "inconclusive")
    barely = Part.of(np.linspace(-0.08, 0.4, 8), Margin(most=0.0), called="barely")
    assert judge([barely]).verdict == "fails"
    found = judge([barely, *[Part.of(np.linspace(-2, -1, 8), Margin(most=0.0))] * 8])
    assert found.verdict == "inconclusive"
    assert found.note.endswith("By itself it fails; of so many settings one may.")


def test_the_worst_verdict_stands_for_all() -> None:
    order: list[Verdict] = ["holds by far", "holds", "not run", "vacuous", "inconclusive", "fails"]
    for better, worse in itertools.combinations_with_replacement(order, 2):
        assert worst_verdict([better, worse]) == worst_verdict([worse, better]) == worse


# Shares of seeds, and theorems that one cell refutes


class Toy(StudyParameters):
    """No parameters."""


def bound(text: str, **columns: Any) -> Measurement:
    """The measurement of a bound on cells with these columns; one that failed was killed."""
    cells = pd.DataFrame({"status": "done", "reason": "killed", **columns})
    try:
        return Measure(read(text), Toy)(cells)
    except UndecidedError as undecided:
        return undecided.measurement


@pytest.mark.parametrize(
    ("together", "needed", "seeds", "wrong", "verdict"),
    [
        (1, 10, 10, 0, "holds"),
        (1, 10, 9, 0, "inconclusive"),
        (1, 10, 1, 1, "fails"),  # one exception refutes a theorem
        (10, 14, 10, 0, "inconclusive"),  # many claims together need more seeds without one
        (10, 14, 20, 0, "holds"),
    ],
)
def test_a_theorem_holds_without_exception_on_enough_seeds(
    together: int, needed: int, seeds: int, wrong: int, verdict: Verdict
) -> None:
    seed = pd.Series(np.repeat(range(seeds), 3))
    broken = ~seed.duplicated() & (seed < wrong)  # the first cell of three
    with set_level(level_of_each(together)):
        found = bound("q <= 1 on all seeds", seed=seed, q=1.0 + broken)
    assert (found.verdict, found.value) == (verdict, (seeds - wrong) / seeds)
    assert (f"It needs {needed} seeds" in found.note) == (verdict == "inconclusive")
    # No other draw takes an exception back; that there is none is a matter of seeds.
    assert found.by_chance == (wrong == 0)


SEED = pd.Series(range(20))


@pytest.mark.parametrize(
    ("broken", "lost", "missed", "verdict", "words"),
    [
        (SEED < 20, 0, [0.0] * 19 + [2.5], "fails", ""),
        (SEED == 19, 0, [0.0] * 19 + [2.5], "holds", ""),  # the exception misses the hypothesis
        (SEED < 0, 0, [0.0] * 9 + [1.0] * 11, "inconclusive", "10 seeds; these cells have 9."),
        (SEED < 20, 0, [0.5] * 19 + [NAN], "vacuous", "No cell meets its hypotheses: a <= 1."),
        (SEED == 0, 1, [0.0] * 20, "inconclusive", ""),
        (SEED % 7 == 0, 1, [0.0] * 20, "fails", ""),  # whatever the lost cell is
        (SEED < 0, 3, [NAN] * 3 + [-1.0] * 17, "inconclusive", ""),  # they may meet it
        (SEED < 0, 3, [1.0] * 3 + [-1.0] * 17, "holds", ""),
    ],
)
def test_a_theorem_is_judged_on_the_cells_that_meet_its_hypotheses(
    broken: pd.Series[bool], lost: int, missed: list[float], verdict: Verdict, words: str
) -> None:
    is_lost = lost > SEED
    q, status = (1.0 + broken).mask(is_lost), np.where(is_lost, "failed", "done")
    found = bound(
        "q <= 1 on all seeds if a <= 1", seed=SEED, q=q, a=10.0 ** pd.Series(missed), status=status
    )
    assert found.verdict == verdict
    assert words in found.note
    assert found.by_chance == (verdict in ("holds", "inconclusive"))
    assert found.details["cells that meet its hypotheses"] == (pd.Series(missed) <= 0).sum()
    least = found.details["decades over a <= 1, least"]
    assert least == pytest.approx(np.nanmin(missed))
    may_meet = lost if not missed[0] > 0 else 0
    assert found.details.get("cells that failed or are absent", 0) == may_meet


@pytest.mark.parametrize(
    ("reason", "q", "a", "verdict"),
    [
        ("diverged", 0.5, 0.5, "fails"),  # whatever its number is
        ("diverged", NAN, 0.5, "fails"),
        ("diverged", NAN, NAN, "inconclusive"),  # it may have missed the hypothesis
        ("diverged", 0.5, 2.0, "holds"),
        ("step limit", 0.5, 0.5, "inconclusive"),  # it may have gone on
        ("step limit", 2.0, 0.5, "fails"),
        ("killed", 2.0, 0.5, "inconclusive"),
    ],
)
def test_a_failed_cell_with_a_number_has_failed(
    reason: str, q: float, a: float, verdict: Verdict
) -> None:
    failed = SEED == 3
    numbers: dict[str, Any] = {
        name: pd.Series(0.5, SEED.index).mask(failed, to) for name, to in (("q", q), ("a", a))
    }
    status = np.where(failed, "failed", "done")
    found = bound(
        "q <= 1 on all seeds if a <= 1", seed=SEED, status=status, reason=reason, **numbers
    )
    assert found.verdict == verdict


# The rule beside a slow oracle


def slow_ends(part: Part, low: Floats, high: Floats, alpha: float) -> Pair:
    """The ends of a part's interval in one world, each from its definition."""
    count = len(low)
    if part.statistic == "median":
        inside = [k for k in range(count // 2) if 2 * stats.binom.cdf(k, count, 0.5) <= alpha]
        below, above = [-INF, *sorted(low)], [*sorted(high), INF]  # where none is inside
        return below[len(inside)], above[-1 - len(inside)]
    if part.statistic in ("share", "no exception"):
        counts = (stats.binomtest(int(end.sum()), count) for end in (low, high))
        of_low, of_high = (each.proportion_ci(1 - alpha, "exact") for each in counts)
        return float(of_low.low), float(of_high.high)
    if part.statistic == "geometric mean":
        with np.errstate(divide="ignore"):
            ends = slow_mean_ends(np.log(low), np.log(high), (-INF, INF), alpha)
        return math.exp(ends[0]), math.exp(ends[1])
    return slow_mean_ends(low, high, part.within, alpha)


def slow_mean_ends(low: Floats, high: Floats, within: Pair, alpha: float) -> Pair:
    count, (least, most) = len(low), within
    if count < 2 or not np.isfinite([low, high]).all():
        return within
    centre, below, above = (low.mean() + high.mean()) / 2, low.mean(), high.mean()
    furthest = [max(abs(a - centre), abs(b - centre)) for a, b in zip(low, high, strict=True)]
    deviation = math.sqrt(sum(each**2 for each in furthest) / (count - 1))
    if count < FEW and deviation <= 4 * np.finfo(float).eps * abs(centre):
        unseen = 1 - (alpha / 2) ** (1 / count)
        return below - unseen * (below - least), above + unseen * (most - above)
    half = stats.t.ppf(1 - alpha / 2, count - 1) * deviation / math.sqrt(count)
    return max(below - half, least), min(above + half, most)


def slow_verdict(parts: list[Part], alpha: float) -> int:
    """1 where every part holds, -1 where enough of them fail, by the sentences of the rule."""

    def holds(part: Part) -> bool:
        least, most = part.margin.least, part.margin.most
        if part.statistic == "no exception" and not part.low.all():
            return False
        is_double = part.statistic == "no exception" or math.isfinite(most - least)
        low, high = slow_ends(part, part.low, part.high, 2 * alpha if is_double else alpha)
        is_point_at_end = low == high and low in (least, most)
        enough = len(part.low) >= part.margin.fewest_seeds
        return enough and least <= low <= high <= most and not is_point_at_end

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


MARGINS: dict[Statistic, Ends] = {
    **{each: [(-INF, 0.5), (0.1, INF), (-0.5, 0.5), (0.2, 0.9), (-INF, 0.0)] for each in FEWEST},
    "no exception": [(2 / 3, INF)],
    "geometric mean": [(0.5, 2.0), (-INF, 1.5)],
}


def random_part(random: np.random.Generator, statistic: Statistic) -> Part:
    """A part whose verdict is open: few or many seeds, unknown, missed and equal numbers."""
    seeds = int(random.integers(3, 25))
    centre, spread = random.normal(0, 0.4), random.choice([0.0, 0.1, 0.4])
    low = centre + spread * random.standard_normal(seeds)
    low = np.exp(low) if statistic == "geometric mean" else low
    is_share = statistic in ("share", "no exception")
    if is_share or random.random() < 0.1:
        low = (random.random(seeds) < random.choice([0.1, 0.6, 1.0])).astype(float)
    # A lost number may lie a little below or above; a missed target has an edge, and infinity.
    ways = [(0.0, 1.0)] if is_share else [(low - 0.1, low + 0.2), (low, INF)]
    below, above = ways[int(random.integers(len(ways)))]
    lost = random.random(seeds) < random.choice([0.0, 0.0, 0.1])
    is_bounded = statistic == "mean" and random.random() < 0.3
    within = (-3.0, 3.0) if is_bounded else (0.0 if statistic == "geometric mean" else -INF, INF)
    low, high = (np.where(lost, end, low).clip(*within) for end in (below, above))
    if statistic == "mean" and set(low) <= {0.0, 1.0}:
        within = (-1.0, 3.0)  # else it is a share
    ends = MARGINS[statistic][int(random.integers(len(MARGINS[statistic])))]
    margin = Margin(*ends, fewest_seeds=FEWEST[statistic])
    return Part("", low, high, margin, statistic, within=within)


@pytest.mark.parametrize("number", range(4))
def test_the_rule_is_that_of_a_slow_oracle(number: int) -> None:
    random, told = np.random.default_rng(number), list[int]()
    for _ in range(40):
        kinds = random.choice([*FEWEST][:5], size=int(random.integers(1, 6)))
        parts = [random_part(random, kind) for kind in kinds]
        alpha = float(random.choice([0.05, 0.02]))
        with set_level(1 - alpha):
            verdict = judge(parts).verdict
        told.append({"holds": 1, "fails": -1, "inconclusive": 0}[verdict])
        assert told[-1] == slow_verdict(parts, alpha), parts
    assert {*told} == {1, 0, -1}


@pytest.mark.parametrize(("kind", "missed"), [("median", INF), ("mean", INF), ("share", 1.0)])
def test_many_worlds_are_judged_at_once_as_each_is_alone(kind: Statistic, missed: float) -> None:
    random = np.random.default_rng(0)
    parts = [random_part(random, kind) for _ in range(3)]
    low = [random.normal(0.3, 0.3, (8, 11)) for _ in parts]
    low = [(one > 0.2).astype(float) for one in low] if kind == "share" else low
    high = [np.where(random.random(one.shape) < 0.02, missed, one) for one in low]
    together = made.decide(made.Worlds(parts, low, high), 0.05).verdict.tolist()
    for world, verdict in enumerate(together):
        ends = zip(parts, low, high, strict=True)
        alone = [replace(part, low=a[world], high=b[world]) for part, a, b in ends]
        assert slow_verdict(alone, 0.05) == verdict


def test_equal_numbers_bound_a_mean_by_the_limits_of_what_they_can_be() -> None:
    def judged(seeds: int, least: float, most: float) -> Measurement:
        return judge([Part.of(np.full(seeds, 0.999), Margin(0.5), within=(least, most))])

    assert judged(10, -INF, INF).verdict == "inconclusive"
    assert judged(10, -INF, INF).note.startswith("Nothing is known of the interval's ends")
    assert judged(10, 0.0, 1.0).verdict == judged(30, -INF, INF).verdict == "holds"


def test_a_mean_of_zeros_and_ones_seldom_holds_wrongly() -> None:
    """Of six seeds none decides a share of 0.2, however many of them are ones."""
    for size, margin in ((1, Margin(most=0.2)), (100, Margin(most=20)), (-1, Margin(-0.2))):
        for draws in np.tri(7, 6, -1):
            assert judge([Part.of(size * draws, margin)]).verdict != "holds"


# How often rules err, and how many seeds decide


def part(numbers: object, statistic: Statistic, least: float = -inf, most: float = inf) -> Part:
    return Part.of(numbers, Margin(least, most, fewest_seeds=FEWEST[statistic]), statistic)


@pytest.mark.parametrize("statistic", ["median", "mean"])
@pytest.mark.parametrize("ends", [{"most": 1.0}, {"least": -1.0}, {"least": -1.0, "most": 1.0}])
def test_error_rates_are_those_of_the_level(statistic: Statistic, ends: dict[str, float]) -> None:
    random = np.random.default_rng(3)
    samples = [random.normal(0, 0.1, 20) for _ in range(12)]
    simulated = [rates([part(numbers, statistic, **ends)]) for numbers in samples]
    stated = 0.05 if len(ends) == 2 else 0.025  # an inner interval decides what has two ends
    assert 0 < np.mean([each.false_holds for each in simulated]) <= stated + 0.025
    assert 0 < np.mean([each.false_fails for each in simulated]) <= 0.025 + 0.015
    assert {(each.holds, each.fails) for each in simulated} == {(1.0, 0.0)}


def test_a_number_near_its_margin_takes_more_seeds_and_one_at_it_takes_too_many() -> None:
    numbers = np.random.default_rng(1).normal(0, 1, 15)
    numbers -= np.median(numbers)
    needed = [seeds_to_decide([part(numbers, "median", most=end)]) or 0 for end in (3.0, 1.0, 0.3)]
    assert needed == sorted(needed)
    assert needed[0] == 6 < needed[2]
    assert seeds_to_decide([part(numbers - numbers.mean(), "mean", most=0.0)]) is None


def test_the_seeds_that_are_proposed_decide_it() -> None:
    random = np.random.default_rng(5)
    pilot = part(random.normal(0, 1, 30), "mean", most=0.6)
    count, centre = seeds_to_decide([pilot]) or 0, pilot.low.mean()
    samples = [part(random.normal(centre, 1, count), "mean", most=0.6) for _ in range(300)]
    assert 0.75 < np.mean([judge([each]).verdict == "holds" for each in samples]) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("world", WORLDS)
def test_a_median_is_seldom_judged_wrongly_whatever_numbers_are_like(world: str) -> None:
    further_look = rate(world, "median", 6, looks=1, repeats=300)
    with_absent = rate(world, "median", 20, absent=0.05, repeats=300)
    found = (*rate(world, "median", 10, repeats=400), *further_look, *with_absent)
    assert max(found) <= 0.05 + 0.025  # the chance of so few repeats


def test_a_share_is_judged_at_its_own_level() -> None:
    all_right = part([1.0] * 20, "share", least=0.8)
    found = rates([all_right])
    assert found.false_holds <= 0.05
    assert found.holds == 1.0
    assert (seeds_to_decide([all_right]) or 99) <= 20
    beside_a_median = part(np.linspace(0, 1, 12), "median", most=2)
    both = rates([part([1.0] * 12, "share", least=0.4), beside_a_median])
    assert (both.seeds, both.holds) == (12, 1.0)
    assert both.false_holds <= 0.05


def test_a_mean_of_two_values_moves_as_a_share_of_them() -> None:
    ones = part([0.0] * 4 + [1.0] * 16, "mean", least=0.5).prepared()
    signs = replace(ones, low=2 * ones.low - 1, high=2 * ones.high - 1, within=(-1.0, 1.0))
    found = [rates([each]) for each in (ones, replace(signs, margin=Margin(least=0.0)))]
    assert [each.false_holds <= 0.05 and each.holds > 0.5 for each in found] == [True, True]


def test_noise_does_not_move_the_median_of_skewed_numbers_off_the_margins_end() -> None:
    skewed = 1 - np.geomspace(1e-3, 0.3, 20)  # crowded at 1, with a tail below
    rated = rates([part(skewed, "median", most=0.5)])
    assert max(rated.false_holds, rated.false_fails) < 0.04


def test_at_a_further_look_a_median_takes_more_seeds_and_so_does_what_is_proposed() -> None:
    far, by_mean = (part(np.linspace(0, 1, 5), of, most=9.0) for of in ("median", "mean"))
    for level, needed in ((0.95, 6), (0.975, 7)):
        with set_level(level):
            assert [fewest_seeds([far]), fewest_seeds([by_mean])] == [needed, 5]
            assert [seeds_to_decide([far], more_than=of) for of in (0, 12)] == [needed, 13]


def test_missed_targets_count_in_the_rates_of_a_median() -> None:
    """Of the known steps alone the median would lie far below the one of all."""
    steps = np.random.default_rng(4).lognormal(np.log(100), 0.5, 40)
    known, up_to = steps.clip(max=130.0), np.where(steps > 130, np.inf, steps)
    margin = Margin(most=100.0, fewest_seeds=6)
    found = rates([Part.of(known, margin, "median", up_to=up_to)])
    assert max(found.false_holds, found.false_fails) <= 0.05
    assert found.fails < 0.1
