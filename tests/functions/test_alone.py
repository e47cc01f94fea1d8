"""A cell is as if it were alone in its process; one that is not decides nothing."""

from __future__ import annotations

import os
import random
from pathlib import Path

import cloudpickle
import pytest

import overfit_cli
from overfit_cli.core.training import Execution
from overfit_cli.functions.function_study import study_of_reference
from overfit_cli.sweeps import run as sweeps
from overfit_cli.sweeps.executors import Local
from overfit_cli.sweeps.grid import Grid
from overfit_cli.sweeps.manifest import read_manifest
from overfit_cli.sweeps.store import RunDirectory
from overfit_cli.sweeps.worker import VERSIONS, Work, run_remotely
from tests.command import run
from tests.functions.mine import swept, told, written

SPOILT = """
bits 32 | 8 * torch.zeros(1).element_size() | torch.set_default_dtype(torch.float64)
meta 0 | torch.zeros(1).device.type == "meta" | torch.set_default_device("meta")
gradients 1 | torch.is_grad_enabled() | torch.set_grad_enabled(False)
exact 0 | torch.are_deterministic_algorithms_enabled() | torch.use_deterministic_algorithms(True)
threads 1 | torch.get_num_threads() | torch.set_num_threads(2)
flushed 0 | float(torch.full((), 1e-40, device="cpu") * 1) == 0 | torch.set_flush_denormal(True)
folder 1 | os.path.exists("here.txt") | os.chdir(gone := tempfile.mkdtemp()); shutil.rmtree(gone)
added 0 | "UNTIDY" in os.environ | os.environ["UNTIDY"] = "1"
home 1 | "HOME" in os.environ | os.environ.pop("HOME", None)
raises 0 | np.geterr()["over"] == "raise" | np.seterr(all="raise")
strict 0 | warnings.filters[0][0] == "error" | warnings.simplefilter("error")
path 0 | sys.path[0] == "untidy" | sys.path.insert(0, "untidy")
depth 0 | sys.getrecursionlimit() == 4321 | sys.setrecursionlimit(4321)
spawns 0 | mp.get_start_method(True) == "spawn" | mp.set_start_method("spawn", True)
prints 1 | sys.stdout is not None | sys.stdout = None
words 0 | len(sys.argv) > 20 | sys.argv += ["more"] * 20
digits 28 | decimal.getcontext().prec | decimal.getcontext().prec = 3
"""
"""What a cell finds, how it finds that out, and what another one does to it."""

ROWS = [line.split(" | ") for line in SPOILT.strip().splitlines()]
EXPECTED = {name: float(value) for name, value in (row[0].split() for row in ROWS)}
UNTIDY = f"""
import decimal, os, random, shutil, sys, tempfile, warnings
import multiprocessing as mp
import numpy as np
import torch

def train(untidy: bool = False, seed: int = 0):
    found = {{{", ".join(f"'{row[0].split()[0]}': {row[1]}" for row in ROWS)}}}
    found["drawn"] = random.random() + np.random.random() + float(torch.rand(1))
    if untidy:
        {"; ".join(row[2] for row in ROWS)}
        for each in (random.seed, np.random.seed, torch.manual_seed):
            each(0)
    return found
"""


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_cell_finds_nothing_of_what_another_one_has_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: int
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "here.txt").write_text("")
    cells = swept(tmp_path, UNTIDY, "--untidy=true,false", "--seeds=3", jobs=jobs)
    found = cells[[*EXPECTED]].astype(float).drop_duplicates()
    assert found.to_dict("records") == [EXPECTED]
    assert cells["drawn"].nunique() == len(cells)  # what nobody seeds is as random as alone


@pytest.mark.filterwarnings("default")  # here the first filter would make errors of warnings
def test_a_worker_of_dask_or_ray_is_put_back_too(folder: Path) -> None:
    study = study_of_reference(str(written(folder, UNTIDY)))
    cells = Grid.read(study, {"untidy": "true,false"}, (0,)).cells()
    before = Path.cwd()
    work, task = cloudpickle.dumps(Work(study, Execution())), cloudpickle.dumps({0: cells})
    found = run_remotely(VERSIONS, work, task).cells
    assert found is not None
    assert found["bits"].to_pylist() == [32, 32] and found["strict"].to_pylist() == [0.0, 0.0]
    assert Path.cwd() == before and "UNTIDY" not in os.environ


HELPER = """
import os, random
import numpy as np
import torch
torch.set_default_dtype(torch.float64)
os.environ["OF_THE_HELPER"] = "1"
for each in (random.seed, np.random.seed, torch.manual_seed):
    each(5)
"""

IMPORTS = """
import os, random

def train(n: int = 1, seed: int = 0):
    seen = int("OF_THE_CELL" in os.environ)
    os.environ["OF_THE_CELL"] = "1"
    import helper_of_cells
    import numpy as np
    import torch
    drawn = random.random() + np.random.random() + float(torch.rand(1))
    bits = 8 * torch.zeros(1).element_size()
    return {"bits": bits, "set": int(os.environ["OF_THE_HELPER"]), "seen": seen, "drawn": drawn}
"""


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_what_an_import_inside_of_a_cell_sets_stays_for_the_next_one(
    folder: Path, jobs: int
) -> None:
    written(folder, HELPER, "helper_of_cells.py")
    cells = swept(folder, IMPORTS, "--n=1:3", jobs=jobs, apart=True)
    assert cells[["bits", "set", "seen"]].drop_duplicates().to_numpy().tolist() == [[64, 1, 0]]
    assert cells["drawn"].nunique() == 1  # each begins with what the import has seeded


