"""A task that is silent a minute beyond the time limit is lost like one with a killed worker."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any, cast

import pytest

import overfit_cli
from overfit_cli.sweeps import executors
from overfit_cli.sweeps.executors import Deadlines
from overfit_cli.sweeps.worker import Batch, Task
from tests.clusters import dask_cluster
from tests.command import ended
from tests.toy_runs import begin, rows

CELLS = ("--n", "1:40", "--snr", "1", "--seeds", "1", "--set", "pause=0.1")
SILENT = """
import signal, time

def train(n: int = 1, seed: int = 0):
    if n == 2:  # as in compiled code, which no signal ends
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
        time.sleep(1000)
    return {"loss": n}
"""


@pytest.mark.unix
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


@pytest.mark.unix
@pytest.mark.slow
def test_others_train_what_a_silent_worker_of_dask_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executors, "GRACE", 1.0)
    with dask_cluster(tmp_path / "cluster", "one", "two") as started:
        started.workers["two"].send_signal(signal.SIGSTOP)
        where: Any = {"backend": "dask", "address": started.address, "out": tmp_path / "out"}
        grid: Any = {"n": "1:4", "snr": 1.0, "seeds": 1}
        cells = overfit_cli.sweep("toy", **grid, **where, time_limit=1, quiet=True)
    assert len(cells) == 4
    assert set(cells["reason"]) <= {"", "worker killed"}
    assert "" in set(cells["reason"])


@pytest.mark.unix
@pytest.mark.slow
def test_others_train_what_a_frozen_worker_has_when_dask_gives_it_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dask does so after 5 to 10 minutes; here after less than half a minute."""
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL", "8s")
    with dask_cluster(tmp_path / "cluster", "one", "two") as started:
        where = ("--backend", "dask", "--address", started.address)
        process = begin(tmp_path, *CELLS, *where)
        started.workers["two"].send_signal(signal.SIGSTOP)
        ended(process, seconds=120)
    assert len(rows(tmp_path / "out")) == 40
