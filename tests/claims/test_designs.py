"""The design of a sentence says what it is judged on, what it leaves out, and what it lacks."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
import pandas as pd
import pytest

from overfit_cli.claims.designs import RANGE, design_of, needs_in_words, settings_lacking
from overfit_cli.claims.rules import verdicts_at_extremes
from overfit_cli.claims.sentences import read
from overfit_cli.claims.stated import Measure, cells_of, claim
from overfit_cli.functions.function_study import study_of_function


def train(
    n: int = 10, snr: float = 1.0, method: Literal["none", "ridge", "lasso"] = "none", seed: int = 0
) -> dict[str, float]:
    return {"test_error": 1 / n}


STUDY = study_of_function(train)


def cells(drop: str = "", **failed: object) -> pd.DataFrame:
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
    return rows


def measure(text: str) -> Measure:
    measured = claim(text, STUDY).measure
    assert isinstance(measured, Measure)
    return measured


def words(text: str, rows: pd.DataFrame) -> str:
    return " ".join(design_of(measure(text), rows).sentences())


def test_a_design_names_settings_seeds_and_what_conditions_leave() -> None:
    assert words("test_error < 1", cells()) == (
        "Judged on 18 settings (n 10, 20, 40; snr 0.5, 2; method lasso, none, ridge) and 10 seeds "
        "(0 to 9)."
    )
    assert words("test_error < 1 where snr > 1 and n = 10,40 and method = ridge", cells()) == (
        "Judged on 2 of 18 settings (n 10, 40) and 10 seeds (0 to 9)."
    )


def test_values_that_no_bracket_names_are_left_out_by_name() -> None:
    said = words("test_error[method=ridge] < test_error[method=none] where n = 10", cells())
    assert said.startswith("Judged on 4 of 18 settings (snr 0.5, 2; method none, ridge)")
    assert said.endswith("Left out, because the claim does not name them: method=lasso.")


def test_cells_that_are_absent_or_failed_are_named() -> None:
    rows = cells("n == 10 and snr < 1 and seed in (3, 4, 5, 9)", n=20, snr=0.5, seed=1)
    said = words("test_error < 1 where method = ridge", rows)
    assert "Absent: 4 cells (n=10, snr=0.5, seeds 3 to 5, 9)." in said
    assert "Failed: 1 cell (n=20, snr=0.5, seed 1): 1 diverged." in said
    assert not design_of(measure("test_error < 1"), rows).is_mendable
    assert design_of(measure("test_error < 1 where n = 10"), rows).is_mendable
    assert not design_of(measure("test_error < 1 where n = 40"), rows).is_mendable


@pytest.mark.parametrize(
    ("text", "lacking"),
    [
        ("test_error < 1", {}),
        ("test_error falls along snr", {"snr": RANGE}),
        ("power of n in snr at test_error = 0.1 is 1 within 1", {"n": RANGE, "snr": RANGE}),
        ("test_error[n=80] < test_error[n=160]", {"n": "80,160"}),
        ("test_error[n=80] < test_error[n is smallest]", {"n": "80"}),
        ("mean of test_error[n=80] < 1; test_error rises along snr", {"n": "80"}),
        ("test_error < 1 where snr > 50", {"snr": RANGE}),
        ("test_error < 1 where snr = 4,8 and n = 10", {"snr": "4.0,8.0"}),
        ("test_error < 1 where n = 2*snr", {"n": RANGE, "snr": RANGE}),
    ],
)
def test_values_that_cells_lack_are_told(text: str, lacking: dict[str, str]) -> None:
    assert settings_lacking(measure(text), cells()) == lacking


def test_what_sentences_need_is_told_before_there_are_cells() -> None:
    texts = (
        "test_error[method=ridge] < test_error[method=none] where n >= 20",
        "test_error falls along snr where method = lasso",
    )
    sentences = [read(text) for text in texts]
    table = cells_of(cells().iloc[:0], STUDY.parameters)
    assert needs_in_words(sentences[0], table) == (
        "It needs cells of method=ridge; cells of method=none; cells where n >= 20."
    )
    assert needs_in_words(sentences[1], table) == (
        "It needs 3 values of snr or more; cells where method = lasso."
    )
    extremes = read("test_error[n is largest] < test_error[n is smallest] where method = ridge")
    assert needs_in_words(extremes, table) == (
        "It needs 2 values of n or more; cells where method = ridge."
    )
    assert needs_in_words(read("test_error < 1"), table) == "It takes any cells."


def test_several_quantities_are_judged_on_the_cells_of_all() -> None:
    text = "test_error[method=ridge] < test_error[method=none]; test_error falls along n"
    assert words(text, cells()).startswith("Judged on 18 settings")
    largest = "test_error[n is largest] < test_error[n is smallest]"
    assert words(f"{largest} where method = none", cells()) == (
        "Judged on 4 of 18 settings (n 10, 40; snr 0.5, 2) and 10 seeds (0 to 9). "
        "Left out, because the claim does not name them: n=20."
    )


def test_a_single_setting_and_a_function_without_seeds_are_worded_so() -> None:
    rows = cells().query("n == 10 and snr == 2 and method == 'none'")
    assert words("test_error < 1", rows) == "Judged on 1 setting and 10 seeds (0 to 9)."
    lost = rows.assign(status=["done"] * 9 + ["failed"], reason=[""] * 9 + ["error: KeyError: 'x'"])
    assert words("test_error < 1", lost).endswith(
        "Failed: 1 cell (seed 9): 1 error: KeyError: 'x'."
    )
    undrawn = replace(design_of(measure("test_error < 1"), lost), drawn=False)
    said = " ".join(undrawn.sentences())
    assert said.startswith("Judged on 1 setting. Failed: 1 cell (the only one)")


@pytest.mark.parametrize(
    ("text", "lost", "verdicts"),
    [
        ("test_error < 0.2", 3, ("holds", "inconclusive")),
        ("test_error < 0.2", 9, ("holds", "fails")),
        ("test_error < 0.05", 3, ("inconclusive", "fails")),
        ("test_error is 0.1 within 0.05", 9, ("holds", "fails")),
        ("test_error is 0.2 within 0.05", 1, ("fails", "fails")),
        ("share of seeds with test_error < 0.2 > 0.6", 2, ("holds", "inconclusive")),
    ],
)
def test_missing_cells_are_taken_at_both_extremes(
    text: str, lost: int, verdicts: tuple[str, str]
) -> None:
    rows = cells(f"seed < {lost}").query("n == 10 and snr == 2 and method == 'none'")
    absent = [{"n": 10, "snr": 2.0, "method": "none", "seed": seed} for seed in range(lost)]
    missing = pd.DataFrame(absent).assign(status="failed", reason="absent")
    parts = measure(text).parts(pd.concat([rows, missing], ignore_index=True))
    assert verdicts_at_extremes(parts) == verdicts


def test_nothing_is_said_of_extremes_without_missing_cells_or_of_an_unbounded_mean() -> None:
    rows = cells().query("method == 'none'")
    assert verdicts_at_extremes(measure("test_error < 0.2").parts(rows)) is None
    lost = rows.assign(status=["failed", *["done"] * (len(rows) - 1)])
    assert verdicts_at_extremes(measure("mean of test_error < 0.2").parts(lost)) is None
    both = measure("mean of test_error < 0.2; test_error < 0.3").parts(lost)
    assert verdicts_at_extremes(both) is None
    trend = measure("mean of test_error falls along n").parts(lost)  # which lies within -1 and 1
    assert verdicts_at_extremes(trend) == ("holds", "holds")
