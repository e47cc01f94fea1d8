"""The design of a sentence says what it is judged on, what it leaves out, and what it lacks."""

from __future__ import annotations

import pandas as pd
import pytest

from overfit_cli.claims import stated
from overfit_cli.claims.sentences import read
from overfit_cli.claims.stated import RANGE, design_of
from tests.claims.decay import STUDY, cells

ROWS = cells((10, 20, 40), (0.5, 2.0), ("none", "ridge", "lasso"), seeds=10)


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
