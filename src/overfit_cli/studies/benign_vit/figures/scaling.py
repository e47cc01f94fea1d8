"""Steps to fit against each parameter that the theorems' T depends on, with the fitted power."""

from __future__ import annotations

from overfit_cli.core.figure import FigureData, FigureOptions
from overfit_cli.core.text import UserError
from overfit_cli.figures.boundary import FittedPowers, draw_powers
from overfit_cli.figures.picture import Picture, styled
from overfit_cli.studies.benign_vit.theory.predictions import STEP_POWERS
from overfit_cli.studies.benign_vit.theory.steps import step_scaling


def _fitted(data: FigureData) -> dict[str, FittedPowers]:
    """The fit in each regime that has one."""
    found = {regime: step_scaling(data.cells, regime) for regime in STEP_POWERS}
    return {
        regime: FittedPowers(fit.cells, fit.exponents, STEP_POWERS[regime])
        for regime, fit in found.items()
        if fit is not None and fit.exponents
    }


def has_step_powers(data: FigureData) -> bool:
    """Whether steps can be fitted in one of the regimes."""
    return bool(_fitted(data))


@styled
def draw_scaling(data: FigureData, options: FigureOptions) -> Picture:
    """Draw steps against each parameter, a row of panels for each regime.

    Raises:
        UserError: if no parameter that T depends on takes three values.
    """
    rows = _fitted(data)
    if not rows:
        raise UserError(
            f"Steps are drawn against {', '.join(STEP_POWERS['benign'])}: one of them must take "
            "three values in a regime, and nothing else may vary, as in `overfit sweep "
            "scaling-benign`."
        )
    return draw_powers(data, rows, "steps", "gradient steps")
