"""Table 1 of Cao et al. 2024 as it is measured: steps, sufficient widths and condition numbers."""

from __future__ import annotations

import matplotlib.axes
import numpy as np
import pandas as pd

from overfit_cli.core.figure import FigureData, FigureOptions
from overfit_cli.core.text import plural
from overfit_cli.figures.picture import Picture, styled
from overfit_cli.figures.style import legend_below
from overfit_cli.studies.softmax_network.convergence.widths import sufficient_widths, widest
from overfit_cli.studies.softmax_network.series import (
    done_cells,
    draw_series,
    legend_of,
    new_grid,
    say_how_averaged,
)

LABELS = {
    "steps_to_epsilon": "steps of the\nwidest networks",
    "width": "sufficient\nwidth $m$",
    "kappa": r"condition number $\kappa$" "\nof the widest",
}
RULES = {
    "stability": r"$\eta = 1/(m\lambda_{\mathrm{max}})$",
    "paper": r"$\eta \propto \lambda/(mn^2)$",
}


@styled
def draw_table1(data: FigureData, options: FigureOptions) -> Picture:
    """Draw steps, sufficient width and κ against n, a column for each step rule.

    A width is sufficient from which on training takes at most twice the steps that infinitely many
    hidden units take. A seed without one within the sweep is counted in the panel, and not drawn.

    Raises:
        UserError: if another parameter varies, or no cell is done.
    """
    done_cells(data, ("activation", "m", "n", "step_rule"))
    rules = [rule for rule in RULES if (data.cells["step_rule"] == rule).any()]
    figure, grid = new_grid(len(LABELS), len(rules))
    for axes_of_rule, rule in zip(grid.T, rules, strict=True):
        own = data.cells[data.cells["step_rule"] == rule]
        wide, widths = widest(own), sufficient_widths(own)
        axes_of_rule[0].set_title(RULES[rule])
        draw_series(axes_of_rule[0], wide, "n", "steps_to_epsilon")
        draw_series(axes_of_rule[1], widths[np.isfinite(widths["width"])], "n", "width")
        _count_missing(axes_of_rule[1], widths)
        _guide(axes_of_rule[1], widths)
        draw_series(axes_of_rule[2], wide, "n", "kappa")
        axes_of_rule[-1].set_xlabel("training samples $n$")
    for axes, label in zip(grid[:, 0], LABELS.values(), strict=True):
        axes.set_ylabel(label)
    say_how_averaged(figure, data.cells)
    legend_below(figure, legend_of(data.cells, [(":", "$\\propto n^2$")]), columns=4)
    return figure


def _guide(axes: matplotlib.axes.Axes, widths: pd.DataFrame) -> None:
    """A line with the slope of the theorems' n² through the first of the widths."""
    found = widths[np.isfinite(widths["width"]) & (widths["width"] > 0)]
    if found["n"].nunique() < 2:
        return
    at = np.array(sorted(found["n"].unique()), dtype=float)
    start = float(found.loc[found["n"] == at[0], "width"].median())
    axes.plot(at, start * (at / at[0]) ** 2, ":", color="0.4", linewidth=0.8)


def _count_missing(axes: matplotlib.axes.Axes, widths: pd.DataFrame) -> None:
    """Say how many seeds have no sufficient width within the sweep, on either side of it."""
    beyond, below = (int((widths["width"] == end).sum()) for end in (np.inf, 0.0))
    words = [f"{plural(beyond, 'seed')}: no width of the sweep"] if beyond else []
    words += [f"{plural(below, 'seed')}: every width"] if below else []
    axes.text(0.03, 0.95, "\n".join(words), transform=axes.transAxes, va="top", size=6)
