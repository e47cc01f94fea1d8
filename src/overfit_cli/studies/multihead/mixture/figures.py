"""The figure of Theorem 1's conclusion and of its condition against H, side by side."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D

from overfit_cli.core.errors import UserError
from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.study import FigureData
from overfit_cli.figures.labels import tick_number
from overfit_cli.figures.picture import Picture, styled
from overfit_cli.figures.style import COLUMN, PALETTE, THRESHOLD, Legend, legend_below, log_ticks

MARKERS = "os^Dvp*P"


@styled
def draw_least_heads(data: FigureData, options: FigureOptions) -> Picture:
    """Draw the mean training loss over Theorem 1's bound, and the H that it requires over H.

    Lines are medians over seeds, one for each step size, with a band of all seeds. The H is that of
    the corrected version, d² times as large as in print.

    Raises:
        UserError: if no cell was held to the theorem, or there are more step sizes than markers.
    """
    cells = data.cells[data.cells["status"] == "done"]
    if "theorem1_bound" not in cells or cells["theorem1_bound"].isna().all():
        raise UserError("No cell was held to Theorem 1 here; `overfit sweep heads-least` does so.")
    step_sizes = sorted(cells["learning_rate"].unique())
    if len(step_sizes) > len(MARKERS):
        raise UserError(f"There are {len(step_sizes)} step sizes here; {len(MARKERS)} fit.")
    heads = cells["heads"].astype(float)
    missing = cells["theorem1_heads"] + 2 * np.log10(cells["d"].astype(float)) - np.log10(heads)
    sides = {
        "mean training loss\nover Theorem 1's bound": cells["mean_train_loss"]
        / cells["theorem1_bound"],
        "heads that Theorem 1\nrequires, over $H$": 10**missing,
    }
    figure = Picture(1.8 * COLUMN, 2.8)
    both = figure.subplots(1, 2)
    legend: Legend = []
    for step_size, colour, marker in zip(step_sizes, PALETTE, MARKERS, strict=False):
        chosen = cells["learning_rate"] == step_size
        for axes, side in zip(both, sides.values(), strict=True):
            of_seeds = pd.Series(side[chosen], dtype=float).groupby(heads[chosen])
            middle, low, high = of_seeds.median(), of_seeds.min(), of_seeds.max()
            axes.plot(middle.index, middle, color=colour, marker=marker)
            axes.fill_between(middle.index, low, high, color=colour, alpha=0.2, linewidth=0)
        look = Line2D([], [], color=colour, marker=marker)
        legend.append((look, rf"$\eta$ = {tick_number(step_size)}"))
    for axes, label in zip(both, sides, strict=True):
        axes.set_xscale("log")
        log_ticks(axes.xaxis, float(heads.min()), float(heads.max()))
        axes.axhline(1, **THRESHOLD)
        axes.set_xlabel("attention heads $H$")
        axes.set_ylabel(label)
    both[0].set_ylim(bottom=0)
    both[1].set_yscale("log")
    log_ticks(both[1].yaxis, *both[1].get_ylim())
    legend.append((Line2D([], [], **THRESHOLD), "met below"))
    legend_below(figure, legend, columns=len(legend))
    figure.facts.append("Lines: medians over seeds; band: all seeds.")
    return figure
