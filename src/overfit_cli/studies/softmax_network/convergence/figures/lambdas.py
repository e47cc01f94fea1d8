"""The figure `lambda`: steps and widths against λ or κ, and steps over those of Table 1."""

from __future__ import annotations

from typing import Any

import matplotlib.axes
import numpy as np
import pandas as pd
from matplotlib.lines import Line2D

from overfit_cli.core.cells import Cells
from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.text import plural
from overfit_cli.figures.axes import legend_below, log_ticks
from overfit_cli.figures.picture import Picture
from overfit_cli.figures.style import BOUND, Legend
from overfit_cli.stats.intervals import median_estimate
from overfit_cli.studies.softmax_network.convergence.widths import (
    ENOUGH,
    by_data,
    median_width,
    sufficient_widths,
    table1_steps,
    widest,
)
from overfit_cli.studies.softmax_network.figures import (
    NETWORKS,
    done_cells,
    letter_panels,
    misses_in_words,
    new_grid,
)


def has_eigenvalues(data: Cells) -> bool:
    """Return whether several settings of the networks and their data are there."""
    return bool(data.trained.groupby(["activation", "data", "d", "n"]).ngroups >= 6)


_MARKS = {"sphere": "o", "ball": "s", "digits": "^"}
_SETTING = ["activation", "data", "d", "n"]


def draw_lambda(data: Cells, options: FigureOptions) -> Picture:
    """Draw steps and widths against eigenvalues, a point for each activation, data, d and n.

    At the paper's step size they are T and T λ²/(n² log(n/ε)) against λ. At 1/(m λ_max) they are T
    against κ, and the sufficient width against λ.
    """
    cells = done_cells(data, ("activation", "m", "n", "d", "data"))
    wide = widest(cells)
    by_paper = bool((wide["step_rule"] == "paper").all())
    wide = wide.assign(steps_over_stated=wide["steps_to_epsilon"] / table1_steps(wide))
    figure, grid = new_grid(1, 2, one_y=False, heights=[2.0], least=2.25)
    left, right = grid[0]
    letter_panels(grid.flat)
    if by_paper:
        _draw_points(left, wide, "lambda_start", "steps_to_epsilon", -2)
        _draw_points(right, wide, "lambda_start", "steps_over_stated", 0)
        right.set_ylim(1, 10)
        log_ticks(right.yaxis, 1, 10)
        label, lines = (
            r"$T\lambda^2/(n^2\log(n/\epsilon))$",
            (r"$\propto \lambda^{-2}$", "constant"),
        )
    else:
        widths = by_data(data.trained, sufficient_widths)
        smallest = wide[[*_SETTING, "seed", "lambda_start"]]
        widths = widths.merge(smallest, on=[*_SETTING, "seed"])
        ends = (float(data.trained["m"].min()), float(data.trained["m"].max()))
        _draw_points(left, wide, "kappa", "steps_to_epsilon", 1)
        _draw_points(right, widths, "lambda_start", "width", -2, ends)
        right.axvline(1, color="0.7", linewidth=0.8)
        below, above = (int((widths["width"] == end).sum()) for end in (0.0, np.inf))
        figure.facts.append(
            "Sufficient is the smallest m from which on T is at most "
            f"{ENOUGH:g} times that of infinitely many hidden units. Of {len(widths)} widths "
            f"{below} lie below the sweep and {above} above it. Table 1's λ < 1 is to the left of "
            "the grey line."
        )
        if misses := misses_in_words(data):
            left_out = int((widest(data.trained)["status"] != "done").sum())
            of_widest = f"; T leaves out {left_out} of the widest networks" if left_out else ""
            figure.facts.append(f"{misses}: their width doesn't suffice{of_widest}.")
        label, lines = "sufficient width $m$", (r"$\propto\kappa$", r"$\propto \lambda^{-2}$")
    left.set_xlabel(r"smallest eigenvalue $\lambda$" if by_paper else r"condition number $\kappa$")
    left.set_ylabel("steps $T$ to $\\epsilon$")
    right.set_xlabel(r"smallest eigenvalue $\lambda$")
    right.set_ylabel(label)
    seeds = plural(cells["seed"].nunique(), "seed")
    figure.facts.append(
        f"A point for each activation, data, d and n: medians of {seeds}, bars 95 % intervals; "
        f"steps and eigenvalues are those at m = {wide['m'].iloc[0]}, the largest. "
        "Dotted lines have the power, and go through the middle of all points."
    )
    stated = f"{lines[0]} (left), {lines[1]} (right)"
    heading = f"medians of {seeds}, bars: 95 % intervals"
    legend_below(figure, _legend_of_points(cells, stated, arrows=not by_paper), 4, heading)
    return figure


