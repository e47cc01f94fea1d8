"""Verdicts err as seldom as they say: in made-up worlds, in which it is known what is true."""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import overfit_cli
from calibration.__main__ import most_errors, row, studies, table
from calibration.damage import DAMAGES
from calibration.rates import (
    MOST_ERRORS,
    TRUTHS,
    Rates,
    Truth,
    World,
    Worlds,
    damaged_rate,
    design,
    errors,
    rates,
    worlds_of,
)
from calibration.worlds import exception_worlds, number_worlds, share_worlds
from overfit_cli import Claim, Measurement, UserError
from overfit_cli.claims.rules import Margin, judge_estimate, judge_theorem, share_of_seeds
from overfit_cli.core.claim import Verdict
from overfit_cli.core.registry import claims_of, find_study
from overfit_cli.core.training import named_rng
from overfit_cli.report.judge import simulated_rates
from overfit_cli.stats.intervals import mean_estimate
from overfit_cli.sweeps.presets import ERROR_RATES, preset_folder

QUICK = ("trapped-softmax",)
"""Judged soon; the slow tests judge every claim."""

FIRST_RUNS, RUNS = 4, 16
"""How often each claim is judged in each world: all of the runs where a first one errs."""

FIRST_DAMAGED, DAMAGED = 1, 8
"""The same in each damaged world."""

DAMAGES_EACH = 3
"""In how many kinds of damaged worlds a claim is judged, each in others than the one before it."""

CLAIMS = {claim.name: claim for study in studies() for claim in claims_of(study)}
EVERY = [(study.name, claim.name) for study in studies() for claim in claims_of(study)]


def too_many_errors(share: Callable[[int], float], first: int, runs: int) -> bool:
    """Whether more runs err than one rule in a thousand that errs in 5 % of them would show.

    A rule that never errs in its first runs is judged no further.

    Args:
        share: from a number of runs to the share of them that err; fewer runs are the first ones.
        first, runs: how many are judged at once, and how many where one of them errs.
    """
    return share(first) > 0 and share(runs) * runs > binom.ppf(0.999, runs, MOST_ERRORS)


def chance_to_notice(rate: float, first: int, runs: int) -> float:
    """The probability that `too_many_errors` notices a rule that errs at this rate."""
    most = int(binom.ppf(0.999, runs, MOST_ERRORS))
    later = [binom.sf(most - errors, runs - first, rate) for errors in range(1, first + 1)]
    return float(np.dot(binom.pmf(range(1, first + 1), first, rate), later))


def test_a_broken_rule_is_noticed_and_an_honest_one_is_not() -> None:
    """By one claim in its worlds; a damage that misleads is noticed by one of many claims."""
    assert chance_to_notice(0.5, FIRST_RUNS, RUNS) > 0.9
    assert chance_to_notice(MOST_ERRORS, FIRST_RUNS, RUNS) < 0.001
    assert chance_to_notice(1.0, FIRST_DAMAGED, DAMAGED) == 1.0
    assert chance_to_notice(0.5, FIRST_DAMAGED, DAMAGED) > 0.35
    claims = min(Counter(itertools.chain(*map(damages_of, CLAIMS))).values())
    assert 1 - (1 - chance_to_notice(0.2, FIRST_DAMAGED, DAMAGED)) ** claims > 0.7
    assert chance_to_notice(MOST_ERRORS, FIRST_DAMAGED, DAMAGED) < 0.001


def damages_of(name: str) -> list[str]:
    """The damages that a claim's worlds suffer here."""
    first = DAMAGES_EACH * [*CLAIMS].index(name)
    return [[*DAMAGES][(first + index) % len(DAMAGES)] for index in range(DAMAGES_EACH)]


def assert_seldom_wrong(study_name: str, name: str) -> None:
    """Judge a claim in its worlds, whole and damaged."""
    study, claim = find_study(study_name), CLAIMS[name]
    worlds, cells = worlds_of(study)[name], design(claim.preset)

    @functools.cache
    def of_world(truth: Truth, runs: int) -> Rates:
        return rates(claim, getattr(worlds, truth), cells, runs, truth)

    for truth in TRUTHS:

        def erring(runs: int, truth: Truth = truth) -> float:
            return max(errors(truth, of_world(truth, runs)).values())

        assert not too_many_errors(erring, FIRST_RUNS, RUNS), (truth, of_world(truth, RUNS))
    for damage in damages_of(name):
        sides: tuple[tuple[World, Verdict], ...]
        sides = ((worlds.true, "fails"), (worlds.false, "holds"))
        for world, wrong in sides:

            def misled(
                runs: int, damage: str = damage, world: World = world, wrong: Verdict = wrong
            ) -> float:
                return damaged_rate(claim, study, world, cells, runs, damage, wrong)

            assert not too_many_errors(misled, FIRST_DAMAGED, DAMAGED), (damage, wrong)
    assert any(
        of_world("true", runs).share("holds") > of_world("false", runs).share("holds")
        for runs in (FIRST_RUNS, RUNS)
    )


@pytest.mark.parametrize(
    ("study", "name"),
    [
        pytest.param(study, name, marks=[] if name in QUICK else [pytest.mark.slow])
        for study, name in EVERY
    ],
)
def test_a_claim_errs_seldom(study: str, name: str) -> None:
    assert_seldom_wrong(study, name)


