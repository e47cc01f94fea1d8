"""A plain function is a study: its signature, what it returns, and what can be wrong with both."""

from __future__ import annotations

import pickle
import re
import shutil
import signal
import sys
from pathlib import Path

import cloudpickle
import pandas as pd
import pyarrow as pa
import pytest

import overfit_cli
from overfit_cli import Parameter
from overfit_cli.core.errors import UserError
from overfit_cli.core.files import MANIFEST
from overfit_cli.functions.experiment import FunctionRecord, ParameterRecord, parameter_model
from overfit_cli.functions.function_study import (
    study_of_function,
    study_of_reference,
    study_of_rows,
)
from overfit_cli.sweeps.load import study_in
from overfit_cli.sweeps.manifest import read_manifest
from overfit_cli.sweeps.part import CELLS, write_part
from overfit_cli.sweeps.store import RunDirectory
from tests.command import call, python, run, start, wait_for

EXPERIMENT = '''
import os, time
import numpy as np

def train(n: int = 10, snr: float = 1.0, seed: int = 0) -> dict[str, float]:
    """A loss that falls."""
    time.sleep(float(os.environ.get("PAUSE", "0")))
    draw = np.random.default_rng(seed).random()
    return {"test_loss": 1 / (1 + n * snr**2), "draw": draw}
'''
GRID = ("--n", "2:5", "--snr", "0.5:2:4", "--seeds", "2")


def written(folder: Path, text: str, name: str = "mine.py") -> Path:
    (folder / name).write_text(text)
    return folder / name


# From a file to a picture


@pytest.mark.parametrize(
    "how",
    [
        ("--jobs=2",),
        pytest.param(("--jobs=1",), marks=pytest.mark.slow),
        pytest.param(("--jobs=2", "--backend=threading"), marks=pytest.mark.slow),
    ],
)
def test_a_function_is_swept_and_drawn_by_the_usual_commands(
    tmp_path: Path, how: tuple[str, ...]
) -> None:
    written(tmp_path, EXPERIMENT)
    done = run("sweep", "mine.py", *GRID, *how, cwd=tmp_path)
    assert "mine:train: 32 cells (n 4 × snr 4 × seeds 2), results/mine-n-snr" in done.stdout
    assert "Next: overfit plot heatmap --from results/mine-n-snr" in done.stdout
    cells = overfit_cli.load(tmp_path / "results" / "mine-n-snr")
    assert cells["test_loss"].to_numpy() == pytest.approx(1 / (1 + cells["n"] * cells["snr"] ** 2))
    assert list(cells.columns)[:6] == ["key", "study", "version", "seed", "n", "snr"]
    assert cells.groupby("seed")["draw"].nunique().tolist() == [1, 1]
    drawn = call("plot", "heatmap", "--law", "n * snr**2 = 4", "--out=a.svg", cwd=tmp_path)
    assert "From results/mine-n-snr, the newest run directory that fits." in drawn.stdout
    assert "test loss" in (tmp_path / "a.svg").read_text()
    caption = (tmp_path / "a.txt").read_text()
    assert "Test loss over snr and n: median of 2 seeds." in caption
    assert "Line: n·snr² = 4." in caption


@pytest.mark.parametrize("figure", ["cutoff", pytest.param("boundary", marks=pytest.mark.slow)])
def test_a_figure_of_two_sides_cuts_in_the_middle_where_no_threshold_is_named(
    tmp_path: Path, figure: str
) -> None:
    written(tmp_path, EXPERIMENT)
    run("sweep", "mine.py", *GRID, "--jobs=1", cwd=tmp_path)
    call("plot", figure, "--out=a.svg", cwd=tmp_path)
    call("plot", figure, "--threshold=0.2", "--out=b.svg", cwd=tmp_path)
    # By ratio, because the losses go from 1 / 21 to 1 / 1.5.
    for name, cut in (("a", "0.178"), ("b", "0.2")):
        signs = {
            "cutoff": f"test loss &gt; {cut}<",
            "boundary": f"crosses {cut}, for each value of n",
        }
        files = [(tmp_path / f"{name}.{ending}").read_text() for ending in ("svg", "txt")]
        assert signs[figure] in "".join(files)


def test_the_same_command_reuses_cells_and_a_grid_that_grows_does_too(tmp_path: Path) -> None:
    written(tmp_path, EXPERIMENT)
    run("sweep", "mine.py", *GRID, "--jobs=1", cwd=tmp_path)
    again = run("sweep", "mine.py", *GRID, "--jobs=1", cwd=tmp_path)
    assert "32 there already; 0 to run" in again.stdout
    grown = run("sweep", "mine.py", *GRID[2:], "--n=2:6", "--jobs=1", cwd=tmp_path)
    assert "32 there already; 8 to run" in grown.stdout
    named = run("sweep", str(tmp_path / "mine.py:train"), *GRID, "--jobs=1", cwd=tmp_path)
    assert "32 there already; 0 to run" in named.stdout, "it is the same study, however it is named"


@pytest.mark.unix
@pytest.mark.slow
def test_it_goes_on_after_a_kill(tmp_path: Path) -> None:
    written(tmp_path, EXPERIMENT)
    command = ("sweep", "mine.py", *GRID, "--jobs=2")
    process = start(*command, cwd=tmp_path, new_session=True, env={"PAUSE": "0.3"})
    cells = tmp_path / "results" / "mine-n-snr" / "cells"
    wait_for(lambda: len(list(cells.glob("*.parquet"))) > 2)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    done = run(*command[:-1], "--jobs=1", cwd=tmp_path)
    counted = re.search(r"(\d+) there already; (\d+) to run", done.stdout)
    assert counted is not None
    assert int(counted[1]) + int(counted[2]) == 32
    assert 0 < int(counted[1]) < 32
    assert len(overfit_cli.load(tmp_path / "results" / "mine-n-snr")) == 32


def test_its_boundary_is_refined(tmp_path: Path) -> None:
    written(tmp_path, EXPERIMENT)
    asked = ("--n=2,4,8", "--snr=0.2:4:5", "--seeds=2", "--refine=7", "--jobs=1")
    refused = run("sweep", "mine.py", *asked, cwd=tmp_path, expect=2)
    assert "mine:train has no threshold of its own" in refused.stderr
    done = run("sweep", "mine.py", *asked, "--threshold=0.2", cwd=tmp_path)
    assert re.search(
        r"The crossing of test_loss = 0.2 along snr.* at 3 of 3 values of n", done.stdout
    )
    assert "plot cutoff --from results/mine-n-snr-refined --threshold 0.2" in done.stdout


