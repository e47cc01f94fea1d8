"""A sweep on a dask cluster has the rows of a sweep here, whatever happens to workers."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import cloudpickle
import pandas as pd
import pytest

import overfit_cli
from overfit_cli.core.registry import find_study
from overfit_cli.core.training import Execution
from overfit_cli.sweeps.clusters import _knock
from overfit_cli.sweeps.grid import Grid
from overfit_cli.sweeps.worker import VERSIONS, Work, run_remotely
from tests.clusters import DaskCluster, dask_cluster
from tests.command import TOY, python, run, start, wait_for
from tests.studies.benign_vit.test_images import write_mnist
from tests.toy_runs import rows, stored_keys, toy_cells

GRID = ("--n", "1:6", "--snr", "1:2:3", "--seeds", "2", "--trajectories")
SHORT = ("--n", "1:20", "--snr", "1", "--seeds", "1", "--set", "pause=0.15")
LONG = ("--n", "1:60", *SHORT[2:])


def on(cluster: DaskCluster) -> tuple[str, ...]:
    """The options of a sweep on this cluster."""
    return ("--backend", "dask", "--address", cluster.address)


def steps(directory: Path) -> pd.DataFrame:
    """The logged steps, in an order that doesn't depend on when their cells ended."""
    logged = overfit_cli.load(directory, trajectories=True)
    return logged.sort_values(["key", "step"], ignore_index=True)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskCluster]:
    with dask_cluster(tmp_path_factory.mktemp("cluster"), "one", "two") as started:
        yield started


def test_rows_are_those_of_a_sweep_here(tmp_path: Path, cluster: DaskCluster) -> None:
    run("sweep", "toy", *GRID, "--jobs=1", "--out", "here", cwd=tmp_path)
    done = run("sweep", "toy", *GRID, *on(cluster), "--out", "there", cwd=tmp_path)
    assert f"36 to run, 2 jobs on dask at {cluster.address}." in done.stdout
    pd.testing.assert_frame_equal(rows(tmp_path / "there"), rows(tmp_path / "here"))
    pd.testing.assert_frame_equal(steps(tmp_path / "there"), steps(tmp_path / "here"))


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/cwd").exists(), reason="needs Linux's /proc")
def test_workers_need_no_disk_of_this_process(tmp_path: Path, cluster: DaskCluster) -> None:
    """The path of the run directory leads each process to its own working folder."""
    run("sweep", "toy", *GRID, "--jobs=1", "--out", "here", cwd=tmp_path)
    out = "/proc/self/cwd/there"
    run("sweep", "toy", *GRID, *on(cluster), "--out", out, cwd=tmp_path)
    assert [path.name for path in cluster.folder.glob("*/there")] == []
    pd.testing.assert_frame_equal(rows(tmp_path / "there"), rows(tmp_path / "here"))
    pd.testing.assert_frame_equal(steps(tmp_path / "there"), steps(tmp_path / "here"))


@pytest.mark.slow
def test_a_worker_that_is_lost_costs_its_batches_time_and_no_result(tmp_path: Path) -> None:
    with dask_cluster(tmp_path / "cluster", "one", "two") as started:
        process = start("sweep", "toy", *SHORT, *on(started), "--out", "out", cwd=tmp_path)
        wait_for(lambda: len(list((tmp_path / "out" / "cells").glob("*.parquet"))) >= 3)
        started.kill("two")
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert errors == ""
    assert "Done: 20 trained" in output
    assert sorted(stored_keys(tmp_path / "out")) == sorted(rows(tmp_path / "out")["key"])


