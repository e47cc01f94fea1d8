"""A cell that raises says where: in its row, in the sweep's summary, in the report, in `train`."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import overfit_cli
from overfit_cli.core.cell import CellResult
from overfit_cli.core.failures import (
    MOST_FRAMES,
    count_alike,
    error_in_words,
    kept_traceback,
    kind_of,
)
from overfit_cli.functions.function_study import study_of_reference
from overfit_cli.sweeps.grid import Grid
from overfit_cli.sweeps.store import RunDirectory
from tests.command import call, run
from tests.toy_runs import parts_in, write_cells

BROKEN = """
def features(n):
    return {"y": n}["x"]

def train(n: int = 1, seed: int = 0):
    if n > LEAST:
        return {"loss": features(n)}
    return {"loss": 1.0 / n}
"""
LINES = [
    'mine.py:7 in train: return {"loss": features(n)}',
    'mine.py:3 in features: return {"y": n}["x"]',
    "KeyError: 'x'",
]


def broken(folder: Path, least: int = 2) -> Path:
    """A file whose function fails where n is above a number."""
    return written(folder, BROKEN.replace("LEAST", str(least)))


def written(folder: Path, text: str) -> Path:
    (folder / "mine.py").write_text(text)
    return folder / "mine.py"


def failed_row(folder: Path, body: str) -> dict[Hashable, Any]:
    """The row of a function's only cell, which fails."""
    written(folder, body)
    call("sweep", "mine.py", "--jobs=1", "--out=out", cwd=folder, expect=1)
    [row] = overfit_cli.load(folder / "out").to_dict("records")
    assert row["status"] == "failed"
    return row


# Where it is shown


def test_a_summary_shows_the_lines_that_led_to_a_failure(tmp_path: Path) -> None:
    broken(tmp_path)
    done = run("sweep", "mine.py", "--n=1:4", "--jobs=1", cwd=tmp_path, expect=1)
    assert "6 failed (6 error: KeyError: 'x')." in done.stdout
    shown = "\n".join(["Failed (6 cells):", *(f"  {line}" for line in LINES)])
    assert f"{shown}\nNext: " in done.stdout


def test_a_second_sweep_says_that_cells_failed_earlier_and_exits_with_1(tmp_path: Path) -> None:
    broken(tmp_path)
    run("sweep", "mine.py", "--n=1:4", "--jobs=1", cwd=tmp_path, expect=1)
    again = run("sweep", "mine.py", "--n=1:4", "--jobs=1", cwd=tmp_path, expect=1)
    assert "6 reused, 6 failed earlier; --retry-failed runs them again." in again.stdout
    broken(tmp_path, least=9)
    mended = run("sweep", "mine.py", "--n=1:4", "--retry-failed", "--jobs=1", cwd=tmp_path)
    assert "6 trained" in mended.stdout
    with pytest.warns(UserWarning, match="Cells of 2 sources"):
        cells = overfit_cli.load(tmp_path / "results" / "mine-n")
    assert "traceback" not in cells, "a column that no row needs isn't there"


def test_a_row_keeps_the_lines_and_its_reason_the_innermost_place(tmp_path: Path) -> None:
    broken(tmp_path)
    run("sweep", "mine.py", "--n=1:4", "--jobs=1", cwd=tmp_path, expect=1)
    cells = overfit_cli.load(tmp_path / "results" / "mine-n")
    failed = cells["status"] == "failed"
    assert {*cells["reason"][failed]} == {f"error: KeyError: 'x' at {LINES[1]}"}
    assert {*cells["traceback"][failed]} == {"\n".join(LINES)}
    assert cells["traceback"][~failed].isna().all()
    assert [*cells.columns][-2:] == ["loss", "traceback"]


@pytest.mark.slow
def test_lines_are_the_same_from_a_worker_which_has_a_copy_of_the_file(tmp_path: Path) -> None:
    broken(tmp_path)
    run("sweep", "mine.py", "--n=1:4", "--jobs=2", cwd=tmp_path, expect=1)
    cells = overfit_cli.load(tmp_path / "results" / "mine-n")
    assert {*cells["traceback"].dropna()} == {"\n".join(LINES)}


