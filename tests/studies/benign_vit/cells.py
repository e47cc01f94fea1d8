"""Cells of `benign-vit` and the numbers that formulas give for them, for tests."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pandas as pd

from overfit_cli.core.cell import Cell
from overfit_cli.core.expressions import ANY, Compared, read_conditions, read_expression
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.study import study
from overfit_cli.sweeps.grid import Grid
from tests.judged import claims_by_name

BY_NAME = claims_by_name("benign-vit")
PRESETS = Path(__file__).parents[3] / "experiments"


def preset(name: str, **changed: str) -> list[Cell[BenignVitParameters]]:
    """All cells of a preset's quick profile, with some of its values changed."""
    content = tomllib.loads((PRESETS / f"{name}.toml").read_text())
    quick = content["quick"]
    values = content["set"] | quick.get("set", {}) | changed
    texts = {key: str(value) for key, value in values.items()}
    cells = Grid.read(study, texts, tuple(range(quick["seeds"]))).cells()
    return [
        Cell(study.name, study.version, cell.parameters, cell.seed)
        for cell in cells
        if isinstance(cell.parameters, BenignVitParameters)
    ]


def settings(cells: list[Cell[BenignVitParameters]]) -> list[BenignVitParameters]:
    """The cells' parameters."""
    return [cell.parameters for cell in cells]


def frame_of(cells: list[Cell[BenignVitParameters]]) -> pd.DataFrame:
    """Rows of cells that are done, of which nothing else is known."""
    rows = [cell.parameters.model_dump() | {"seed": cell.seed} for cell in cells]
    return pd.DataFrame(rows).assign(status="done", reason="", steps=1)


def small(**values: object) -> BenignVitParameters:
    """Parameters sampled in law, with weights as Condition 4.1 requires."""
    fixed = {"initialisation": "condition", "sampling": "law"}
    return BenignVitParameters.model_validate(fixed | values)


def number(formula: str, parameters: BenignVitParameters) -> float:
    """The value of a formula in parameters."""
    expression = read_expression(formula, ANY, "formula")
    return float(
        expression.value(
            {each.name: np.float64(getattr(parameters, each.name)) for each in expression.refs}
        )
    )


def holds(conditions: str, parameters: BenignVitParameters) -> bool:
    """Whether parameters meet conditions joined by `and`."""
    tests = read_conditions(conditions, ANY)
    values = {
        each.name: np.float64(getattr(parameters, each.name))
        for test in tests
        for each in test.refs
    }
    return all(isinstance(test, Compared) and test.holds(values).all() for test in tests)
