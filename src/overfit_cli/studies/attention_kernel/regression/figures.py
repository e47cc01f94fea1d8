"""Figures of the study: lines with long legend handles, and the seeds that end at a local minimum.

A short handle shows a dash and a dot of every pattern alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke

from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.study import AnyStudy, FigureData
from overfit_cli.core.text import plural
from overfit_cli.figures.cutoff import draw_sides
from overfit_cli.figures.inputs import require_numbers
from overfit_cli.figures.labels import axis_label
from overfit_cli.figures.lines import draw_lines as draw_plain_lines
from overfit_cli.figures.palette import MARKERS, value_colours
from overfit_cli.figures.panels import Panel, panels
from overfit_cli.figures.picture import Picture, styled, title_panels, with_settings
from overfit_cli.figures.style import COLUMN, Legend, legend_below
from overfit_cli.stats.intervals import share_estimate
from overfit_cli.studies.attention_kernel.parameters import KernelName
from overfit_cli.studies.attention_kernel.regression.theory import least_width

LONG_HANDLES: Mapping[str, Any] = {"legend.handlelength": 3.2}


def _with_long_handles(
    draw: Callable[[FigureData, FigureOptions], Picture],
    data: FigureData,
    options: FigureOptions,
) -> Picture:
    with with_settings(LONG_HANDLES):
        return draw(data, options)


def draw_lines(data: FigureData, options: FigureOptions) -> Picture:
    """Draw lines whose legend shows the whole pattern of a dash."""
    return _with_long_handles(draw_plain_lines, data, options)


def draw_ranks(data: FigureData, options: FigureOptions) -> Picture:
    """Draw where δ of softmax is above zero, with its five sizes; of several kernels it is chosen.

    The legend shows the patterns of the curves.
    """
    return _draw_sizes(data, options, "softmax")


def draw_ranks_of_gaussian(data: FigureData, options: FigureOptions) -> Picture:
    """Draw the same of the Gaussian."""
    return _draw_sizes(data, options, "gaussian")


def _draw_sizes(data: FigureData, options: FigureOptions, kernel: KernelName) -> Picture:
    chosen, several = data, data.cells["kernel"].nunique() > 1
    if several:
        cells, planned = (
            frame[frame["kernel"] == kernel] if "kernel" in frame else frame
            for frame in (data.cells, data.planned)
        )
        chosen = replace(data, cells=cells, planned=planned)
    is_plain = (options.x, options.y) == ("d_h", "d") and not data.less

    def overlay(axes: Axes, part: Panel) -> Legend:
        return _draw_fifth_size(axes, part.data.cells, kernel) if is_plain else []

    figure = _with_long_handles(styled(partial(draw_sides, overlay=overlay)), chosen, options)
    if several:
        figure.facts.append(f"Cells of kernel={kernel} alone.")
    if is_plain:
        figure.facts.append(
            f"Black line, the fifth size: (M − 1)·d = M·{_FIFTH[kernel]}, M being the fewest "
            "samples with M·n > D tokens, up to N."
        )
    return figure


_FIFTH: Mapping[KernelName, str] = {"softmax": "n", "gaussian": "(n − 1)"}
"""What stands beside M on the right of the fifth size."""


def _draw_fifth_size(axes: Axes, cells: pd.DataFrame, kernel: KernelName) -> Legend:
    """Draw (M − 1) d = M n, steps in D: M is the fewest samples with more tokens than D.

    To the left of the line and below it δ is 0. Where several N or n share a panel nothing is
    drawn.
    """
    if len(sizes := cells[["n", "tokens"]].drop_duplicates()) != 1:
        return []
    samples, tokens = (int(size) for size in sizes.iloc[0])
    (left, right), black = axes.get_xlim(), "0.1"
    corners = [(right, float(tokens))]  # below D = n no d is large enough
    for fewest in range(2, samples + 1):
        least = least_width(kernel == "softmax", fewest, tokens)
        corners += [(least, (fewest - 1) * tokens), (least, fewest * tokens)]
    corners.append((left, float(samples * tokens)))  # from D = N n on every d is
    white = withStroke(linewidth=2.4, foreground="white")
    line = Line2D(*zip(*corners, strict=True), color=black, path_effects=[white])
    axes.add_line(line)
    common = _FIFTH[kernel].replace("−", "-")
    text = rf"$(M - 1) \cdot d = M \cdot {common}$, least $M$ with $M \cdot n > D$"
    return [(Line2D([], [], color=black), text)]


@styled
def draw_minima(data: FigureData, _: FigureOptions) -> Picture:
    """Draw the share of seeds on which some token ends at a local minimum, a panel per target.

    Tokens of a sample share an extremum, so that seeds are counted, at any step size. Bars are
    exact 95 % intervals.

    Raises:
        UserError: where no cell has a number.
    """
    numbers = require_numbers(data, "local_minima")
    cells = numbers[numbers["local_minima"].notna()]
    parts = panels(replace(data, cells=cells), "target")
    figure = Picture(COLUMN, 1.5 * len(parts) + 1.3)
    grid = figure.subplots(len(parts), 1, sharex=True, sharey=True, squeeze=False)
    column = list(grid[:, 0])
    legend: Legend = []
    for axes, part in zip(column, parts, strict=True):
        legend = _draw_shares(axes, part.data.cells, data.study)
        axes.set_ylabel("share of seeds\nwith a local minimum")
    column[-1].set_xlabel(axis_label(data.study, "d_h"))
    if len(parts) > 1:
        title_panels(column, [part.title for part in parts])
    column[0].set_ylim(bottom=-0.02)
    figure.facts.append(
        "Seeds on which some token ends at a local minimum at some step size; bars: exact 95 % "
        "intervals."
    )
    seeds = plural(cells["seed"].nunique(), "seed")
    heading = f"of {seeds} each; bars: exact 95 % intervals"
    legend_below(figure, legend, columns=1, heading=heading)
    return figure


def _draw_shares(axes: Axes, cells: pd.DataFrame, study: AnyStudy) -> Legend:
    """Draw the share of seeds at a minimum against d, points for each n; return their legend."""
    widths = sorted(cells["d_h"].unique())
    legend: Legend = []
    sizes = sorted(cells["tokens"].unique())
    colours = value_colours(study, "tokens", sizes)
    for index, (tokens, colour) in enumerate(zip(sizes, colours, strict=True)):
        group = cells[cells["tokens"] == tokens]
        hits = (group["local_minima"] > 0).groupby([group["d_h"], group["seed"]]).any()
        counts = hits.groupby("d_h").agg(["sum", "size"])
        shares = [share_estimate(int(row["sum"]), int(row["size"])) for _, row in counts.iterrows()]
        artist = axes.errorbar(
            [widths.index(width) + 0.14 * (index - 1) for width in counts.index],
            [share.value for share in shares],
            [[s.value - s.low for s in shares], [s.high - s.value for s in shares]],
            fmt=MARKERS[index % len(MARKERS)],
            color=colour,
            capsize=2,
            linewidth=1,
        )
        legend.append((artist, f"$n$ = {tokens}; none possible from $d$ = {tokens - 1} on"))
    axes.set_xticks(range(len(widths)), [f"{width:g}" for width in widths])
    return legend