def test_a_training_prints_the_users_lines_alone(tmp_path: Path) -> None:
    broken(tmp_path)
    trained = call("train", "mine.py", "--n=3", cwd=tmp_path, expect=1)
    assert trained.stdout.splitlines() == LINES
    assert trained.stderr == (f"overfit: The cell failed: error: KeyError: 'x' at {LINES[1]}.\n")
    [row] = overfit_cli.load(tmp_path / "results" / "mine-n3").to_dict("records")
    assert row["traceback"] == "\n".join(LINES)


def test_a_report_shows_the_lines_as_code(tmp_path: Path) -> None:
    text = "def train(n: int = 1):\n    raise ValueError('<b>``` &\\n  in two lines')\n"
    written(tmp_path, text)
    call("sweep", "mine.py", "--out=out", "--jobs=1", cwd=tmp_path, expect=1)
    call("report", "out", cwd=tmp_path)
    report = (tmp_path / "results" / "report" / "report.md").read_text()
    assert "Failed cells: 1 error: ValueError" in report
    assert "\n    ValueError: <b>``` &\n      in two lines\n" in report
    page = (tmp_path / "results" / "report" / "index.html").read_text()
    assert "\nValueError: &lt;b&gt;``` &amp;\n  in two lines\n</pre>" in page


def test_an_exception_passes_through_python_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="x") as raised:
        overfit_cli.train(broken(tmp_path), n=3, out=tmp_path / "out", quiet=True)
    assert str(raised.traceback[-1].path).endswith("mine.py")
    [row] = overfit_cli.load(tmp_path / "out").to_dict("records")
    assert row["traceback"] == "\n".join(LINES)


