"""Steps to fit against each parameter that the theorems' T speaks of, with the fitted power."""

from __future__ import annotations

from typing import Any

import matplotlib.axes
import matplotlib.figure
import numpy as np
import pandas as pd
from matplotlib.lines import Line2D

from overfit_cli.analysis.scaling import Exponent
from overfit_cli.errors import UserError
from overfit_cli.figure import FigureData, FigureOptions
from overfit_cli.figures.geometric import logarithms
from overfit_cli.figures.style import COLUMN, PALETTE, legend_below, log_ticks, styled
from overfit_cli.parameters import describe
from overfit_cli.studies.benign_vit.theory.predictions import STEP_POWERS, Regime
from overfit_cli.studies.benign_vit.theory.steps import StepScaling, step_scaling

_REGIMES: tuple[Regime, ...] = ("benign", "harmful")
_THEOREM: dict[str, Any] = {"color": "0.45", "linestyle": (0, (4, 2)), "linewidth": 0.9}


def has_step_powers(data: FigureData) -> bool:
    """Whether steps can be fitted in one of the regimes."""
    fits = [step_scaling(data.cells, regime) for regime in _REGIMES]
    return any(fit is not None and fit.exponents for fit in fits)


@styled
def draw_scaling(data: FigureData, options: FigureOptions) -> matplotlib.figure.Figure:
    """Draw steps against each parameter, a row of panels for each regime.

    Points are geometric means over seeds, with a bar of one standard deviation, where the other
    parameters have their middle value. The line has the power that is fitted to all cells of the
    regime at once; the dashed one has the theorem's.

    Raises:
        UserError: if no parameter that the theorems speak of takes three values.
    """
    fits = {regime: step_scaling(data.cells, regime) for regime in _REGIMES}
    drawn = {regime: fit for regime, fit in fits.items() if fit is not None and fit.exponents}
    if not drawn:
        raise UserError(
            f"Steps are drawn against {', '.join(STEP_POWERS['benign'])}: one of them must take "
            "three values in a regime, and nothing else may vary, as in `overfit sweep "
            "scaling-benign`."
        )
    across = max(len(fit.exponents) for fit in drawn.values())
    figure = matplotlib.figure.Figure(figsize=(2 * COLUMN + 0.2, 2.0 * len(drawn) + 0.4))
    grid = figure.subplots(len(drawn), across, squeeze=False, sharey="row")
    for row, (regime, fit) in zip(grid, drawn.items(), strict=True):
        for axes, (axis, exponent) in zip(row, fit.exponents.items(), strict=False):
            _draw(axes, fit, axis, exponent, STEP_POWERS[regime][axis])
            described = describe(data.study.parameters)[axis]
            axes.set_xlabel(f"{described.meaning} ${described.symbol}$")
        for spare in row[len(fit.exponents) :]:
            spare.remove()
        row[0].set_ylabel(f"{regime}: gradient steps")
    figure.suptitle(_title(drawn, data.cells), x=0.01, ha="left", fontsize=7)
    lines = [
        (Line2D([], [], color=PALETTE[0], marker="o", linestyle=""), "measured"),
        (Line2D([], [], color="black"), "fitted power"),
        (Line2D([], [], **_THEOREM), "theorem's power"),
    ]
    legend_below(figure, lines)
    return figure


def _draw(
    axes: matplotlib.axes.Axes, fit: StepScaling, axis: str, exponent: Exponent, theorem: float
) -> None:
    cells = _at_middle(fit, axis)
    logs = logarithms(cells["steps"].astype(float)).groupby(cells[axis]).agg(["mean", "std"])
    at, mean = logs.index.to_numpy(dtype=np.float64), logs["mean"].to_numpy()
    spread = logs["std"].fillna(0.0).to_numpy()
    bars = np.exp(mean) * np.array([1 - np.exp(-spread), np.exp(spread) - 1])
    axes.errorbar(at, np.exp(mean), yerr=bars, fmt="o", color=PALETTE[0], elinewidth=0.8, zorder=3)
    centre = np.log(at).mean()
    for power, look in ((exponent.value, {"color": "black"}), (theorem, _THEOREM)):
        axes.plot(at, np.exp(mean.mean() + power * (np.log(at) - centre)), **look)
    axes.set(xscale="log", yscale="log")
    log_ticks(axes.xaxis, float(at[0]), float(at[-1]))
    low, high = fit.cells["steps"].min(), fit.cells["steps"].max()
    log_ticks(axes.yaxis, float(low), float(high))
    axes.margins(0.12)
    axes.set_title(
        f"{exponent.value:.2f} [{exponent.low:.2f}, {exponent.high:.2f}]\ntheorem {theorem:g}"
    )


def _at_middle(fit: StepScaling, axis: str) -> pd.DataFrame:
    """The cells in which all other fitted parameters have their middle value."""
    cells = fit.cells
    for name in fit.exponents:
        if name != axis:
            values = np.sort(cells[name].unique())
            cells = cells[cells[name] == values[len(values) // 2]]
    return cells


def _title(drawn: dict[Regime, StepScaling], cells: pd.DataFrame) -> str:
    seeds = max(fit.cells["seed"].nunique() for fit in drawn.values())
    failed = int((cells["status"] == "failed").sum())
    left_out = f"; {failed} failed cells left out" if failed else ""
    return f"geometric mean of {seeds} seeds, bar of one deviation{left_out}"
