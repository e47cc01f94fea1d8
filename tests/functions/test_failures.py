"""A cell that raises says where: in its row, in the sweep's summary, in the report, in `train`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from unittest import mock

import pandas as pd
import pytest

import overfit_cli
from overfit_cli.core.errors import MOST_FRAMES, count_alike, kept_traceback, kind_of
from overfit_cli.functions.function_study import FunctionStudy
from tests.command import call, python, run
from tests.functions.mine import swept, written

BROKEN = """
def features(n):
    return {"y": n}["x"]

def train(n: int = 1, seed: int = 0):
    if n > 2:
        return {"loss": features(n)}
    return {"loss": 1.0 / n}
"""
LINES = [
    'mine.py:7 in train: return {"loss": features(n)}',
    'mine.py:3 in features: return {"y": n}["x"]',
    "KeyError: 'x'",
]
SWEEP = ("sweep", "mine.py", "--n=1:4", "--out=out")


def kept_of(folder: Path, text: str, *options: str) -> str:
    """The traceback in the row of a function's only cell, which fails."""
    [row] = swept(folder, text, *options, expect=1).to_dict("records")
    assert row["status"] == "failed"
    return str(row.get("traceback", ""))


# Where it is shown


@pytest.mark.parametrize("jobs", ["--jobs=1", pytest.param("--jobs=2", marks=pytest.mark.slow)])
def test_a_summary_and_the_rows_have_the_lines_of_a_failure(tmp_path: Path, jobs: str) -> None:
    """Also of a worker, which has a copy of the file."""
    written(tmp_path, BROKEN)
    done = run(*SWEEP, jobs, cwd=tmp_path, expect=1)
    assert "6 failed (6 error: KeyError: 'x')." in done.stdout
    shown = "\n".join(["Failed (6 cells):", *(f"  {line}" for line in LINES)])
    assert f"{shown}\nNext: " in done.stdout
    cells = overfit_cli.load(tmp_path / "out")
    fails = cells["status"] == "failed"
    assert {*cells["reason"][fails]} == {f"error: KeyError: 'x' at {LINES[1]}"}
    assert {*cells["traceback"][fails]} == {"\n".join(LINES)}
    assert cells["traceback"][~fails].isna().all()
    again = run(*SWEEP, "--jobs=1", cwd=tmp_path, expect=1)
    assert "6 there as failed (--retry-failed runs them); 0 to run" in again.stdout
    assert "6 reused, 6 failed earlier; --retry-failed runs them again." in again.stdout
    written(tmp_path, BROKEN.replace("n > 2", "n > 9"))
    mended = run(*SWEEP, "--retry-failed", "--jobs=1", cwd=tmp_path)
    assert "6 run again; 6 to run" in mended.stdout
    with pytest.warns(UserWarning, match="Cells of 2 sources"):
        assert "traceback" not in overfit_cli.load(tmp_path / "out"), "no row needs the column"


def test_a_training_prints_the_users_lines_alone(tmp_path: Path) -> None:
    file = written(tmp_path, BROKEN)
    trained = call("train", "mine.py", "--n=3", "--out=a", cwd=tmp_path, expect=1)
    assert trained.stdout.splitlines() == LINES
    assert trained.stderr == f"overfit: The cell failed: error: KeyError: 'x' at {LINES[1]}.\n"
    with pytest.raises(KeyError, match="x") as raised:
        overfit_cli.train(file, n=3, out=tmp_path / "b", quiet=True)
    assert str(raised.traceback[-1].path).endswith("mine.py")
    for out in ("a", "b"):
        [row] = overfit_cli.load(tmp_path / out).to_dict("records")
        assert row["traceback"] == "\n".join(LINES)


