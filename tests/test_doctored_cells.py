"""Cells that say nothing decide no claim: those of killed workers, and those without numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import overfit_cli
from overfit_cli.registry import find_study
from overfit_cli.report.judge import judge_cells
from overfit_cli.study import taken_columns

KEPT = sorted(Path("results").glob("*/manifest.json"))
UNDECIDED = {"inconclusive", "vacuous", "not run"}


def decided(cells: pd.DataFrame) -> dict[str, str]:
    """The claims that hold or fail, and what else went wrong."""
    judged = judge_cells(cells, find_study(cells["study"].iloc[0]))
    found = {one.name: one.measurement for one in judged}
    strange = {name: one.note for name, one in found.items() if "can't be measured" in one.note}
    return strange | {
        name: one.verdict for name, one in found.items() if one.verdict not in UNDECIDED
    }


@pytest.mark.parametrize("manifest", KEPT, ids=lambda path: path.parent.name)
def test_cells_without_numbers_decide_nothing(manifest: Path) -> None:
    """Done or not; a killed worker leaves no numbers behind."""
    cells = overfit_cli.load(manifest.parent).drop(columns="key")
    parameters = find_study(cells["study"].iloc[0]).parameters
    measured = {str(name) for name in cells.select_dtypes("number")} - taken_columns(parameters)
    blank = cells.assign(**dict.fromkeys([*measured, "steps"], np.nan))
    assert decided(blank) == {}
    assert decided(blank.assign(status="failed", reason="worker killed")) == {}


def test_the_kept_cells_decide_something_themselves() -> None:
    assert decided(overfit_cli.load("results/fig1-quick").drop(columns="key"))
