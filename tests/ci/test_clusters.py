"""A sweep on a dask or ray cluster has the rows of a sweep here, whatever happens to workers."""

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
from typing import Any

import cloudpickle
import pandas as pd
import pytest

import overfit_cli
from overfit_cli.core.registry import find_study
from overfit_cli.core.training import Execution
from overfit_cli.sweeps import executors
from overfit_cli.sweeps.clusters import _knock
from overfit_cli.sweeps.grid import Grid
from overfit_cli.sweeps.worker import VERSIONS, Work, run_remotely
from tests.ci.clusters import DaskCluster, RayCluster, dask_cluster, ray_cluster
from tests.command import TOY, ended, python, run, start
from tests.functions.mine import written
from tests.studies.benign_vit.test_images import write_mnist
from tests.toy_runs import begin, rows, stored_keys, toy_cells

GRID = ("--n", "1:6", "--snr", "1:2:3", "--seeds", "2", "--trajectories")
SHORT = ("--n", "1:20", "--snr", "1", "--seeds", "1", "--set", "pause=0.15")
LONG = ("--n", "1:60", *SHORT[2:])
Cluster = DaskCluster | RayCluster


def on(cluster: Cluster, out: str = "out") -> tuple[str, ...]:
    """The options of a sweep on this cluster."""
    return ("--backend", cluster.backend, "--address", cluster.address, "--out", out)


def steps(directory: Path) -> pd.DataFrame:
    """The logged steps, in an order that doesn't depend on when their cells ended."""
    logged = overfit_cli.load(directory, trajectories=True)
    return logged.sort_values(["key", "step"], ignore_index=True)


@pytest.fixture(scope="module")
def dask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskCluster]:
    with dask_cluster(tmp_path_factory.mktemp("dask"), "one", "two") as started:
        yield started


@pytest.fixture(scope="module")
def ray(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RayCluster]:
    with ray_cluster(tmp_path_factory.mktemp("ray")) as started:
        yield started


@pytest.fixture(params=["dask", "ray"])
def cluster(request: pytest.FixtureRequest) -> Cluster:
    found: Cluster = request.getfixturevalue(request.param)
    return found


def test_rows_are_those_of_a_sweep_here_and_workers_need_no_disk_of_this_process(
    tmp_path: Path, cluster: Cluster
) -> None:
    """Under Linux the path of the run directory leads each process to its own working folder."""
    run("sweep", "toy", *GRID, "--jobs=1", "--out", "here", cwd=tmp_path)
    out = "/proc/self/cwd/out" if Path("/proc/self/cwd").exists() else "out"
    done = run("sweep", "toy", *GRID, *on(cluster, out), cwd=tmp_path)
    assert f"36 to run, 2 jobs on {cluster.backend} at {cluster.address}." in done.stdout
    assert done.stderr == ""
    pd.testing.assert_frame_equal(rows(tmp_path / "out"), rows(tmp_path / "here"))
    pd.testing.assert_frame_equal(steps(tmp_path / "out"), steps(tmp_path / "here"))


@pytest.mark.unix
def test_ctrl_c_takes_back_what_is_queued_and_keeps_what_is_finished(
    tmp_path: Path, cluster: Cluster
) -> None:
    process = begin(tmp_path, *SHORT, *on(cluster))
    process.send_signal(signal.SIGINT)
    assert "Interrupted after" in ended(process, 130, seconds=5)
    time.sleep(1)  # what was running may end
    kept = len(rows(tmp_path / "out"))
    time.sleep(1)
    assert 3 <= len(rows(tmp_path / "out")) == kept < 20


