"""Verdicts err as seldom as they say: in made-up worlds, in which it is known what is true."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import replace

import pandas as pd
import pytest
from scipy.stats import binom

from calibration.__main__ import most_errors, row, studies, table
from calibration.damage import DAMAGES
from calibration.rates import (
    MOST_ERRORS,
    TRUTHS,
    Rates,
    Truth,
    World,
    damaged_rate,
    design,
    errors,
    rates,
    worlds_of,
)
from overfit_cli import Claim, Measurement, UserError
from overfit_cli.core.claim import Verdict
from overfit_cli.core.registry import claims_of, find_study
from overfit_cli.report.judge import simulated_rates
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


def damages_of(name: str) -> list[str]:
    """The damages that a claim's worlds suffer here."""
    first = DAMAGES_EACH * [*CLAIMS].index(name)
    return [[*DAMAGES][(first + index) % len(DAMAGES)] for index in range(DAMAGES_EACH)]


@pytest.mark.parametrize(
    ("study_name", "name"),
    [
        pytest.param(study, name, marks=[] if name in QUICK else [pytest.mark.slow])
        for study, name in EVERY
    ],
)
def test_a_claim_errs_seldom(study_name: str, name: str) -> None:
    """In its worlds, whole and damaged."""
    study, claim = find_study(study_name), CLAIMS[name]
    worlds, cells = worlds_of(study)[name], design(claim.preset)

    @functools.cache
    def of_world(truth: Truth, runs: int) -> Rates:
        return rates(claim, getattr(worlds, truth), cells, runs, truth)

    def erring(truth: Truth, runs: int) -> float:
        return max(errors(truth, of_world(truth, runs)).values())

    for truth in TRUTHS:
        is_broken = too_many_errors(functools.partial(erring, truth), FIRST_RUNS, RUNS)
        assert not is_broken, (truth, of_world(truth, RUNS))
    sides: tuple[tuple[World, Verdict], ...] = ((worlds.true, "fails"), (worlds.false, "holds"))
    for damage, (world, wrong) in itertools.product(damages_of(name), sides):
        judged = functools.partial(damaged_rate, claim, study, world, cells)
        misled = functools.partial(judged, damage=damage, wrong=wrong)
        assert not too_many_errors(misled, FIRST_DAMAGED, DAMAGED), (damage, wrong)
    assert any(
        of_world("true", runs).share("holds") > of_world("false", runs).share("holds")
        for runs in (FIRST_RUNS, RUNS)
    )


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


def test_a_rule_that_ignores_its_cells_is_found_out() -> None:
    [study, name] = next(each for each in EVERY if each[1] in QUICK)
    worlds, cells = worlds_of(find_study(study))[name], design(CLAIMS[name].preset)
    wrong: tuple[tuple[Truth, Verdict], ...] = (("true", "fails"), ("false", "holds"))
    for truth, verdict in wrong:

        def says(_: pd.DataFrame, verdict: Verdict = verdict) -> Measurement:
            return Measurement(verdict=verdict)

        blind = replace(CLAIMS[name], measure=says)

        def share(runs: int, truth: Truth = truth, blind: Claim = blind) -> float:
            found = rates(blind, getattr(worlds, truth), cells, runs, truth)
            return max(errors(truth, found).values())

        assert too_many_errors(share, FIRST_RUNS, RUNS)


def test_a_claim_without_worlds_is_named() -> None:
    with pytest.raises(UserError, match="toy-claim has no made-up worlds"):
        row("toy", "toy-claim", 1)