@pytest.mark.slow
def test_pytorch_is_not_imported_for_a_function_without_it(tmp_path: Path) -> None:
    text = "import sys\ndef train(n: int = 1):\n    return {'loss': float('torch' in sys.modules)}"
    cells = swept(tmp_path, text, "--n=1,2", apart=True)
    assert cells["loss"].tolist() == [0.0, 0.0]


# A second training

KEEPS = """
import random

KEPT = {}

def train(lr: float = 0.1, seed: int = 0):
    KEPT.setdefault("start", random.Random(f"{lr} {seed}").random())
    return {"loss": 0.1 * (KEPT["start"] + lr) + 0.001 * seed, "rate": lr + 0.01 * seed / 7}
"""


@pytest.mark.slow
def test_a_second_training_names_what_a_module_keeps_from_cell_to_cell(tmp_path: Path) -> None:
    written(tmp_path, KEEPS)
    sweep = ("sweep", "mine.py", "--lr=0.1,0.2", "--seeds=8", "--out=out", "--jobs=1", "--check=3")
    done = run(*sweep, cwd=tmp_path).stdout
    assert "3 of 3 cells that were trained a second time, in a new process, gave other" in done
    cells = overfit_cli.load(tmp_path / "out").set_index("key")
    named = list[bool]()
    for key, columns in read_manifest(tmp_path / "out").differing.items():
        [(name, (first, again))] = columns.items()
        assert name == "loss" and first == cells.at[key, "loss"] and again != first
        named.append(f"loss {first:.8g}, then {again:.8g} at lr=" in " ".join(done.split()))
    assert sorted(named) == [False, False, True]  # an example
    words = told(tmp_path, "judge", "out", "loss < 0.2", "rate < 0.5")
    assert "loss-lt-0.2 ours inconclusive" in words
    assert "trained a second time gave other numbers: loss" in words
    assert "rate-lt-0.5 ours holds" in words


@pytest.mark.slow
def test_a_long_sweep_is_checked_by_default_and_what_differed_may_do_so_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeps, "LONG", 0.0)
    monkeypatch.setattr(sweeps, "Local", lambda jobs, **how: Local(1, **how))  # here: it is quicker
    written(tmp_path, KEEPS.replace("    KEPT.set", "    KEPT = {}\n    KEPT.set"))
    sweep = ("sweep", "mine.py", "--seeds=3", "--out=out", "--jobs=1")
    assert "Checked" not in run(*sweep, "--check=0", cwd=tmp_path).stdout
    assert "Checked" not in run(*sweep, cwd=tmp_path).stdout, "nothing was trained"
    keys = overfit_cli.load(tmp_path / "out")["key"]
    RunDirectory(tmp_path / "out").note_check(keys, {key: {"loss": (0.1, 0.2)} for key in keys})
    monkeypatch.setattr(sweeps, "SHARE", 1e9)
    done = run(*sweep, "--fresh", cwd=tmp_path).stdout
    assert "Checked: 3 cells, trained a second time in a new process, gave the same" in done
    assert read_manifest(tmp_path / "out").differing == {}


DRAWS = """
import numpy as np

def train(n: int = 10):
    return {"loss": float(np.random.default_rng().normal(size=n).mean() ** 2)}
"""


def test_one_draw_of_a_function_without_a_seed_decides_nothing(tmp_path: Path) -> None:
    written(tmp_path, DRAWS)
    done = run("sweep", "mine.py", "--n=10,20", "--jobs=1", "--out=out", cwd=tmp_path).stdout
    assert "2 of 2 cells that were trained a second time gave other numbers: loss" in done
    assert "loss-lt-100 ours inconclusive" in told(tmp_path, "judge", "out", "loss < 100")


# Processes that a cell starts

POOLS = """
import multiprocessing, time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Literal
from helper_of_pools import factor

How = Literal["default", "spawn", "futures", "loader", "leaves"]

def square(x):
    return factor * x * x, Path(__file__).name

def train(how: How = "default", seed: int = 0):
    if how == "leaves":
        multiprocessing.get_context("spawn").Process(target=time.sleep, args=(300,)).start()
        return {"total": 28.0}
    if how == "loader":
        from torch.utils.data import DataLoader
        return {"total": sum(float(x) for x in DataLoader(Numbers(), num_workers=1))}
    if how == "futures":
        with ProcessPoolExecutor(1) as pool:
            pairs = list(pool.map(square, range(4)))
    else:
        context = multiprocessing if how == "default" else multiprocessing.get_context(how)
        with context.Pool(1) as pool:
            pairs = pool.map(square, range(4))
    assert {name for _, name in pairs} == {"mine.py"}
    return {"total": sum(number for number, _ in pairs)}

class Numbers:
    def __init__(self):
        self.number = lambda place: 2.0 * place * place

    def __len__(self):
        return 4

    def __getitem__(self, place):
        return self.number(place)
"""


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_cell_may_start_pools_and_loaders_and_a_sweep_ends_with_what_it_has_left(
    tmp_path: Path, jobs: int
) -> None:
    written(tmp_path, "factor = 2.0", "helper_of_pools.py")
    how = ("--how=default,spawn,futures,loader,leaves", "--seeds=1")
    assert swept(tmp_path, POOLS, *how, jobs=jobs, apart=True)["total"].tolist() == [28.0] * 5


def test_python_goes_on_with_its_random_numbers_after_a_sweep(tmp_path: Path) -> None:
    def train(n: int = 1) -> dict[str, float]:
        return {"loss": random.random()}

    before = random.getstate()
    overfit_cli.sweep(train, n=[1, 2], jobs=1, quiet=True, out=tmp_path / "out")
    assert random.getstate() == before