def _legend_of_points(cells: pd.DataFrame, stated: str, *, arrows: bool) -> Legend:
    legend: Legend = [
        (Line2D([], [], color=look.colour, linewidth=2.5), look.name)
        for name, look in NETWORKS.items()
        if (cells["activation"] == name).any()
    ]
    legend.append((Line2D([], [], **_STATED), stated))
    grey: dict[str, Any] = {"color": "0.4", "linestyle": ""}
    legend += [
        (Line2D([], [], **grey, marker=mark, markersize=3), kind)
        for kind, mark in _MARKS.items()
        if (cells["data"] == kind).any()
    ]
    dimensions = sorted(cells["d"].unique())
    legend += [
        (
            Line2D([], [], **grey, marker="o", markersize=4, mfc=_filling(d, dimensions)),
            f"$d$ = {d}",
        )
        for d in (dimensions if len(dimensions) > 1 else [])
    ]
    legend += [
        (Line2D([], [], **grey, marker="o", markersize=size), f"$n$ = {n}")
        for n, size in _sizes(cells).items()
    ]
    if arrows:
        legend.append((Line2D([], [], **grey, marker="$\\downarrow$"), "below the sweep"))
    return legend


_STATED = BOUND | {"linestyle": ":"}
"""The look of a line with a stated power, whose height is not stated."""


def _filling(d: int, dimensions: list[int]) -> str:
    return "white" if len(dimensions) > 1 and d == dimensions[-1] else "0.4"


def _sizes(cells: pd.DataFrame) -> dict[int, float]:
    sizes = sorted(cells["n"].unique())
    return {
        int(n): float(size) for n, size in zip(sizes, np.linspace(2, 4.5, len(sizes)), strict=True)
    }


def _draw_points(
    axes: matplotlib.axes.Axes,
    cells: pd.DataFrame,
    x: str,
    value: str,
    power: float,
    sweep: tuple[float, float] = (0.0, np.inf),
) -> None:
    """Draw medians with 95 % intervals, and a line of a power through their middle."""
    numbers = cells[[*_SETTING, x, value]].astype({x: float, value: float})
    grouped = numbers.groupby(_SETTING)
    table = grouped.agg({x: "median", value: median_width}).reset_index()
    table = table[table[x] > 0]
    dimensions = sorted(cells["d"].unique())
    sizes = _sizes(cells)
    for _, row in table.iterrows():
        colour = NETWORKS[row["activation"]].colour
        if not 0 < row[value] < np.inf:
            end = sweep[0] if row[value] == 0 else sweep[1]
            arrow = "$\\downarrow$" if row[value] == 0 else "$\\uparrow$"
            axes.plot(row[x], end, marker=arrow, color=colour, markersize=6)
            continue
        sample = grouped.get_group(tuple(row[_SETTING]))[value].dropna()
        estimate = median_estimate(sample)
        drawn = sample[(sample > 0) & (sample < np.inf)]
        low, high = np.clip((estimate.low, estimate.high), drawn.min(), drawn.max())
        filling = _filling(row["d"], dimensions)
        axes.errorbar(
            row[x],
            row[value],
            yerr=[[max(row[value] - low, 0.0)], [max(high - row[value], 0.0)]],
            marker=_MARKS[row["data"]],
            color=colour,
            mfc=filling if filling == "white" else colour,
            markersize=sizes[int(row["n"])],
            markeredgewidth=0.7,
            alpha=0.8,
            linewidth=0.7,
        )
    table = table[(table[value] > 0) & (table[value] < np.inf)]
    ends = np.array([table[x].min(), table[x].max()])
    middle = np.exp(np.log(table[[x, value]]).mean())
    axes.plot(ends, middle[value] * (ends / middle[x]) ** power, **_STATED)
    axes.set_xscale("log")
    axes.set_yscale("log")
    log_ticks(axes.xaxis, *ends.tolist())
    log_ticks(axes.yaxis, *axes.get_ylim())