@pytest.mark.slow
def test_a_scheduler_that_vanishes_is_one_sentence_and_no_result_is_lost(tmp_path: Path) -> None:
    with dask_cluster(tmp_path / "cluster", "one", "two") as started:
        process = start("sweep", "toy", *SHORT, *on(started), "--out", "out", cwd=tmp_path)
        wait_for(lambda: len(list((tmp_path / "out" / "cells").glob("*.parquet"))) >= 3)
        started.scheduler.kill()
        _, errors = process.communicate(timeout=60)
        kept = len(rows(tmp_path / "out"))
    assert process.returncode == 1
    assert errors == (
        f"overfit: --address {started.address}: the cluster no longer answers. What is "
        "finished is kept, and the same command goes on from there.\n"
    )
    assert 3 <= kept < 20
    done = run("sweep", "toy", *SHORT, "--jobs=1", "--out", "out", cwd=tmp_path)
    assert f"{kept} there already" in done.stdout
    assert len(rows(tmp_path / "out")) == 20


@pytest.mark.unix
@pytest.mark.slow
def test_a_scheduler_that_hangs_is_one_sentence(tmp_path: Path) -> None:
    with dask_cluster(tmp_path / "cluster", "one") as started:
        process = start("sweep", "toy", *LONG, *on(started), "--out", "out", cwd=tmp_path)
        wait_for(lambda: any((tmp_path / "out" / "cells").glob("*.parquet")))
        started.scheduler.send_signal(signal.SIGSTOP)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "the cluster no longer answers" in errors
    assert errors.count("\n") == 1


@pytest.mark.slow
def test_an_estimate_is_for_the_jobs_that_are_asked_for(
    tmp_path: Path, cluster: DaskCluster
) -> None:
    done = run("sweep", "toy", *GRID, *on(cluster), "--jobs", "200", "--dry-run", cwd=tmp_path)
    assert f"36 to run, 2 jobs on dask at {cluster.address}" in done.stdout
    assert " on 200 jobs, " in done.stdout
    presets = ("fig1", "--dry-run", "--jobs", "200")
    done = run("reproduce", *presets, *on(cluster), cwd=tmp_path)
    assert "1 preset on 200 jobs: " in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "127.0.0.1:9", "nowhere", "tcp://a:b"])
def test_a_scheduler_that_is_not_there_is_one_sentence(tmp_path: Path, address: str) -> None:
    where = ("--backend", "dask", "--address", address)
    refused = run("sweep", "toy", *GRID, *where, cwd=tmp_path, expect=2, apart=True)
    assert refused.stderr.startswith(f"overfit: --address {address}: no dask scheduler answers")
    assert refused.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("studies", [False, True])
