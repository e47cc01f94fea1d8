"""Figures of the least H.

- `least-heads`: Theorem 1's conclusion and its condition against H, side by side.
- `least-margin`: the tangent kernel's margin against H, with the H that Lemma 15 requires.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.patheffects import withStroke

from overfit_cli.core.cells import Cells
from overfit_cli.core.errors import UserError
from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.text import plural
from overfit_cli.figures.axes import legend_below, log_ticks
from overfit_cli.figures.labels import tick_number
from overfit_cli.figures.lines import draw_lines
from overfit_cli.figures.picture import Picture, is_narrow, title_panels
from overfit_cli.figures.style import BOUND, COLUMN, MARKERS, PALETTE, Legend
from overfit_cli.stats.intervals import median_estimate

_WHITE = withStroke(linewidth=2, foreground="white")


def draw_least_heads(data: Cells, options: FigureOptions) -> Picture:
    """Draw the mean training loss over Theorem 1's bound, and the H that it requires over H.

    The H is that of the corrected version, d² times as large as in print.
    """
    cells = data.trained[data.trained["status"] == "done"]
    if "theorem1_bound" not in cells or cells["theorem1_bound"].isna().all():
        raise UserError("No cell here checks Theorem 1; `overfit sweep heads-least` does so.")
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
    narrow = is_narrow()
    figure = Picture(1.8 * COLUMN, 4.8 if narrow else 2.8)
    both = figure.subplots(2, 1) if narrow else figure.subplots(1, 2)
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
        axes.axhline(1, **BOUND)
        axes.set_xlabel("attention heads $H$")
        axes.set_ylabel(label)
    title_panels(both.tolist(), ["conclusion", "condition"])
    both[0].set_ylim(bottom=0)
    both[1].set_yscale("log")
    log_ticks(both[1].yaxis, *both[1].get_ylim())
    seeds = plural(cells["seed"].nunique(), "seed")
    legend.append((Line2D([], [], color="0.3"), f"median of {seeds}"))
    legend.append((Patch(color="0.5", alpha=0.3, linewidth=0), "least to greatest"))
    legend.append((Line2D([], [], **BOUND), "met below"))
    legend_below(figure, legend, columns=len(legend))
    figure.facts.append(
        "Theorem 1: mean training loss over its bound, and the heads that it requires over H. "
        f"Lines: medians of {seeds}; band: from the least of them to the greatest."
    )
    return figure


def draw_least_margin(data: Cells, options: FigureOptions) -> Picture:
    """Draw lines as usual, and the H that Lemma 15 requires: its median with a 95 % interval."""
    figure = draw_lines(data, options)
    required = data.trained.get("tangent_heads", pd.Series(dtype=float)).astype(float)
    by_seed = required.groupby(data.trained["seed"]).median().dropna()
    if by_seed.empty or options.x != "heads":
        return figure
    estimate = median_estimate(by_seed)
    low, high, band = estimate.low, estimate.high, "its 95 % interval"
    if not estimate.bounded:
        low, high, band = by_seed.min(), by_seed.max(), "the least and the greatest"
    name = f"Lemma 15: $H = 10^{{{estimate.value:.1f}}}$"
    for axes in figure.axes:
        axes.set_xlim(right=max(axes.get_xlim()[1], 3 * 10**high))
        axes.axvspan(10**low, 10**high, color="black", alpha=0.2, linewidth=0)
        axes.axvline(10**estimate.value, **BOUND)
        text = axes.annotate(
            name,
            (10**estimate.value, 0.08),  # below the curve
            xycoords=axes.get_xaxis_transform(),
            xytext=(-3, 0),
            textcoords="offset points",
            rotation=90,
            ha="right",
            va="bottom",
            fontsize=10,
        )
        text.set_path_effects([_WHITE])
    figure.facts.append(
        f"Vertical line: the H that Lemma 15 requires, 10^{estimate.value:.1f}, the median of "
        f"{plural(len(by_seed), 'seed')}, with {band}."
    )
    return figure
