"""The design of a sentence says what it is judged on, what it leaves out, and what it lacks."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from overfit_cli.claims import stated
from overfit_cli.claims.sentences import read
from overfit_cli.claims.stated import RANGE, design_of
from tests.claims.decay import STUDY, cells, lost

ROWS = cells((10, 20, 40), (0.5, 2.0), ("none", "ridge", "lasso"), seeds=10)
ONE = cells((10,), (1.0,), seeds=10)
"""Ten seeds of three n, two snr and three methods; and of one setting."""


def measure(text: str) -> stated.Measure:
    return stated.Measure(read(text), STUDY.parameters, columns=STUDY.columns)


def words(text: str, rows: pd.DataFrame) -> str:
    return " ".join(design_of(measure(text), rows).sentences())


ALL = "18 settings (n 10, 20, 40; snr 0.5, 2; method lasso, none, ridge)"
SOME = "4 of 18 settings"
SEEDS = "and 10 seeds (0 to 9)."
OTHERS, LASSO = f"{SEEDS} Left out, because the claim does not name them:", "method=lasso."
GROUPS = "test_error[method=ridge] < test_error[method=none]"
LARGEST = "test_error[n is largest] < test_error[n is smallest]"
FOUR = "test_error < 1 where n = 10,40 and snr < 3 and method = ridge"


@pytest.mark.parametrize(
    ("text", "judged_on"),
    [
        ("test_error < 1", f"{ALL} {SEEDS}"),
        (FOUR, f"{SOME} (n 10, 40; snr 0.5, 2) {SEEDS}"),
        (f"{GROUPS} where n = 10", f"{SOME} (snr 0.5, 2; method none, ridge) {OTHERS} {LASSO}"),
        (f"{GROUPS}; test_error falls along n", f"{ALL} {SEEDS}"),  # on the cells of both
        (
            "test_error[n=80] < 1 where method = none",
            f"2 of 20 settings (snr 0.5, 2) {OTHERS} n=10; n=20; n=40. Lost: 20 cells "
            "(snr=0.5, seeds 0 to 9; snr=2, seeds 0 to 9): 20 absent.",
        ),
        ("test_error[best snr] < 1", f"{ALL} {SEEDS}"),
        (f"{LARGEST} where method = none", f"{SOME} (n 10, 40; snr 0.5, 2) {OTHERS} n=20."),
    ],
)
def test_a_design_names_settings_seeds_and_what_it_leaves_out(text: str, judged_on: str) -> None:
    assert words(text, ROWS) == f"Judged on {judged_on}"


def test_cells_that_are_absent_or_failed_are_named() -> None:
    rows = ROWS.query("n > 10 or snr > 1 or seed not in (3, 4, 5, 9)").copy()
    one = (rows["n"] == 20) & (rows["snr"] < 1) & (rows["seed"] == 1)
    rows.loc[one, ["status", "reason"]] = "failed", "diverged"
    said = words("test_error < 1 where method = ridge", rows)
    where = "(n=10, snr=0.5, seeds 3 to 5, 9; n=20, snr=0.5, seed 1)"
    assert f"Lost: 5 cells {where}: 4 absent; 1 diverged." in said
    conditions = {"": False, " where n = 10": True, " where n = 40": False}
    for condition, mendable in conditions.items():
        assert design_of(measure(f"test_error < 1{condition}"), rows).is_mendable == mendable
    broken = lost(ONE, 1).assign(reason=["error: KeyError: 'x'"] + [""] * 9)
    undrawn = replace(design_of(measure("test_error < 1"), broken), drawn=False)
    said_of_it = ["Judged on 1 setting.", "Lost: 1 cell: 1 error: KeyError: 'x'."]
    assert [*undrawn.sentences()] == said_of_it


# What is lacking


@pytest.mark.parametrize(
    ("text", "lacking"),
    [
        ("test_error < 1", {}),
        ("test_error falls along snr", {"snr": RANGE}),
        ("power of n in snr at test_error = 0.1 is 1 within 1", {"n": RANGE, "snr": RANGE}),
        ("test_error[n=80] < test_error[n=160]", {"n": "80,160"}),
        ("mean of test_error[n=80] < 1; test_error rises along snr", {"n": "80"}),
        ("test_error < 1 where snr > 50", {"snr": RANGE}),
        ("test_error < 1 where snr = 4,8 and n = 10", {"snr": "4.0,8.0"}),
        ("test_error < 1 where n = 2*snr", {"n": RANGE, "snr": RANGE}),
    ],
)
def test_values_that_cells_lack_are_told(text: str, lacking: dict[str, str]) -> None:
    assert stated.settings_lacking(measure(text), ROWS) == lacking


def test_what_sentences_need_is_told_before_there_are_cells() -> None:
    table = stated.cells_of(ROWS.iloc[:0], STUDY.parameters)
    for text, needs in {
        GROUPS: "cells of method=ridge; cells of method=none",
        "test_error falls along snr where n >= 20": "3 values of snr or more; cells where n >= 20",
        f"{LARGEST} where snr > 1": "2 values of n or more; cells where snr > 1",
    }.items():
        assert stated.needs_in_words(read(text), table) == f"It needs {needs}."