def test_a_worker_without_a_package_ends_the_sweep_with_a_sentence(
    tmp_path: Path, studies: bool
) -> None:
    """The package of the study, or this one."""
    path = {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    if not studies:
        path = with_package(tmp_path / "package", 'raise ModuleNotFoundError("no overfit_cli")')
    with dask_cluster(tmp_path / "cluster") as started:
        started.add("poor", path)
        refused = run("sweep", "toy", *GRID, *on(started), "--out", "out", cwd=tmp_path, expect=1)
    lacks = "No module named 'toy_study'" if studies else "no overfit_cli"
    assert refused.stderr.startswith(
        f"overfit: --address {started.address}: a worker can't run a task (ModuleNotFoundError: "
        f"{lacks}); it needs overfit {overfit_cli.__version__} on Python 3."
    )
    assert "and the package of the study. What is finished is kept" in refused.stderr
    assert refused.stderr.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("lacks", ["this version", "the package"])
def test_an_odd_worker_that_joins_late_ends_the_sweep_with_a_sentence(
    tmp_path: Path, lacks: str
) -> None:
    package = tmp_path / "package"
    if lacks == "this version":
        shutil.copytree(Path(overfit_cli.__file__).parent, package / "overfit_cli")
        names_version = package / "overfit_cli" / "core" / "text.py"
        text = names_version.read_text()
        names_version.write_text(text.replace(overfit_cli.__version__, "0.0.1"))
        path = {"PYTHONPATH": os.pathsep.join([str(package), str(TOY)])}
        sentence = r"a worker has overfit 0\.0\.1 on Python 3\.\d+, and this is overfit 0"
    else:
        path = with_package(package, '__version__ = "0.0.1"')
        sentence = r"a worker can't run a task \(ModuleNotFoundError: No module named 'overfit_cli"
    with dask_cluster(tmp_path / "cluster", "one") as started:
        process = start("sweep", "toy", *LONG, *on(started), "--out", "out", cwd=tmp_path)
        wait_for(lambda: any((tmp_path / "out" / "cells").glob("*.parquet")))
        started.add("odd", path)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert re.match(f"overfit: --address {started.address}: {sentence}", errors)
    assert errors.count("\n") == 1
    assert 0 < len(rows(tmp_path / "out")) < 60


def with_package(folder: Path, text: str) -> dict[str, str]:
    """The environment of a worker that has another `overfit_cli`, made of this text."""
    (folder / "overfit_cli").mkdir(parents=True)
    (folder / "overfit_cli" / "__init__.py").write_text(text)
    return {"PYTHONPATH": str(folder)}


@pytest.mark.unix
@pytest.mark.slow
def test_ctrl_c_takes_back_what_is_queued_and_keeps_what_is_finished(
    tmp_path: Path, cluster: DaskCluster
) -> None:
    process = start("sweep", "toy", *SHORT, *on(cluster), "--out", "out", cwd=tmp_path)
    wait_for(lambda: len(list((tmp_path / "out" / "cells").glob("*.parquet"))) >= 3)
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    output, errors = process.communicate(timeout=20)
    assert time.monotonic() - began < 3
    assert process.returncode == 130
    assert "Interrupted after" in output
    assert errors == ""
    time.sleep(1)  # what was running may end
    kept = len(rows(tmp_path / "out"))
    time.sleep(1)
    assert 3 <= len(rows(tmp_path / "out")) == kept < 20


@pytest.mark.parametrize(
    ("there", "said"),
    [
        ("same", ""),
        ("", "A worker lacks what benign-vit-images needs: "),
        ("other", "A worker has other data than this process: its MNIST had other content when"),
    ],
)
def test_a_worker_trains_on_the_data_that_the_sweep_has_read_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: str, said: str
) -> None:
    """What a worker does, in this process: it doesn't see the folder, and may have its own."""
    counts = {"train": 40, "t10k": 20}
    data = write_mnist(tmp_path / "data", counts)
    shutil.copytree(data, tmp_path / "same")
    write_mnist(tmp_path / "other", {**counts, "t10k": 19})
    monkeypatch.setenv("OVERFIT_DATA", str(data))
    images = find_study("benign-vit-images")
    values = {"source": "mnist", "n": "4", "test_samples": "4"}
    cells = Grid.read(images, values, (0,)).cells()
    pickled = cloudpickle.dumps(Work(images, Execution(), images.prepare(cells)))
    shutil.rmtree(data)
    monkeypatch.setenv("OVERFIT_DATA", there and str(tmp_path / there))
    refused = pytest.raises(overfit_cli.UserError, match=f"^{said}") if said else nullcontext()
    with refused:
        record = run_remotely(VERSIONS, pickled, cloudpickle.dumps({0: cells}))
        assert record.cells is not None
        assert record.cells.num_rows == 1


def test_a_worker_without_a_gpu_trains_nothing_on_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    pickled = cloudpickle.dumps(Work(find_study("toy"), Execution("cuda")))
    with pytest.raises(overfit_cli.UserError, match="A worker lacks what toy needs: device='cuda'"):
        run_remotely(VERSIONS, pickled, cloudpickle.dumps({0: toy_cells()}))


@pytest.mark.unix
@pytest.mark.slow
def test_a_cell_that_kills_every_worker_becomes_a_failed_row(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import os, signal\n"
        "def train(n: int = 1, seed: int = 0):\n"
        "    if n == 4:\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return {'test_loss': 1.0}\n"
    )
    with dask_cluster(tmp_path / "cluster", "one", "two", restarts=True) as started:
        grid = ("mine.py", "--n", "1:12", "--seeds", "1", *on(started), "--out", "out")
        done = run("sweep", *grid, cwd=tmp_path, expect=1)
    assert "11 trained" in done.stdout, done.stdout + done.stderr
    assert "1 failed (1 worker killed)" in done.stdout
    cells = rows(tmp_path / "out")
    assert list(cells.loc[cells["status"] == "failed", "n"]) == [4]
    assert len(cells) == 12


