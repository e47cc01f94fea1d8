"""Figures of rates at the initial weights: the slowest one, and steps that the kernel predicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.typing import ColorType

from overfit_cli.core.arrays import Floats
from overfit_cli.core.cells import Cells
from overfit_cli.core.errors import UserError
from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.parameters import describe
from overfit_cli.core.text import plural
from overfit_cli.figures.axes import legend_below, log_ticks
from overfit_cli.figures.inputs import require_numbers
from overfit_cli.figures.labels import axis_label, setting, short_setting
from overfit_cli.figures.picture import Picture, new_panels, title_panels
from overfit_cli.figures.style import BOUND, COLUMN, MARKERS, PAGE, Legend, value_colours
from overfit_cli.stats.intervals import MIDDLE_HALF, middle
from overfit_cli.studies.attention_kernel.regression.parameters import KernelRegressionParameters

_THEOREMS = {"value": ("Theorem 1", r"\alpha"), "all": ("Theorem 2", r"\beta")}

_PROVED = 0.25
"""The share of Theorem 2's rate that its proof ends with."""


def draw_eigenvalue(data: Cells, _: FigureOptions) -> Picture:
    """Draw the slowest rate over the paper's against the heads, and below it over its bound 2/H."""
    cells = require_numbers(data, "rate_margin")
    trained = cells["trained"].unique()
    if len(trained) > 1 or trained[0] not in _THEOREMS:
        raise UserError("The slowest rate is drawn of one theorem: trained=value or trained=all.")
    theorem, rate = _THEOREMS[trained[0]]
    sizes, widths = sorted(cells["d"].unique()), sorted(cells["d_h"].unique())
    looks = list(zip(value_colours(data.study, "d_h", widths), MARKERS, strict=False))
    figure = Picture(COLUMN if len(sizes) == 1 else PAGE, 3.9, least=1.5 * len(sizes))
    grid = figure.subplots(
        2, len(sizes), sharex=True, sharey="row", squeeze=False, height_ratios=(1.6, 1)
    )
    heads = np.sort(cells["heads"].unique()).astype(float)
    for (upper, lower), size in zip(grid.T, sizes, strict=True):
        _draw_bounds(upper, lower, heads, proof=theorem == "Theorem 2")
        for index, (width, (colour, marker)) in enumerate(zip(widths, looks, strict=True)):
            chosen = cells[(cells["d"] == size) & (cells["d_h"] == width)]
            beside = 1.05 ** (index - (len(widths) - 1) / 2)  # on a slope it would look higher
            _draw_margins(upper, chosen, 1.0, 1.0 + 0 * heads, colour, marker)
            _draw_margins(lower, chosen, beside, heads / 2, colour, marker)
        lower.set_xticks(heads, [f"{head:g}" for head in heads])
        lower.minorticks_off()
        lower.set_xlabel(axis_label(data.schema, "heads"))
    log_ticks(grid[0, 0].yaxis, *grid[0, 0].get_ylim())
    grid[0, 0].set_ylabel(f"slowest rate over {theorem}'s\n$2\\lambda_{{\\min}}(K)/{rate}$")
    grid[1, 0].set_ylabel("the same\nover $2/H$")
    if len(sizes) > 1:
        title_panels(list(grid[0]), [setting(data.schema, "d", size) for size in sizes])
    seeds = plural(cells["seed"].nunique(), "seed")
    figure.facts.append(
        f"Twice the smallest eigenvalue of K = Σ_h ‖W_O,h‖² B_h B_hᵀ over {theorem}'s rate, at the "
        f"initial weights: medians of {seeds}, bands: the middle half. Where it is below 1 that "
        "rate is too fast. In the lower row it is over 2/H, which it cannot be above in the mean; "
        "markers stand aside there, so that none hides another. d: width of a head, D: features."
    )
    if theorem == "Theorem 2":
        figure.facts.append("Dotted: the rate that the proof ends with, β/4.")
    legend: Legend = [
        (Line2D([], [], color=colour, marker=marker), short_setting(data.schema, "d_h", width))
        for width, (colour, marker) in zip(widths, looks, strict=True)
    ]
    legend.append((Line2D([], [], color="0.4"), "$2/H$"))
    legend.append((Line2D([], [], **BOUND), f"{theorem}'s rate ${rate}$; too fast below"))
    if theorem == "Theorem 2":
        legend.append((Line2D([], [], **BOUND | {"linestyle": ":"}), "its proof's, $\\beta/4$"))
    heading = f"medians of {seeds}, bands: the middle half"
    legend_below(figure, legend, 2 if len(sizes) == 1 else 5, heading)
    return figure


def _draw_bounds(upper: Axes, lower: Axes, heads: Floats, *, proof: bool) -> None:
    upper.set(xscale="log", yscale="log")
    upper.plot(heads, 2 / heads, color="0.4", linewidth=0.8, zorder=1)
    lower.axhline(1.0, color="0.4", linewidth=0.8, zorder=1)
    upper.axhline(1.0, **BOUND)
    if proof:
        upper.axhline(_PROVED, **BOUND | {"linestyle": ":"})


def _draw_margins(
    axes: Axes, cells: pd.DataFrame, beside: float, factor: Floats, colour: ColorType, marker: str
) -> None:
    table = cells.pivot(index="heads", columns="seed", values="rate_margin")
    medians, low, high = MIDDLE_HALF.summarise(table.to_numpy(float), (0.0, np.inf))
    across = table.index.to_numpy(float) * beside
    factor = factor[: len(across)]
    axes.plot(across, medians * factor, marker=marker, color=colour, linewidth=0.9, markersize=3)
    axes.fill_between(across, low * factor, high * factor, color=colour, alpha=0.2, linewidth=0)


