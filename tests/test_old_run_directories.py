"""Run directories in `fixtures/runs`, which overfit 0.1.0 wrote at commit e8fc5d9d."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import overfit_cli
from tests.command import call
from tests.toy_runs import TOY, parts_in

HERE = Path(__file__).parent / "fixtures"
EXPECTED = json.loads((HERE / "expected.json").read_text(encoding="utf-8"))
RUNS = {
    "function": ("experiment.py --n 2,3 --snr 1,2 --seeds 3", "cells: 12, complete"),
    "failed": ("experiment.py --n 4,5 --snr 1 --seeds 2", "cells: 2/4, 2 failed"),
    "trajectories": (
        "experiment.py --n 2,3 --snr 1 --seeds 2 --trajectories",
        "cells: 4, complete",
    ),
    "refined": (
        "experiment.py --n 2,4 --snr 0.5:4:5 --seeds 2 --refine 2 --threshold 0.2",
        "cells: 28, refined",
    ),
    "shard-1": ("experiment.py --n 2:4 --snr 1,2 --seeds 2 --shard 1/2", "cells: 6/12"),
    "shard-2": ("experiment.py --n 2:4 --snr 1,2 --seeds 2 --shard 2/2", "cells: 6/12"),
    "merged": ("", "cells: 12, complete"),
    "interrupted": ("experiment.py --n 2,6 --snr 1 --seeds 2", "cells: 1/4, 3 missing"),
    "study": (
        "toy --n 1:4 --snr 1,2 --seeds 2 --set mood=diverges --trajectories",
        "cells: 8/16, 8 failed",
    ),
}
"""The sweep that wrote each, and what is shown of it."""


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
    assert RUNS[name][1] in shown


def test_its_logged_steps_are_read(folder: Path) -> None:
    steps = overfit_cli.load(folder / "runs" / "trajectories", trajectories=True)
    assert len(steps) == 3 * len(EXPECTED["trajectories"])
    assert (steps["train_loss"] == 1 / (1 + steps["step"] + steps["n"])).all()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name == "refined" else [])
        for name in sorted({*RUNS} - {"merged"})
    ],
)
def test_the_same_sweep_trains_what_is_missing_alone(name: str, folder: Path) -> None:
    before = parts_in(folder / "runs" / name / "cells")
    sweep = ("sweep", *RUNS[name][0].split(), "--jobs=1", "--out", f"runs/{name}")
    done = call(*sweep, cwd=folder, expect={0, 1})
    kept = {"study": 0, "interrupted": 1, "refined": 20}.get(name, len(EXPECTED[name]))
    said = re.findall(r"(\d+) cells? (?:was|were) trained by an earlier version", done.stdout)
    assert said == ([str(kept)] if kept else [])
    two = pytest.warns(UserWarning, match="1 of 957690a5…")
    with two if name == "interrupted" else contextlib.nullcontext():
        cells = overfit_cli.load(folder / "runs" / name)
    assert (parts_in(folder / "runs" / name / "cells") == before) == (name != "interrupted")
    assert len(cells) == {"interrupted": 4}.get(name, len(EXPECTED[name]))
    check_rows(cells[cells["key"].isin([row["key"] for row in EXPECTED[name]])], name)


def test_columns_that_are_float32_now_are_read_beside_the_doubles_of_before(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = overfit_cli.load(folder / "runs" / "study", trajectories=True)
    [column] = TOY.trajectory_columns
    monkeypatch.setattr(type(TOY), "trajectory_columns", (replace(column, kind="single"),))
    grown: Any = {"n": [5, 6], "snr": [1, 2], "seeds": 2, "mood": "diverges", "trajectories": True}
    cells = overfit_cli.sweep("toy", **grown, jobs=1, quiet=True, out=folder / "runs" / "study")
    now = overfit_cli.load(folder / "runs" / "study", trajectories=True)
    new = now[~now["key"].isin(before["key"])].merge(cells, on="key")
    exact = np.where(new["step"] == 0, 1.0, new["test_loss"])
    assert len(new) == 8
    assert (new["train_loss"] == exact.astype(np.float32)).all()
    old = now[now["key"].isin(before["key"])]
    pd.testing.assert_frame_equal(old.reset_index(drop=True), before)


def test_all_are_listed_and_shards_are_merged(folder: Path) -> None:
    listed = call("runs", "runs", cwd=folder).stdout
    assert all(f"runs/{name}" in listed for name in RUNS)
    call("merge", "runs/shard-1", "runs/shard-2", "--out", "again", cwd=folder)
    check_rows(overfit_cli.load(folder / "again"), "merged")


def test_claims_are_judged_on_it(folder: Path) -> None:
    [judged] = overfit_cli.judge(folder / "runs" / "function", "test_error < 0.6 where n = 2")
    assert judged.measurement.value == pytest.approx(1 / 3)
    [toy] = overfit_cli.judge(folder / "runs" / "study")
    assert (toy.name, toy.headline, toy.measurement.value) == ("toy-claim", "fails", 1 / 17)