def test_a_function_travels_with_the_files_of_its_package_and_anew_when_one_has_changed(
    tmp_path: Path, cluster: Cluster
) -> None:
    files = {
        "pkg/__init__.py": "",
        "pkg/common.py": "V = 1\n",
        "pkg/sub/__init__.py": "",
        "pkg/sub/beside.py": "from ..common import V as COMMON\nV = 1\n",
        "pkg/sub/mine.py": (
            "from pkg.sub import beside\n"
            "def f(n: int = 1, seed: int = 0):\n"
            "    yield {'train_loss': beside.V}\n"
            f"    here = float({str(tmp_path)!r} in __file__)\n"
            "    return {'test_loss': n * beside.V * beside.COMMON, 'here': here}\n"
        ),
    }
    (tmp_path / "pkg" / "sub").mkdir(parents=True)
    for name, text in files.items():
        written(tmp_path, text, name)
    grid = ("pkg.sub.mine:f", "--n", "1:3", "--trajectories", "--seeds", "1", "--fresh")
    for factor in (1, 10):
        written(tmp_path, f"V = {factor}\n", "pkg/common.py")
        run("sweep", *grid, *on(cluster), cwd=tmp_path)
        cells = rows(tmp_path / "out")
        assert sorted(cells["test_loss"]) == [factor, 2 * factor, 3 * factor]
        assert set(cells["here"]) == {1.0}, "it knows its file's path, to find data beside it"
    assert len(overfit_cli.load(tmp_path / "out", trajectories=True)) == 3


@pytest.mark.parametrize(
    "case", ["dask tcp://127.0.0.1:9", "dask nowhere", "dask tcp://a:b", "ray 127.0.0.1:9"]
)
def test_a_cluster_that_is_not_there_is_one_sentence(tmp_path: Path, case: str) -> None:
    backend, address = case.split()
    where = ("--backend", backend, "--address", address)
    refused = run("sweep", "toy", *GRID, *where, cwd=tmp_path, expect=2, apart=True)
    who = "dask scheduler" if backend == "dask" else "ray cluster"
    assert refused.stderr.startswith(f"overfit: --address {address}: no {who} answers there")
    assert refused.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.unix
@pytest.mark.parametrize("how", ["dask hangs", "ray ends"])
def test_a_cluster_that_no_longer_answers_is_one_sentence_and_no_result_is_lost(
    tmp_path: Path, how: str
) -> None:
    folder, dask = tmp_path / "cluster", how.startswith("dask")
    with dask_cluster(folder, "one", "two") if dask else ray_cluster(folder) as started:
        process = begin(tmp_path, *LONG, *on(started))
        if isinstance(started, DaskCluster):
            started.scheduler.send_signal(signal.SIGSTOP)
            process.wait(timeout=60)
    _, errors = process.communicate(timeout=120)
    kept = len(rows(tmp_path / "out"))
    assert process.returncode == 1
    assert errors == (
        f"overfit: --address {started.address}: the cluster no longer answers. What is "
        "finished is kept, and the same command goes on from there.\n"
    )
    assert 3 <= kept < 60
    done = run("sweep", "toy", *LONG, "--jobs=1", "--out", "out", cwd=tmp_path)
    assert f"{kept} there already" in done.stdout
    assert len(rows(tmp_path / "out")) == 60


@pytest.mark.unix
def test_a_frozen_scheduler_ends_a_sweep_that_connects_within_a_minute(tmp_path: Path) -> None:
    with dask_cluster(tmp_path / "cluster", "one") as started:
        started.scheduler.send_signal(signal.SIGSTOP)
        begun = time.monotonic()
        done = run("sweep", "toy", *GRID, *on(started), cwd=tmp_path, expect=2)
        assert time.monotonic() - begun < 60
        started.scheduler.send_signal(signal.SIGCONT)
    words = "no dask scheduler answers there (TimeoutError); `dask scheduler` starts one."
    assert done.stderr == f"overfit: --address {started.address}: {words}\n"


# Dask


def test_a_worker_that_is_lost_costs_its_batches_time_and_no_result(tmp_path: Path) -> None:
    with dask_cluster(tmp_path / "cluster", "one", "two") as started:
        process = begin(tmp_path, *SHORT, *on(started))
        started.kill("two")
        assert "Done: 20 trained" in ended(process)
    assert sorted(stored_keys(tmp_path / "out")) == sorted(rows(tmp_path / "out")["key"])


ODD = r"a worker has overfit 0\.0\.1 on Python 3\.\d+, and this is overfit 0"
LACKS = r"a worker can't run a task \(ModuleNotFoundError: {}"
NO_STUDY = LACKS.format(r"No module named 'toy_study'\); it needs overfit .* on")