def test_a_sweep_along_one_axis_is_drawn_as_lines(tmp_path: Path) -> None:
    written(tmp_path, EXPERIMENT)
    done = run("sweep", "mine.py", "--snr=0.5:2:4", "--jobs=1", cwd=tmp_path)
    assert "Next: overfit plot lines --from results/mine-snr" in done.stdout
    call("plot", "lines", cwd=tmp_path)


@pytest.mark.slow
def test_figures_need_neither_the_file_nor_what_it_imports(tmp_path: Path) -> None:
    path = written(tmp_path, EXPERIMENT)
    run("sweep", "mine.py", *GRID, "--jobs=1", cwd=tmp_path)
    path.write_text("raise SystemExit('the file is not loaded')")
    assert "Drawn" in call("plot", "heatmap", cwd=tmp_path).stdout
    path.unlink()
    assert "Drawn" in call("plot", "heatmap", cwd=tmp_path).stdout
    assert "claims" in call("report", cwd=tmp_path).stdout


# Generators

STEPS = """
def train(rate: float = 0.1, steps_taken: int = 5, seed: int = 0):
    loss = 1.0
    for _ in range(steps_taken):
        yield {"train_loss": loss}
        loss = loss * (1 - rate) if rate < 2 else loss * 1e200
    return {"final_loss": loss}
"""


def test_what_a_generator_yields_is_a_trajectory_and_its_return_value_the_result(
    tmp_path: Path,
) -> None:
    written(tmp_path, STEPS)
    run("sweep", "mine.py", "--rate=0.1,0.5", "--trajectories", "--jobs=1", cwd=tmp_path)
    cells = overfit_cli.load(tmp_path / "results" / "mine-rate")
    assert cells["final_loss"].to_numpy() == pytest.approx((1 - cells["rate"]) ** 5)
    assert set(cells["steps"]) == {5}
    steps = overfit_cli.load(tmp_path / "results" / "mine-rate", trajectories=True)
    assert sorted(set(steps["step"])) == [0, 1, 2, 3, 4]
    assert steps["train_loss"].to_numpy() == pytest.approx((1 - steps["rate"]) ** steps["step"])
    call("plot", "curves", cwd=tmp_path)
    call("plot", "curves", "--value=train_loss", "--by=rate", cwd=tmp_path)
    errors = call("plot", "curves", "--value=test_loss", cwd=tmp_path, expect=2).stderr
    assert "mine:train logs no 'test_loss'; did you mean 'train_loss'?" in errors


def test_one_training_shows_its_steps_as_they_come(tmp_path: Path) -> None:
    written(tmp_path, STEPS)
    done = call("train", "mine.py", "--rate=0.5", cwd=tmp_path)
    assert re.search(r"train\n *step +loss\n +0 +1\n +1 +0.5\n", done.stdout)
    assert "Trained after 5 steps: final_loss 0.03125." in done.stdout
    assert "plot curves --from results/mine-rate0.5" in done.stdout


def test_a_generator_may_number_its_steps_and_end_with_its_last_row(tmp_path: Path) -> None:
    path = written(
        tmp_path, "def f(seed: int):\n  for t in (0, 10, 30):\n    yield {'step': t, 'loss': 1.0}\n"
    )
    run("sweep", "mine.py", "--trajectories", "--jobs=1", cwd=tmp_path)
    directory = tmp_path / "results" / path.stem
    assert set(overfit_cli.load(directory)["steps"]) == {30}
    assert set(overfit_cli.load(directory)["loss"]) == {1.0}
    assert sorted(set(overfit_cli.load(directory, trajectories=True)["step"])) == [0, 10, 30]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["json", "numpy", "typing"])
def test_a_file_may_have_the_name_of_a_library(tmp_path: Path, name: str) -> None:
    """Neither the command nor its workers take it for the library."""
    path = written(tmp_path, EXPERIMENT.replace("seed: int", "where: str = 'x', seed: int"))
    path.rename(tmp_path / f"{name}.py")
    command = Path(sys.executable).with_name("overfit")
    done = python(command, "sweep", f"{name}.py", *GRID, "--jobs=2", cwd=tmp_path)
    assert "32 trained" in done.stdout, done.stderr


# What goes wrong

OUTCOMES = {
    "raise ValueError('no\\nluck')": "error: ValueError: no | luck at mine.py:3 in train: raise",
    "raise SystemExit(3)": "error: SystemExit: 3",
    "return 3.0": "error: TypeError: it returned 3.0, and not a dict of numbers",
    "return None": "error: TypeError: it returned None, and not a dict of numbers",
    "return {}": "error: ValueError: it returned no number",
    "return {'test_loss': 'low'}": "error: TypeError: it returned test_loss = 'low', which is",
    "return {'test_loss': [1, 2]}": "error: TypeError: it returned test_loss = [1, 2], which is",
    "import numpy as np; return {'test_loss': np.zeros(2)}": "error: TypeError: it returned test_",
    "return {3: 1.0}": "error: 3 is not a column name",
    "return {'test_loss': float('nan')}": "diverged: test_loss isn't finite",
    "return {'test_loss': float('inf')}": "diverged: test_loss isn't finite",
}


@pytest.mark.parametrize("body", OUTCOMES)
def test_what_goes_wrong_in_a_cell_is_a_failed_row(tmp_path: Path, body: str) -> None:
    """The odd cells fail, and the even ones are done."""
    text = (
        f"def train(n: int, seed: int = 0):\n  if n % 2:\n    {body}\n  return {{'test_loss': n}}"
    )
    written(tmp_path, text)
    done = run("sweep", "mine.py", "--n=1:4", "--seeds=1", "--jobs=1", cwd=tmp_path, expect=1)
    assert "2 trained" in done.stdout
    assert "2 failed" in done.stdout
    cells = overfit_cli.load(tmp_path / "results" / "mine-n").set_index("n")
    assert cells["status"].to_dict() == {1: "failed", 2: "done", 3: "failed", 4: "done"}
    assert all(reason.startswith(OUTCOMES[body]) for reason in cells["reason"][[1, 3]])
    assert cells["test_loss"][[2, 4]].tolist() == [2.0, 4.0]
    assert cells["test_loss"][[1, 3]].isna().all()


