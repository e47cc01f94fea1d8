"""Finished cells are kept, and finished once, whatever happens to a sweep and its workers."""

from __future__ import annotations

import errno
import os
import queue
import random
import re
import signal
import threading
import time
from collections.abc import Generator
from concurrent.futures import Future
from pathlib import Path
from typing import Any, cast
from unittest import mock

import pandas as pd
import pytest

import overfit_cli
from overfit_cli.core.processes import (
    Interrupted,
    alarm,
    answering_interrupts,
    delaying_interrupts,
)
from overfit_cli.core.training import Execution
from overfit_cli.sweeps import executors, worker
from overfit_cli.sweeps.executors import Deadlines, Local
from overfit_cli.sweeps.store import RunDirectory
from overfit_cli.sweeps.worker import Batch, Task, TaskRecord, Work
from tests.command import call, ended, python, run, start, wait_for
from tests.toy_runs import TOY, begin, check_once, parts_in, rows, toy_cells

GRID = ("--n", "1:10", "--snr", "1:2:4", "--seeds", "2", "--set", "pause=0.02", "--jobs", "2")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    folder = tmp_path_factory.mktemp("undisturbed")
    run("sweep", "toy", *GRID[:-2], "--jobs=1", "--out", "out", cwd=folder)
    return rows(folder / "out")


@pytest.mark.unix
@pytest.mark.slow
def test_killed_at_random_moments_and_resumed_it_ends_with_the_same_rows(
    tmp_path: Path, undisturbed: pd.DataFrame
) -> None:
    """With SIGKILL to the parent alone: workers must see to themselves."""
    moments, killed = random.Random(0), 0
    slowly = {"TOY_PAUSE": "0.18"}  # seven seconds: longer than eight kills let it work
    for _ in range(8):
        process = start("sweep", "toy", *GRID, "--out", "out", cwd=tmp_path, env=slowly)
        time.sleep(moments.uniform(0.4, 1.6))
        process.kill()
        process.communicate(timeout=20)  # It ends when the last worker has let go of the output.
        killed += process.returncode == -signal.SIGKILL
        for part in parts_in(tmp_path / "out" / "cells"):
            pd.read_parquet(part)  # Whole at every moment.
    assert killed >= 4, "most kills came after the end: the moments are too late"
    run("sweep", "toy", *GRID, "--out", "out", cwd=tmp_path)
    assert not list((tmp_path / "out").glob("**/.part-*"))
    check_once(tmp_path / "out", undisturbed)


@pytest.mark.slow
@pytest.mark.parametrize("moment", [0.6, 0.4, 0.8, None])
def test_workers_leave_soon_after_their_parent_is_killed(
    tmp_path: Path, moment: float | None
) -> None:
    """Also those that have no batch yet: at a moment in seconds, or when a cell is there."""
    psutil = pytest.importorskip("psutil")
    grid = ("--n", "1:40", "--snr", "1", "--set", "pause=0.3", "--jobs=2", "--out=out")
    process = begin(tmp_path, *grid, parts=int(moment is None))
    time.sleep(moment or 0)
    workers = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.communicate(timeout=20)

    def living() -> list[Any]:
        known = psutil.process_iter(["status"])
        return [one for one in known if one in workers and one.info["status"] != "zombie"]

    wait_for(lambda: not living(), seconds=10)


@pytest.mark.slow
def test_a_killed_worker_costs_one_restart_and_no_result(
    tmp_path: Path, undisturbed: pd.DataFrame
) -> None:
    mark = {"TOY_MARK": str(tmp_path / "mark")}
    grid = (*GRID, "--set", "mood=kills-once")
    done = run("sweep", "toy", *grid, "--out", "out", cwd=tmp_path, env=mark)
    assert "workers were killed and started again 1 time" in done.stdout
    found = rows(tmp_path / "out").merge(undisturbed, on=["n", "snr", "seed", "draw", "test_loss"])
    assert len(found) == len(undisturbed) == len(rows(tmp_path / "out"))


