"""A sweep on a ray cluster has the rows of a sweep here, whatever happens to workers."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from tests.clusters import RayCluster, free_port, ray_cluster
from tests.command import python, run, start, wait_for
from tests.toy_runs import rows

pytestmark = pytest.mark.slow

GRID = ("--n", "1:6", "--snr", "1:2:3", "--seeds", "2")
SHORT = ("--n", "1:20", "--snr", "1", "--seeds", "1", "--set", "pause=0.15")


def on(cluster: RayCluster) -> tuple[str, ...]:
    """The options of a sweep on this cluster."""
    return ("--backend", "ray", "--address", cluster.address)


def begun(directory: Path) -> bool:
    """Whether some cells are there."""
    return len(list((directory / "cells").glob("*.parquet"))) >= 3


@pytest.fixture(autouse=True)
def without_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever ray has left in the home folder."""
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RayCluster]:
    with ray_cluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started


def test_rows_are_those_of_a_sweep_here(tmp_path: Path, cluster: RayCluster) -> None:
    run("sweep", "toy", *GRID, "--jobs=1", "--out", "here", cwd=tmp_path)
    done = run("sweep", "toy", *GRID, *on(cluster), "--out", "there", cwd=tmp_path)
    assert f"36 to run, 2 jobs on ray at {cluster.address}." in done.stdout
    assert done.stderr == ""
    pd.testing.assert_frame_equal(rows(tmp_path / "there"), rows(tmp_path / "here"))


@pytest.mark.skipif(not Path("/proc/self/cwd").exists(), reason="needs Linux's /proc")
def test_workers_need_no_disk_of_this_process(tmp_path: Path, cluster: RayCluster) -> None:
    run("sweep", "toy", *GRID, "--jobs=1", "--out", "here", cwd=tmp_path)
    out = "/proc/self/cwd/there"
    run("sweep", "toy", *GRID, *on(cluster), "--out", out, cwd=tmp_path)
    pd.testing.assert_frame_equal(rows(tmp_path / "there"), rows(tmp_path / "here"))


def test_a_worker_that_is_killed_costs_its_batches_time_and_no_result(
    tmp_path: Path, cluster: RayCluster
) -> None:
    process = start("sweep", "toy", *SHORT, *on(cluster), "--out", "out", cwd=tmp_path)
    wait_for(lambda: begun(tmp_path / "out"))
    cluster.signal_a_worker(signal.SIGKILL)
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")
    assert "workers were killed and started again 1 time" in output
    assert set(rows(tmp_path / "out")["status"]) == {"done"}
    assert len(rows(tmp_path / "out")) == 20


@pytest.mark.unix
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_worker_that_is_asked_to_end_costs_no_result(
    tmp_path: Path, cluster: RayCluster, number: signal.Signals
) -> None:
    """Ray raises SystemExit at SIGTERM, in the midst of a cell, and Python KeyboardInterrupt."""
    process = start("sweep", "toy", *SHORT, *on(cluster), "--out", "out", cwd=tmp_path)
    wait_for(lambda: begun(tmp_path / "out"))
    cluster.signal_a_worker(number)
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, ""), output
    assert set(rows(tmp_path / "out")["status"]) == {"done"}
    assert len(rows(tmp_path / "out")) == 20


@pytest.mark.unix
def test_sigterm_while_it_connects_shows_no_stack(tmp_path: Path, cluster: RayCluster) -> None:
    for moment in (0.5, 0.9, 1.3, 1.7, 2.1):
        process = start("sweep", "toy", *SHORT, *on(cluster), "--out", "out", cwd=tmp_path)
        time.sleep(moment)
        process.terminate()
        assert process.communicate(timeout=20)[1] == ""


def test_a_cell_that_exits_is_a_failed_row(tmp_path: Path, cluster: RayCluster) -> None:
    grid = ("--n", "1", "--snr", "1", "--seeds", "1", "--set", "mood=exits,interrupts")
    run("sweep", "toy", *grid, *on(cluster), "--out", "out", cwd=tmp_path, expect=1)
    reasons = {"error: SystemExit: enough", "error: KeyboardInterrupt"}
    assert {reason.partition(" at ")[0] for reason in rows(tmp_path / "out")["reason"]} == reasons


