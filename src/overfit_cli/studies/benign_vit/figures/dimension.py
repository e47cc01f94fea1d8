"""The boundary against the dimension: its constant, its exponent, and the test loss across it."""

from __future__ import annotations

import matplotlib.axes
import matplotlib.figure
import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.lines import Line2D

from overfit_cli.analysis.boundaries import Boundary
from overfit_cli.errors import UserError
from overfit_cli.figure import FigureData, FigureOptions
from overfit_cli.figures.inputs import checked_threshold
from overfit_cli.figures.intervals import draw_intervals
from overfit_cli.figures.powers import EXPECTED
from overfit_cli.figures.style import (
    COLOUR_MAP,
    COLUMN,
    PALETTE,
    Legend,
    legend_below,
    log_ticks,
    plain,
    styled,
)
from overfit_cli.studies.benign_vit.theory.boundaries import boundaries, why_no_boundary
from overfit_cli.studies.benign_vit.theory.predictions import (
    FIGURE_1_CONSTANT,
    FIGURE_1_EXPONENT,
    FIGURE_1_THRESHOLD,
    boundary_product,
)

_BINS = 24


def has_dimensions(data: FigureData) -> bool:
    """Whether d is an axis, with grids over N and the signal-to-noise ratio."""
    return data.cells["d"].nunique() > 1 and why_no_boundary(data.cells, "d") is None


@styled
def draw_dimension(data: FigureData, options: FigureOptions) -> matplotlib.figure.Figure:
    """Draw the boundary's constant C and exponent p against d, and the test loss against N · SNR².

    Constants are medians over the curves of all N and seeds, with quartiles; exponents have 95 %
    bootstrap intervals. Curves that never cross count as beyond the grid.

    Raises:
        UserError: if d doesn't take several values, or something but N and the ratio varies too.
    """
    chosen = checked_threshold(options.threshold)
    threshold = FIGURE_1_THRESHOLD if chosen is None else chosen
    found = _found(data.cells, threshold)
    figure = matplotlib.figure.Figure(figsize=(2 * COLUMN + 0.2, 2.5))
    constants, exponents, losses = figure.subplots(1, 3)
    beyond = draw_intervals(constants, {one.at: (one.median, one.low, one.high) for one in found})
    fits = {one.at: one.fit for one in found if one.fit is not None}
    draw_intervals(
        exponents,
        {at: (fit.exponent, fit.exponent_low, fit.exponent_high) for at, fit in fits.items()},
    )
    constants.axhline(FIGURE_1_CONSTANT, **EXPECTED)
    exponents.axhline(FIGURE_1_EXPONENT, **EXPECTED)
    constants.set_ylabel("N·SNR² at the crossing")
    exponents.set_ylabel("$p$ of N·SNR$^p$ = $C$")
    for axes in (constants, exponents):
        axes.set(xscale="log", xlabel="features of a token $d$")
        axes.set_xlim(found[0].at / 2, found[-1].at * 2)
    arrow = Line2D([], [], color=PALETTE[0], marker="^", linestyle="")
    legend = [
        (Line2D([], [], color=PALETTE[0], marker="o", linestyle=""), "measured"),
        *([(arrow, "beyond the grid")] if beyond else []),
        (Line2D([], [], **EXPECTED), "figure 1's 1000; the theorems' 2; the threshold"),
        *_draw_losses(losses, data.cells, threshold),
    ]
    figure.suptitle(_title(found, data.cells, threshold), x=0.01, ha="left", fontsize=7)
    legend_below(figure, legend, columns=4)
    return figure


def _found(cells: pd.DataFrame, threshold: float) -> list[Boundary]:
    """The boundaries along d, or why there are none."""
    few = "d takes one value only" if cells["d"].nunique() < 2 else None
    if why := few or why_no_boundary(cells, "d"):
        raise UserError(
            f"The figure `dimension` shows where overfitting turns benign over d, as in `overfit "
            f"sweep dimension`; in these cells that can't be found: {why}."
        )
    return boundaries(cells, "d", threshold)


def _draw_losses(axes: matplotlib.axes.Axes, cells: pd.DataFrame, threshold: float) -> Legend:
    """Draw the mean test loss against N · SNR² for the ends and the middle of d."""
    done = cells[cells["status"] == "done"]
    values = np.sort(done["d"].unique())
    shown = sorted({values[0], values[len(values) // 2], values[-1]})
    colours = colormaps[COLOUR_MAP](np.linspace(0, 0.85, len(shown)))
    handles: Legend = []
    dashes = ("-", (0, (4, 1.5)), (0, (1, 1.5)))  # lines that coincide are all seen
    for value, colour, dash in zip(shown, colours, dashes[: len(shown)], strict=True):
        some = done[done["d"] == value]
        logs = np.log(boundary_product(some["n"], some["snr"]))
        edges = np.linspace(logs.min(), logs.max(), _BINS + 1)
        bins = pd.Series(np.digitize(logs, edges[1:-1]), index=some.index)
        means = some["test_loss"].groupby(bins).mean()
        centres = np.exp(pd.Series(logs, index=some.index).groupby(bins).mean())
        (line,) = axes.plot(centres, means, color=colour, linestyle=dash)
        handles.append((line, f"d = {plain(float(value))}"))
    axes.axhline(threshold, **EXPECTED)
    axes.set(xscale="log", yscale="log", xlabel="N·SNR²", ylabel="mean test loss $L_D$")
    log_ticks(axes.xaxis, *axes.get_xlim())
    log_ticks(axes.yaxis, *axes.get_ylim())
    return handles


def _title(found: list[Boundary], cells: pd.DataFrame, threshold: float) -> str:
    failed = int((cells["status"] == "failed").sum())
    never, curves = sum(one.never for one in found), sum(one.curves for one in found)
    words = [
        f"where the test loss crosses {threshold:g}: median and quartiles of N·SNR², "
        f"p with its 95 % interval; {cells['seed'].nunique()} seeds"
    ]
    if never:
        words.append(f"{never} of {curves} curves never cross")
    if failed:
        words.append(f"{failed} failed cells left out")
    return "; ".join(words)