def test_every_claim_has_its_worlds_its_preset_and_its_rates() -> None:
    assert list(simulated_rates()) == [f"{study}/{claim}" for study, claim in EVERY]
    for study in studies():
        assert set(worlds_of(study)) >= {claim.name for claim in claims_of(study)}
        for claim in claims_of(study):
            assert len(design(claim.preset)) > 0


def test_no_rate_is_above_what_is_allowed() -> None:
    for address, shipped in simulated_rates().items():
        allowed = 100 * most_errors(int(shipped["runs"]))
        for column in ("true: fails", "false: holds"):
            assert float(shipped[column].removesuffix(" %")) <= allowed, (address, column)


def test_claims_that_are_not_named_keep_their_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    judged = []

    def rates_of(study: str, claim: str, runs: int) -> dict[str, str]:
        judged.append(claim)
        return {"study": study, "claim": claim, "runs": str(runs)}

    monkeypatch.setattr("calibration.__main__.row", rates_of)
    monkeypatch.setattr("calibration.__main__.Parallel", lambda n_jobs: list)
    monkeypatch.setattr("calibration.__main__.delayed", lambda function: function)
    before = (preset_folder() / ERROR_RATES).read_text()
    without = [line for line in before.splitlines() if ",fig1-contour," not in line]
    after = table("\n".join(without), 7, ["fig1-exponent"]).splitlines()
    assert judged == ["fig1-contour", "fig1-exponent"]
    changed = {*after} - {*before.splitlines()}
    assert changed == {f"benign-vit,{name},7,," for name in judged}
    assert len(after) == len(before.splitlines())


def made_up(design: pd.DataFrame, values: np.ndarray, random: np.random.Generator) -> pd.DataFrame:
    return design.assign(number=values)


def claim_of(measure: object) -> Claim:
    return Claim(
        name="made-up",
        source="the tests",
        statement="A number lies within its margin.",
        holds_where="it does",
        measure=measure,  # type: ignore[arg-type]
    )


SEEDS = pd.DataFrame({"seed": range(20), "status": "done"})
MARGIN = Margin(0.8, 1.25, fewest_seeds=5)


def mean_within(cells: pd.DataFrame) -> Measurement:
    return judge_estimate(mean_estimate(cells["number"]), MARGIN)


def rates_in(claim: Claim, worlds: Worlds, runs: int = 300) -> Iterator[tuple[str, Rates]]:
    for truth in ("true", "false", "open"):
        yield truth, rates(claim, getattr(worlds, truth), SEEDS, runs, truth)


@pytest.mark.slow
def test_a_rule_that_knows_no_uncertainty_is_found_out() -> None:
    """A bare mean held against a margin errs in every second false world."""

    def bare(cells: pd.DataFrame) -> Measurement:
        inside = 0.8 <= cells["number"].mean() <= 1.25
        return Measurement(verdict="holds" if inside else "fails")

    worlds = number_worlds(made_up, MARGIN, 0.2)
    found = dict(rates_in(claim_of(bare), worlds))
    assert errors("false", found["false"])["holds"] == pytest.approx(0.5, abs=0.1)
    honest = dict(rates_in(claim_of(mean_within), worlds))
    assert errors("false", honest["false"])["holds"] <= 0.05
    assert honest["true"].share("holds") > 0.98
    assert max(errors("open", honest["open"]).values()) <= 0.05


def test_an_interval_that_holds_the_number_is_no_evidence_for_it() -> None:
    def wide(cells: pd.DataFrame) -> Measurement:
        found = mean_estimate(cells["number"])
        return Measurement(verdict="holds" if found.low <= 1.0 <= found.high else "fails")

    worlds = number_worlds(made_up, MARGIN, 1.0)
    found = dict(rates_in(claim_of(wide), worlds))
    assert errors("false", found["false"])["holds"] > 0.5


@pytest.mark.slow
def test_shares_and_exceptions_err_as_seldom_as_they_say() -> None:
    margin = Margin(least=0.5, fewest_seeds=6)
    share = claim_of(
        lambda cells: judge_estimate(
            share_of_seeds(cells["number"].astype(bool), cells["seed"]), margin
        )
    )
    for truth, of_world in rates_in(share, share_worlds(made_up, margin)):
        assert max(errors(truth, of_world).values()) <= 0.05  # type: ignore[arg-type]
    never = claim_of(lambda cells: judge_theorem(cells["number"].astype(bool), cells["seed"]))
    found = dict(rates_in(never, exception_worlds(made_up)))
    assert found["true"].share("holds") == 1.0
    assert found["false"].share("holds") <= 0.01
    assert found["open"].share("inconclusive") == 1.0


@pytest.mark.slow
def test_a_world_of_ones_own_is_judged_from_a_frame() -> None:
    worlds = worlds_of(find_study("benign-vit"))["fig1-falls-with-n"]
    for truth, verdict in (("true", "holds"), ("false", "inconclusive")):
        cells = getattr(worlds, truth)(design("fig1"), named_rng(0, truth))
        by_name = {one.claim.name: one for one in overfit_cli.judge(cells)}
        assert by_name["fig1-falls-with-n"].measurement.verdict == verdict
    steps = worlds_of(find_study("benign-vit"))["lemma53-values"].true(
        design("theorem-dynamics-benign"), named_rng(0, "steps")
    )
    names = {one.claim.name: one.measurement.verdict for one in overfit_cli.judge(steps)}
    assert names["lemma53-values"] == "holds"
    assert "fig1-exponent" not in names


def test_a_claim_without_worlds_is_named() -> None:
    with pytest.raises(UserError, match="toy-claim has no made-up worlds"):
        row("toy", "toy-claim", 1)
