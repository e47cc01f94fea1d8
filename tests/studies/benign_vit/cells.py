"""Cells of `benign-vit` and the numbers that formulas give for them, for tests."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pandas as pd

from overfit_cli.core.cell import Cell
from overfit_cli.core.expressions import ANY, Compared, Ref, read_conditions, read_expression
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.study import study
from overfit_cli.sweeps.grid import Grid, parse_seeds
from overfit_cli.sweeps.presets import find_preset
from tests.judged import claims_by_name

P = BenignVitParameters
BY_NAME = claims_by_name("benign-vit")

SMALL: dict[str, Any] = {"n": 4, "snr": 1.5, "tokens": 5, "d": 40, "d_h": 24, "d_v": 8}
SMALL |= {"test_samples": 20, "sigma_p": 1.0, "sigma_p_tilde": 2.0, "init_divisor": 4.0}
SMALL |= {"learning_rate": 0.3, "epsilon": 0.1, "dtype": "float64"}


def small(**values: Any) -> P:
    """Parameters of a cell that takes some steps, in milliseconds."""
    return P(**SMALL | values)


def in_law(**values: Any) -> P:
    """Parameters sampled in law, with weights as Condition 4.1 requires."""
    return P(**{"initialisation": "condition", "sampling": "law"} | values)


@functools.cache
def preset(name: str, **changed: str) -> list[Cell[P]]:
    """All cells of a preset's quick profile, with some of its values changed."""
    found = find_preset(name)
    assert found is not None
    seeds = parse_seeds(str(found.quick.seeds))
    cells: list[Cell[Any]] = Grid.read(study, found.profile("quick").texts | changed, seeds).cells()
    return cells


def settings(name: str, **changed: str) -> list[P]:
    """The parameters of all these cells."""
    return [cell.parameters for cell in preset(name, **changed)]


def frame(name: str, **changed: str) -> pd.DataFrame:
    """Rows of these cells, which are done, with seeds from 0; nothing else is known."""
    cells = preset(name, **changed)
    first = min(cell.seed for cell in cells)
    rows = [cell.parameters.model_dump() | {"seed": cell.seed - first} for cell in cells]
    return pd.DataFrame(rows).assign(status="done", reason="", steps=1)


def _values(parameters: P, refs: tuple[Ref, ...]) -> dict[str, np.float64]:
    return {each.name: np.float64(getattr(parameters, each.name)) for each in refs}


def number(formula: str, parameters: P) -> float:
    """The value of a formula in parameters."""
    expression = read_expression(formula, ANY, "formula")
    return float(expression.value(_values(parameters, expression.refs)))


def holds(conditions: str, parameters: P) -> bool:
    """Whether parameters meet conditions joined by `and`."""
    return all(
        isinstance(test, Compared) and test.holds(_values(parameters, test.refs)).all()
        for test in read_conditions(conditions, ANY)
    )