@pytest.mark.slow
def test_tracebacks_survive_compacting_merging_and_exporting(tmp_path: Path) -> None:
    written(tmp_path, BROKEN)
    for name, seeds in (("a", "0:1"), ("b", "2:2")):
        grid = ("--n=1:4", f"--seeds={seeds}", f"--out={name}", "--jobs=1")
        run("sweep", "mine.py", *grid, cwd=tmp_path, expect=1)
    call("compact", "a", cwd=tmp_path)
    call("merge", "a", "b", "--out=c", cwd=tmp_path)
    tables = [overfit_cli.load(tmp_path / "c")]
    for kind, read in (("csv", pd.read_csv), ("parquet", pd.read_parquet)):
        call("export", "c", f"--out=c.{kind}", cwd=tmp_path)
        tables.append(read(tmp_path / f"c.{kind}"))
    for cells in tables:
        assert cells["traceback"].value_counts().to_dict() == {"\n".join(LINES): 6}
    assert "traceback" not in call("export", "c", "--means", cwd=tmp_path).stdout


def test_a_report_shows_the_lines_as_code(tmp_path: Path) -> None:
    kept_of(tmp_path, "def train():\n    raise ValueError('<b>``` &\\n  in two lines')\n")
    call("report", "out", "--out=report", cwd=tmp_path)
    report = (tmp_path / "report" / "report.md").read_text()
    assert "Failed cells: 1 error: ValueError" in report
    assert "\n    ValueError: <b>``` &\n      in two lines\n" in report
    page = (tmp_path / "report" / "index.html").read_text()
    assert "\nValueError: &lt;b&gt;``` &amp;\n  in two lines\n</pre>" in page


@pytest.mark.slow
def test_pythons_debugger_opens_where_a_function_raises(tmp_path: Path) -> None:
    written(tmp_path, BROKEN)
    command = ("-m", "pdb", "-m", "overfit_cli", "train", "mine.py", "--n=3")
    done = python(*command, cwd=tmp_path, text="c\np n\nq\n")
    assert f"> {tmp_path}/mine.py(3)features()" in done.stdout
    assert "(Pdb) 3" in done.stdout


# What is kept

KEPT = {
    "nothing of a library that calls the user's code": r"""
import re
def half(match):
    return 1 / 0
def train():
    return {"loss": re.sub("a", half, "a")}
=>
mine.py:6 in train: return {"loss": re.sub("a", half, "a")}
mine.py:4 in half: return 1 / 0
ZeroDivisionError: division by zero
""",
    "a cause, above what it led to": r"""
def train():
    try:
        {}["x"]
    except KeyError as error:
        raise RuntimeError("no luck") from error
=>
mine.py:4 in train: {}["x"]
KeyError: 'x'
which led to
mine.py:6 in train: raise RuntimeError("no luck") from error
RuntimeError: no luck
""",
    "an exception that is its own cause once": r"""
def train():
    try:
        {}["x"]
    except KeyError as error:
        raise error from error
=>
mine.py:6 in train: raise error from error
mine.py:4 in train: {}["x"]
KeyError: 'x'
""",
    "the name of a library that raised, in place of its lines": """
import numpy as np
def train():
    return {"loss": np.linalg.inv(np.zeros((2, 2)))}
=>
mine.py:4 in train (raised in numpy): return {"loss": np.linalg.inv(np.zeros((2, 2)))}
numpy.linalg.LinAlgError: Singular matrix
""",
    "that name where its lines are compiled": """
import numpy as np
def train():
    np.random.default_rng(0).choice([])
=>
mine.py:4 in train (raised in numpy): np.random.default_rng(0).choice([])
ValueError: a cannot be empty unless no samples are taken
""",
}


@pytest.mark.parametrize("what", KEPT)
def test_a_traceback_keeps(tmp_path: Path, what: str) -> None:
    text, kept = KEPT[what].split("=>\n")
    assert kept_of(tmp_path, text) == kept.rstrip()


