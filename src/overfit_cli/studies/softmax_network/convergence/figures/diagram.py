"""The heatmap over samples and width, with the contour of widths that suffice."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.lines import Line2D

from overfit_cli.analysis.contour import contour
from overfit_cli.analysis.intervals import mean_estimate
from overfit_cli.figure import FigureData, FigureOptions
from overfit_cli.figures.heatmap import draw_heatmap
from overfit_cli.figures.inputs import measured, with_numbers
from overfit_cli.figures.panels import panels
from overfit_cli.figures.picture import Picture
from overfit_cli.figures.style import HIGHLIGHT, plain
from overfit_cli.studies.softmax_network.convergence.widths import ENOUGH, with_slow_cells
from overfit_cli.words import plural

STATED = 2
"""The power of n in the width that Table 1 states for each of the three networks, but for λ."""


def has_grid(data: FigureData) -> bool:
    """Return whether n and m vary, so that there is a diagram."""
    return bool((data.cells[["n", "m"]].nunique() > 1).all())


def draw_diagram(data: FigureData, options: FigureOptions) -> Picture:
    """Draw the heatmap, and over n and m a fitted contour m ∝ n^p with p's interval in each panel.

    For steps it is that of the widths that suffice: below it training takes more than twice the
    steps of infinitely many hidden units. For another column it is where that has the threshold, or
    the median of what was measured.

    Raises:
        UserError: as the heatmap does.
    """
    figure = draw_heatmap(data, options)
    if (options.x, options.y) != ("n", "m"):
        return figure
    value, at_value = _contour_of(data, options)
    for axes, part in zip(figure.axes, panels(data, options.by), strict=False):
        cells = part.data.cells
        if value == "steps_over_limit":
            cells = with_slow_cells(cells)
        found = contour(cells, "m", "n", value, at_value)
        if found is None:
            continue
        at = np.log(found.middle.index.to_numpy(float))
        power = mean_estimate(found.powers)
        through = float(found.middle.mean() - power.value * at.mean())
        line = np.exp(through + power.value * at)
        axes.plot(np.exp(at), line, color=HIGHLIGHT, linewidth=1.2)
        axes.plot(np.exp(at), np.exp(found.middle), "o", color=HIGHLIGHT, markersize=2.5)
        stated = np.exp(found.middle.mean() + STATED * (at - at.mean()))
        axes.plot(np.exp(at), stated, ":", color=HIGHLIGHT, linewidth=1.2)
        words = (
            f"{value.replace('_', ' ')} = {plain(at_value)}\n$m \\propto n^{{{power.value:.2f}}}$"
        )
        if math.isfinite(power.high - power.low):
            words += f" [{power.low:.2f}, {power.high:.2f}]"
        if found.left_out:
            words += f"\n{plural(found.left_out, 'seed')} left out"
        words = words.replace("-", "−")
        lines = [Line2D([], [], color=HIGHLIGHT, linestyle=one) for one in ("-", ":")]
        texts = [words, f"Table 1: $n^{{{STATED}}}$"]
        axes.legend(lines, texts, loc="upper left", fontsize=6)
    return figure


def _contour_of(data: FigureData, options: FigureOptions) -> tuple[str, float]:
    """The column whose contour is drawn, and its value there."""
    if options.value in (None, "steps_to_epsilon", "steps_over_limit"):
        return "steps_over_limit", ENOUGH
    value, _ = measured(data, options.value)
    if options.threshold is not None:
        return value, options.threshold
    numbers = with_numbers(data, value)[value].astype(float)
    return value, float(f"{numbers[numbers > 0].median():.2g}")