def test_a_cell_that_kills_every_worker_becomes_a_failed_row(
    tmp_path: Path, cluster: RayCluster
) -> None:
    grid = ("--n", "1", "--snr", "1", "--seeds", "1", "--set", "mood=kills")
    done = run("sweep", "toy", *grid, *on(cluster), "--out", "out", cwd=tmp_path, expect=1)
    assert "1 failed (1 worker killed)" in done.stdout
    assert done.stderr == ""


@pytest.mark.unix
def test_ctrl_c_takes_back_what_is_queued_and_keeps_what_is_finished(
    tmp_path: Path, cluster: RayCluster
) -> None:
    process = start("sweep", "toy", *SHORT, *on(cluster), "--out", "out", cwd=tmp_path)
    wait_for(lambda: begun(tmp_path / "out"))
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    output, errors = process.communicate(timeout=20)
    assert time.monotonic() - began < 5
    assert (process.returncode, errors) == (130, "")
    assert "Interrupted after" in output
    assert 3 <= len(rows(tmp_path / "out")) < 20


def test_a_function_travels(tmp_path: Path, cluster: RayCluster) -> None:
    (tmp_path / "beside.py").write_text("def loss(n):\n    return 2.0 * n\n")
    (tmp_path / "mine.py").write_text(
        "import beside\n"
        "def train(n: int = 1, seed: int = 0):\n"
        f"    here = float({str(tmp_path)!r} in __file__)\n"
        "    return {'test_loss': beside.loss(n), 'here': here}\n"
    )
    grid = ("mine.py", "--n", "1:3", "--seeds", "1")
    run("sweep", *grid, *on(cluster), "--out", "out", cwd=tmp_path)
    cells = rows(tmp_path / "out")
    assert list(cells["test_loss"]) == list(2 * cells["n"])
    assert set(cells["here"]) == {1.0}


def test_a_script_that_is_connected_stays_so(tmp_path: Path, cluster: RayCluster) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import overfit_cli, ray\n"
        f"ray.init({cluster.address!r}, log_to_driver=False)\n"
        "sweep = dict(n=[1, 2], snr=1.0, seeds=1, backend='ray', quiet=True)\n"
        "head = ray.get_runtime_context().gcs_address\n"
        "for name, address in (('auto', 'auto'), ('named', head)):\n"
        "    overfit_cli.sweep('toy', **sweep, address=address, out=name)\n"
        "    assert ray.is_initialized()\n"
        "try:\n"
        "    overfit_cli.sweep('toy', **sweep, address='127.0.0.1:9')\n"
        "except overfit_cli.UserError as error:\n"
        "    print(error)\n"
    )
    done = python(script, cwd=tmp_path)
    assert "address='127.0.0.1:9': this process is connected to the ray cluster at" in done.stdout
    assert len(rows(tmp_path / "auto")) == len(rows(tmp_path / "named")) == 2


def test_a_worker_without_the_study_ends_the_sweep_with_a_sentence(tmp_path: Path) -> None:
    path = os.environ.get("PYTHONPATH", "")
    with ray_cluster(tmp_path / "cluster", {"PYTHONPATH": path}) as started:
        refused = run("sweep", "toy", *GRID, *on(started), "--out", "out", cwd=tmp_path, expect=1)
    assert refused.stderr.startswith(
        f"overfit: --address {started.address}: a worker can't run a task (ModuleNotFoundError: "
    )
    assert refused.stderr.count("\n") == 1


def test_a_cluster_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    where = ("--backend", "ray", "--address", address)
    refused = run("sweep", "toy", *GRID, *where, cwd=tmp_path, expect=2, apart=True)
    assert refused.stderr.startswith(f"overfit: --address {address}: no ray cluster answers there")
    assert refused.stderr.count("\n") == 1


def test_a_cluster_that_vanishes_is_one_sentence_and_no_result_is_lost(tmp_path: Path) -> None:
    with ray_cluster(tmp_path / "cluster") as started:
        process = start("sweep", "toy", *SHORT, *on(started), "--out", "out", cwd=tmp_path)
        wait_for(lambda: begun(tmp_path / "out"))
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 1
    assert f"overfit: --address {started.address}: the cluster no longer answers" in errors
    assert 3 <= len(rows(tmp_path / "out")) < 20
