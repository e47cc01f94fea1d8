"""The heatmap over samples and width, with the contour of widths that suffice."""

from __future__ import annotations

import math

import matplotlib.figure
import numpy as np
from matplotlib.lines import Line2D

from overfit_cli.analysis.contour import contour
from overfit_cli.analysis.intervals import mean_estimate
from overfit_cli.figure import FigureData, FigureOptions
from overfit_cli.figures.heatmap import draw_heatmap
from overfit_cli.figures.panels import panels
from overfit_cli.figures.style import HIGHLIGHT
from overfit_cli.studies.softmax_network.convergence.widths import ENOUGH


def has_grid(data: FigureData) -> bool:
    """Return whether n and m vary, so that there is a diagram."""
    return bool((data.cells[["n", "m"]].nunique() > 1).all())


def draw_diagram(data: FigureData, options: FigureOptions) -> matplotlib.figure.Figure:
    """Draw the heatmap, and over n and m the fitted m ∝ n^p with p's interval in each panel.

    Below the line training takes more than twice the steps of endlessly many hidden units.

    Raises:
        UserError: as the heatmap does.
    """
    figure = draw_heatmap(data, options)
    if (options.x, options.y) != ("n", "m"):
        return figure
    for axes, part in zip(figure.axes, panels(data, options.by), strict=False):
        found = contour(part.data.cells, "m", "n", "steps_over_limit", ENOUGH)
        if found is None:
            continue
        at = np.log(found.middle.index.to_numpy(float))
        power = mean_estimate(found.powers)
        through = float(found.middle.mean() - power.value * at.mean())
        line = np.exp(through + power.value * at)
        axes.plot(np.exp(at), line, color=HIGHLIGHT, linewidth=1.2)
        axes.plot(np.exp(at), np.exp(found.middle), "o", color=HIGHLIGHT, markersize=2.5)
        words = f"$m \\propto n^{{{power.value:.2f}}}$"
        if math.isfinite(power.high - power.low):
            words += f"\n[{power.low:.2f}, {power.high:.2f}]"
        axes.legend([Line2D([], [], color=HIGHLIGHT)], [words], loc="upper left", fontsize=6)
    return figure
