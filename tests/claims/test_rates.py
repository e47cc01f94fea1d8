from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np
import pytest

from calibration.sentences import WORLDS, rate
from overfit_cli.claims.parts import FEWEST, Margin, Part, Statistic, fewest_seeds
from overfit_cli.claims.rules import judge, rates, seeds_to_decide
from overfit_cli.stats.intervals import set_level


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
