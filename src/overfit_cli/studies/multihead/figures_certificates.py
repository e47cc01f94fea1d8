"""The figure `certificates`: measured quantities over their bounds, and margins below them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib.axes
import numpy as np
import pandas as pd

from overfit_cli.core.errors import UserError
from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.study import FigureData
from overfit_cli.core.text import plural
from overfit_cli.figures.labels import tick_number
from overfit_cli.figures.picture import Picture, styled
from overfit_cli.figures.style import COLUMN, HIGHLIGHT, PALETTE
from overfit_cli.studies.multihead.claims import log10_step_sizes

RATIOS = {
    "model_gradient": "Prop. 1: gradient of a head",
    "model_hessian": "Prop. 1: Hessian of a head",
    "loss_gradient": "Cor. 1: gradient of the loss",
    "loss_hessian": "Cor. 1: Hessian of the loss",
    "loss_concavity": "Cor. 1: concavity of the loss",
    "good_norm": "Def. 1, P1: norm of a head",
    "good_output": "Def. 1, P2: output",
    "optimal_missed": "Prop. 3: softmax missed",
    "optimal_margin": "Prop. 3: margin, inverse",
}
"""Columns that are measured numbers over their bounds, with their names in the figure."""

MARGINS = {
    "gamma_linear": r"$\gamma_{\mathrm{lin}}$, linear model",
    "gamma_tangent": r"$\gamma_\ast$, eq. (7) with $\zeta/4$",
    "ntk_margin_constructed": r"tangent kernel, $\theta_\ast$",
    "ntk_margin": "tangent kernel, largest",
    "margin": "after training",
    "gamma_attention": r"$\gamma_{\mathrm{attn}}$, attention",
}
"""Columns that are margins."""

_SPREAD = 0.12

_FAR = -1.0
"""Margins below are named, and not drawn: as stated one may lie far below all that are measured."""


@dataclass(frozen=True)
class CertificateRow:
    """A row of points."""

    name: str
    values: pd.Series[float]
    note: str  # what stands at its other end


@styled
def draw_certificates(data: FigureData, options: FigureOptions) -> Picture:
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
    figure = Picture(1.75 * COLUMN, 0.24 * sum(heights) + 1.3, least=5.0)
    grid = figure.subplots(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    _draw_certificates(grid[0], ratios)
    grid[0].set_xscale("log")
    grid[0].axvline(1, color=HIGHLIGHT, linewidth=1)
    grid[0].set_xlabel("measured over its bound; above 1 breaks it")
    if margins:
        _draw_certificates(grid[1], margins)
        grid[1].set_xlabel("margin")
    figure.facts.append(f"Each point is one of {plural(len(cells), 'cell')}.")
    return figure


def _ratios(cells: pd.DataFrame) -> list[CertificateRow]:
    rows = []
    for column, name in RATIOS.items():
        certified = cells
        if column.startswith("optimal"):  # Proposition 3 is about little noise
            certified = cells[cells.get("optimal_noise", pd.Series(2.0, cells.index)) <= 1]
        values = _numbers(certified, column)
        if len(values):
            rows.append(_row(name, values, f"at most {_two_digits(values.max())}"))
    return rows


def _theorems(cells: pd.DataFrame) -> list[CertificateRow]:
    """Theorems 1 and 2: the measured side over the bound, and the decades that they miss."""
    from_zero = cells[cells["initialisation"] == "zero"]
    sides = {
        "1": _numbers(from_zero, "mean_train_loss"),
        "2": _numbers(from_zero, "test_loss") - _numbers(from_zero, "train_loss"),
    }
    rows = []
    for number, side in sides.items():
        ratio = (side / _numbers(from_zero, f"theorem{number}_bound")).dropna()
        heads = _numbers(from_zero, f"theorem{number}_heads") - np.log10(
            from_zero["heads"].astype(float)
        )
        steps = log10_step_sizes(from_zero) - _numbers(from_zero, "theorem_step_size")
        if len(ratio):
            note = f"at most {_two_digits(ratio.max())}"
            if (heads > 0).any() or (steps > 0).any():
                note = (
                    f"vacuous: {heads.median():.0f} decades of $H$ too few,\n"
                    f"{steps.median():.0f} of step size too large (medians)"
                )
            rows.append(_row(f"Theorem {number}", ratio, note))
    return rows


def _two_digits(number: float) -> str:
    """Write a number with two digits, the very small as a power of ten."""
    return tick_number(float(f"{number:.2g}"))


def _row(name: str, ratios: pd.Series[float], note: str) -> CertificateRow:
    """A row of positive numbers on a logarithmic axis; the others are counted."""
    uncountable = int((ratios <= 0).sum())
    remark = f"; {uncountable} at 0 or less" if uncountable else ""
    return CertificateRow(name, ratios[ratios > 0], note + remark)


def _margins(cells: pd.DataFrame) -> list[CertificateRow]:
    if "ntk_margin" not in cells or cells["ntk_margin"].isna().all():
        return []
    return [
        CertificateRow(name, values, f"{values.median():.3g} in the median".replace("-", "−"))
        for column, name in MARGINS.items()
        if len(values := _numbers(cells, column))
    ]


def _numbers(cells: pd.DataFrame, column: str) -> pd.Series[float]:
    numbers: pd.Series[float] = cells.get(column, pd.Series(dtype=float)).astype(float).dropna()
    return numbers


def _draw_certificates(axes: matplotlib.axes.Axes, rows: Sequence[CertificateRow]) -> None:
    """Draw rows of points from top to bottom, moved apart a little; an arrow is for far ones."""
    for height, row in enumerate(rows):
        visible = row.values[row.values > _FAR]
        spread = np.random.default_rng(0).uniform(-_SPREAD, _SPREAD, len(visible))
        axes.plot(visible, height + spread, "o", color=PALETTE[0], markersize=2, alpha=0.5)
        transform = axes.get_yaxis_transform()
        if len(visible) < len(row.values):
            axes.plot(0.012, height, "<", color=PALETTE[0], markersize=4, transform=transform)
        axes.text(1.01, height, row.note, transform=transform, va="center", size=7)
    axes.set_yticks(range(len(rows)), [row.name for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.grid(axis="x", color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
