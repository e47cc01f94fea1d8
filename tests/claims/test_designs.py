"""The design of a sentence says what it is judged on, what it leaves out, and what it lacks."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd
import pytest

from overfit_cli.claims.designs import (
    RANGE,
    design_of,
    needs_in_words,
    parameters_named,
    settings_lacking,
)
from overfit_cli.claims.measured import Table
from overfit_cli.claims.sentences import read
from overfit_cli.functions.function_study import study_of_function


def train(
    n: int = 10, snr: float = 1.0, method: Literal["none", "ridge", "lasso"] = "none", seed: int = 0
) -> dict[str, float]:
    return {"test_error": 1 / n}


STUDY = study_of_function(train)


def table(drop: str = "", **failed: object) -> Table:
    """Ten seeds of three n, two snr and three methods, without the rows of a query."""
    axes = [(10, 20, 40), (0.5, 2.0), ("none", "ridge", "lasso"), range(10)]
    index = pd.MultiIndex.from_product(axes, names=["n", "snr", "method", "seed"])
    rows = index.to_frame(index=False)
    rows = rows.assign(test_error=1 / rows["n"] + 0.001 * rows["seed"], status="done", reason="")
    rows = rows.drop(rows.query(drop).index) if drop else rows
    is_failed = np.zeros(len(rows), dtype=bool)
    if failed:
        is_failed = np.logical_and.reduce([rows[name] == value for name, value in failed.items()])
    rows.loc[is_failed, ["status", "reason"]] = ["failed", "diverged"]
    return Table(rows, STUDY.parameters)


def words(text: str, cells: Table) -> str:
    return " ".join(design_of(read(text), cells).sentences())


def test_a_design_names_settings_seeds_and_what_conditions_leave() -> None:
    assert words("test_error < 1", table()) == (
        "Judged on 18 settings (n 10, 20, 40; snr 0.5, 2; method lasso, none, ridge) and 10 seeds "
        "(0 to 9)."
    )
    assert words("test_error < 1 where snr > 1 and n = 10,40 and method = ridge", table()) == (
        "Judged on 2 of 18 settings (n 10, 40) and 10 seeds (0 to 9)."
    )


def test_values_that_no_bracket_names_are_left_out_by_name() -> None:
    said = words("test_error[method=ridge] < test_error[method=none] where n = 10", table())
    assert said.startswith("Judged on 4 of 18 settings (snr 0.5, 2; method none, ridge)")
    assert said.endswith("Left out, as it does not name them: method=lasso.")


def test_cells_that_are_absent_or_failed_are_named() -> None:
    cells = table("n == 10 and snr < 1 and seed in (3, 4, 5, 9)", n=20, snr=0.5, seed=1)
    said = words("test_error < 1 where method = ridge", cells)
    assert "Absent: 4 cells (n=10, snr=0.5, seeds 3 to 5, 9)." in said
    assert "Failed: 1 cell (n=20, snr=0.5, seed 1): 1 diverged." in said
    assert not design_of(read("test_error < 1"), cells).is_mendable
    assert design_of(read("test_error < 1 where n = 10"), cells).is_mendable
    assert not design_of(read("test_error < 1 where n = 40"), cells).is_mendable


@pytest.mark.parametrize(
    ("text", "lacking"),
    [
        ("test_error < 1", {}),
        ("test_error falls along snr", {"snr": RANGE}),
        ("test_error falls along n where n > 10", {"n": RANGE}),
        ("power of n in snr at test_error = 0.1 is 1 within 1", {"snr": RANGE}),
        ("test_error[n=80] < test_error[n=160]", {"n": "80,160"}),
        ("test_error[n=80] < test_error[n=10]", {"n": "80"}),
        ("test_error < 1 where snr > 50", {"snr": RANGE}),
    ],
)
def test_values_that_cells_lack_are_told(text: str, lacking: dict[str, str]) -> None:
    assert settings_lacking(read(text), table()) == lacking


def test_what_sentences_need_is_told_before_there_are_cells() -> None:
    texts = (
        "test_error[method=ridge] < test_error[method=none] where n >= 20",
        "test_error falls along snr where method = lasso",
    )
    sentences = [read(text) for text in texts]
    named = {"method": "ridge,none,lasso", "n": RANGE, "snr": RANGE}
    assert parameters_named(sentences, table()) == named
    assert needs_in_words(sentences[0], table()) == (
        "It needs cells of method=ridge; cells of method=none; cells where n >= 20."
    )
    assert needs_in_words(sentences[1], table()) == (
        "It needs 3 values of snr or more; cells where method = lasso."
    )