@pytest.mark.slow
def test_a_sweep_waits_for_a_cluster_that_has_no_worker_yet(tmp_path: Path) -> None:
    with dask_cluster(tmp_path / "cluster") as started:
        process = start("sweep", "toy", *GRID, *on(started), "--out", "out", cwd=tmp_path)
        assert process.stdout is not None
        plan = [process.stdout.readline() for _ in range(2)]
        started.add("late")
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")
    assert plan[1] == f"36 to run, 0 jobs on dask at {started.address}.\n"
    assert len(rows(tmp_path / "out")) == 36


@pytest.mark.slow
def test_no_more_tasks_run_at_a_time_than_jobs(tmp_path: Path, cluster: DaskCluster) -> None:
    (tmp_path / "mine.py").write_text(
        "import time\n"
        "def train(n: int = 1, seed: int = 0):\n"
        "    began = time.time()\n"
        "    time.sleep(0.3)\n"
        "    return {'test_loss': 1.0, 'began': began, 'ended': time.time()}\n"
    )
    grid = ("mine.py", "--n", "1:8", "--seeds", "1", "--jobs", "1")
    done = run("sweep", *grid, *on(cluster), "--out", "out", cwd=tmp_path)
    assert "8 to run, 1 job on dask at" in done.stdout
    cells = rows(tmp_path / "out").sort_values("began")
    assert (cells["began"].to_numpy()[1:] >= cells["ended"].to_numpy()[:-1]).all()


@pytest.mark.unix
@pytest.mark.slow
def test_cells_that_were_beside_a_killer_are_trained(tmp_path: Path) -> None:
    """Dask blames all tasks that a lost worker had, also those that were waiting there."""
    (tmp_path / "mine.py").write_text(
        "import os, signal, time\n"
        "def train(n: int = 1, seed: int = 0):\n"
        "    time.sleep(0.4)\n"
        "    if n == 3:\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    time.sleep(0.8)\n"
        "    return {'test_loss': 1.0}\n"
    )
    with dask_cluster(tmp_path / "cluster", "one", restarts=True) as started:
        grid = ("mine.py", "--n", "1:5", "--seeds", "1", *on(started), "--out", "out")
        run("sweep", *grid, cwd=tmp_path, expect=1)
    cells = rows(tmp_path / "out")
    assert sorted(cells.loc[cells["status"] == "failed", "n"]) == [3]
    assert len(cells) == 5


FUNCTION = """
import beside

def train(n: int = 1, snr: float = 1.0, seed: int = 0):
    for step in range(2):
        yield {"train_loss": beside.loss(n, snr) + step}
    return {"test_loss": beside.loss(n, snr), "here": float(HERE in __file__)}
"""


@pytest.mark.slow
def test_a_function_travels_with_the_files_that_it_imports(
    tmp_path: Path, cluster: DaskCluster
) -> None:
    (tmp_path / "mine.py").write_text(f"HERE = {str(tmp_path)!r}\n{FUNCTION}")
    (tmp_path / "beside.py").write_text("def loss(n, snr):\n    return n * snr\n")
    grid = ("mine.py", "--n", "1:3", "--snr", "1,2", "--trajectories", "--seeds", "1")
    run("sweep", *grid, *on(cluster), "--out", "first", cwd=tmp_path)
    first = rows(tmp_path / "first")
    assert list(first["test_loss"]) == list(first["n"] * first["snr"])
    assert set(first["here"]) == {1.0}, "it knows the path of its file, to find data beside it"
    assert len(overfit_cli.load(tmp_path / "first", trajectories=True)) == 12
    (tmp_path / "beside.py").write_text("def loss(n, snr):\n    return n * snr + 10\n")
    run("sweep", *grid, *on(cluster), "--out", "second", cwd=tmp_path)
    changed = rows(tmp_path / "second")
    assert list(changed["test_loss"]) == list(changed["n"] * changed["snr"] + 10)


