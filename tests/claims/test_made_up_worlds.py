"""Verdicts on made-up worlds, in which it is known what is true: they err as seldom as they say.

And cells that say nothing decide no claim: those of killed workers, and those without numbers.
"""

from __future__ import annotations

import csv
import functools
import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import pytest

from calibration import rates
from calibration.__main__ import most_errors, row, studies, table
from calibration.clauses import Broken, broken
from calibration.damage import DAMAGES
from calibration.rates import TRUTHS, Truth, World, design, worlds_of
from overfit_cli import Claim, Measurement, UserError
from overfit_cli.core.claim import Verdict
from overfit_cli.core.files import preset_folder
from overfit_cli.core.registry import claims_of
from overfit_cli.core.training import named_rng
from overfit_cli.report.page import simulated_rates
from overfit_cli.sweeps.presets import ERROR_RATES

T = TypeVar("T")
FIRST_RUNS, RUNS, FIRST_DAMAGED, DAMAGED = 4, 16, 1, 8
"""How often a claim is judged in a world, whole or damaged: all runs where a first one errs."""

DAMAGES_EACH = 3
"""In how many kinds of damaged worlds a claim is judged, each in others than the one before it."""

UNDECIDED = {"inconclusive", "vacuous", "not run"}
CLAIMS = {
    claim.name: (study, rates.told(study).get(claim.name, (claim,))[0])
    for study in studies()
    for claim in claims_of(study)
}
WRONG: tuple[tuple[Truth, Verdict], ...] = (("true", "fails"), ("false", "holds"))
SEED = os.environ.get("OVERFIT_FUZZ")
"""What draws the claims of the slow tests; without it they are the same ones each time."""


