"""Certificates of Deora et al. 2024: what is measured over each bound, and margins side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib.axes
import matplotlib.figure
import numpy as np
import pandas as pd

from overfit_cli.errors import UserError
from overfit_cli.figure import FigureData, FigureOptions
from overfit_cli.figures.style import COLUMN, HIGHLIGHT, PALETTE, styled
from overfit_cli.words import plural

RATIOS = {
    "model_gradient": "Prop. 1: gradient of a head",
    "model_hessian": "Prop. 1: Hessian of a head",
    "loss_gradient": "Cor. 1: gradient of the loss",
    "loss_hessian": "Cor. 1: Hessian of the loss",
    "loss_concavity": "Cor. 1: concavity of the loss",
    "good_norm": "Def. 1, P1: norm of a head",
    "good_output": "Def. 1, P2: output",
}
"""Columns that are measured numbers over their bounds, with their names in the figure."""

MARGINS = {
    "gamma_linear": r"$\gamma_{lin}$, linear model",
    "gamma_tangent": r"$\gamma_\ast$, eq. (7)",
    "ntk_margin_constructed": r"tangent kernel, $\theta_\ast$",
    "ntk_margin": "tangent kernel, largest",
    "margin": "after training",
    "gamma_attention": r"$\gamma_{attn}$, attention",
}
"""Columns that are margins."""

_SMALLEST = 1e-12
_SPREAD = 0.12


@dataclass(frozen=True)
class Row:
    """A row of points.

    Attributes:
        name: what stands beside it.
        values: a number for each cell.
        note: what stands at its other end.
    """

    name: str
    values: pd.Series[float]
    note: str


@styled
def draw_certificates(data: FigureData, options: FigureOptions) -> matplotlib.figure.Figure:
    """Draw measured numbers over their bounds, a point for each cell, and margins below them.

    A number above 1 would break its bound; one far below shows how loose it is. Theorems 1 and 2
    come with the decades of heads and of step size that their requirements are missed by.

    Raises:
        UserError: if no cell was held to bounds.
    """
    cells = data.cells[data.cells["status"] == "done"]
    ratios = [*_ratios(cells), *_theorems(cells)]
    if not ratios:
        raise UserError(
            "No cell was held to bounds here; `--set certify=true` does so, as `overfit sweep "
            "heads-certificates` has it."
        )
    margins = _margins(cells)
    heights = [len(ratios), len(margins)] if margins else [len(ratios)]
    figure = matplotlib.figure.Figure(figsize=(1.75 * COLUMN, 0.24 * sum(heights) + 1.3))
    grid = figure.subplots(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    _draw(grid[0], ratios)
    grid[0].set_xscale("log")
    grid[0].axvline(1, color=HIGHLIGHT, linewidth=1)
    grid[0].set_xlabel("measured over its bound; above 1 breaks it")
    if margins:
        _draw(grid[1], margins)
        grid[1].set_xlabel("margin")
    figure.suptitle(f"{plural(len(cells), 'cell')}, a point each", x=0.01, ha="left", fontsize=7)
    return figure


def _ratios(cells: pd.DataFrame) -> list[Row]:
    found = []
    for column, name in RATIOS.items():
        values = _numbers(cells, column).clip(lower=_SMALLEST)
        if len(values):
            found.append(Row(name, values, f"at most {values.max():.2g}"))
    return found


def _theorems(cells: pd.DataFrame) -> list[Row]:
    """Theorems 1 and 2: the measured side over the bound, and the decades that they miss."""
    sides = {
        "1": _numbers(cells, "mean_train_loss"),
        "2": (_numbers(cells, "test_loss") - _numbers(cells, "train_loss")).clip(lower=0),
    }
    found = []
    for number, side in sides.items():
        ratio = (side / _numbers(cells, f"theorem{number}_bound")).dropna().clip(lower=_SMALLEST)
        heads = _numbers(cells, f"theorem{number}_heads") - np.log10(cells["heads"].astype(float))
        if len(ratio):
            note = f"vacuous: {heads.median():.0f} decades of heads missing"
            if heads.max() <= 0:
                note = f"at most {ratio.max():.2g}"
            found.append(Row(f"Theorem {number}", ratio, note))
    return found


def _margins(cells: pd.DataFrame) -> list[Row]:
    if "ntk_margin" not in cells or cells["ntk_margin"].isna().all():
        return []
    return [
        Row(name, values, f"{values.median():.3g} in the median")
        for column, name in MARGINS.items()
        if len(values := _numbers(cells, column))
    ]


def _numbers(cells: pd.DataFrame, column: str) -> pd.Series[float]:
    found: pd.Series[float] = cells.get(column, pd.Series(dtype=float)).astype(float).dropna()
    return found


def _draw(axes: matplotlib.axes.Axes, rows: Sequence[Row]) -> None:
    """Draw rows of points from top to bottom, moved apart a little; what lies far out is named."""
    everything = np.concatenate([row.values.to_numpy() for row in rows])
    low = np.quantile(everything, 0.0)
    far = low < -1  # a margin as stated may lie far below all that are measured
    shown = everything[everything > -1] if far else everything
    for place, row in enumerate(rows):
        values = row.values[row.values > -1] if far else row.values
        spread = np.random.default_rng(0).uniform(-_SPREAD, _SPREAD, len(values))
        axes.plot(values, place + spread, "o", color=PALETTE[0], markersize=2, alpha=0.5)
        axes.text(1.01, place, row.note, transform=axes.get_yaxis_transform(), va="center", size=7)
    axes.set_yticks(range(len(rows)), [row.name for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    if far:
        axes.set_xlim(-0.05 * shown.max(), 1.05 * shown.max())
    axes.grid(axis="x", color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
