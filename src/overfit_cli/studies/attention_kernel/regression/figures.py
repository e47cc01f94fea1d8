"""Figures of the study: lines with long legend handles, and the seeds that end at a local minimum.

A short handle shows a dash and a dot of every pattern alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.study import FigureData
from overfit_cli.figures.cutoff import draw_cutoff
from overfit_cli.figures.inputs import require_numbers
from overfit_cli.figures.lines import MARKERS
from overfit_cli.figures.lines import draw_lines as draw_plain_lines
from overfit_cli.figures.picture import Picture, new_figure, styled, with_settings
from overfit_cli.figures.style import PALETTE, Legend, legend_below
from overfit_cli.stats.intervals import share_estimate

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
    """Draw the sides of the threshold, with curves whose patterns the legend shows."""
    return _with_long_handles(draw_cutoff, data, options)


@styled
def draw_minima(data: FigureData, _: FigureOptions) -> Picture:
    """Draw the share of seeds on which some token ends at a local minimum, at any step size.

    Tokens of a sample share an extremum, so that seeds are counted. Bars are exact 95 % intervals.

    Raises:
        UserError: where no cell has a number.
    """
    figure, axes = new_figure(height=2.8)
    numbers = require_numbers(data, "local_minima")
    cells = numbers[numbers["local_minima"].notna()]
    widths = sorted(cells["d_h"].unique())
    legend: Legend = []
    for index, tokens in enumerate(sorted(cells["tokens"].unique())):
        group = cells[cells["tokens"] == tokens]
        hits = (group["local_minima"] > 0).groupby([group["d_h"], group["seed"]]).any()
        counts = hits.groupby("d_h").agg(["sum", "size"])
        shares = [share_estimate(int(row["sum"]), int(row["size"])) for _, row in counts.iterrows()]
        artist = axes.errorbar(
            [widths.index(width) + 0.14 * (index - 1) for width in counts.index],
            [share.value for share in shares],
            [[s.value - s.low for s in shares], [s.high - s.value for s in shares]],
            fmt=MARKERS[index % len(MARKERS)],
            color=PALETTE[index % len(PALETTE)],
            capsize=2,
            linewidth=1,
        )
        legend.append((artist, f"$n$ = {tokens}; none possible from $d$ = {tokens - 1} on"))
    axes.set_xticks(range(len(widths)), [f"{width:g}" for width in widths])
    axes.set(xlabel="width of a head $d$", ylabel="share of seeds with a local minimum")
    axes.set_ylim(bottom=-0.02)
    figure.facts.append(
        "Seeds on which some token ends at a local minimum at some step size; bars: exact 95 % "
        "intervals."
    )
    legend_below(figure, legend, columns=1)
    return figure