GENERATORS = {
    "yield {'loss': 'low'}": "TypeError: it yielded loss = 'low', which is not a number",
    "yield 3.0": "TypeError: it yielded 3.0, and not a dict of numbers",
    "yield {'step': 2, 'loss': 1.0}": "ValueError: it yielded step = 2 after 2; steps are whole",
    "yield {'step': 2.5, 'loss': 1.0}": "ValueError: it yielded step = 2.5 after 2",
    "yield {'step': 2**64, 'loss': 1.0}": "ValueError: it yielded step = 1.84467e+19 after 2",
    "yield {'step': float('nan'), 'loss': 1.0}": "ValueError: it yielded step = nan after 2",
    "row = {'n': 2.0, 'loss': 1.0}; yield row": "ValueError: a column can't be called 'n', wh",
    "row = {'key': 2.0}; yield row": "ValueError: a column can't be called 'key', which every row",
    "raise RuntimeError('no luck')": "RuntimeError: no luck",
    "return {}": "ValueError: it returned no number",
}


@pytest.mark.parametrize("body", GENERATORS)
@pytest.mark.one_in(4)
def test_a_generator_that_fails_keeps_the_steps_before(tmp_path: Path, body: str) -> None:
    logged = "  for t in range(3):\n    yield {'loss': 1.0 / (1 + t)}\n"
    written(tmp_path, f"def f(n: int = 1):\n{logged}  {body}\n")
    run("sweep", "mine.py", "--trajectories", "--jobs=1", cwd=tmp_path, expect=1)
    cells = overfit_cli.load(tmp_path / "results" / "mine")
    assert cells["reason"][0].startswith("error: " + GENERATORS[body])
    assert cells["steps"][0] >= 2
    steps = overfit_cli.load(tmp_path / "results" / "mine", trajectories=True)
    assert steps["loss"].tolist() == [1.0, 1 / 2, 1 / 3]
    failed = call("train", "mine.py", "--out=one", cwd=tmp_path, expect=1)
    assert "0.3333" in failed.stdout
    assert f"The cell failed: error: {GENERATORS[body]}" in failed.stderr


def test_a_result_of_other_names_than_the_steps_is_drawn(tmp_path: Path) -> None:
    """What the trainer proposes can be typed."""
    written(tmp_path, "def f(n: int = 1):\n  yield {'size': 1}\n  return {'final': n}\n")
    done = call("train", "mine.py", cwd=tmp_path)
    assert "Next: overfit plot curves --from results/mine" in done.stdout
    call("plot", "curves", "--from=results/mine", "--out=a.svg", cwd=tmp_path)
    assert "size" in (tmp_path / "a.svg").read_text()


def test_the_first_number_returned_is_the_headline_where_it_is_missing_too(tmp_path: Path) -> None:
    """Also where a cell returns fewer numbers."""
    body = """
def train(n: int = 1, seed: int = 0):
    if n == 1:
        return {"aa": 1.0 * n}
    return {"zz": None if n == 4 else 1.0 * n + seed, "aa": 1.0 * n}
"""
    written(tmp_path, body)
    call("sweep", "mine.py", "--n=1:6", "--jobs=1", cwd=tmp_path)
    call("plot", "lines", "--out=a.svg", cwd=tmp_path)
    assert "Zz against n" in (tmp_path / "a.txt").read_text()
    cells = overfit_cli.load(tmp_path / "results" / "mine-n")
    assert list(cells.columns)[-2:] == ["zz", "aa"]


def test_a_bare_parameter_is_a_theory_and_a_value(tmp_path: Path) -> None:
    written(tmp_path, "def train(n: int = 1, seed: int = 0):\n    return {'loss': n + seed}\n")
    call("sweep", "mine.py", "--n=1:6", "--jobs=1", cwd=tmp_path)
    call("plot", "lines", "--theory=n", "--out=a.svg", cwd=tmp_path)
    assert "Dashed: n." in (tmp_path / "a.txt").read_text()
    call("plot", "lines", "--value= n ", "--out=b.svg", cwd=tmp_path)
    assert (tmp_path / "b.txt").read_text().startswith("n against n")


def test_a_report_says_that_failures_of_a_kind_differ_in_words(tmp_path: Path) -> None:
    written(tmp_path, "def f(n: int = 1):\n    return {'loss': 'x'} if n % 2 else (n or None)\n")
    call("sweep", "mine.py", "--n=0:1", "--jobs=1", "--out=out", cwd=tmp_path, expect=1)
    call("report", "out", cwd=tmp_path)
    report = (tmp_path / "results" / "report" / "report.md").read_text()
    assert "2 error: TypeError: it returned" in report
    assert ", and similar" in report


def test_cells_that_log_nothing_are_there_with_trajectories_too(tmp_path: Path) -> None:
    written(tmp_path, EXPERIMENT)
    for sentence in ("32 to run", "32 there already; 0 to run"):
        done = run("sweep", "mine.py", *GRID, "--trajectories", "--jobs=1", cwd=tmp_path)
        assert sentence in done.stdout


def test_of_many_reasons_a_few_are_said(tmp_path: Path) -> None:
    written(tmp_path, "def f(n: int = 1): raise type(f'No{n}', (Exception,), {})")
    done = run("sweep", "mine.py", "--n=1:30", "--jobs=1", cwd=tmp_path, expect=1)
    assert "26 for 26 other reasons" in done.stdout
    assert len(done.stdout) < 1000


@pytest.mark.slow
def test_a_time_limit_leaves_whole_logged_steps(tmp_path: Path) -> None:
    columns = ", ".join(f"'c{index}': step" for index in range(40))
    body = f"  step = 0\n  while True:\n    step += 1\n    yield {{'step': step, {columns}}}\n"
    written(tmp_path, f"def f(n: int = 1):\n{body}")
    options = ("--time-limit=0.1", "--trajectories", "--jobs=1", "--seeds=1")
    done = run("sweep", "mine.py", "--n=1:4", *options, cwd=tmp_path, expect=1)
    assert "4 failed (4 time limit)" in done.stdout
    steps = overfit_cli.load(tmp_path / "results" / "mine-n", trajectories=True)
    assert len(steps) > 0
    assert steps.notna().all(axis=None)


