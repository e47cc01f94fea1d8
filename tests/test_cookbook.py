"""The cookbook's numbers: what its SQL gives on the kept runs."""

from __future__ import annotations

import json
import re
from typing import Any

import pandas as pd
import pytest

import overfit_cli
from tests.command import python
from tests.kept import RESULTS

PAGE = (RESULTS.parent / "docs" / "cookbook.md").read_text()
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


@pytest.fixture
def answers() -> list[Columns]:
    """What DuckDB answers to each query of the page, and to its recipe in Python."""
    in_python = next(code for code in IN_PYTHON if "duckdb" in code)
    asked = json.dumps([*IN_SHELL, *ALONE, in_python])
    done = python("-W", "error", "-c", ASKS, cwd=RESULTS.parent, text=asked)
    columns: list[Columns] = json.loads(done.stdout)
    return columns


def done(directory: str) -> pd.DataFrame:
    """The cells of a kept run that didn't fail."""
    cells = overfit_cli.load(RESULTS / directory)
    return cells[cells["status"] == "done"]


@pytest.mark.slow
def test_the_answers_are_those_of_the_cells(answers: list[Columns]) -> None:
    medians, steps, pairs, benign = answers
    cells = done("fig1-quick")
    expected = cells[cells["snr"] < 3].groupby(["n", "snr"])["test_loss"].median()
    assert medians["test_loss"] == pytest.approx(expected.tolist())
    assert set(medians["seeds"]) == {40}
    logged = overfit_cli.load(RESULTS / "dynamics-quick", trajectories=True)
    logged = logged[logged["step"] % 10 == 0]
    expected = logged.groupby(["n", "snr", "step"])["test_loss"].median()
    assert len(expected) > 6
    assert steps["test_loss"] == pytest.approx(expected.tolist())
    both = cells.merge(done("fig1-balanced-quick"), on=["n", "snr", "seed"])
    expected = (both["test_loss_x"] - both["test_loss_y"]).groupby(both["n"]).mean()
    assert pairs["n"] == expected.index.tolist()
    assert pairs["difference"] == pytest.approx(expected.tolist())
    assert sum(pairs["pairs"]) == len(both)
    expected = (cells["test_loss"] < 0.2).groupby(cells["n"]).mean()
    assert benign["benign"] == pytest.approx(expected.tolist())
