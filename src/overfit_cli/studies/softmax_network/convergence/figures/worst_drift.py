"""The figure `worst-drift`: the largest change of the kernel where weights move by R at most."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.axes
import numpy as np
import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.typing import LineStyleType

from overfit_cli.core.cells import Cells
from overfit_cli.core.errors import UserError
from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.text import plural
from overfit_cli.figures.axes import legend_below, log_ticks
from overfit_cli.figures.picture import Picture
from overfit_cli.figures.style import BOUND
from overfit_cli.stats.intervals import mean_estimate
from overfit_cli.studies.softmax_network.convergence.claims.perturbation import CONSTANTS
from overfit_cli.studies.softmax_network.convergence.parameters import RADII
from overfit_cli.studies.softmax_network.figures import (
    NETWORKS,
    done_cells,
    legend_of,
    letter_panels,
    new_grid,
)
from overfit_cli.studies.softmax_network.paper import Activation
from overfit_cli.studies.softmax_network.theory import CHANCE


def has_worst_drifts(data: Cells) -> bool:
    """Return whether largest drifts were looked for, at several widths."""
    cells = data.trained
    several = cells["m"].nunique() > 1
    return bool("worst_drift" in cells and cells["worst_drift"].notna().any() and several)


def draw_worst_drift(data: Cells, options: FigureOptions) -> Picture:
    """Draw the largest ‖H(W) − H(W̃)‖_F within R over R n against m, a panel for each σ and n.

    ReLU's dashed line is an upper bound, the others are lower ones; dotted lines are the constants
    of the text after Lemma 5.1, without their n^o(1).
    """
    if "worst_drift" not in data.trained:
        needs = "largest drifts, as in `overfit sweep softmax-perturbation`"
        raise UserError(f"The figure `worst-drift` needs {needs}.")
    cells = done_cells(data, ("activation", "m", "n", "sigma"))
    sigmas, sizes = sorted(cells["sigma"].unique()), sorted(cells["n"].unique())
    names = [name for name in CONSTANTS if (cells["activation"] == name).any()]
    figure, grid = new_grid(len(sizes), len(sigmas))
    for row, n in zip(grid, sizes, strict=True):
        for axes, sigma in zip(row, sigmas, strict=True):
            chosen = cells[(cells["n"] == n) & (cells["sigma"] == sigma)]
            _draw_means(axes, chosen)
            axes.set_title(rf"$\sigma = {sigma:g}$, $n = {n}$")
        _draw_constants(row, names)
    limits = [end for axes in grid.flat for end in axes.get_ylim()]
    widths = sorted(cells["m"].unique())
    for axes in grid.flat:
        axes.set_ylim(min(limits), max(limits))
        log_ticks(axes.yaxis, min(limits), max(limits))
        axes.set_xticks(widths, [str(width) for width in widths])
        axes.minorticks_off()
    letter_panels(grid.flat)
    for axes in grid[:, 0]:
        axes.set_ylabel(_LARGEST)
    for axes in grid[-1]:
        axes.set_xlabel("hidden units $m$")
    seeds = plural(cells["seed"].nunique(), "seed")
    figure.facts.append(
        f"Means of all {seeds}, those with 0 too, with 95 % intervals. R = {RADII[0]:g}. Softmax "
        "and exp by ascent over directions: at least so much. ReLU, dashed, by counting the units "
        "that can flip: at most so much; markers are open where m R < 10 log(n²/δ)."
    )
    figure.facts.append(_constants_in_words(names))
    extra: list[tuple[LineStyleType, str]] = [
        ("--", "at most (ReLU)"),
        ("-", "at least"),
    ]
    legend = [*legend_of(cells, extra), _CONSTANT]
    heading = f"$R$ = {RADII[0]:g}; means of {seeds}, bars: 95 % intervals"
    legend_below(figure, legend, columns=3, heading=heading)
    return figure


_CONSTANT = (Line2D([], [], **BOUND | {"linestyle": ":", "color": "0.4"}), "constant of the text")

_STATED: dict[Activation, str] = {"softmax": "n^o(1)", "exp": "3 n^o(1)", "relu": "2"}
"""The constants as the text has them."""


def _constants_in_words(names: Sequence[Activation]) -> str:
    stated = ", ".join(f"{_STATED[name]} for {NETWORKS[name].name}" for name in names)
    words = f"Dotted: the constant of R n in the text after Lemma 5.1, {stated}"
    if "softmax" in names or "exp" in names:
        words += (
            "; n^o(1), for which the lemma itself has e^(10B), is taken for 1, so that a number "
            "above the dotted line of its network doesn't contradict the lemma"
        )
    return f"{words}."


def _draw_constants(row: Sequence[matplotlib.axes.Axes], names: Sequence[Activation]) -> None:
    sides = dict(zip(CONSTANTS, ("top", "bottom", "center"), strict=True))  # 1, 3 and 2
    for name in names:
        for axes in row:
            look = BOUND | {"linestyle": ":", "color": NETWORKS[name].colour}
            axes.axhline(CONSTANTS[name], **look)
        row[-1].annotate(
            NETWORKS[name].name,
            (1.02, CONSTANTS[name]),
            xycoords=("axes fraction", "data"),
            va=sides[name],
            size=6,
            color=NETWORKS[name].colour,
            annotation_clip=False,
        )


def _draw_means(axes: matplotlib.axes.Axes, cells: pd.DataFrame) -> None:
    for activation, rows in cells.groupby("activation"):
        look = NETWORKS[str(activation)]
        widths = np.sort(rows["m"].unique()).astype(float)
        estimates = [
            mean_estimate(rows.loc[rows["m"] == m, "worst_drift"].astype(float)) for m in widths
        ]
        means = np.array([estimate.value for estimate in estimates])
        ends = np.array([(estimate.low, estimate.high) for estimate in estimates])
        low = np.maximum(ends[:, 0], means / 10)  # an interval with 0 has no end on this axis
        is_bound = activation == "relu"
        is_open = is_bound & (widths * RADII[0] < _least_units(rows["n"].iloc[0]))
        axes.plot(widths, means, "--" if is_bound else "-", color=look.colour, linewidth=1.0)
        axes.vlines(widths, low, ends[:, 1], colors=look.colour, linewidth=1.0)
        for width, mean, hollow in zip(widths, means, is_open, strict=True):
            face = "white" if hollow else look.colour
            axes.plot(width, mean, look.marker, markersize=3.5, color=look.colour, mfc=face)
    axes.set_xscale("log")
    axes.set_yscale("log")


def _least_units(n: float) -> float:
    """Return the least m R with which the probability in ReLU's quoted lemma is 1 − δ."""
    return float(10 * np.log(float(n) ** 2 / CHANCE))


_LARGEST = "largest\n$\\Vert H(W) - H(\\tilde W)\\Vert_F\\,/\\,(R\\,n)$"
