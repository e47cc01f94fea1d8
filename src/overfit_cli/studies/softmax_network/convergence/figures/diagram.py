"""The heatmap over samples and width, with the contour of widths that suffice."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke

from overfit_cli.core.figure import FigureData, FigureOptions
from overfit_cli.core.text import plural
from overfit_cli.figures.axes import axis_label
from overfit_cli.figures.heatmap import draw_map
from overfit_cli.figures.inputs import measured, with_numbers
from overfit_cli.figures.panels import Panel
from overfit_cli.figures.picture import Picture, styled, title_panels
from overfit_cli.figures.style import HIGHLIGHT, Legend, plain
from overfit_cli.stats.boundaries import contour
from overfit_cli.stats.intervals import Estimate, mean_estimate
from overfit_cli.studies.softmax_network.convergence.widths import ENOUGH, with_slow_cells

STATED = 2
"""The power of n in the width that Table 1 states for each of the three networks, but for λ."""


def has_grid(data: FigureData) -> bool:
    """Return whether n and m vary, so that there is a diagram."""
    return bool((data.cells[["n", "m"]].nunique() > 1).all())


@styled
def draw_diagram(data: FigureData, options: FigureOptions) -> Picture:
    """Draw the heatmap, and over n and m a fitted contour m ∝ n^p with p's interval above it.

    For steps it is that of the widths that suffice: below it training takes more than twice the
    steps of infinitely many hidden units. For another column it is where that has the threshold, or
    the median of what was measured.

    Raises:
        UserError: as the heatmap does.
    """
    if (options.x, options.y) != ("n", "m") or data.less:
        return draw_map(data, options)
    value, level = _contour_of(data, options)
    figure = draw_map(data, options, lambda axes, part: _draw_contour(axes, part, value, level))
    titled = [axes for axes in figure.axes if axes.get_title(loc="left")]
    title_panels(titled, [axes.get_title(loc="left") for axes in titled])
    return figure


def _draw_contour(axes: Axes, part: Panel, value: str, level: float) -> Legend:
    """Draw the contour with its fit, and Table 1's power; put the fitted one in the title."""
    cells = part.data.cells
    if value == "steps_over_limit":
        cells = with_slow_cells(cells)
    found = contour(cells, "m", "n", value, level)
    if found is None:
        return []
    at = np.log(found.middle.index.to_numpy(float))
    power = mean_estimate(found.powers)
    outlined: dict[str, Any] = {
        "color": HIGHLIGHT,
        "path_effects": [withStroke(linewidth=2.4, foreground="white")],
    }
    axes.plot(np.exp(at), np.exp(found.middle), "o", color=HIGHLIGHT, markersize=2.5, zorder=3)
    middle = float(found.middle.mean())
    for exponent, dash in ((power.value, "-"), (STATED, ":")):
        line = np.exp(middle + exponent * (at - at.mean()))
        axes.plot(np.exp(at), line, linestyle=dash, **outlined)
    figure = axes.get_figure(root=True)
    if found.left_out and isinstance(figure, Picture):
        of = f"{part.title}: " if part.title else ""
        seeds = plural(found.left_out, "seed")
        figure.facts.append(f"Contour, {of}{seeds} left out, without a crossing on the grid.")
    axes.set_title(_title(part.title, power))
    label = axis_label(part.data.study, value)
    return [
        (
            Line2D([], [], linestyle="-", marker="o", markersize=2.5, **outlined),
            f"{label} = {plain(level)}, and its fit",
        ),
        (Line2D([], [], linestyle=":", **outlined), f"Table 1: $m \\propto n^{STATED}$"),
    ]


def _title(title: str, power: Estimate) -> str:
    """A panel's title: what it is of, and the power with its interval."""
    words = f"$m \\propto n^{{{power.value:.2f}}}$"
    if math.isfinite(power.high - power.low):
        words += f" [{power.low:.2f}, {power.high:.2f}]".replace("-", "−")
    return f"{title.partition(': ')[2] or title}: {words}" if title else words


def _contour_of(data: FigureData, options: FigureOptions) -> tuple[str, float]:
    """The column whose contour is drawn, and its value there."""
    if options.value in (None, "steps_to_epsilon", "steps_over_limit"):
        return "steps_over_limit", ENOUGH
    value, _ = measured(data, options.value)
    if options.threshold is not None:
        return value, options.threshold
    numbers = with_numbers(data, value)[value].astype(float)
    return value, float(f"{numbers[numbers > 0].median():.2g}")
