"""Finished cells are kept, and finished once, whatever happens to a sweep."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Generator
from pathlib import Path
from typing import cast

import pandas as pd
import pytest

import overfit_cli
from overfit_cli.core.processes import Interrupted, answering_interrupts, delaying_interrupts
from overfit_cli.core.training import Execution
from overfit_cli.sweeps.executors import Local
from overfit_cli.sweeps.worker import TaskRecord, Work
from tests.command import ended, run, start, wait_for
from tests.toy_runs import TOY, begin, parts_in, rows, stored_keys, toy_cells

CELLS = ("--n", "1:10", "--snr", "1:2:4", "--seeds", "2", "--set")
GRID = (*CELLS, "pause=0.02", "--jobs", "2")
TRACKER = "loky.backend.resource_tracker"
LONG_GRID = (*CELLS, "pause=0.18", *GRID[-2:])
"""Seven seconds: longer than eight kills let it work."""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    folder = tmp_path_factory.mktemp("undisturbed")
    run("sweep", "toy", *GRID[:-2], "--jobs=1", "--out", "out", cwd=folder)
    return rows(folder / "out")


@pytest.mark.unix
@pytest.mark.slow
def test_killed_at_random_moments_and_resumed_it_ends_with_the_same_rows(tmp_path: Path) -> None:
    """With SIGKILL to the parent alone: workers must see to themselves."""
    run("sweep", "toy", *LONG_GRID, "--out", "undisturbed", cwd=tmp_path)
    moments, killed = random.Random(0), 0
    for _ in range(8):
        process = start("sweep", "toy", *LONG_GRID, "--out", "out", cwd=tmp_path)
        time.sleep(moments.uniform(0.4, 1.6))
        process.kill()
        process.communicate(timeout=20)  # It ends when the last worker has let go of the output.
        killed += process.returncode == -signal.SIGKILL
        for part in parts_in(tmp_path / "out" / "cells"):
            pd.read_parquet(part)  # Whole at every moment.
    assert killed >= 4, "most kills came after the end: the moments are too late"
    run("sweep", "toy", *LONG_GRID, "--out", "out", cwd=tmp_path)
    keys = stored_keys(tmp_path / "out")
    assert len(keys) == len(set(keys))
    assert not list((tmp_path / "out").glob("**/.part-*"))
    pd.testing.assert_frame_equal(rows(tmp_path / "out"), rows(tmp_path / "undisturbed"))


@pytest.mark.parametrize(
    "moment", [0.6, *(pytest.param(at, marks=pytest.mark.slow) for at in (0.4, 0.8, None))]
)
def test_workers_leave_soon_after_their_parent_is_killed(
    tmp_path: Path, moment: float | None
) -> None:
    """Also those that have no batch yet: at a moment in seconds, or when a cell is there."""
    grid = ("--n", "1:40", "--snr", "1", "--set", "pause=0.3", "--jobs", "2")
    process = begin(tmp_path, *grid, parts=int(moment is None), new_session=True)
    time.sleep(moment or 0)
    process.kill()
    process.communicate(timeout=20)
    wait_for(lambda: not members(process.pid), seconds=10)


def test_a_killed_worker_costs_one_restart_and_no_result(
    tmp_path: Path, undisturbed: pd.DataFrame
) -> None:
    mark = {"TOY_MARK": str(tmp_path / "mark")}
    grid = (*GRID, "--set", "mood=kills-once")
    done = run("sweep", "toy", *grid, "--out", "out", cwd=tmp_path, env=mark)
    assert "workers were killed and started again 1 time" in done.stdout
    found, expected = (
        cells.sort_values(["n", "snr", "seed"], ignore_index=True).drop(columns=["key", "mood"])
        for cells in (rows(tmp_path / "out"), undisturbed)
    )
    pd.testing.assert_frame_equal(found, expected)


@pytest.mark.unix
@pytest.mark.slow
@pytest.mark.parametrize(
    ("jobs", "backend", "number"),
    [
        ("1", "loky", signal.SIGINT),
        ("2", "loky", signal.SIGINT),
        ("2", "loky", signal.SIGHUP),
        ("2", "threading", signal.SIGINT),
    ],
)
def test_ctrl_c_leaves_at_once_and_keeps_what_is_finished(
    tmp_path: Path, jobs: str, backend: str, number: signal.Signals
) -> None:
    """Sent to the whole process group, as a terminal does, and as one does that hangs up."""
    grid = ("--n", "1:14", "--snr", "1", "--seeds", "1", "--set", "pause=0.1")
    process = begin(tmp_path, *grid, "--jobs", jobs, "--backend", backend, new_session=True)
    os.killpg(process.pid, number)
    output = ended(process, 130, seconds=2)
    assert "Interrupted after" in output
    assert "they are kept in out" in output
    assert 3 <= len(overfit_cli.load(tmp_path / "out")) < 14
    resumed = run("sweep", "toy", *grid, "--jobs=1", "--out", "out", cwd=tmp_path)
    assert len(overfit_cli.load(tmp_path / "out")) == 14
    assert "there already" in resumed.stdout


def test_results_that_nobody_takes_any_more_are_dropped_without_a_word() -> None:
    tasks = [{number: [cell]} for number, cell in enumerate(toy_cells("1:25"))]
    run_of_tasks = Local(2, "threading").run(Work(TOY, Execution()), tasks, ahead=2)
    records = cast("Generator[TaskRecord]", run_of_tasks)
    assert next(records).count == 1
    records.close()


def test_an_interrupt_is_answered_when_what_must_not_be_torn_is_done() -> None:
    steps = []
    with pytest.raises(Interrupted), answering_interrupts():
        with delaying_interrupts():
            signal.raise_signal(signal.SIGINT)
            steps.append("inside")
        steps.append("after")
    assert steps == ["inside"]


@pytest.mark.slow
def test_two_sweeps_at_once_into_one_directory_lose_and_duplicate_nothing(
    tmp_path: Path, undisturbed: pd.DataFrame
) -> None:
    processes = [start("sweep", "toy", *GRID, "--out", "out", cwd=tmp_path) for _ in range(2)]
    for process in processes:
        ended(process)
    pd.testing.assert_frame_equal(rows(tmp_path / "out"), undisturbed)
    keys = stored_keys(tmp_path / "out")
    assert len(keys) == len(set(keys))


@pytest.fixture
def small_disk(tmp_path: Path) -> Path:
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=150k", "tmpfs", str(folder)]
    if (
        shutil.which("mount") is None
        or subprocess.run(mount, capture_output=True, check=False).returncode
    ):
        pytest.skip("mounting a small tmpfs isn't allowed here")
    return folder


@pytest.mark.slow
def test_a_full_disk_gives_a_sentence_and_keeps_what_was_written(small_disk: Path) -> None:
    try:
        grid = ("--n", "1:900", "--snr", "1:2:4", "--seeds", "1", "--jobs", "2")
        done = run("sweep", "toy", *grid, "--out", "disk/out", cwd=small_disk.parent, expect=1)
        assert "No space left on device" in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
        kept = overfit_cli.load(small_disk / "out")
        assert 0 < len(kept) < 3600
        assert set(kept.groupby("n").size()) == {4}, "batches are whole"
        assert not list(small_disk.glob("**/.part-*"))
    finally:
        subprocess.run(["umount", "-l", str(small_disk)], check=True)


def members(group: int) -> list[int]:
    """The living processes of a process group."""
    collected = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            collected.append(int(status.parent.name))
    return collected
