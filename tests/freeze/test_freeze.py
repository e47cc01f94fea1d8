"""No change of the code moves what was loaded, judged, drawn, compared, refined and planned before.

What has gone since, as `gone.toml` says, is left out, and so are columns that no study declares.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import overfit_cli
from overfit_cli.core.claim import Measurement
from overfit_cli.core.errors import MissingValue
from overfit_cli.core.registry import claims_of, installed_studies
from overfit_cli.report.judge import judge_runs
from tests.freeze import values

CLAIMS = values.frozen()["claims"]
pytestmark = pytest.mark.slow
STUDIES = sorted({address.partition("/")[0] for address in CLAIMS})
RUNS = [run for run in values.frozen()["runs"] if run in values.kept_runs()]
NEAR = 1e-9


def _declared() -> dict[tuple[str, str], set[str]]:
    """The names of the columns that each study has today, of its cells and its logged steps."""
    shared = {"rows", "key", "study", "version", "seed", "status", "reason", "steps", "seconds"}
    return {
        (study.name, table): shared
        | {column.name for column in columns}
        | set(study.parameters.model_fields)
        for study in installed_studies()
        for table, columns in (("cells", study.columns), ("steps", study.trajectory_columns))
    }


DECLARED = _declared()


@pytest.mark.parametrize("run", RUNS)
def test_a_kept_run_is_loaded_as_before(run: str) -> None:
    study = overfit_cli.load(values.RESULTS / run)["study"].iloc[0]
    now = values.loaded(run)
    for table, before in values.frozen()["runs"][run].items():
        names = DECLARED[study, table] - (set(values.GONE["logged"]) if table == "steps" else set())
        kept = {name: digest for name, digest in before.items() if name in names}
        assert {name: now[table].get(name) for name in kept} == kept, table


def test_every_claim_that_has_gone_is_listed() -> None:
    today = {claim.name for study in installed_studies() for claim in claims_of(study)}
    gone = {address.partition("/")[2] for address in CLAIMS} - today
    assert gone == set(values.GONE["dropped"]) | (set(values.GONE["joined"]) - today)


@pytest.mark.parametrize("study", STUDIES)
def test_a_claim_is_judged_as_before(study: str) -> None:
    runs = [run for run in values.runs() if (run.cells["study"] == study).all()]
    today = {
        each.claim.name: each.measurement
        for each in judge_runs(runs, on_every_run=False)
        if each.study == study
    }
    for address, before in CLAIMS.items():
        owner, _, name = address.partition("/")
        if owner != study or name in {*values.GONE["dropped"], *values.GONE["otherwise"]}:
            continue
        claim, label = values.GONE["joined"].get(name, (name, ""))
        now = _part(today[claim], label)
        told = {key: value for key, value in before.items() if key in now}
        if name in values.GONE["changed"]:
            told = {"verdict": before["verdict"]}
        assert _near(now, told), (name, now, told)


def _part(measured: Measurement, label: str) -> dict[str, Any]:
    """What was measured; of a part of a joined claim its number alone."""
    if not label:
        return values.numbers(measured)
    ends = zip(("value", "low", "high"), ("", ", from", ", to"), strict=True)
    return {
        name: repr(float(measured.details[f"{label}{end}"]))
        for name, end in ends
        if f"{label}{end}" in measured.details
    }


def _near(now: dict[str, Any], before: dict[str, Any]) -> bool:
    """Whether the same things are told, and numbers agree to `NEAR`."""
    for name, value in before.items():
        if name == "verdict" or value is None:
            if now[name] != value:
                return False
        elif not np.isclose(float(now[name]), float(value), rtol=NEAR, atol=1e-300, equal_nan=True):
            return False
    return bool(now)


@pytest.mark.parametrize(
    "picture", [name for name in values.frozen_points() if name not in values.GONE["pictures"]]
)
def test_a_kept_picture_shows_what_it_showed(picture: str) -> None:
    before = values.frozen_points()[picture]
    try:
        now = values.points(picture)
    except MissingValue as missing:
        pytest.skip(str(missing))
    assert now.shape == before.shape
    np.testing.assert_allclose(now, before, rtol=NEAR, atol=1e-12 * np.nanmax(np.abs(before)))


@pytest.mark.parametrize("pair", values.PAIRS, ids=" ".join)
def test_a_comparison_is_what_it_was(pair: tuple[str, str], tmp_path: Path) -> None:
    if not set(pair) <= set(values.kept_runs()):
        pytest.skip("one of the runs has gone")
    before = dict(values.frozen()["compared"][" ".join(pair)])
    now = values.compared(*pair, tmp_path)
    columns, kept = now.pop("columns"), before.pop("columns")
    assert now == before
    study = overfit_cli.load(values.RESULTS / pair[0])["study"].iloc[0]
    for name in DECLARED[study, "cells"] & set(kept):
        assert {key: columns[name][key] for key in kept[name] if key in columns[name]} == {
            key: number for key, number in kept[name].items() if key in columns[name]
        }, name


@pytest.mark.parametrize("seed", range(3))
def test_a_refined_sweep_chooses_the_same_cells(seed: int, tmp_path: Path) -> None:
    assert values.refined(seed, tmp_path) == values.frozen()["refined"][str(seed)]


def test_cells_have_the_keys_that_they_had() -> None:
    cells = values.frozen()["keys"]
    assert [values.key_of(parameters, study, seed) for study, parameters, seed, _ in cells] == [
        key for *_, key in cells
    ]


def test_presets_have_as_many_cells_as_before() -> None:
    before, now = values.frozen()["planned"], values.planned()
    assert {name: before.get(name) for name in now} == now