def lacking(what: str, folder: Path) -> dict[str, str]:
    """The environment of a worker that lacks something, or has it in this folder as it is."""
    if what == "the study":
        return {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    package = folder / "overfit_cli"
    if what == "the version":
        shutil.copytree(Path(overfit_cli.__file__).parent, package)
        names_version = package / "core" / "text.py"
        text = names_version.read_text()
        names_version.write_text(text.replace(overfit_cli.__version__, "0.0.1"))
    else:
        package.mkdir(parents=True)
        fails = what == "the package"
        written(package, "import no_package" if fails else '__version__ = "0.0.1"', "__init__.py")
    return {"PYTHONPATH": os.pathsep.join([str(folder), str(TOY)])}


@pytest.mark.parametrize(
    ("lacks", "late", "sentence"),
    [
        ("the study", False, NO_STUDY),
        ("the package", False, LACKS.format("No module named 'no_package'")),
        ("its modules", True, LACKS.format("No module named 'overfit_cli")),
        ("the version", True, ODD),
    ],
)
def test_a_worker_that_lacks_something_ends_the_sweep_with_a_sentence(
    tmp_path: Path, lacks: str, late: bool, sentence: str
) -> None:
    env = lacking(lacks, tmp_path / "package")
    with dask_cluster(tmp_path / "cluster", *["one"] * late) as started:
        process = begin(tmp_path, *LONG, *on(started), parts=int(late))
        started.add("odd", env)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert re.match(f"overfit: --address {started.address}: {sentence}", errors)
    assert "What is finished is kept" in errors
    assert errors.count("\n") == 1


def test_a_sweep_waits_for_a_cluster_that_has_no_worker_yet(tmp_path: Path) -> None:
    with dask_cluster(tmp_path / "cluster") as started:
        process = start("sweep", "toy", *GRID, *on(started), cwd=tmp_path)
        assert process.stdout is not None
        plan = [process.stdout.readline() for _ in range(2)]
        started.add("late")
        ended(process)
    assert plan[1] == f"36 to run, 0 jobs on dask at {started.address}.\n"
    assert len(rows(tmp_path / "out")) == 36


def test_no_more_tasks_run_at_a_time_than_jobs(tmp_path: Path, dask: DaskCluster) -> None:
    written(
        tmp_path,
        "import time\n"
        "def train(n: int = 1, seed: int = 0):\n"
        "    began = time.time()\n"
        "    time.sleep(0.3)\n"
        "    return {'test_loss': 1.0, 'began': began, 'ended': time.time()}\n",
    )
    grid = ("mine.py", "--n", "1:8", "--seeds", "1", "--jobs", "1")
    done = run("sweep", *grid, *on(dask), cwd=tmp_path)
    assert "8 to run, 1 job on dask at" in done.stdout
    cells = rows(tmp_path / "out").sort_values("began")
    assert (cells["began"].to_numpy()[1:] >= cells["ended"].to_numpy()[:-1]).all()


@pytest.mark.unix
def test_a_cell_that_kills_every_worker_becomes_a_failed_row_and_others_are_trained(
    tmp_path: Path,
) -> None:
    """Dask blames all tasks that a lost worker had, also those that were waiting there."""
    moods = ("--n=1:5", "--set=mood=well,well,kills,well,well", "--together=n,mood", "--seeds=1")
    with dask_cluster(tmp_path / "cluster", "one", restarts=True) as started:
        run("sweep", "toy", *moods, "--set=pause=0.4", *on(started), cwd=tmp_path, expect=1)
    reasons = rows(tmp_path / "out").set_index("n")["reason"]
    assert reasons.to_dict() == {1: "", 2: "", 3: "worker killed", 4: "", 5: ""}


def test_two_sweeps_at_once_import_their_own_files(tmp_path: Path, dask: DaskCluster) -> None:
    """Also where a function imports while it trains."""
    text = (
        "import time\n"
        "def train(n: int = 1, seed: int = 0):\n"
        "    time.sleep(0.1)\n"
        "    import helper\n"
        "    return {'test_loss': helper.V}\n"
    )
    processes = []
    for name in ("1", "1000"):
        (tmp_path / name).mkdir()
        written(tmp_path / name, f"V = {name}\n", "helper.py")
        written(tmp_path / name, text, f"lazy_{name}.py")
        grid = (f"lazy_{name}.py", "--n", "1:20", "--seeds", "1")
        processes.append(start("sweep", *grid, *on(dask), cwd=tmp_path / name))
    for name, process in zip(("1", "1000"), processes, strict=True):
        ended(process, seconds=90)
        assert list(rows(tmp_path / name / "out")["test_loss"]) == [int(name)] * 20


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
def test_a_cluster_is_looked_for_at_a_name_a_number_or_an_ipv6_address(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        server = socket.create_server((host.strip("[]"), 0), family=family)
    except OSError:
        pytest.skip("this machine has no such address")
    with server:
        _knock(f"{host}:{server.getsockname()[1]}")


# A worker, in this process


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
    """It doesn't see the folder of the sweep, and may have its own."""
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
    with pytest.raises(overfit_cli.UserError, match=f"^{said}") if said else nullcontext():
        record = run_remotely(VERSIONS, pickled, cloudpickle.dumps({0: cells}))
        assert record.count == 1


def test_a_worker_without_a_gpu_trains_nothing_on_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    pickled = cloudpickle.dumps(Work(find_study("toy"), Execution("cuda")))
    with pytest.raises(overfit_cli.UserError, match="A worker lacks what toy needs: device='cuda'"):
        run_remotely(VERSIONS, pickled, cloudpickle.dumps({0: toy_cells()}))


# Ray


@pytest.mark.unix
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_worker_of_ray_that_ends_costs_no_result(
    tmp_path: Path, ray: RayCluster, number: signal.Signals
) -> None:
    """Ray raises SystemExit at SIGTERM, in the midst of a cell."""
    process = begin(tmp_path, *SHORT, *on(ray))
    ray.signal_a_worker(number)
    output = ended(process)
    if number == signal.SIGKILL:
        assert "workers were killed and started again 1 time" in output
    assert list(rows(tmp_path / "out")["status"]) == ["done"] * 20


@pytest.mark.unix
def test_sigterm_while_it_connects_shows_no_stack(tmp_path: Path, ray: RayCluster) -> None:
    for moment in (0.5, 1.1, 1.9):
        process = start("sweep", "toy", *SHORT, *on(ray), cwd=tmp_path)
        time.sleep(moment)
        process.terminate()
        assert process.communicate(timeout=20)[1] == ""


def test_a_cell_that_exits_or_kills_its_worker_is_a_failed_row(
    tmp_path: Path, ray: RayCluster
) -> None:
    moods = ("--n=1:3", "--set=mood=exits,interrupts,kills", "--together=n,mood", "--seeds=1")
    assert run("sweep", "toy", *moods, *on(ray), cwd=tmp_path, expect=1).stderr == ""
    found = rows(tmp_path / "out").sort_values("n")["reason"]
    reasons = [text.partition(" at ")[0] for text in found]
    assert reasons == ["error: SystemExit: enough", "error: KeyboardInterrupt", "worker killed"]


def test_a_script_that_is_connected_stays_so(tmp_path: Path, ray: RayCluster) -> None:
    text = (
        "import overfit_cli, ray\n"
        f"ray.init({ray.address!r}, log_to_driver=False)\n"
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
    done = python(written(tmp_path, text, "script.py"), cwd=tmp_path)
    assert "address='127.0.0.1:9': this process is connected to the ray cluster at" in done.stdout
    assert len(rows(tmp_path / "auto")) == len(rows(tmp_path / "named")) == 2


@pytest.mark.unix
@pytest.mark.parametrize(("limit", "reasons"), [(1, {"", "worker killed"}), (None, {""})])
def test_others_train_what_a_silent_worker_of_dask_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: float | None, reasons: set[str]
) -> None:
    """Without a limit dask gives it up, after 5 to 10 minutes; here after less than half a one."""
    monkeypatch.setattr(executors, "GRACE", 1.0)
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL", "5 minutes" if limit else "8s")
    with dask_cluster(tmp_path / "cluster", "one", "two") as started:
        started.workers["two"].send_signal(signal.SIGSTOP)
        where: Any = {"backend": "dask", "address": started.address, "out": tmp_path / "out"}
        grid: Any = {"n": "1:4", "snr": 1.0, "seeds": 1}
        cells = overfit_cli.sweep("toy", **grid, **where, time_limit=limit, quiet=True)
    assert len(cells) == 4
    assert {""} <= set(cells["reason"]) <= reasons