def test_one_training_shows_a_column_from_where_it_appears(tmp_path: Path) -> None:
    text = "def f():\n  yield {'a': 1.0}\n  yield {'a': 2.0, 'b': 3.0}\n  yield {'b': 4.0}\n"
    written(tmp_path, text)
    shown = call("train", "mine.py", cwd=tmp_path).stdout
    lines = [line.split() for line in shown.splitlines()[:5]]
    assert lines == [
        ["step", "a"],
        ["0", "1"],
        ["step", "a", "b"],
        ["1", "2", "3"],
        ["2", "–", "4"],
    ]


def test_a_number_of_any_library_is_one(tmp_path: Path) -> None:
    text = """
import numpy as np, torch

def f():
    yield {"loss": torch.tensor([2.0], requires_grad=True), "seen": True}
    return {"a": torch.tensor(3.0, requires_grad=True) * 1, "b": np.array([[4.0]]), "c": np.int8(5)}
"""
    written(tmp_path, text)
    run("sweep", "mine.py", "--trajectories", "--jobs=1", cwd=tmp_path)
    [cell] = overfit_cli.load(tmp_path / "results" / "mine").to_dict("records")
    assert (cell["a"], cell["b"], cell["c"]) == (3.0, 4.0, 5.0)


def test_other_numbers_of_a_diverged_cell_are_kept(tmp_path: Path) -> None:
    written(tmp_path, "def train():\n  return {'a': 1.0, 'b': float('nan'), 'c': None}")
    run("sweep", "mine.py", "--jobs=1", cwd=tmp_path, expect=1)
    [row] = overfit_cli.load(tmp_path / "results" / "mine").to_dict("records")
    assert row["a"] == 1.0
    assert pd.isna(row["b"])


SIGNATURES = {
    "*sizes": "parameter sizes: each parameter is named in the signature, without * or /",
    "**options": "parameter options: each parameter is named in the signature",
    "n, /": "parameter n: each parameter is named in the signature",
    "n": "parameter n: it has neither a type nor a default; it takes int, float, bool, str",
    "n=None": "parameter n: its default is None; it takes int",
    "n: list = 3": "parameter n: its type is list; it takes int",
    "n: int | None = 3": "parameter n: its type is int | None; it takes int",
    "n: 'Missing' = 3": "its annotations can't be read: name 'Missing' is not defined",
    "n: int = 0.5": "parameter n: the default of n, 0.5: Input should be a valid integer",
    "n: int = True": "parameter n: the default of n, True: Input should be a valid integer",
    "n: Literal['a', 1] = 'a'": "parameter n: its type is typing.Literal['a', 1]; it takes int",
    "n: str = '\\ud800'": "parameter n: its texts can't be written in UTF-8",
    "n: Literal['a', '\\ud800'] = 'a'": "parameter n: its texts can't be written in UTF-8",
    "n: int = 2**63": "parameter n: whole numbers are below 2**63",
    "n: Literal['a', 'b'] = 'c'": "the default of n, 'c': Input should be 'a' or 'b'",
    "steps: int = 3, training_steps: int = 4": "two of its parameters have one name, training_st",
    "copy: int = 3": "parameter copy: the name is taken; call it something else, such as my_copy",
    "_n: int = 3": "parameter _n: a name begins with a letter",
    "n: Annotated[int, Parameter('samples', at_least=1)] = 0": "the default of n, 0: Input should",
    "n: Annotated[int, Parameter('a', at_least='1')] = 2": "the default of n, 2: must be real",
    "n: Annotated[int, Parameter('a', above=3, below=2)] = 2": "the default of n, 2: Input should",
    "n: Annotated[str, Parameter('name', at_least=1)] = 'a'": "parameter n: only numbers have",
    "n: Annotated[int, Parameter] = 1": "parameter n: it takes one Parameter(...), with its",
    "n: Annotated[int, Parameter('a'), Parameter('b')] = 1": "it takes one Parameter(...)",
}


@pytest.mark.parametrize("signature", SIGNATURES)
def test_a_signature_that_is_no_studys_is_one_sentence(tmp_path: Path, signature: str) -> None:
    imports = "from typing import Annotated, Literal\nfrom overfit_cli import Parameter\n"
    written(tmp_path, f"{imports}def train({signature}): return {{'a': 1.0}}")
    errors = call("sweep", "mine.py", cwd=tmp_path, expect=2).stderr
    [sentence] = errors.splitlines()
    assert sentence.startswith("overfit: mine.py: train")
    assert SIGNATURES[signature] in sentence


FILES = {
    "": ("mine.py", "mine.py: it has no function; define train(...) in it."),
    "x = 3": ("mine.py", "it has no function"),
    "from os.path import join": ("mine.py", "it has no function"),
    "def a(): ...\ndef b(): ...": ("mine.py", "it has 2 functions, and none is called train"),
    "def train(): ...": ("mine.py:trian", "it has no function 'trian'; did you mean 'train'?"),
    "def train(:": ("mine.py", "it can't be loaded: SyntaxError"),
    "import nowhere": ("mine.py", "it can't be loaded: ModuleNotFoundError: No module named"),
    "raise SystemExit(3)": ("mine.py", "it can't be loaded: SystemExit: 3"),
    "async def train(): ...": ("mine.py", "it is async; a plain function is needed"),
    "y = 3": ("other.py", "other.py: there is no such file"),
    "z = 3": ("mine.py:", "it takes FILE.py, FILE.py:FUNCTION or package.module:FUNCTION"),
    "v = 3": ("mine.py:train:x", "it takes FILE.py, FILE.py:FUNCTION or package.module"),
    "u = 3": ("math:sqrt", "parameter x: each parameter is named in the signature"),
    "from typing import Literal": ("mine.py:Literal", "each parameter is named in"),
    "from overfit_cli import Parameter as P; P(3)": ("mine.py", "Parameter(meaning=3): it takes"),
    "from overfit_cli import experiment as e\n@e\ndef f(): ...": ("mine.py", "with parentheses"),
    "w = 3": ("no.such.module:train", "it can't be loaded: ModuleNotFoundError"),
}