@pytest.mark.unix
@pytest.mark.slow
@pytest.mark.parametrize(
    "case", ["1 loky SIGINT", "2 loky SIGINT", "2 loky SIGHUP", "2 threading SIGINT"]
)
def test_ctrl_c_leaves_at_once_and_keeps_what_is_finished(tmp_path: Path, case: str) -> None:
    """Sent to the whole process group, as a terminal does, and as one does that hangs up."""
    jobs, backend, number = case.split()
    grid = ("--n", "1:40", "--snr", "1", "--seeds", "1", "--set", "pause=0.1")
    how = ("--jobs", jobs, "--backend", backend, "--out", "out")
    process = begin(tmp_path, *grid, *how, new_session=True)
    os.killpg(process.pid, signal.Signals[number])
    output = ended(process, 130, seconds=2)
    assert re.search(r"Interrupted after(.|\n)* they are kept in out", output)
    kept = len(rows(tmp_path / "out"))
    assert 3 <= kept < 40
    resumed = run("sweep", "toy", *grid, "--jobs=1", "--out", "out", cwd=tmp_path)
    assert f"{kept} there already; {40 - kept} to run" in resumed.stdout


def test_results_that_nobody_takes_any_more_are_dropped_without_a_word() -> None:
    tasks = [{number: [cell]} for number, cell in enumerate(toy_cells("1:25"))]
    run_of_tasks = Local(2, "threading").run(Work(TOY, Execution()), tasks, ahead=2)
    records = cast("Generator[TaskRecord]", run_of_tasks)
    assert next(records).count == 1
    records.close()


@pytest.mark.unix
def test_workers_are_dropped_also_where_loky_never_hands_on_what_waits() -> None:
    """As where its thread waits for the other half of a result, of a worker that is gone."""
    local, loky, waiting = Local(2), mock.Mock(), queue.SimpleQueue[int]()
    local._workers, loky._work_ids = loky, waiting
    waiting.put(0)
    with alarm(time.monotonic() + 5, TimeoutError):
        local._drop([Future()])
    assert waiting.empty()
    loky.shutdown.assert_called_once_with(wait=False, kill_workers=True)


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
    check_once(tmp_path / "out", undisturbed)


def test_a_sweep_that_begins_leaves_alone_what_another_one_writes(tmp_path: Path) -> None:
    """It begins each time that a file was written and isn't renamed yet."""
    (tmp_path / "f.py").write_text("def train(a: int): return {'loss': a}\n")
    beginning, fsync = list[threading.Thread](), os.fsync

    def synced(descriptor: int) -> None:
        fsync(descriptor)
        beginning.append(threading.Thread(target=RunDirectory(tmp_path / "out").prepare))
        beginning[-1].start()
        beginning[-1].join(0.03)  # it waits for the lock

    with mock.patch("os.fsync", synced):
        call("sweep", "f.py", "--a=1", "--jobs=1", "--out=out", cwd=tmp_path)
    for one in beginning:
        one.join()
    assert (tmp_path / "out" / "source").is_dir()
    assert len(overfit_cli.load(tmp_path / "out")) == 1


def test_a_full_disk_gives_a_sentence_and_keeps_what_was_written(tmp_path: Path) -> None:
    """It is full from the ninth time on that something is to reach it."""
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    grid = ("--n=1:20", "--snr=1:2:4", "--seeds=1", "--jobs=1", "--out=out")
    synced = mock.patch("os.fsync", side_effect=[None] * 8 + [full] * 99)
    with mock.patch.object(worker, "TASK_SECONDS", 0.0), synced:
        done = call("sweep", "toy", *grid, cwd=tmp_path, expect=1)
    assert re.fullmatch(r".*No space left on device.*\n", done.stderr)
    kept = overfit_cli.load(tmp_path / "out")
    assert 0 < len(kept) < 80
    assert set(kept.groupby("n").size()) == {4}, "batches are whole"
    assert not list(tmp_path.glob("**/.part-*"))


def test_a_sweep_clears_what_a_kill_left_of_its_own_parts_alone(tmp_path: Path) -> None:
    call("sweep", "toy", "--n=1", "--jobs=1", "--out=out", cwd=tmp_path)
    (tmp_path / "out" / "figures").mkdir()
    for place in ("cells", "figures"):
        (tmp_path / "out" / place / ".part-1").touch()
    call("sweep", "toy", "--n=1,2", "--jobs=1", "--out=out", cwd=tmp_path)
    assert [path.parent.name for path in (tmp_path / "out").glob("*/.part-*")] == ["figures"]


WRITE = """
import os, signal, sys
from pathlib import Path
from overfit_cli.core import files
if sys.argv[1] == "killed":
    os.fsync = lambda file: os.kill(os.getpid(), signal.SIGKILL)
files.write_user_file(Path("out.csv"), b"1", "out")
"""