@pytest.mark.slow
@pytest.mark.parametrize("changes", ["pkg/sub/mine.py", "pkg/sub/beside.py", "pkg/common.py"])
def test_a_function_of_a_package_travels_anew_when_a_file_of_it_has_changed(
    tmp_path: Path, cluster: DaskCluster, changes: str
) -> None:
    files = {
        "pkg/__init__.py": "",
        "pkg/common.py": "V = 1\n",
        "pkg/sub/__init__.py": "",
        "pkg/sub/beside.py": "from ..common import V as COMMON\nV = 1\n",
        "pkg/sub/mine.py": (
            "from pkg.sub import beside\nV = 1\n"
            "def f(n: int = 1, seed: int = 0):\n"
            "    return {'test_loss': n * V * beside.V * beside.COMMON}\n"
        ),
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    grid = ("pkg.sub.mine:f", "--n", "1:3", "--seeds", "1")
    run("sweep", *grid, *on(cluster), "--out", "first", cwd=tmp_path)
    assert sorted(rows(tmp_path / "first")["test_loss"]) == [1, 2, 3]
    (tmp_path / changes).write_text(files[changes].replace("V = 1\n", "V = 10\n"))
    run("sweep", *grid, *on(cluster), "--out", "second", cwd=tmp_path)
    assert sorted(rows(tmp_path / "second")["test_loss"]) == [10, 20, 30]


@pytest.mark.slow
def test_two_sweeps_at_once_import_their_own_files(tmp_path: Path, cluster: DaskCluster) -> None:
    """Also where a function imports while it trains."""
    processes = []
    for name, value in (("a", 1), ("b", 1000)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "helper.py").write_text(f"V = {value}\n")
        (folder / f"lazy_{name}.py").write_text(
            "import time\n"
            "def train(n: int = 1, seed: int = 0):\n"
            "    time.sleep(0.1)\n"
            "    import helper\n"
            "    return {'test_loss': helper.V}\n"
        )
        grid = (f"lazy_{name}.py", "--n", "1:20", "--seeds", "1", "--out", "out")
        processes.append(start("sweep", *grid, *on(cluster), cwd=folder))
    sentences = [process.communicate(timeout=90)[1] for process in processes]
    assert sentences == ["", ""]
    for name, value in (("a", 1), ("b", 1000)):
        assert list(rows(tmp_path / name / "out")["test_loss"]) == [value] * 20


@pytest.mark.slow
def test_a_script_sweeps_its_own_function_on_a_cluster(
    tmp_path: Path, cluster: DaskCluster
) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import overfit_cli\n"
        "def train(n: int = 1, seed: int = 0) -> dict[str, float]:\n"
        "    return {'test_loss': n + seed}\n"
        "if __name__ == '__main__':\n"
        f"    overfit_cli.sweep(train, n=[1, 2], seeds=2, out='out', backend='dask', "
        f"address={cluster.address!r})\n"
    )
    python(script, cwd=tmp_path)
    assert sorted(rows(tmp_path / "out")["test_loss"]) == [1, 2, 2, 3]


@pytest.mark.slow
def test_a_function_that_cannot_travel_is_refused(tmp_path: Path, cluster: DaskCluster) -> None:
    import threading

    lock = threading.Lock()

    def train(n: int = 1, seed: int = 0) -> dict[str, float]:
        with lock:
            return {"test_loss": float(n)}

    with pytest.raises(overfit_cli.UserError, match="train can't be sent to workers"):
        overfit_cli.sweep(
            train, n=[1, 2], out=tmp_path / "out", backend="dask", address=cluster.address
        )


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
def test_a_cluster_is_looked_for_at_a_name_a_number_or_an_ipv6_address(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        server = socket.create_server((host.strip("[]"), 0), family=family)
    except OSError:
        pytest.skip("this machine has no such address")
    with server:
        _knock(f"{host}:{server.getsockname()[1]}")