def test_of_many_lines_the_last_are_kept_and_one_that_calls_itself_is_counted(
    tmp_path: Path,
) -> None:
    text = "def deeper(n):\n    return deeper(n + 1)\n\ndef train():\n    return deeper(0)\n"
    first, second, third = kept_of(tmp_path, text).splitlines()
    assert first == "mine.py:5 in train: return deeper(0)"
    assert re.fullmatch(r"mine.py:2 in deeper: return deeper\(n \+ 1\) \(\d{3,} times\)", second)
    assert third.startswith("RecursionError: maximum recursion depth exceeded")
    steps = [f"def f{n}():\n    return f{n + 1}()\n" for n in range(20)]
    text = "".join(steps) + "def f20():\n    return 1 / 0\n\ndef train():\n    return f0()\n"
    lines = kept_of(tmp_path, text, "--fresh").splitlines()
    assert len(lines) == MOST_FRAMES + 1
    assert lines[-2:] == ["mine.py:42 in f20: return 1 / 0", "ZeroDivisionError: division by zero"]
    (tmp_path / "none").mkdir()
    assert kept_of(tmp_path / "none", "def train(): return 3.0\n") == "", "none of the user's"


@pytest.mark.parametrize("words", ["raise Exception", None, "\x1b[31m\ud800"])
def test_any_exception_has_a_traceback_that_a_file_and_a_terminal_take(words: str | None) -> None:
    odd: Any = type("Odd", (Exception,), {"__str__": lambda error: words})  # it fails at None
    with pytest.raises(odd) as raised:
        raise odd
    text = kept_traceback(raised.value)
    assert "test_failures.py" in text
    assert "\x1b" not in text
    text.encode()


# Failures of one kind


def test_a_sweep_stops_where_its_first_cells_all_fail_alike(tmp_path: Path) -> None:
    written(tmp_path, BROKEN.replace("n > 2", "n > 0"))
    done = run("sweep", "mine.py", "--n=1:400", "--seeds=1", "--jobs=1", cwd=tmp_path, expect=1)
    stopped = r"Stopped: the first \d\d cells all failed alike: KeyError: 'x'\. "
    assert re.search(stopped, done.stdout)
    assert re.search(r"3\d\d cells were not run\.", done.stdout)
    assert f"  {LINES[1]}\n  KeyError: 'x'\nStopped: " in done.stdout
    assert "Next: overfit train mine.py" in done.stdout
    assert "plot" not in done.stdout, "there is nothing to draw"
    cells = overfit_cli.load(tmp_path / "results" / "mine-n")
    assert 20 <= len(cells) < 100
    assert cells["n"].max() > 100, "cells from anywhere in the grid are among them"


def test_a_sweep_of_few_large_batches_goes_on_after_the_first_has_failed(tmp_path: Path) -> None:
    def train(n: int = 1, seed: int = 0) -> dict[str, float]:
        return {"loss": 1 / (n - 1) + seed}

    def batches(study: FunctionStudy, cells: list[Any], device: str) -> list[list[Any]]:
        return [[cell for cell in cells if cell.parameters.n == n] for n in range(1, 6)]

    with mock.patch.object(FunctionStudy, "batches", batches):
        cells = overfit_cli.sweep(train, n="1:5", seeds=25, jobs=1, out=tmp_path / "out")
    assert cells["status"].value_counts().to_dict() == {"done": 100, "failed": 25}


def test_words_of_an_error_are_no_place() -> None:
    lost = [f"error: ValueError: diverged at step {n} and lost at t1.py:3 in f" for n in (0, 7)]
    [alike] = count_alike(dict.fromkeys(lost, 1))
    assert alike.words == "error: ValueError: diverged at step 0 and lost, and similar"
    earlier = "error: ValueError: lost at t1.py:3 in f: f(n); from t1.py:7 in train"
    assert {kind_of(reason) for reason in (*lost, earlier)} == {("ValueError", "t1.py:3 in f")}
    of_library = "error: LinAlgError: Singular at t1.py:3 in f (raised in numpy): f(n)"
    assert kind_of(of_library) == ("LinAlgError", "t1.py:3 in f (raised in numpy)")
