"""A worker that is frozen, not dead, or that never comes is waited for a stated time."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.clusters import DaskCluster, dask_cluster, ray_cluster
from tests.command import run, start, wait_for
from tests.toy_runs import rows

pytestmark = [pytest.mark.unix, pytest.mark.slow]

CELLS = ("--n", "1:40", "--snr", "1", "--seeds", "1", "--set", "pause=0.1", "--out", "out")
KEPT = "What is finished is kept, and the same command goes on from there.\n"


def on(cluster: DaskCluster) -> tuple[str, ...]:
    """The options of a sweep on this cluster."""
    return ("--backend", "dask", "--scheduler", cluster.address)


def begin(folder: Path, *options: str) -> subprocess.Popen[str]:
    """Start a sweep, and wait until it has some cells."""
    process = start("sweep", "toy", *CELLS, *options, cwd=folder)
    wait_for(lambda: len(list((folder / "out" / "cells").glob("*.parquet"))) >= 3)
    return process


def silent(cluster: str, name: str, seconds: int, news: str) -> str:
    return (
        f"overfit: --patience {seconds}: for so many seconds no {news} came from the workers on "
        f"{name} at {cluster}. {KEPT}"
    )


def test_a_frozen_worker_ends_the_sweep_with_a_sentence(tmp_path: Path) -> None:
    with dask_cluster(tmp_path / "cluster", "one", "two") as started:
        process = begin(tmp_path, *on(started), "--patience", "6")
        started.workers["two"].send_signal(signal.SIGSTOP)
        output, errors = process.communicate(timeout=90)
        assert process.returncode == 1, output
        assert errors == silent(started.address, "dask", 6, "result or sign of life")
        kept = len(rows(tmp_path / "out"))
        assert 3 <= kept < 40
        started.workers["two"].send_signal(signal.SIGCONT)
        done = run("sweep", "toy", *CELLS, *on(started), cwd=tmp_path)
    assert f"{kept} there already" in done.stdout
    assert len(rows(tmp_path / "out")) == 40


def test_others_train_what_a_frozen_worker_has_when_dask_gives_it_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dask does so after 5 to 10 minutes; here after less than half a minute."""
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL", "8s")
    with dask_cluster(tmp_path / "cluster", "one", "two") as started:
        process = begin(tmp_path, *on(started))
        started.workers["two"].send_signal(signal.SIGSTOP)
        output, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (0, ""), output
    assert len(rows(tmp_path / "out")) == 40


def test_a_worker_that_never_comes_is_waited_for_as_long_as_the_plan_says(tmp_path: Path) -> None:
    with dask_cluster(tmp_path / "cluster") as started:
        patience = ("--patience", "4")
        done = run("sweep", "toy", *CELLS, *on(started), *patience, cwd=tmp_path, expect=1)
    assert "which has no worker yet: the sweep waits 4.0 s for one." in done.stdout
    assert done.stderr == silent(started.address, "dask", 4, "result or sign of life")


def test_a_cell_may_take_longer_while_its_worker_gives_signs_of_life(tmp_path: Path) -> None:
    with dask_cluster(tmp_path / "cluster", "one") as started:
        grid = ("--n", "1", "--snr", "1", "--seeds", "1", "--set", "pause=9", "--out", "out")
        run("sweep", "toy", *grid, *on(started), "--patience", "3", cwd=tmp_path)
    assert set(rows(tmp_path / "out")["status"]) == {"done"}


def test_time_in_which_the_sweep_itself_is_stopped_does_not_count(tmp_path: Path) -> None:
    """As by Ctrl-Z; the worker is stopped beside it, as it is where a laptop sleeps."""
    with dask_cluster(tmp_path / "cluster", "one") as started:
        process = begin(tmp_path, *on(started), "--patience", "5")
        for number in (signal.SIGSTOP, signal.SIGCONT):
            process.send_signal(number)
            started.workers["one"].send_signal(number)
            time.sleep(8 if number == signal.SIGSTOP else 0)
        output, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, ""), output
    assert len(rows(tmp_path / "out")) == 40


def test_a_frozen_worker_of_ray_ends_the_sweep_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    with ray_cluster(tmp_path / "cluster") as started:
        address = started.address
        where = ("--backend", "ray", "--address", address, "--patience", "6")
        process = begin(tmp_path, *where)
        started.signal_a_worker(signal.SIGSTOP)
        output, errors = process.communicate(timeout=90)
    assert process.returncode == 1, output
    assert errors == silent(address, "ray", 6, "result")
    assert 3 <= len(rows(tmp_path / "out")) < 40
