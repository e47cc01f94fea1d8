"""The cookbook's numbers: what its SQL gives on the kept runs, and its table in LaTeX."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import overfit_cli
from tests.command import call, python

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "cookbook.md").read_text()
IN_SHELL = re.findall(r'^\$ duckdb -c "\n(.*?)"$', PAGE, re.DOTALL | re.MULTILINE)
ALONE = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
IN_PYTHON = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
ASKS = """
import json, sys, duckdb
*queries, code = json.load(sys.stdin)
names = {}
exec(code, names)
frames = [*(duckdb.sql(query).df() for query in queries), names["shares"]]
print(json.dumps([frame.to_dict("list") for frame in frames]))
"""

Columns = dict[str, list[Any]]


@pytest.fixture(scope="module")
def answers() -> list[Columns]:
    """What DuckDB answers to each query of the page, and to its recipe in Python."""
    in_python = next(code for code in IN_PYTHON if "duckdb" in code)
    asked = json.dumps([*IN_SHELL, *ALONE, in_python])
    done = python("-W", "error", "-c", ASKS, cwd=ROOT, text=asked)
    columns: list[Columns] = json.loads(done.stdout)
    return columns


def done(directory: str) -> pd.DataFrame:
    """The cells of a kept run that didn't fail."""
    cells = overfit_cli.load(ROOT / "results" / directory)
    return cells[cells["status"] == "done"]


@pytest.mark.slow
def test_the_medians_of_the_recipe_in_sql_are_those_of_the_cells(answers: list[Columns]) -> None:
    answer, cells = answers[0], done("fig1-quick")
    medians = cells[cells["snr"] < 3].groupby(["n", "snr"])["test_loss"].median()
    assert answer["test_loss"] == pytest.approx(medians.tolist())
    assert set(answer["seeds"]) == {40}


@pytest.mark.slow
def test_logged_steps_are_joined_to_their_cells(answers: list[Columns]) -> None:
    answer = answers[1]
    steps = overfit_cli.load(ROOT / "results" / "dynamics-quick", trajectories=True)
    steps = steps[steps["step"] % 10 == 0]
    medians = steps.groupby(["n", "snr", "step"])["test_loss"].median()
    assert len(medians) > 6
    assert answer["test_loss"] == pytest.approx(medians.tolist())


def test_two_runs_are_compared_cell_by_cell(answers: list[Columns]) -> None:
    answer = answers[2]
    pairs = done("fig1-quick").merge(done("fig1-balanced-quick"), on=["n", "snr", "seed"])
    differences = (pairs["test_loss_x"] - pairs["test_loss_y"]).groupby(pairs["n"]).mean()
    assert answer["n"] == differences.index.tolist()
    assert answer["difference"] == pytest.approx(differences.tolist())
    assert sum(answer["pairs"]) == len(pairs)


def test_the_recipe_in_python_counts_the_benign_cells(answers: list[Columns]) -> None:
    cells = done("fig1-quick")
    shares = (cells["test_loss"] < 0.2).groupby(cells["n"]).mean()
    assert answers[3]["benign"] == pytest.approx(shares.tolist())


def test_the_table_in_latex_is_what_the_command_prints() -> None:
    pattern = r"^\$ (overfit export [^\n]*--to latex[^\n]*)\n(.*?)^```"
    [(command, table)] = re.findall(pattern, PAGE, re.DOTALL | re.MULTILINE)
    printed = call(*shlex.split(command)[1:], cwd=ROOT).stdout
    shown = [line for line in table.splitlines() if not line.startswith("%")]
    assert [line for line in printed.splitlines() if not line.startswith("%")] == shown
