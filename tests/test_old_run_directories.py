"""Run directories that an earlier version wrote, in `fixtures/runs`: see `fixtures/make.py`."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest

import overfit_cli
from tests.command import call
from tests.fixtures.make import HERE, RUNS, words
from tests.toy_runs import parts_in

EXPECTED = json.loads((HERE / "expected.json").read_text(encoding="utf-8"))


SHOWN = {
    "function": "12 cells, complete",
    "failed": "2 of 4 cells, 2 failed",
    "trajectories": "4 cells, complete",
    "refined": "28 cells, refined",
    "shard-1": "6 of 12 cells, 6 missing",
    "shard-2": "6 of 12 cells, 6 missing",
    "merged": "12 cells, complete",
    "interrupted": "1 of 4 cells, 3 missing",
    "study": "8 of 16 cells, 8 failed",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the run directories and the experiment that they are of."""
    shutil.copytree(HERE / "runs", tmp_path / "runs")
    shutil.copy(HERE / "experiment.py", tmp_path)
    return tmp_path


def check_rows(cells: pd.DataFrame, name: str) -> None:
    then = pd.DataFrame(EXPECTED[name])
    now = cells.drop(columns="seconds").sort_values("key", ignore_index=True)[list(then)]
    then = then.sort_values("key", ignore_index=True)
    pd.testing.assert_frame_equal(now, then, check_dtype=False, check_exact=True)


@pytest.mark.parametrize("name", RUNS)
def test_its_rows_are_read(name: str, folder: Path) -> None:
    check_rows(overfit_cli.load(folder / "runs" / name), name)
    shown = call("runs", f"runs/{name}", cwd=folder).stdout
    assert SHOWN[name] in shown


def test_its_logged_steps_are_read(folder: Path) -> None:
    steps = overfit_cli.load(folder / "runs" / "trajectories", trajectories=True)
    assert len(steps) == 3 * len(EXPECTED["trajectories"])
    assert (steps["train_loss"] == 1 / (1 + steps["step"] + steps["n"])).all()


def test_all_are_listed(folder: Path) -> None:
    listed = call("runs", "runs", cwd=folder).stdout
    assert all(f"runs/{name}" in listed for name in RUNS)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow) if name == "refined" else name
        for name in RUNS
        if name != "merged"
    ],
)
def test_the_same_sweep_trains_what_is_missing_alone(name: str, folder: Path) -> None:
    before = parts_in(folder / "runs" / name / "cells")
    done = call(*words(name, f"runs/{name}"), cwd=folder, expect={0, 1})
    kept = {"study": 0, "interrupted": 1, "refined": 20}.get(name, len(EXPECTED[name]))
    said = re.findall(r"(\d+) cells? (?:was|were) trained by an earlier version", done.stdout)
    assert said == ([str(kept)] if kept else [])
    two = pytest.warns(UserWarning, match="1 of 957690a5…")
    with two if name == "interrupted" else contextlib.nullcontext():
        cells = overfit_cli.load(folder / "runs" / name)
    if name == "interrupted":
        assert parts_in(folder / "runs" / name / "cells") != before
        assert sorted(cells["n"]) == [2, 2, 6, 6]
        cells = cells[cells["key"].isin([row["key"] for row in EXPECTED[name]])]
    else:
        assert parts_in(folder / "runs" / name / "cells") == before
    check_rows(cells, name)


def test_shards_are_merged(folder: Path) -> None:
    call("merge", "runs/shard-1", "runs/shard-2", "--out", "again", cwd=folder)
    check_rows(overfit_cli.load(folder / "again"), "merged")


def test_claims_are_judged_on_it(folder: Path) -> None:
    [judged] = overfit_cli.judge(folder / "runs" / "function", "test_error < 0.6 where n = 2")
    assert judged.measurement.value == pytest.approx(1 / 3)
    [toy] = overfit_cli.judge(folder / "runs" / "study")
    assert (toy.name, toy.headline, toy.measurement.value) == ("toy-claim", "fails", 1 / 17)