@pytest.mark.parametrize("text", FILES)
def test_a_file_without_a_study_is_one_sentence(tmp_path: Path, text: str) -> None:
    reference, words = FILES[text]
    written(tmp_path, text)
    for command in ("sweep", "train"):
        [sentence] = call(command, reference, cwd=tmp_path, expect=2).stderr.splitlines()
        assert words in sentence
    assert not (tmp_path / "results").exists()


def test_a_parameter_without_a_default_must_be_given(tmp_path: Path) -> None:
    written(tmp_path, "def train(n: int, rate: float = 0.1): return {'a': n * rate}")
    errors = call("sweep", "mine.py", "--rate=0.1:1:3", cwd=tmp_path, expect=2).stderr
    assert "--n: it has no default; give a whole number." in errors
    run("sweep", "mine.py", "--rate=0.1:1:3", "--n=4", "--jobs=1", cwd=tmp_path)
    run("sweep", "mine.py", "--rate=0.1:1:3", "--n=4", "--dry-run", cwd=tmp_path)
    call("train", "mine.py", "--n=3", cwd=tmp_path)


def test_a_function_without_a_seed_has_one(tmp_path: Path) -> None:
    written(tmp_path, "def train(n: int = 3): return {'a': n}")
    done = run("sweep", "mine.py", "--n=1:3", "--jobs=1", cwd=tmp_path)
    assert "3 cells (n 3 × seeds 1)" in done.stdout
    errors = call("sweep", "mine.py", "--n=1:3", "--seeds=2", cwd=tmp_path, expect=2).stderr
    assert "--seeds: mine:train takes no seed; give it a parameter seed: int." in errors


# The signature

RICH = """
from typing import Annotated, Literal
from overfit_cli import Claim, Column, Measurement, Parameter, experiment

def low(cells):
    return Measurement(verdict="holds", value=float(cells["loss"].min()), note="It is low.")

@experiment(version=3, headline="loss", threshold=0.5, title="A rich one",
            columns=[Column("loss", "test loss", symbol="L_D")],
            claims=[Claim(name="low", source="nowhere", statement="The loss is low.",
                          holds_where="always", measure=low)])
def fit(
    width: Annotated[int, Parameter("hidden units", symbol="m", at_least=1)] = 10,
    kind: Literal["relu", "tanh"] = "relu",
    heads: Literal[1, 2, 4] = 1,
    bias: bool = True,
    label: str = "a:b",
    rate: Annotated[float, Parameter("step size", unit="1/s", above=0)] = 1,
    device: str = "cpu",
    seed: int = 0,
) -> dict:
    return {"time": 1.0, "loss": heads / width}
"""


def test_types_meanings_and_bounds_come_from_the_signature(tmp_path: Path) -> None:
    written(tmp_path, RICH)
    shown = call("sweep", "mine.py", "--help", cwd=tmp_path).stdout
    assert re.search(r"width +hidden units, m +≥ 1 +10", shown)
    assert re.search(r"rate +step size \(1/s\) +> 0 +1", shown)
    assert re.search(r"heads .*1, 2, 4 +1", shown)
    assert "For the parameter device write --set device=RANGE: --device is an option" in shown
    asked = ("--width=10:30:10", "--kind=relu,tanh", "--heads=1,4", "--bias=false", "--label=x,y:z")
    done = run("sweep", "mine.py", *asked, "--set=device=gpu", "--jobs=1", cwd=tmp_path)
    assert "72 cells (width 3 × kind 2 × heads 2 × label 2 × seeds 3)" in done.stdout
    [directory] = (tmp_path / "results").iterdir()
    cells = overfit_cli.load(directory)
    assert set(cells["version"]) == {3}
    assert set(cells["label"]) == {"x", "y:z"}
    assert set(cells["device"]) == {"gpu"}
    assert cells["heads"].dtype == "int64"
    assert not cells["bias"].any()
    for flag, words in {
        "--width=0": "--width 0: width takes a whole number of at least 1, not 0.",
        "--heads=3": "--heads 3: heads takes one of 1, 2, 4, not 3.",
        "--kind=sin": "--kind sin: kind takes one of relu, tanh",
        "--rate=nan": "--rate nan: rate takes a number above 0",
        "--widht=3": "--widht: mine:fit has no parameter 'widht', and overfit has no such option; ",
        "--sedes=3": "did you mean '--seeds'?",
    }.items():
        assert words in call("sweep", "mine.py", flag, cwd=tmp_path, expect=2).stderr


def test_a_whole_parameter_takes_bounds_between_whole_numbers(tmp_path: Path) -> None:
    given = "n: Annotated[int, Parameter(above=0.5, at_most=3.5)] = 1"
    imports = "from typing import Annotated\nfrom overfit_cli import Parameter\n"
    written(tmp_path, f"{imports}def train({given}): return {{'a': float(n)}}")
    run("sweep", "mine.py", "--n=1:3", "--jobs=1", cwd=tmp_path)
    for n in (0, 4):
        errors = call("sweep", "mine.py", f"--n={n}", cwd=tmp_path, expect=2).stderr
        assert f"n takes a whole number above 0 and up to 3, not {n}" in errors


@pytest.mark.slow
def test_the_decorator_names_headline_threshold_and_claims(tmp_path: Path) -> None:
    written(tmp_path, RICH)
    run("sweep", "mine.py", "--width=1:4", "--heads=1,2", "--jobs=1", cwd=tmp_path)
    directory = "results/mine-width-heads"
    call("plot", "cutoff", "--from", directory, "--out=a.svg", cwd=tmp_path)
    text = (tmp_path / "a.svg").read_text()
    assert "&gt; 0.5" in text
    assert "hidden units" in text
    report = call("report", directory, "--details", "--out=r", cwd=tmp_path).stdout
    assert "low" in report
    assert "It is low." in report
    (tmp_path / "mine.py").unlink()
    errors = call("report", directory, "--out=report", cwd=tmp_path).stderr
    assert "The claims of mine:fit can't be judged" in errors


CLAIMS = {
    "lambda cells: cells['nothing'].max()": "The claim low can't be judged: KeyError: 'nothing'.",
    "lambda cells: 'holds'": "The claim low can't be judged: 'holds' is no Measurement of",
    "lambda cells: Measurement(verdict='It is low.')": "is no Measurement of one",
    "'low'": "can't be judged: TypeError: 'str' object is not callable.",
}