@pytest.mark.slow
def test_pythons_debugger_opens_where_a_function_raises(tmp_path: Path) -> None:
    broken(tmp_path)
    command = [sys.executable, "-m", "pdb", "-m", "overfit_cli", "train", "mine.py", "--n=3"]
    done = subprocess.run(
        command, input="c\np n\nq\n", cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert f"> {tmp_path}/mine.py(3)features()" in done.stdout
    assert "(Pdb) 3" in done.stdout


# What is kept


def test_the_library_that_raised_is_named_and_its_frames_are_left_out(tmp_path: Path) -> None:
    text = (
        "import numpy as np\ndef train():\n    return {'loss': np.linalg.inv(np.zeros((2, 2)))}\n"
    )
    row = failed_row(tmp_path, text)
    first, last = row["traceback"].splitlines()
    assert first == (
        "mine.py:3 in train (raised in numpy): return {'loss': np.linalg.inv(np.zeros((2, 2)))}"
    )
    assert last.endswith("LinAlgError: Singular matrix")
    assert row["reason"] == f"error: LinAlgError: Singular matrix at {first}"
    assert kind_of(row["reason"]) == ("LinAlgError", "mine.py:3 in train (raised in numpy)")


def test_a_library_that_calls_the_users_code_is_left_out_between_its_lines(tmp_path: Path) -> None:
    text = """
import re

def half(match):
    return 1 / 0

def train(n: int = 1):
    return {"loss": re.sub("a", half, "a")}
"""
    lines = failed_row(tmp_path, text)["traceback"].splitlines()
    assert [line.partition(":")[2].partition(":")[0] for line in lines[:2]] == [
        "8 in train",
        "5 in half",
    ]
    assert "(raised in" not in lines[1]


def test_a_message_of_several_lines_is_kept_whole(tmp_path: Path) -> None:
    row = failed_row(tmp_path, "def train():\n    raise ValueError('first\\n  second\\nthird')\n")
    assert row["traceback"].splitlines()[1:] == ["ValueError: first", "  second", "third"]
    assert row["reason"].startswith("error: ValueError: first | second | third at mine.py:2")


def test_a_cause_stands_above_what_it_led_to(tmp_path: Path) -> None:
    text = """
def train():
    try:
        {}["x"]
    except KeyError as error:
        raise RuntimeError("no luck") from error
"""
    lines = failed_row(tmp_path, text)["traceback"].splitlines()
    assert lines == [
        'mine.py:4 in train: {}["x"]',
        "KeyError: 'x'",
        "which led to",
        'mine.py:6 in train: raise RuntimeError("no luck") from error',
        "RuntimeError: no luck",
    ]


def test_a_line_that_calls_itself_is_counted(tmp_path: Path) -> None:
    text = "def deeper(n):\n    return deeper(n + 1)\n\ndef train():\n    return deeper(0)\n"
    first, second, third = failed_row(tmp_path, text)["traceback"].splitlines()
    assert first == "mine.py:5 in train: return deeper(0)"
    assert re.fullmatch(r"mine.py:2 in deeper: return deeper\(n \+ 1\) \(\d{3,} times\)", second)
    assert third.startswith("RecursionError: maximum recursion depth exceeded")


def test_of_many_lines_the_last_are_kept(tmp_path: Path) -> None:
    steps = [f"def f{n}():\n    return f{n + 1}()\n" for n in range(20)]
    text = "".join(steps) + "def f20():\n    return 1 / 0\n\ndef train():\n    return f0()\n"
    lines = failed_row(tmp_path, text)["traceback"].splitlines()
    assert len(lines) == MOST_FRAMES + 1
    assert lines[-2:] == ["mine.py:42 in f20: return 1 / 0", "ZeroDivisionError: division by zero"]


def test_a_generator_says_its_line_after_the_steps_before(tmp_path: Path) -> None:
    text = "def train(n: int = 2):\n    yield {'loss': 1.0}\n    yield {'loss': n / 0}\n"
    row = failed_row(tmp_path, text)
    assert row["traceback"].splitlines()[0] == "mine.py:3 in train: yield {'loss': n / 0}"


def test_what_no_line_of_the_users_raised_has_no_traceback(tmp_path: Path) -> None:
    row = failed_row(tmp_path, "def train(): return 3.0\n")
    assert "traceback" not in row
    assert row["reason"] == "error: TypeError: it returned 3.0, and not a dict of numbers"


@pytest.mark.parametrize("words", ["raise Exception", "str() fails", "\x1b[31m\ud800"])
def test_any_exception_has_a_traceback_that_a_file_and_a_terminal_take(words: str) -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            return words if words != "str() fails" else 1 / 0  # type: ignore[return-value]

    try:
        raise Odd
    except Odd as error:
        text = kept_traceback(error)
    assert "test_failures.py" in text
    assert "\x1b" not in text
    text.encode()


# Run directories


@pytest.mark.slow
def test_a_directory_of_before_is_read_and_reported_and_goes_on(tmp_path: Path) -> None:
    """Rows had no traceback, and a reason named the callers."""
    study = study_of_reference(str(broken(tmp_path)))
    old = f"error: KeyError: 'x' at {LINES[1]}; from mine.py:7 in train"
    run("sweep", "mine.py", "--n=1:2", "--seeds=1", "--out=out", "--jobs=1", cwd=tmp_path)
    cells = Grid.read(study, {"n": "3:4"}, (0,)).cells()
    directory = RunDirectory(tmp_path / "out")
    write_cells(directory, study, [CellResult(cell, reason=old) for cell in cells])
    assert not any(
        "traceback" in pq.read_schema(part).names
        for part in parts_in(tmp_path / "out" / "cells")[1:]
    )
    assert {*overfit_cli.load(tmp_path / "out")["reason"]} == {"", old}
    call("report", "out", cwd=tmp_path)
    report = (tmp_path / "results" / "report" / "report.md").read_text()
    assert f"Failed cells: 2 {old}." in report
    more = ("--n=1:6", "--seeds=1", "--out=out", "--jobs=1")
    done = run("sweep", "mine.py", *more, cwd=tmp_path, expect=1)
    assert "2 failed (2 error: KeyError: 'x'), 2 failed earlier" in done.stdout
    both = overfit_cli.load(tmp_path / "out")
    assert both["traceback"].notna().sum() == 2
    [alike] = count_alike(Counter(both["reason"][both["reason"] != ""]))
    assert alike.count == 4, "they fail at the same place"


def test_tracebacks_survive_compacting_merging_and_exporting(tmp_path: Path) -> None:
    broken(tmp_path)
    for name, seeds in (("a", "0:1"), ("b", "2:2")):
        grid = ("--n=1:4", f"--seeds={seeds}", f"--out={name}", "--jobs=1")
        run("sweep", "mine.py", *grid, cwd=tmp_path, expect=1)
    call("compact", "a", cwd=tmp_path)
    call("merge", "a", "b", "--out=c", cwd=tmp_path)
    cells = overfit_cli.load(tmp_path / "c")
    assert cells["traceback"].value_counts().to_dict() == {"\n".join(LINES): 6}
    call("export", "c", "--out=c.csv", cwd=tmp_path)
    exported = pd.read_csv(tmp_path / "c.csv")
    assert {*exported["traceback"].dropna()} == {"\n".join(LINES)}
    call("export", "c", "--out=c.parquet", cwd=tmp_path)
    assert {*pd.read_parquet(tmp_path / "c.parquet")["traceback"].dropna()} == {"\n".join(LINES)}
    means = call("export", "c", "--means", cwd=tmp_path).stdout
    assert "traceback" not in means
    compared = call("compare", "c", "c.csv", cwd=tmp_path)
    assert "traceback" not in compared.stdout + compared.stderr


def test_figures_and_claims_read_cells_with_tracebacks(tmp_path: Path) -> None:
    broken(tmp_path)
    run("sweep", "mine.py", "--n=1:4", "--seeds=6", "--jobs=1", cwd=tmp_path, expect=1)
    call("plot", "lines", "--out=a.svg", cwd=tmp_path)
    judged = call("judge", "results/mine-n", "loss < 2 where n < 3", cwd=tmp_path, expect=(0, 1))
    assert "loss-lt-2-where-n-lt-3" in judged.stdout
    shutil.rmtree(tmp_path / "results" / "mine-n" / "trajectories")
    cells = overfit_cli.load(tmp_path / "results" / "mine-n")
    assert overfit_cli.judge(cells, "loss < 2 where n < 3")[0].claim.name


# Failures of one kind


def test_a_sweep_stops_where_its_first_cells_all_fail_alike(tmp_path: Path) -> None:
    broken(tmp_path, least=0)
    done = run("sweep", "mine.py", "--n=1:400", "--seeds=1", "--jobs=1", cwd=tmp_path, expect=1)
    assert re.search(
        r"Stopped: the first \d\d cells all failed alike: KeyError: 'x'\. ", done.stdout
    )
    assert re.search(r"3\d\d cells were not run\.", done.stdout)
    assert f"  {LINES[1]}\n  KeyError: 'x'\nStopped: " in done.stdout
    assert "Next: overfit train mine.py" in done.stdout
    cells = overfit_cli.load(tmp_path / "results" / "mine-n")
    assert 20 <= len(cells) < 100
    assert cells["n"].max() > 100, "cells from anywhere in the grid are among them"


def test_words_of_an_error_are_no_place() -> None:
    reasons = [f"error: ValueError: diverged at step {n} and lost at t1.py:3 in f" for n in (0, 7)]
    assert {kind_of(reason) for reason in reasons} == {("ValueError", "t1.py:3 in f")}
    [alike] = count_alike(dict.fromkeys(reasons, 1))
    assert alike.words == "error: ValueError: diverged at step 0 and lost, and similar"
    assert alike.place == "ValueError at t1.py:3 in f"


def test_a_place_lies_in_the_users_files_not_in_compiled_ones() -> None:
    try:
        np.random.default_rng(0).choice([])
    except ValueError as error:
        assert ".pyx" not in error_in_words(error)
        assert "test_failures.py" in error_in_words(error)
        assert "(raised in numpy): np.random" in error_in_words(error)


@pytest.mark.parametrize("condition", ["n < 300", "n > 1"])
def test_a_sweep_goes_on_where_some_cell_is_done(tmp_path: Path, condition: str) -> None:
    body = f"  if {condition}: raise ValueError(n)\n  return {{'loss': n}}\n"
    written(tmp_path, f"def f(n: int = 1):\n{body}")
    done = run("sweep", "mine.py", "--n=1:400", "--jobs=1", cwd=tmp_path, expect=1)
    assert "Stopped" not in done.stdout
    assert len(overfit_cli.load(tmp_path / "results" / "mine-n")) == 400


def test_of_failed_cells_alone_no_figure_is_named(tmp_path: Path) -> None:
    written(tmp_path, "def f(n: int = 1): raise ValueError")
    done = run("sweep", "mine.py", "--n=2:4", "--jobs=1", cwd=tmp_path, expect=1)
    assert "Next: overfit train mine.py:f --set n=2\n" in done.stdout
    assert "plot" not in done.stdout
