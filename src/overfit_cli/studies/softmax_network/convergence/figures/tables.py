"""Figures after Table 1, and of the tangent kernel's eigenvalues.

- `heatmap`: over samples and width, with the contour of widths that suffice.
- `table1`: Table 1 of Cao et al. 2024 as measured: steps, sufficient widths, condition numbers.
- `lambda`: steps against λ or κ, and over Table 1's, or sufficient widths, against λ.
- `eigenvalues`: the smallest eigenvalues of the tangent kernel against width and dimension.
"""

from __future__ import annotations

import math
from typing import Any

import matplotlib.axes
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke

from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.study import FigureData
from overfit_cli.core.text import plural
from overfit_cli.figures.heatmap import draw_map
from overfit_cli.figures.inputs import measured_column, require_numbers
from overfit_cli.figures.labels import axis_label, tick_number
from overfit_cli.figures.panels import Panel
from overfit_cli.figures.picture import Picture, styled, title_panels
from overfit_cli.figures.style import HIGHLIGHT, Legend, colours_of_map, legend_below, log_ticks
from overfit_cli.stats.boundaries import contour
from overfit_cli.stats.intervals import Estimate, mean_estimate, median_estimate
from overfit_cli.studies.softmax_network.convergence.widths import (
    ENOUGH,
    by_data,
    keep_slow_cells,
    sufficient_widths,
    table1_steps,
    widest,
)
from overfit_cli.studies.softmax_network.figures import (
    NETWORKS,
    done_cells,
    draw_series,
    legend_of,
    new_grid,
    say_how_averaged,
)
from overfit_cli.studies.softmax_network.paper import NAMES

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
        cells = keep_slow_cells(cells)
    fitted = contour(cells, "m", "n", value, level)
    if fitted is None:
        return []
    logs = np.log(fitted.middle.index.to_numpy(float))
    power = mean_estimate(fitted.powers)
    outlined: dict[str, Any] = {
        "color": HIGHLIGHT,
        "path_effects": [withStroke(linewidth=2.4, foreground="white")],
    }
    axes.plot(np.exp(logs), np.exp(fitted.middle), "o", color=HIGHLIGHT, markersize=2.5, zorder=3)
    middle = float(fitted.middle.mean())
    for exponent, dash in ((power.value, "-"), (STATED, ":")):
        line = np.exp(middle + exponent * (logs - logs.mean()))
        axes.plot(np.exp(logs), line, linestyle=dash, **outlined)
    figure = axes.get_figure(root=True)
    if fitted.left_out and isinstance(figure, Picture):
        panel = f"{part.title}: " if part.title else ""
        seeds = plural(fitted.left_out, "seed")
        figure.facts.append(f"Contour, {panel}{seeds} left out, without a crossing on the grid.")
    axes.set_title(_title(part.title, power))
    label = axis_label(part.data.study, value)
    return [
        (
            Line2D([], [], linestyle="-", marker="o", markersize=2.5, **outlined),
            f"{label} = {tick_number(level)}, and its fit",
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
    value, _ = measured_column(data, options.value)
    if options.threshold is not None:
        return value, options.threshold
    numbers = require_numbers(data, value)[value].astype(float)
    return value, float(f"{numbers[numbers > 0].median():.2g}")


def has_dimensions(data: FigureData) -> bool:
    """Return whether m and d vary."""
    return bool((data.cells[["m", "d"]].nunique() > 1).all())


@styled
def draw_eigenvalues(data: FigureData, options: FigureOptions) -> Picture:
    """Draw λ_min of the Gram matrix at the start against n/m, a line for each d.

    A column for each activation; the dashed lines are those of infinitely many hidden units.

    Raises:
        UserError: if another parameter varies, or no cell is there.
    """
    done_cells(data, ("activation", "m", "n", "d"))
    cells = data.cells.assign(ratio=data.cells["n"] / data.cells["m"])
    names = [activation for activation in NAMES if (cells["activation"] == activation).any()]
    dimensions = sorted(cells["d"].unique())
    shades = colours_of_map(np.linspace(0, 0.9, len(dimensions)).tolist())
    figure, grid = new_grid(1, len(names))
    for axes, name in zip(grid[0], names, strict=True):
        for d, colour in zip(dimensions, shades, strict=True):
            chosen = cells[(cells["activation"] == name) & (cells["d"] == d)]
            chosen = chosen[chosen["lambda_start"] > 0]
            middle = chosen.groupby("ratio")["lambda_start"].median()
            axes.plot(middle.index, middle, "o-", color=colour, markersize=2.5)
            if len(chosen):
                axes.axhline(
                    float(chosen["lambda_limit"].median()),
                    color=colour,
                    linestyle="--",
                    linewidth=0.7,
                )
        axes.set_title(NAMES[name])
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("samples over hidden units $n/m$")
    grid[0, 0].set_ylabel(r"$\lambda_{\mathrm{min}}(H^*)$")
    legend: Legend = [
        (Line2D([], [], color=colour, marker="o", markersize=2.5), f"$d$ = {d}")
        for d, colour in zip(dimensions, shades, strict=True)
    ]
    legend.append((Line2D([], [], color="0.4", linestyle="--"), r"$m = \infty$"))
    legend_below(figure, legend, columns=7)
    return figure


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
        chosen = data.cells[data.cells["step_rule"] == rule]
        wide, widths = widest(chosen), sufficient_widths(chosen)
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
    finite = widths[np.isfinite(widths["width"]) & (widths["width"] > 0)]
    if finite["n"].nunique() < 2:
        return
    ns = np.array(sorted(finite["n"].unique()), dtype=float)
    start = float(finite.loc[finite["n"] == ns[0], "width"].median())
    axes.plot(ns, start * (ns / ns[0]) ** 2, ":", color="0.4", linewidth=0.8)


def _count_missing(axes: matplotlib.axes.Axes, widths: pd.DataFrame) -> None:
    """Say how many seeds have no sufficient width within the sweep, on either side of it."""
    above, below = (int((widths["width"] == end).sum()) for end in (np.inf, 0.0))
    words = [f"{plural(above, 'seed')}: no width of the sweep"] if above else []
    words += [f"{plural(below, 'seed')}: every width"] if below else []
    axes.text(0.03, 0.95, "\n".join(words), transform=axes.transAxes, va="top", size=6)


def has_eigenvalues(data: FigureData) -> bool:
    """Return whether several settings of the networks and their data are there."""
    return bool(data.cells.groupby(["activation", "data", "d", "n"]).ngroups >= 6)


_MARKS = {"sphere": "o", "ball": "s", "digits": "^"}


@styled
def draw_lambda(data: FigureData, options: FigureOptions) -> Picture:
    """Draw steps and widths against eigenvalues, a point for each activation, data, d and n.

    At the paper's step size they are T against λ, and T λ²/(n² log(n/ε)) against λ. At 1/(m λ_max)
    they are T against κ, and the sufficient width against λ; a setting without one within the sweep
    on half of its seeds isn't drawn. Points are medians, bars their 95 % intervals. Larger markers
    have larger n.

    Raises:
        UserError: if another parameter varies, both step rules are there, or no cell is done.
    """
    cells = done_cells(data, ("activation", "m", "n", "d", "data"))
    wide = widest(cells)
    by_paper = bool((wide["step_rule"] == "paper").all())
    wide = wide.assign(steps_over_stated=wide["steps_to_epsilon"] / table1_steps(wide))
    figure, grid = new_grid(1, 2, one_y=False)
    left, right = grid[0]
    if by_paper:
        _draw_points(left, wide, "lambda_start", "steps_to_epsilon", -2)
        _draw_points(right, wide, "lambda_start", "steps_over_stated", 0)
        right.set_ylim(1, 10)
        log_ticks(right.yaxis, 1, 10)
        label = r"$T\lambda^2/(n^2\log(n/\epsilon))$"
    else:
        keys = ["activation", "data", "d", "n"]
        widths = by_data(data.cells, sufficient_widths)
        smallest = wide[[*keys, "seed", "lambda_start"]]
        widths = widths.merge(smallest, on=[*keys, "seed"])
        _draw_points(left, wide, "kappa", "steps_to_epsilon", 1)
        _draw_points(right, widths, "lambda_start", "width", -2)
        right.axvline(1, color="0.7", linewidth=0.8)
        below, above = (int((widths["width"] == end).sum()) for end in (0.0, np.inf))
        figure.facts.append(
            f"Of {len(widths)} widths {below} lie below the sweep and {above} beyond it. "
            "Table 1's λ < 1 is to the left of the grey line."
        )
        label = "sufficient width $m$"
    left.set_xlabel(r"smallest eigenvalue $\lambda$" if by_paper else r"condition number $\kappa$")
    left.set_ylabel("steps $T$ to $\\epsilon$")
    right.set_xlabel(r"smallest eigenvalue $\lambda$")
    right.set_ylabel(label)
    seeds = plural(cells["seed"].nunique(), "seed")
    figure.facts.append(
        f"A point for each activation, data, d and n: medians of {seeds}, bars 95 % intervals. "
        "Dotted lines have the power, and go through the middle of all points."
    )
    powers = r"$\lambda^{-2}$" if by_paper else r"$\kappa$ (left), $\lambda^{-2}$ (right)"
    names = [activation for activation in NAMES if (cells["activation"] == activation).any()]
    legend: Legend = [
        (Line2D([], [], color=NETWORKS[name].colour, linewidth=2.5), NAMES[name]) for name in names
    ]
    legend.append((Line2D([], [], color="0.4", linestyle=":"), rf"$\propto$ {powers}"))
    kinds = [kind for kind in _MARKS if (cells["data"] == kind).any()]
    legend += [
        (Line2D([], [], color="0.4", marker=_MARKS[kind], linestyle="", markersize=3), kind)
        for kind in kinds
    ]
    legend += [
        (
            Line2D([], [], color="0.4", marker="o", linestyle="", markersize=size),
            f"$n = {n}$",
        )
        for n, size in _sizes(cells).items()
    ]
    legend_below(figure, legend, columns=5)
    return figure


def _sizes(cells: pd.DataFrame) -> dict[int, float]:
    """The size of a marker for each n."""
    sizes = sorted(cells["n"].unique())
    return {
        int(n): float(size) for n, size in zip(sizes, np.linspace(2, 6, len(sizes)), strict=True)
    }


def _draw_points(
    axes: matplotlib.axes.Axes, cells: pd.DataFrame, x: str, value: str, power: float
) -> None:
    """Draw medians with 95 % intervals of each setting, and a line of a power through their middle.

    An interval ends at the least and the largest number of the setting that is drawn.
    """
    numbers = cells[["activation", "data", "d", "n", x, value]].astype({x: float, value: float})
    grouped = numbers.groupby(["activation", "data", "d", "n"])
    table = grouped[[x, value]].median()
    table = table[((table > 0) & (table < np.inf)).all(axis=1)].reset_index()
    sizes = _sizes(cells)
    for _, row in table.iterrows():
        look = NETWORKS[row["activation"]]
        sample = grouped.get_group(tuple(row[["activation", "data", "d", "n"]]))[value].dropna()
        drawn = sample[(sample > 0) & (sample < np.inf)]
        estimate = median_estimate(sample)
        low, high = np.clip((estimate.low, estimate.high), drawn.min(), drawn.max())
        axes.errorbar(
            row[x],
            row[value],
            yerr=[[max(row[value] - low, 0.0)], [max(high - row[value], 0.0)]],
            marker=_MARKS[row["data"]],
            color=look.colour,
            markersize=sizes[int(row["n"])],
            markeredgewidth=0,
            alpha=0.8,
            linewidth=0.7,
        )
    ends = np.array([table[x].min(), table[x].max()])
    middle = np.exp(np.log(table[[x, value]]).mean())
    axes.plot(ends, middle[value] * (ends / middle[x]) ** power, ":", color="0.4", linewidth=0.9)
    axes.set_xscale("log")
    axes.set_yscale("log")
    log_ticks(axes.xaxis, *ends.tolist())