CLAIM = """
from overfit_cli import Claim, experiment
from overfit_cli.claims.parts import Margin, Part
from overfit_cli.claims.rules import judge

SMALL = Margin(most=1.0, because="small", fewest_seeds=5)


def measure(cells):
    return judge([Part.of(cells.groupby("seed")["loss"].mean(), SMALL)])


CLAIMS = [Claim(name="small", source="s", statement="s", holds_where="h", measure=measure)]


@experiment(claims=CLAIMS)
"""


def test_a_claim_that_is_written_after_the_sweep_is_judged(tmp_path: Path) -> None:
    """It is no code of the training: all cells are there."""
    body = "def train(n: int = 2, seed: int = 0):\n    return {'loss': 1 / n + seed / 100}\n"
    written(tmp_path, body)
    call("sweep", "mine.py", "--n=2:4", "--seeds=5", "--jobs=1", cwd=tmp_path)
    said = call("report", "results/mine-n", cwd=tmp_path).stdout
    assert "mine:train has no claims." in said.splitlines()
    written(tmp_path, CLAIM + body)
    assert re.search("small +ours +holds", call("report", "results/mine-n", cwd=tmp_path).stdout)
    planned = call("sweep", "mine.py", "--n=2:4", "--seeds=5", "--jobs=1", cwd=tmp_path).stdout
    assert "15 there already; 0 to run" in planned
    assert "code" not in planned


@pytest.mark.parametrize("measure", CLAIMS)
def test_an_error_in_the_code_of_a_claim_is_one_of_the_command(
    measure: str, tmp_path: Path
) -> None:
    text = (
        "from overfit_cli import Claim, Measurement, experiment\n"
        "CLAIM = Claim(name='low', source='me', statement='It is low.', holds_where='h', "
        f"measure={measure})\n"
        "@experiment(claims=[CLAIM])\n"
        "def train(n: int = 1): return {'loss': n}\n"
    )
    written(tmp_path, text)
    run("sweep", "mine.py", "--jobs=1", cwd=tmp_path)
    failed = call("report", "results/mine", "--out=report", cwd=tmp_path, expect=2)
    assert CLAIMS[measure] in " ".join(failed.stderr.split())


DECORATORS = {
    "columns=['a']": "experiment(columns=...): Input should be a dictionary or an instance of Col",
    "columns=3": "experiment(columns=...): Input should be a valid tuple, not 3.",
    "data='a.csv'": "experiment(data=...): Input should be a valid tuple, not 'a.csv'.",
    "data=[1]": "experiment(data=...): Input should be a valid string, not 1.",
    "claims=[3]": "experiment(claims=[3]): it takes a list of Claim(...)",
    "claims='a < 3'": "experiment(claims='a < 3'): it takes a list of Claim(...)",
    "claims=['a < ']": "experiment(claims=...): ",
    "claims=['n: loss < 3', 'n: loss < 4']": "two of its claims have one name, n.",
    "threshold='a'": "experiment(threshold=...): Input should be a valid number",
    "threshold=float('nan')": "experiment(threshold=...): Input should be a finite number, not nan",
    "headline=3": "experiment(headline=...): Input should be a valid string, not 3.",
    "version=0": "experiment(version=...): Input should be greater than or equal to 1, not 0.",
    "name='a\\nb'": "its name is 'a\\nb', and no line that can be printed.",
    "columns=[Column('a', 'A.'), Column('a', 'B.')]": "two of its columns have one name, a.",
}


@pytest.mark.parametrize("said", DECORATORS)
def test_a_decorator_that_says_it_wrongly_is_one_sentence(tmp_path: Path, said: str) -> None:
    text = "from overfit_cli import Claim, Column, experiment\n"
    written(tmp_path, f"{text}@experiment({said})\ndef train(n: int = 1): return {{'loss': n}}\n")
    refused = call("sweep", "mine.py", cwd=tmp_path, expect=2).stderr
    assert refused.startswith("overfit: mine.py: train: ")
    assert DECORATORS[said] in refused
    assert len(refused.splitlines()) == 1


def test_a_headline_that_is_not_returned_is_a_failed_cell(tmp_path: Path) -> None:
    text = "from overfit_cli import experiment\n@experiment(headline='lost')\n"
    written(tmp_path, text + "def train(n: int = 1): return {'loss': n}\n")
    done = run("sweep", "mine.py", "--jobs=1", cwd=tmp_path, expect=1)
    assert "it returned no 'lost', which is its headline" in done.stdout


def test_an_option_of_our_own_that_is_a_parameters_too_is_said_so(tmp_path: Path) -> None:
    written(tmp_path, RICH)
    done = run("sweep", "mine.py", "--device=cpu", "--jobs=1", cwd=tmp_path)
    assert "--device is an option of overfit; write --set device=" in done.stderr


def test_a_function_that_is_called_like_an_installed_study_is_refused(tmp_path: Path) -> None:
    text = "from overfit_cli import experiment\n@experiment(name='toy')\ndef f(): return {'a': 1}"
    written(tmp_path, text)
    errors = call("sweep", "mine.py", cwd=tmp_path, expect=2).stderr
    assert "a study 'toy' is installed; give it another name." in errors


def test_an_option_that_is_none_is_said_with_those_that_are(tmp_path: Path) -> None:
    written(tmp_path, "def train(width: int = 1, learning_rate: float = 0.1): return {'loss': 1}")
    for words, sentence in (
        (
            ("--lr", "3"),
            "mine:train has no parameter 'lr', and overfit has no such option; known: --le",
        ),
        (("--widht", "3"), "did you mean '--width'?"),
        (("--fresch", "3"), "did you mean '--fresh'?"),
        (("-n", "3"), "-n: options begin with two dashes, such as --n 5."),
    ):
        assert sentence in call("sweep", "mine.py", *words, cwd=tmp_path, expect=2).stderr


def test_a_sweep_over_texts_is_drawn_by_the_command_that_it_names(tmp_path: Path) -> None:
    written(tmp_path, "def f(kind: str = 'a', seed: int = 0): return {'loss': len(kind) + seed}")
    done = run("sweep", "mine.py", "--kind=a,bb,ccc", "--jobs=1", cwd=tmp_path)
    assert "Next: overfit plot lines --from results/mine-kind" in done.stdout
    call("plot", "lines", "--from=results/mine-kind", "--out=a.svg", cwd=tmp_path)
    assert "ccc" in (tmp_path / "a.svg").read_text()


