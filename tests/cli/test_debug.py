"""`overfit train --debug` opens a debugger in the user's line, on a real terminal."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from tests.command import TOY, call, environment, run
from tests.terminal import on_a_terminal

BROKEN = """
import numpy as np

def solve(matrix):
    size = len(matrix)
    return np.linalg.inv(matrix)

def train(n: int = 3, how: str = "fails", seed: int = 0):
    if how == "is done":
        return {"loss": 1.0}
    if how == "diverges":
        return {"loss": float("nan")}
    if how == "returns a number":
        return n
    return {"loss": solve(np.zeros((n, n))).sum()}

def steps(n: int = 3, seed: int = 0):
    for t in range(n):
        yield {"loss": 1.0 / (2 - t)}
"""


def debugged(
    folder: Path, *words: str, typed: tuple[str, ...] = (), **env: str
) -> tuple[int, list[str]]:
    """Train a cell with --debug, answer the debugger, and return what is shown."""
    (folder / "mine.py").write_text(BROKEN)
    code, output = on_a_terminal("train", *words, "--debug", cwd=folder, typed=typed, env=env)
    assert "Traceback" not in output
    return code, output.replace("\r\n", "\n").splitlines()


def path(first: Path) -> str:
    """The path of imports, with a folder before all others."""
    return os.pathsep.join([str(first), environment()["PYTHONPATH"]])


def answer(shown: list[str], line: str) -> str:
    """What the debugger says to a line."""
    return shown[shown.index(f"(Pdb) {line}") + 1]


@pytest.mark.slow
def test_the_debugger_opens_at_the_users_line_and_not_in_the_library(tmp_path: Path) -> None:
    typed = ("p size, matrix.shape", "up", "p n, seed", "up", "q")
    code, shown = debugged(tmp_path, "mine.py", "--n=4", "--seed=2", typed=typed)
    assert code == 1
    assert f'  File "{tmp_path}/mine.py", line 6, in solve' in shown, "no path is wrapped"
    assert "  Raised in numpy." in shown
    assert any(line.startswith("The cell: n=4, how='fails', seed=2. ") for line in shown)
    [opened] = [line for line in shown[: shown.index(f"(Pdb) {typed[0]}")] if line[:2] == "> "]
    assert opened == f"> {tmp_path}/mine.py(6)solve()"
    assert answer(shown, "p size, matrix.shape") == "(4, (4, 4))"
    assert answer(shown, "up") == f"> {tmp_path}/mine.py(15)train()"
    assert answer(shown, "p n, seed") == "(4, 2)"
    assert "*** Oldest frame" in shown, "no line of overfit lies above"
    assert "overfit: The cell failed: error: LinAlgError" in "\n".join(shown)


@pytest.mark.slow
def test_a_generator_is_debugged_where_it_raised(tmp_path: Path) -> None:
    code, shown = debugged(tmp_path, "mine.py:steps", typed=("p t, n", "q"))
    assert code == 1
    assert f"> {tmp_path}/mine.py(19)steps()" in shown
    assert answer(shown, "p t, n") == "(2, 3)"
    assert any(re.fullmatch(r" +1 +1", line) for line in shown), "its steps are shown before"


@pytest.mark.parametrize(
    ("how", "code", "why"),
    [
        ("is done", 0, "the cell did not fail"),
        ("diverges", 1, "the cell failed, but it raised nothing"),
        ("returns a number", 1, "the cell failed, but no line of yours raised it"),
    ],
)
@pytest.mark.one_in(3)
def test_where_no_line_raised_there_is_nothing_to_debug(
    tmp_path: Path, how: str, code: int, why: str
) -> None:
    ended, shown = debugged(tmp_path, "mine.py", f"--how={how}")
    assert ended == code
    assert f"There is nothing to debug: {why}." in shown


@pytest.mark.parametrize("folder", ["mine", "site-packages"])
@pytest.mark.one_in(2)
def test_a_study_that_is_a_class_is_debugged_where_it_lies(tmp_path: Path, folder: str) -> None:
    """Of one that is installed, no line is the user's: the debugger has all of them."""
    shutil.copytree(TOY, tmp_path / folder)
    words = ("toy", "--set=mood=raises", "--n=7")
    typed = ("p mood", "up", "p settings.n", "q")
    code, shown = debugged(tmp_path, *words, typed=typed, PYTHONPATH=path(tmp_path / folder))
    assert code == 1
    assert any(line.startswith(f"> {tmp_path / folder}/toy_study.py(") for line in shown)
    assert answer(shown, "p mood") == "'raises'"
    assert answer(shown, "p settings.n") == "7"


@pytest.mark.slow
def test_the_debugger_is_the_one_that_python_is_told_to_use(tmp_path: Path) -> None:
    (tmp_path / "mydebugger.py").write_text(
        "def post_mortem(traceback):\n    print('mine at', traceback.tb_next.tb_lineno)\n"
    )
    code, shown = debugged(
        tmp_path, "mine.py", PYTHONBREAKPOINT="mydebugger.set_trace", PYTHONPATH=path(tmp_path)
    )
    assert code == 1
    assert "mine at 6" in shown
    code, shown = debugged(tmp_path, "mine.py", PYTHONBREAKPOINT="nowhere.set_trace")
    assert code == 2
    assert "".join(shown).startswith("overfit: PYTHONBREAKPOINT=nowhere.set_trace: nowhere has no")
    code, shown = debugged(tmp_path, "mine.py", typed=("q",), PYTHONBREAKPOINT="0")
    assert f"> {tmp_path}/mine.py(6)solve()" in shown, "pdb, which breakpoint() alone is told off"


def test_without_a_terminal_it_is_refused_before_anything_is_trained(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(BROKEN)
    refused = run("train", "mine.py:train", "--debug", cwd=tmp_path, expect=2, apart=True)
    assert refused.stderr == (
        "overfit: --debug: it needs a terminal, and standard input is not a terminal.\n"
    )
    assert not (tmp_path / "results").exists()
    assert "--debug" in call("train", "--help", cwd=tmp_path).stdout