def _write_counts(axes: Axes, counts: Sequence[tuple[float, float, str]], most: float) -> None:
    following = [*(height for _, height, _ in counts[1:]), 0.0]
    for (rate, height, text), following_height in zip(counts, following, strict=True):
        below = 2 * height > most or height < 1.8 * following_height
        axes.annotate(
            text,
            (rate, height),
            (-3, -7) if below else (3, 3),
            textcoords="offset points",
            ha="right" if below else "left",
            size=6,
        )


def draw_tangent_steps(data: Cells, _: FigureOptions) -> Picture:
    """Draw steps to a millionth of the loss against the step size, with those predicted."""
    require_numbers(data, "steps_to_millionth")
    cells = data.trained
    figure, [axes] = new_panels(1, height=3.6)
    axes.set(xscale="log", yscale="log")
    kernels = [
        name
        for name in describe(KernelRegressionParameters)["kernel"].choices
        if (cells["kernel"] == name).any()
    ]
    colours = value_colours(data.study, "kernel", kernels)
    legend: Legend = []
    most = float(cells["training_steps"].max())
    for row, (kernel, colour) in enumerate(zip(kernels, colours, strict=True)):
        chosen = cells[cells["kernel"] == kernel]
        _draw_arrivals(axes, chosen, colour, MARKERS[row], 0.97 - _ROW * row)
        words = short_setting(data.schema, "kernel", kernel)
        legend.append((Line2D([], [], color=colour, marker=MARKERS[row], markersize=3.5), words))
    axes.axhline(most, color="0.4", linewidth=0.8, linestyle=":")
    axes.set_xlabel(axis_label(data.schema, "learning_rate"))
    axes.set_ylabel("steps to a millionth of the first loss")
    axes.set_xlim(left=axes.get_xlim()[0] / 3)  # room for a count
    log_ticks(axes.xaxis, *axes.get_xlim())
    _set_apart(axes, 1 - _ROW * len(kernels) - 0.03)
    seeds = plural(cells["seed"].nunique(), "seed")
    figure.facts.append(
        f"Medians of {seeds}, bars: the middle half, up to the dotted line at most; a seed that "
        f"diverges or needs more than {most:g} steps counts as slower than all others. Markers are "
        "open where half of the seeds or fewer arrive, at the median of those; numbers are the "
        "seeds that arrive, where not all do. Pale: steps that the tangent kernel at the start "
        "predicts. In the strip at the top: step sizes at which every seed diverged."
    )
    grey: dict[str, Any] = {"color": "0.4"}
    legend += [
        (Line2D([], [], **grey, linestyle="--", linewidth=3, alpha=0.4), "predicted"),
        (Line2D([], [], **grey, linestyle=":"), f"{most:g} steps: the end"),
        (Line2D([], [], **grey, linestyle="", marker="o", mfc="white"), "half or fewer arrive"),
        (Line2D([], [], **grey, linestyle="", marker="$\\uparrow$"), "target not reached"),
        (Line2D([], [], **grey, linestyle="", marker="x"), "every seed diverged"),
    ]
    legend_below(figure, legend, columns=2, heading=f"medians of {seeds}")
    return figure


_ROW = 0.05
"""The share of the axes' height that a kernel's row of crosses takes."""


def _set_apart(axes: Axes, share: float) -> None:
    low, high = axes.get_ylim()
    low /= 2
    log_ticks(axes.yaxis, low, high)
    axes.set_ylim(low, low * (high / low) ** (1 / share))
    axes.set_yticks([tick for tick in axes.get_yticks() if tick < high])
    axes.minorticks_off()
    axes.hlines(share, 0, 1, color="0.4", linewidth=0.8, transform=axes.transAxes)
    words = {"size": "small", "va": "bottom", "transform": axes.transAxes}
    axes.text(0.015, share + 0.01, "diverged", words)


def _draw_arrivals(
    axes: Axes, cells: pd.DataFrame, colour: ColorType, marker: str, height: float
) -> None:
    steps = cells["steps_to_millionth"].astype(float).where(cells["status"] == "done")
    rates = np.sort(cells["learning_rate"].unique())
    most = float(cells["training_steps"].max())
    filled, counts = [], list[tuple[float, float, str]]()
    for rate in rates:
        here = cells["learning_rate"] == rate
        of_rate = steps[here]
        arrive, count = of_rate.dropna(), len(of_rate)
        if arrive.empty:
            diverged = bool((cells.loc[here, "reason"] == "diverged").all())
            across = axes.get_xaxis_transform() if diverged else axes.transData
            place = height if diverged else most
            shape = "x" if diverged else "$\\uparrow$"
            axes.plot(rate, place, marker=shape, color=colour, markersize=4, transform=across)
            continue
        median = middle(of_rate.fillna(np.inf))
        is_open = not np.isfinite(median)
        median = float(arrive.median()) if is_open else median
        filled += [] if is_open else [(rate, median)]
        face = "white" if is_open else colour
        axes.plot(rate, median, marker, color=colour, mfc=face, markersize=3.5, zorder=3)
        if not is_open:
            low, high = np.quantile(of_rate.fillna(10 * most), [0.25, 0.75])
            axes.vlines(rate, low, min(high, most), color=colour, linewidth=0.7, alpha=0.7)
        counts.append((rate, median, f"{len(arrive)}/{count}" if len(arrive) < count else ""))
    _write_counts(axes, counts, most)
    axes.plot(*np.array(filled).reshape(-1, 2).T, color=colour, linewidth=1.0)
    expected = cells["tangent_steps"].astype(float).fillna(np.inf).groupby(cells["learning_rate"])
    medians = expected.apply(middle)
    medians = medians[np.isfinite(medians)]
    axes.plot(medians.index, medians, "--", color=colour, linewidth=3, alpha=0.35, zorder=1.5)
