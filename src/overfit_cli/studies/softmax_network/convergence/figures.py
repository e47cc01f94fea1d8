"""Figures of `softmax-convergence`.

- `heatmap`: over samples and width, with the contour of widths that suffice.
- `kernel-drift`, `ntk-gap`: how far kernels move and networks part from kernel regression, against
  width and over steps.
- `eigenvalues`: the smallest eigenvalues of the tangent kernel against width and dimension.
- `table1`: Table 1 of Cao et al. 2024 as measured: steps, sufficient widths, condition numbers.
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

from overfit_cli.core.errors import UserError
from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.study import FigureData
from overfit_cli.core.text import plural
from overfit_cli.figures.heatmap import draw_map
from overfit_cli.figures.inputs import measured_column, require_numbers
from overfit_cli.figures.labels import axis_label, tick_number, varying_parameters
from overfit_cli.figures.panels import Panel
from overfit_cli.figures.picture import Picture, styled, title_panels
from overfit_cli.figures.style import HIGHLIGHT, Legend, colours_of_map, legend_below
from overfit_cli.stats.boundaries import contour
from overfit_cli.stats.intervals import Estimate, mean_estimate
from overfit_cli.studies.softmax_network.convergence.widths import (
    ENOUGH,
    keep_slow_cells,
    sufficient_widths,
    widest,
)
from overfit_cli.studies.softmax_network.figures import (
    done_cells,
    draw_series,
    legend_of,
    new_grid,
    say_how_averaged,
    slopes_in_words,
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


_AXES = ("activation", "m", "initialisation")


def has_widths(data: FigureData) -> bool:
    """Return whether m varies, and nothing that the figures don't draw."""
    varying = varying_parameters(data)
    return "m" in varying and set(varying) <= set(_AXES)


@styled
def draw_kernel_drift(data: FigureData, options: FigureOptions) -> Picture:
    """Draw ‖H − H*‖_F and R against m, a column for each initialisation, with fitted powers.

    The dashed lines are R n outputs, Lemma 5.1's bound without its factor e^(10B); how many decades
    that is stands above.

    Raises:
        UserError: if another parameter varies, or no cell is done.
    """
    cells = done_cells(data, _AXES)
    ways = sorted(cells["initialisation"].unique(), reverse=True)
    figure, grid = new_grid(2, len(ways))
    for (drift, movement), way in zip(grid.T, ways, strict=True):
        chosen = cells[cells["initialisation"] == way]
        chosen = chosen.assign(bound=chosen["movement"] * chosen["n"] * chosen["outputs"])
        drift.set_title(way)
        draw_series(drift, chosen, "m", "kernel_drift")
        draw_series(drift, chosen, "m", "bound", dash="--", marker=False)
        draw_series(movement, chosen, "m", "movement")
        _write_powers(drift, chosen, "kernel_drift")
        _write_powers(movement, chosen, "movement")
        movement.set_xlabel("hidden units $m$")
    grid[0, 0].set_ylabel(r"kernel drift $\Vert H - H^*\Vert_F$")
    grid[1, 0].set_ylabel("movement $R$")
    decades = -float(cells["drift_over_bound"].median())
    bound = f"; Lemma 5.1's bound lies {decades:.0f} decades above the drift"
    say_how_averaged(figure, cells, bound)
    legend_below(figure, legend_of(cells, [("--", r"$R\,n$")]), columns=4)
    return figure


@styled
def draw_ntk_gap(data: FigureData, options: FigureOptions) -> Picture:
    """Draw how far networks are from kernel regression at test inputs, against m and over training.

    Over training it is the widest networks' gap; a column for each initialisation.

    Raises:
        UserError: if another parameter varies, no cell is done, or no step was logged.
    """
    cells = done_cells(data, _AXES)
    if data.trajectories.empty:
        raise UserError("No steps were logged here; `overfit sweep softmax-drift` logs them.")
    widest = cells[cells["m"] == cells["m"].max()]
    steps = data.trajectories.merge(
        widest[["key", "activation", "initialisation", "seed"]], on="key"
    )
    ways = sorted(cells["initialisation"].unique(), reverse=True)
    figure, grid = new_grid(2, len(ways), one_x=False)
    for (over_width, over_steps), way in zip(grid.T, ways, strict=True):
        chosen = cells[cells["initialisation"] == way]
        over_width.set_title(way)
        draw_series(over_width, chosen, "m", "test_gap")
        _write_powers(over_width, chosen, "test_gap")
        over_width.set_xlabel("hidden units $m$")
        logged = steps[(steps["initialisation"] == way) & (steps["step"] > 0)]
        draw_series(over_steps, _common(logged), "step", "test_gap", marker=False)
        over_steps.set_xlabel("gradient steps")
    grid[0, 0].set_ylabel("test gap")
    grid[1, 0].set_ylabel("test gap of the widest")
    say_how_averaged(figure, cells)
    legend_below(figure, legend_of(cells), columns=3)
    return figure


def _common(steps: pd.DataFrame) -> pd.DataFrame:
    """The logged steps that all seeds of an activation reach."""
    seeds = steps.groupby("activation")["seed"].transform("nunique")
    reached = steps.groupby(["activation", "step"])["seed"].transform("nunique")
    return steps[reached == seeds]


def _write_powers(axes: matplotlib.axes.Axes, cells: pd.DataFrame, value: str) -> None:
    words = slopes_in_words(cells, "m", value)
    if words:
        axes.text(
            0.03, 0.04, f"power of $m$\n{words}", transform=axes.transAxes, va="bottom", size=6
        )


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