def slow_part(cases: Sequence[T], share: int) -> list[T]:
    """A part of the cases, drawn or every so-many-th."""
    return Random(SEED).sample(cases, len(cases) // share) if SEED else [*cases[::share]]


def each_claim(share: int, *quick: str) -> pytest.MarkDecorator:
    """A test of a part of all claims; that of these is quick."""
    rest = slow_part([name for name in CLAIMS if name not in quick], share)
    slow = [pytest.param(name, marks=pytest.mark.slow) for name in rest]
    return pytest.mark.parametrize("name", [*quick, *slow])


def too_many_errors(share: Callable[[int], float], first: int, runs: int) -> bool:
    """Whether more runs err than one rule in a thousand that errs in 5 % of them would show.

    `share` is that of so many runs that err. Where the first ones never do, no more are judged.
    """
    return share(first) > 0 and share(runs) * runs > most_errors(runs)


def errs_too_often(claim: Claim, world: World, planned: pd.DataFrame, truth: Truth) -> bool:
    def share(runs: int) -> float:
        return max(rates.errors(truth, rates.rates(claim, world, planned, runs, truth)).values())

    return too_many_errors(share, FIRST_RUNS, RUNS)


@each_claim(8)
def test_a_claim_errs_seldom(name: str) -> None:
    """In its worlds, whole and damaged."""
    study, claim = CLAIMS[name]
    worlds, planned = worlds_of(study)[name], design(claim.preset)
    for truth in TRUTHS:
        assert not errs_too_often(claim, getattr(worlds, truth), planned, truth), truth
    first = DAMAGES_EACH * [*CLAIMS].index(name)
    damages = [[*DAMAGES][(first + index) % len(DAMAGES)] for index in range(DAMAGES_EACH)]
    if name.endswith("falls-with-n"):  # heavy tails move a rank correlation beyond the margin's end
        damages = [damage for damage in damages if damage != "tails"]
    for damage, (truth, wrong) in itertools.product(damages, WRONG):
        where = (claim, study, getattr(worlds, truth), planned)
        misled = functools.partial(rates.damaged_rate, *where, damage=damage, wrong=wrong)
        assert not too_many_errors(misled, FIRST_DAMAGED, DAMAGED), (damage, wrong)


@pytest.mark.slow
@pytest.mark.parametrize(("truth", "verdict"), WRONG)
def test_a_rule_that_ignores_its_cells_is_found_out(truth: Truth, verdict: Verdict) -> None:
    study, claim = CLAIMS["trapped-softmax"]
    blind = replace(claim, measure=lambda cells: Measurement(verdict=verdict))
    world = getattr(worlds_of(study)[claim.name], truth)
    assert errs_too_often(blind, world, design(claim.preset), truth)


@each_claim(6, "fig2-fitted")
def test_a_claim_is_open_where_numbers_that_decide_it_are_missing(name: str) -> None:
    """On half of the seeds of its made-up worlds, or on all; and where workers were killed."""
    study, claim = CLAIMS[name]
    worlds, planned = worlds_of(study)[name], design(claim.preset)
    is_low_share = name == "trapped-softmax"  # half of the seeds show that it is above a fifth
    for world in (worlds.true, worlds.false):
        cells = world(planned, named_rng(1, "doctored", name)).reset_index(drop=True)
        half = cells["seed"] % 2 == 0
        measured = [str(name) for name in cells if name not in {*planned, "key", "number", "step"}]
        verdict = claim.judge(cells).verdict
        some = {column: cells[column].astype(float).mask(half) for column in measured}
        for column in measured:
            without = claim.judge(cells.assign(**{column: np.nan})).verdict
            partly = claim.judge(cells.assign(**{column: some[column]}))
            assert {without, partly.verdict} <= {*UNDECIDED, verdict}, column
            # A case refutes whatever else is lost; cells that meet a hypothesis are judged alone.
            decided = partly.decided == "case" or without in (verdict, "vacuous") or is_low_share
            assert partly.verdict in UNDECIDED or decided, column
        lost = cells.assign(**some, status=np.where(half, "failed", "done"))
        lost["reason"] = np.where(half, "worker killed", "")
        rest = claim.judge(lost)  # one exception among the rest refutes a theorem
        assert rest.verdict in UNDECIDED or rest.decided == "case" or is_low_share


LARGE = (
    *("attention-", "beats-", "cnn-", "dimension-", "diffusion-", "eigenvalue-", "fig", "first-"),
    *("harmful-", "lemma5", "mixture-prop", "mixture-margins", "mixture-sqrt-", "paths-"),
    *("ranks-", "sizes-", "softmax-d", "softmax-g", "softmax-s", "softmax-w", "text-gaussian"),
    *("semantic-theta", "theorem", "zero-"),
)
"""How claims begin on many cells, or on many bootstraps of them: half a second is too little."""

SMALL = [name for name in CLAIMS if not name.startswith(LARGE)]


@each_claim(1, *SMALL)
def test_a_claim_holds_where_it_is_true_and_is_open_where_workers_were_killed(name: str) -> None:
    study, claim = CLAIMS[name]
    true, planned = worlds_of(study)[name].true, design(claim.preset)
    worlds = (
        true(planned, named_rng(draw, "beyond", name)).reset_index(drop=True) for draw in range(8)
    )
    cells = next(worlds)
    measured = {*cells} - {*planned, "key", "number", "step"}
    killed = cells.assign(status="failed", reason="worker killed")
    assert claim.judge(killed.assign(**dict.fromkeys(measured, np.nan))).verdict in UNDECIDED
    assert any(claim.judge(each).verdict == "holds" for each in itertools.chain([cells], worlds))


def clauses() -> Iterator[Any]:
    """Each world that breaks a clause with one of its claims, half of them quick; and further ones.

    Those are a part of all.
    """
    others = list[tuple[Broken, str]]()
    for index, world in enumerate(broken()):
        names = world.claim.split()
        is_quick = not index % 2 and len(names) < 6  # those of six are on a large run
        first = names.pop(index % len(names))
        is_quick = is_quick and not first.startswith(LARGE)
        marks = [] if is_quick else [pytest.mark.slow]
        yield pytest.param(world, first, id=f"{first}: {world.clause}", marks=marks)
        others += [(world, name) for name in names]
    for world, name in slow_part(others, 8):
        yield pytest.param(world, name, id=f"{name}: {world.clause}", marks=pytest.mark.slow)


@pytest.mark.parametrize(("world", "name"), list(clauses()))
def test_a_broken_clause_is_told(world: Broken, name: str) -> None:
    measured = world.judge(name)
    assert measured.verdict in world.verdicts, (measured.value, measured.note)


# The table of error rates


def test_every_claim_has_worlds_a_preset_and_rates_none_above_what_is_allowed() -> None:
    of_each = [f"{study.name}/{claim.name}" for study, claim in CLAIMS.values()]
    assert list(simulated_rates()) == of_each
    assert all(name in worlds_of(study) for name, (study, _) in CLAIMS.items())
    with (preset_folder() / ERROR_RATES).open(encoding="utf-8", newline="") as file:
        for shipped in csv.DictReader(file):
            most = max(int(shipped[f"{truth}: {wrong}"]) for truth, wrong in WRONG)
            assert most <= most_errors(int(shipped["runs"])), shipped
    with pytest.raises(UserError, match="toy-claim has no made-up worlds"):
        row("toy", "toy-claim", 1)


HEADINGS = "study,claim,runs,true: fails,false: holds"
CUT_OFF = f"{HEADINGS},worlds,caught\na,b,20,0,0,0,0\na,c,20,0"


@pytest.mark.parametrize(
    "text", ["", "study,claim\na,b\n", "study,claim,runs\na,b,many\n", CUT_OFF]
)
def test_rates_that_cannot_be_read_are_left_out_in_a_sentence(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ERROR_RATES).write_text(text)
    monkeypatch.setattr("overfit_cli.report.page.preset_folder", lambda: tmp_path)
    simulated_rates.cache_clear()
    with pytest.warns(UserWarning, match="no error rates of claims are shown"):
        assert simulated_rates() == {}
    simulated_rates.cache_clear()


def test_without_runs_broken_clauses_are_counted_and_rates_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")  # no further process
    before = f"{HEADINGS}\nmultihead-mixture,mixture-lemma2-quarter,20,1,2\n"
    counted = table(before, runs=0)
    assert counted.splitlines()[1:] == ["multihead-mixture,mixture-lemma2-quarter,20,1,2,1,1"]
    (tmp_path / ERROR_RATES).write_text(counted)
    monkeypatch.setattr("overfit_cli.report.page.preset_folder", lambda: tmp_path)
    simulated_rates.cache_clear()
    [told] = simulated_rates().values()
    assert told.endswith("5 % are allowed. A broken clause is told in 1 of 1 world.")
    simulated_rates.cache_clear()
