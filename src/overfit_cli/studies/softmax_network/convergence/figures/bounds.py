"""The figure `bounds`: what is measured over each bound, seed by seed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator
from matplotlib.typing import ColorType

from overfit_cli.core.cells import Cells
from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.parameters import describe
from overfit_cli.core.text import plural
from overfit_cli.figures.axes import legend_below
from overfit_cli.figures.labels import power
from overfit_cli.figures.picture import Picture
from overfit_cli.figures.style import BOUND, COLUMN, Legend, value_colour
from overfit_cli.studies.softmax_network.convergence.claims.bounds import LARGEST_CONSTANT, log10_of
from overfit_cli.studies.softmax_network.convergence.claims.kernels import FARTHEST, SMALL
from overfit_cli.studies.softmax_network.convergence.parameters import SoftmaxConvergenceParameters
from overfit_cli.studies.softmax_network.figures import done_cells, letter_panels

_VARYING = ("outputs", "sigma")
_MARKERS = "o^sDv"


@dataclass(frozen=True)
class Bound:
    """A bound: the column of what is measured over it, and how the figure names it.

    Attributes:
        in_decades: whether the column has decades; else it has the ratio.
        has_exponential: whether the bound has a power of e^B, which claims take at B = 1 alone.
    """

    column: str
    name: str
    in_decades: bool = False
    has_exponential: bool = False
    most: float = 1.0
    needs_small_movement: bool = False

    def decades(self, cells: pd.DataFrame) -> pd.Series[float]:
        """Return the decades by which each cell is above the bound."""
        numbers = cells[self.column].astype(float)
        return numbers if self.in_decades else log10_of(numbers / self.most)


BOUNDS = (
    Bound("rate_ratio", "$\\Vert F-Y\\Vert^2$ over\nLemma E.2's rate"),
    Bound("drift_share", "$\\Vert H-H^*\\Vert_F$ over\n$R\\,n\\,d$"),
    Bound(
        "drift_over_bound",
        "the same over Lemma 5.1's\n$R\\,n\\,d\\,e^{10B}$",
        in_decades=True,
        has_exponential=True,
        needs_small_movement=True,
    ),
    Bound(
        "movement_over_bound",
        "movement over\nLemma 5.3's $D$",
        in_decades=True,
        has_exponential=True,
        needs_small_movement=True,
    ),
    Bound(
        "gradient_over_bound",
        "$\\max_r\\Vert\\Delta w_r\\Vert$ over\nLemma D.1's bound",
        in_decades=True,
        has_exponential=True,
        needs_small_movement=True,
    ),
    Bound(
        "gap_over_bound",
        f"worst test gap over\n{LARGEST_CONSTANT:g} times Theorem F.2's",
        has_exponential=True,
        most=LARGEST_CONSTANT,
    ),
)
"""In the order of the figure."""


def has_bounds(data: Cells) -> bool:
    """Return whether cells of the paper's network have what is measured over bounds."""
    cells = data.trained
    is_paper = (cells["activation"] == "softmax").all()
    is_paper &= (cells["initialisation"] == "symmetric").all()
    several = set(data.varying())
    return bool(is_paper and several and several <= {*_VARYING} and (cells["steps"] > 0).any())


def draw_bounds(data: Cells, options: FigureOptions) -> Picture:
    """Draw what is measured over each bound: a panel for each σ, a row for each bound.

    Bounds with a power of e^B are drawn at the σ of B = 1 alone, as claims take them there.
    """
    cells = done_cells(data, _VARYING)
    rows = {
        sigma: [bound for bound in BOUNDS if sigma == SMALL or not bound.has_exponential]
        for sigma in sorted(cells["sigma"].unique())
    }
    counts = [len(bounds) for bounds in rows.values()]
    height = 0.42 * sum(counts) + 0.35 * len(counts) + 0.8
    figure = Picture(1.45 * COLUMN, height, least=4.5)
    grid = figure.subplots(
        len(rows), 1, sharex=True, squeeze=False, gridspec_kw={"height_ratios": counts}
    )
    numbers = sorted(cells["outputs"].unique())
    info = describe(SoftmaxConvergenceParameters)["outputs"]
    looks = {
        outputs: (value_colour(info, int(outputs)) or "black", _MARKERS[index % len(_MARKERS)])
        for index, outputs in enumerate(numbers)
    }
    for axes, (sigma, bounds) in zip(grid[:, 0], rows.items(), strict=True):
        chosen = cells[cells["sigma"] == sigma]
        for row, bound in enumerate(bounds):
            for place, (outputs, (colour, marker)) in enumerate(looks.items()):
                middle = row + 0.6 * ((place + 0.5) / len(looks) - 0.5)
                of_outputs = chosen[chosen["outputs"] == outputs]
                _draw_seeds(axes, bound, of_outputs, middle, colour, marker)
        axes.set_yticks(range(len(bounds)), [bound.name for bound in bounds])
        axes.set_ylim(len(bounds) - 0.5, -0.5)
        axes.tick_params(axis="y", length=0)
        axes.axvline(0, **BOUND)
        axes.set_title(rf"$\sigma = {sigma:g}$")
    letter_panels(grid.flat)
    last: Axes = grid[-1, 0]
    last.set_xlabel("measured over the bound")
    last.xaxis.set_major_locator(MaxNLocator(integer=True))
    last.xaxis.set_major_formatter(FuncFormatter(lambda x, _: power(10**x) if x else "1"))
    seeds = plural(cells["seed"].nunique(), "seed")
    figure.facts.append(
        f"A marker for each of {seeds}: left of the dashed line it is within the bound. d is the "
        f"number of outputs. Bounds with a power of e^B are at σ = {SMALL:g}, where B = 1. Theorem "
        f"4.2's m and η are not met; Theorem F.2's O(·) is taken for {LARGEST_CONSTANT:g}. Markers "
        f"are open where weights move by {FARTHEST:g} or more, and a bound isn't for that."
    )
    legend: Legend = [
        (Line2D([], [], color=colour, marker=marker, linestyle=""), f"{outputs} outputs")
        for outputs, (colour, marker) in looks.items()
    ]
    legend.append((Line2D([], [], **BOUND), "the bound"))
    legend_below(figure, legend, columns=4, heading=f"a marker for each of {seeds}")
    return figure


def _draw_seeds(
    axes: Axes, bound: Bound, cells: pd.DataFrame, middle: float, colour: ColorType, marker: str
) -> None:
    decades = bound.decades(cells).to_numpy(float)
    heights = middle + np.linspace(-0.1, 0.1, len(cells))
    is_open = bound.needs_small_movement & (cells["movement"].to_numpy(float) >= FARTHEST)
    for hollow in (False, True):
        chosen = is_open == hollow
        axes.plot(
            decades[chosen],
            heights[chosen],
            marker,
            markersize=2.2,
            markeredgewidth=0.5,
            color=colour,
            mfc="none" if hollow else colour,
            alpha=1.0 if hollow else 0.6,
        )