@pytest.mark.unix
def test_a_temporary_file_of_a_killed_process_is_cleared_and_another_machines_stays(
    tmp_path: Path,
) -> None:
    foreign = tmp_path / ".part-elsewhere-1-0"
    foreign.touch()
    python("-c", WRITE, "killed", cwd=tmp_path, expect=-9)
    assert len(list(tmp_path.glob(".part-*"))) == 2
    python("-c", WRITE, "whole", cwd=tmp_path)
    assert sorted(tmp_path.iterdir()) == [foreign, tmp_path / "out.csv"]


# Cells under signals: what a signal did is no result, and what the code of a cell raised is

STUBBORN = """
import time
from pathlib import Path

def train(n: int = 1, seed: int = 0):
    if n == 3:
        return {"test_loss": 3.0}
    try:
        Path("waits").touch()
        time.sleep(60)
    except KeyboardInterrupt:
        SAYS
    return {"test_loss": -1.0}
"""


@pytest.mark.unix
@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "says"),
    [
        (signal.SIGINT, "pass"),
        (signal.SIGINT, "raise RuntimeError('stopped early')"),
        (signal.SIGTERM, "raise RuntimeError('stopped early')"),
        (signal.SIGHUP, "pass"),
    ],
)
def test_a_cell_that_catches_an_interrupt_gives_no_result(
    tmp_path: Path, number: signal.Signals, says: str
) -> None:
    (tmp_path / "mine.py").write_text(STUBBORN.replace("SAYS", says))
    grid = ("mine.py", "--n=3,2,1", "--seeds=1", "--jobs=1", "--out=out")
    process = start("sweep", *grid, cwd=tmp_path)
    wait_for((tmp_path / "waits").exists)
    process.send_signal(number)
    assert "Interrupted" in ended(process, 130)
    if parts_in(tmp_path / "out" / "cells"):
        assert set(rows(tmp_path / "out")["n"]) == {3}


@pytest.mark.unix
@pytest.mark.slow
def test_a_signal_that_is_ignored_from_the_start_stays_so(tmp_path: Path) -> None:
    """As under nohup, where a terminal is closed."""
    text = (
        "import signal, overfit_cli\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "def train(n: int):\n"
        "    signal.raise_signal(signal.SIGHUP)\n"
        "    return {'test_loss': 1.0}\n"
        "overfit_cli.sweep(train, n=[1, 2], jobs=1, out='out', quiet=True)\n"
    )
    python("-c", text, cwd=tmp_path)
    assert set(rows(tmp_path / "out")["status"]) == {"done"}


# Silent workers: a task is lost a minute beyond the time limit, like one with a killed worker

SILENT = """
import signal, time

def train(n: int = 1, seed: int = 0):
    if n == 2:  # as in compiled code, which no signal ends
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
        time.sleep(1000)
    return {"loss": n}
"""


@pytest.mark.unix
@pytest.mark.slow
def test_a_cell_that_no_limit_ends_in_its_process_is_a_failed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executors, "GRACE", 4.0)
    (tmp_path / "silent.py").write_text(SILENT)
    how: Any = {"seeds": 1, "jobs": 2, "time_limit": 1, "out": tmp_path / "out", "quiet": True}
    cells = overfit_cli.sweep(tmp_path / "silent.py", n=[1, 2, 3], **how)
    assert cells.sort_values("n")["reason"].tolist() == ["", "worker killed", ""]


def test_time_counts_for_tasks_that_run_and_not_while_the_process_is_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    deadlines = Deadlines(10.0)
    one, two = (cast("Batch", [None]), cast("Batch", [None, None]))
    # Of the first, four parts at most: 40 seconds, and the grace.
    in_flight: dict[str, Task] = {"first": {0: one, 1: two}, "second": {2: one}}
    for _ in range(90):
        now += 1.0
        assert not deadlines.overdue(in_flight, 1)
    now += 1000.0  # Ctrl-Z
    assert not deadlines.overdue(in_flight, 1)
    while not (lost := deadlines.overdue(in_flight, 1)):
        now += 1
    assert lost == "first"
    del in_flight[lost]
    assert not deadlines.overdue(in_flight, 1)
    assert not Deadlines(None).overdue(in_flight, 1)
