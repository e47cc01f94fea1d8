"""A measured column against each parameter that it scales with, and the fitted powers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import matplotlib.axes
import numpy as np
import pandas as pd
from matplotlib.lines import Line2D

from overfit_cli.analysis.intervals import Estimate
from overfit_cli.figure import FigureData
from overfit_cli.figures.geometric import logarithms
from overfit_cli.figures.labels import axis_label
from overfit_cli.figures.picture import Picture
from overfit_cli.figures.style import PAGE, PALETTE, legend_below, log_ticks
from overfit_cli.words import plural

EXPECTED: dict[str, Any] = {"color": "0.45", "linestyle": (0, (4, 2)), "linewidth": 0.9}
"""How what a theorem says is drawn."""


@dataclass(frozen=True)
class FittedPowers:
    """One row of panels.

    Attributes:
        cells: those that the powers are fitted to.
        exponents: by axis; an axis is a panel.
        expected: the theorem's, by axis.
    """

    cells: pd.DataFrame
    exponents: Mapping[str, Estimate]
    expected: Mapping[str, float]


def draw_powers(
    data: FigureData, rows: Mapping[str, FittedPowers], value: str, label: str
) -> Picture:
    """Draw a column against each parameter, one row of panels for each fit.

    Points are geometric means over seeds, with a bar of one standard deviation, where the other
    parameters have their middle value. The line has the power that is fitted to all cells of the
    row at once; the dashed one has the theorem's.

    Args:
        data: what was run.
        rows: by name; at least one.
        value: the column, positive.
        label: the column in words.
    """
    across = max(len(row.exponents) for row in rows.values())
    figure = Picture(PAGE, 2.0 * len(rows) + 0.4, least=1.6 * across)
    grid = figure.subplots(len(rows), across, squeeze=False, sharey="row")
    for panels, (name, row) in zip(grid, rows.items(), strict=True):
        for axes, axis in zip(panels, row.exponents, strict=False):
            _draw(axes, row, axis, value)
            axes.set_xlabel(axis_label(data.study, axis))
        for spare in panels[len(row.exponents) :]:
            spare.remove()
        panels[0].set_ylabel(f"{name}: {label}")
    figure.facts.append(f"{_title(rows, data.cells)}.")
    lines = [
        (Line2D([], [], color=PALETTE[0], marker="o", linestyle=""), "measured"),
        (Line2D([], [], color="black"), "fitted power"),
        (Line2D([], [], **EXPECTED), "theorem's power"),
    ]
    legend_below(figure, lines)
    return figure


def _draw(axes: matplotlib.axes.Axes, row: FittedPowers, axis: str, value: str) -> None:
    cells, exponent, theorem = _at_middle(row, axis), row.exponents[axis], row.expected[axis]
    logs = logarithms(cells[value].astype(float)).groupby(cells[axis]).agg(["mean", "std"])
    at, mean = logs.index.to_numpy(dtype=np.float64), logs["mean"].to_numpy()
    spread = logs["std"].fillna(0.0).to_numpy()
    bars = np.exp(mean) * np.array([1 - np.exp(-spread), np.exp(spread) - 1])
    axes.errorbar(at, np.exp(mean), yerr=bars, fmt="o", color=PALETTE[0], elinewidth=0.8, zorder=3)
    centre = np.log(at).mean()
    for power, look in ((exponent.value, {"color": "black"}), (theorem, EXPECTED)):
        axes.plot(at, np.exp(mean.mean() + power * (np.log(at) - centre)), **look)
    axes.set(xscale="log", yscale="log")
    log_ticks(axes.xaxis, float(at[0]), float(at[-1]))
    low, high = row.cells[value].min(), row.cells[value].max()
    log_ticks(axes.yaxis, float(low), float(high))
    axes.margins(0.12)
    axes.set_title(
        f"power {exponent.value:.2f} [{exponent.low:.2f}, {exponent.high:.2f}]".replace("-", "−"),
        fontsize=7,
    )
    # The theorem's power stands where its line leaves room: above a falling one, below a rising.
    falls = exponent.value < 0.05
    axes.text(
        0.96,
        0.94 if falls else 0.06,
        f"theorem: {theorem:g}".replace("-", "−"),
        transform=axes.transAxes,
        ha="right",
        va="top" if falls else "bottom",
        fontsize=6.5,
        color=EXPECTED["color"],
    )


def _at_middle(row: FittedPowers, axis: str) -> pd.DataFrame:
    """The cells in which all other fitted parameters have their middle value."""
    cells = row.cells
    for name in row.exponents:
        if name != axis:
            values = np.sort(cells[name].unique())
            cells = cells[cells[name] == values[len(values) // 2]]
    return cells


def _title(rows: Mapping[str, FittedPowers], cells: pd.DataFrame) -> str:
    seeds = max(row.cells["seed"].nunique() for row in rows.values())
    failed = int((cells["status"] == "failed").sum())
    left_out = f"; {plural(failed, 'failed cell')} left out" if failed else ""
    of = f"Geometric mean of {seeds} seeds, bar of one deviation" if seeds > 1 else "One seed"
    return f"{of}{left_out}"