# A changed signature


def test_a_parameter_that_is_taken_back_is_one_of_before(tmp_path: Path) -> None:
    """Figures and rows are those of the function as it is, though nothing was trained again."""
    short = "def f(n: int = 1, seed: int = 0): return {'loss': n}"
    for text in (short, short.replace("seed", "depth: int = 2, seed"), short):
        written(tmp_path, text)
        done = run("sweep", "mine.py", "--n=1:4", "--jobs=1", cwd=tmp_path)
    assert "12 there already" in done.stdout
    with pytest.warns(UserWarning, match="is left out: its study has .*: depth is gone"):
        cells = overfit_cli.load(tmp_path / "results" / "mine-n")
    assert "depth" not in cells
    assert len(cells) == 12


def test_what_a_decorator_says_now_is_what_figures_know(tmp_path: Path) -> None:
    written(tmp_path, EXPERIMENT)
    run("sweep", "mine.py", *GRID, "--jobs=1", cwd=tmp_path)
    marked = EXPERIMENT.replace("def train", "@experiment(threshold=0.3)\ndef train")
    written(tmp_path, "from overfit_cli import experiment\n" + marked)
    done = run("sweep", "mine.py", *GRID, "--jobs=1", cwd=tmp_path)
    assert "32 there already; 0 to run" in done.stdout
    assert "changed" not in done.stdout
    call("plot", "cutoff", "--from=results/mine-n-snr", "--out=a.svg", cwd=tmp_path)
    assert "test loss &gt; 0.3" in (tmp_path / "a.svg").read_text()
    (tmp_path / "results" / "mine-n-snr" / MANIFEST).unlink()
    run("sweep", "mine.py", *GRID, "--jobs=1", cwd=tmp_path)
    call("plot", "cutoff", "--from=results/mine-n-snr", cwd=tmp_path)


def test_a_parameter_of_another_type_is_another_one(tmp_path: Path) -> None:
    text = "def f(n: int = 1, seed: int = 0): return {'loss': n}"
    written(tmp_path, text)
    for values in ("1", "1,2", "1,2,3"):  # most parts are of the old type
        run("sweep", "mine.py", f"--n={values}", "--out=a", "--jobs=1", cwd=tmp_path)
    written(tmp_path, text.replace("n: int", "n: float"))
    done = run("sweep", "mine.py", "--n=1,2,3", "--out=a", "--jobs=1", cwd=tmp_path)
    assert "n was int64 and is double" in done.stdout
    with pytest.warns(UserWarning, match="is left out: its study has other parameters"):
        assert overfit_cli.load(tmp_path / "a")["n"].dtype == float


@pytest.mark.slow
def test_a_file_that_changes_while_it_is_swept_mixes_no_code(tmp_path: Path) -> None:
    """Workers go on with the code that the sweep began with, also one that starts later."""
    path = written(tmp_path, EXPERIMENT)
    study = study_of_reference(str(path))
    sent = cloudpickle.dumps(study)
    written(tmp_path, EXPERIMENT.replace("1 / (1 + n", "2 / (1 + n"))
    script = f"import pickle; print(pickle.loads({sent!r}).function(n=1)['test_loss'])"
    late = python("-c", script)
    assert float(late.stdout) == 0.5
    assert pickle.loads(sent).function(n=1)["test_loss"] == 0.5
    written(tmp_path, "def train(:")
    process = start("sweep", "mine.py", "--n=1:3", cwd=tmp_path)
    assert process.communicate()[1].count("\n") == 1, "a file that can't be read is a sentence"
    written(tmp_path, EXPERIMENT)
    swept = start("sweep", "mine.py", "--n=1:8", "--jobs=2", cwd=tmp_path, env={"PAUSE": "0.1"})
    wait_for(lambda: len(list(tmp_path.glob("results/*/cells/*.parquet"))) > 3)
    written(tmp_path, EXPERIMENT.replace("1 / (1 + n", "2 / (1 + n"))
    output, errors = swept.communicate()
    assert "Done: 24 trained" in output, errors
    cells = overfit_cli.load(tmp_path / "results" / "mine-n")
    assert cells["test_loss"].to_numpy() == pytest.approx(1 / (1 + cells["n"]))


def test_cells_of_another_signature_are_left_out(tmp_path: Path) -> None:
    """The file has a parameter more: its cells are others, and the old ones mix with none."""
    written(tmp_path, EXPERIMENT)
    run("sweep", "mine.py", *GRID, "--jobs=1", cwd=tmp_path)
    written(tmp_path, EXPERIMENT.replace("snr: float = 1.0", "snr: float = 1.0, depth: int = 2"))
    done = run("sweep", "mine.py", *GRID, "--jobs=1", cwd=tmp_path)
    assert "32 to run" in done.stdout
    assert "changed since cells there were trained (depth is new); those cells" in done.stdout
    with pytest.warns(UserWarning, match="its study has other parameters: depth is new"):
        cells = overfit_cli.load(tmp_path / "results" / "mine-n-snr")
    assert len(cells) == 32
    assert set(cells["depth"]) == {2}
    assert "depth is new" in call("plot", "heatmap", cwd=tmp_path).stderr
    again = run("sweep", "mine.py", *GRID, "--jobs=1", cwd=tmp_path)
    assert "has changed" not in again.stdout + again.stderr


def test_a_run_without_its_manifest_says_what_it_lacks(tmp_path: Path) -> None:
    row = {"key": "a", "study": "mine:train", "version": 1, "seed": 0, "n": 2, "status": "done"}
    row |= {"reason": "", "steps": 0, "seconds": 0.1, "loss": 1.0}
    (tmp_path / CELLS).mkdir()
    write_part(tmp_path / CELLS, pa.Table.from_pylist([row]), CELLS, "mine:train", "", 0)
    with pytest.raises(UserError, match="cells are of the function mine:train, and no manifest"):
        study_in(RunDirectory(tmp_path))


def test_what_a_file_has_before_a_rows_columns_is_no_measurement() -> None:
    """As the numbers of rows, which pandas writes into a CSV file."""
    row = {"Unnamed: 0": 0, "key": "a", "study": "mine:train", "version": 1, "seed": 0, "n": 2}
    row |= {"status": "done", "reason": "", "steps": 0, "seconds": 0.1, "loss": 1.0}
    study = study_of_rows("mine:train", pd.DataFrame([row]))
    assert [column.name for column in study.columns] == ["loss"]
    assert study.headline == "loss"


