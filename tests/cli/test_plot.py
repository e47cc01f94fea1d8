"""The run directory that `overfit plot` takes where none is named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.command import call
from tests.toy_runs import sweep_toy

ROOT = Path(__file__).parents[2]


@pytest.fixture
def newer_and_older(tmp_path: Path) -> Path:
    """A folder whose results hold two sweeps of the toy, the newer of n alone."""
    for name, n in (("older", "1:3"), ("newer", "1:4")):
        sweep_toy(tmp_path / "results" / name, n)
    for name, time in (("older", 1e9), ("newer", 2e9)):
        os.utime(tmp_path / "results" / name / "cells", (time, time))
    return tmp_path


def test_why_the_newest_run_does_not_fit_is_said(newer_and_older: Path) -> None:
    said = call("plot", "heatmap", "--where", "nn=2", cwd=newer_and_older, expect=2).stderr
    assert "The newest, results/newer, doesn't: --where nn=2: 'nn' is no name here" in said


def test_the_newest_run_is_drawn(newer_and_older: Path) -> None:
    said = call("plot", "heatmap", cwd=newer_and_older).stdout
    assert "From results/newer, the newest run directory that fits." in said


def test_a_figure_of_a_column_that_a_run_lacks_is_refused(tmp_path: Path) -> None:
    run = str(ROOT / "results" / "softmax-table1-quick")
    said = call("plot", "worst-drift", "--from", run, "--out=a.png", cwd=tmp_path, expect=2).stderr
    assert "needs largest drifts, as in `overfit sweep softmax-perturbation`" in said