# What travels


def local(n: int = 3, seed: int = 0) -> dict[str, float]:
    return {"loss": float(n + seed)}


def test_a_study_and_its_cells_can_be_sent_to_another_process(tmp_path: Path) -> None:
    """One from a file by its place; one of this module by its code, as from a notebook."""
    path = written(tmp_path, EXPERIMENT)
    for study in (study_of_reference(str(path)), study_of_function(local)):
        parameters = study.parameters.model_validate({"n": 5})
        sent, copy = pickle.loads(cloudpickle.dumps((study, parameters)))
        assert (sent.name, sent.record) == (study.name, study.record)
        assert copy == parameters
        assert isinstance(copy, sent.parameters)


WORKER = """
import functools
import threading
import numpy as np
import beside
from folder import inside

np.seterr(all="raise")
LOCK = threading.Lock()

@functools.cache
def scaled(n):
    return n * inside.SCALE * beside.SCALE

def train(n: int = 1):
    import late
    with LOCK:
        raises = np.geterr()["divide"] == "raise"
        return {"loss": scaled(n) * late.SCALE, "raises": raises, "calls": beside.count()}
"""
BESIDE = """
import itertools
SCALE = 2
CALLS = itertools.count(1)
def count():
    return next(CALLS)
"""


def sent_study(folder: Path, scale: int) -> bytes:
    """A study with the files that it imports, none of which is there any more."""
    folder.mkdir()
    for name in ("late.py", "folder/inside.py"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(f"SCALE = {scale}\n")
    (folder / "beside.py").write_text(BESIDE)
    written(folder, WORKER)
    pickle_it = (
        "import sys, cloudpickle\n"
        "from overfit_cli.functions.function_study import study_of_reference\n"
        "sys.stdout.buffer.write(cloudpickle.dumps(study_of_reference('mine.py')).hex().encode())"
    )
    sent = bytes.fromhex(python("-c", pickle_it, cwd=folder).stdout)
    shutil.rmtree(folder)
    return sent


@pytest.mark.slow
def test_a_worker_that_lacks_the_files_of_two_versions_trains_both(tmp_path: Path) -> None:
    """What a file sets when it is imported, caches, locks and late imports work there too."""
    sent = [sent_study(tmp_path / "version", scale) for scale in (1, 10)]
    train = f"""
import pickle, sys
from overfit_cli.core.cell import Cell
from overfit_cli.core.training import Execution, Training
for pickled in 2 * {sent!r}:
    study = pickle.loads(pickled)
    cell = Cell(study.name, 1, study.parameters(n=3), 0)
    [result] = study.train([cell], Training(Execution()))
    print(result.measurements)
assert not {{"beside", "late", "folder"}} & {{*sys.modules}}
"""
    printed = python("-c", train, cwd=tmp_path).stdout.splitlines()
    assert printed == [
        str({"loss": loss, "raises": 1.0, "calls": calls})
        for calls in (1.0, 2.0)
        for loss in (6.0, 600.0)
    ]


def test_a_manifest_with_an_impossible_function_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, EXPERIMENT)
    run("sweep", "mine.py", *GRID, "--jobs=1", cwd=tmp_path)
    directory = tmp_path / "results" / "mine-n-snr"
    text = (directory / MANIFEST).read_text()
    for old, new in (
        ('"name": "snr",', '"name": "n",'),
        ('"name": "snr",', '"name": "model_copy",'),
        ('"name": "snr",', '"name": "a b",'),
        ('"kind": "float",', '"kind": "list",'),
        ('"default": 10,', '"default": "ten",'),
    ):
        assert old in text
        (directory / MANIFEST).write_text(text.replace(old, new, 1))
        with pytest.raises(UserError, match="is damaged"):
            read_manifest(directory)
    assert path.exists()


def test_a_record_is_a_model_with_the_same_checks() -> None:
    parameter = ParameterRecord(
        name="n", kind="int", default=3, about=Parameter("samples", at_least=1)
    )
    record = FunctionRecord(name="a:b", label="a", parameters=(parameter,))
    assert parameter_model(record)().n == 3  # type: ignore[attr-defined]
    again = FunctionRecord.model_validate_json(record.model_dump_json(), strict=True)
    assert again == record
    with pytest.raises(ValueError, match="greater than or equal to 1"):
        parameter_model(again).model_validate({"n": 0})
    with pytest.raises(ValueError, match="two of its parameters have one name"):
        FunctionRecord(name="a:b", label="a", parameters=(parameter, parameter))


# Which function


MADE = {
    "functools.partial(fit, k=3)": "Fit.",
    "Model()": "A model.",
    "experiment(claims=[CLAIM])(fit)": "Fit.",
}


@pytest.mark.parametrize("made", MADE)
def test_what_is_called_train_may_be_made_of_something_else(tmp_path: Path, made: str) -> None:
    name = f"others_{len(made)}"
    library = "def fit(n: int = 2, k: int = 3):\n  '''Fit.\n\n  With more words.'''\n"
    written(tmp_path, f"{library}  return {{'loss': n * k}}\n", f"{name}.py")
    text = f"""
import functools
from overfit_cli import Claim, Measurement, experiment
from {name} import fit

class Model:
    '''A model.'''
    def __call__(self, n: int = 2):
        return {{"loss": 3 * n}}

def measure(cells):
    return Measurement("holds", 1.0)

CLAIM = Claim(
    name="bound", source="me", statement="It holds.", holds_where="always", measure=measure
)
train = {made}
"""
    written(tmp_path, text)
    shown = call("sweep", "mine.py", "--help", cwd=tmp_path).stdout
    assert MADE[made] in shown.splitlines()
    assert ("With more words." in shown) == ("fit" in made)
    run("sweep", "mine.py", "--n=1:3", "--seeds=1", "--jobs=1", cwd=tmp_path)
    assert sorted(overfit_cli.load(tmp_path / "results" / "mine-n")["loss"]) == [3, 6, 9]
    if "CLAIM" in made:
        listed = call("list", "claims", "mine.py", cwd=tmp_path).stdout
        assert listed.split()[:3] == ["bound", "It", "holds."]
