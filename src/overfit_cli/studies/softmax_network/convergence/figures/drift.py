"""Figures of how far kernels move and networks part from them.

- `kernel-drift`, `ntk-gap`: against width and over steps.
- `worst-drift`: the largest change of the kernel where weights move by R at most.
- `crossover`: powers of the width against σ.
"""

from __future__ import annotations

from typing import Any

import matplotlib.axes
import numpy as np
import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.typing import LineStyleType

from overfit_cli.core.errors import UserError
from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.study import FigureData
from overfit_cli.core.text import plural
from overfit_cli.figures.labels import varying_parameters
from overfit_cli.figures.picture import Picture, styled
from overfit_cli.figures.style import PALETTE, Legend, legend_below, log_ticks
from overfit_cli.stats.intervals import mean_estimate
from overfit_cli.studies.softmax_network.convergence.claims.perturbation import (
    CONSTANTS,
    powers_of,
    stated_power,
)
from overfit_cli.studies.softmax_network.convergence.parameters import RADII
from overfit_cli.studies.softmax_network.figures import (
    NETWORKS,
    done_cells,
    draw_series,
    legend_of,
    new_grid,
    say_how_averaged,
    slopes_in_words,
)
from overfit_cli.studies.softmax_network.theory import CHANCE

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


def has_worst_drifts(data: FigureData) -> bool:
    """Return whether largest drifts were looked for, at several widths or several n."""
    cells = data.cells
    several = has_m(cells) or cells["n"].nunique() > 1
    return bool("worst_drift" in cells and cells["worst_drift"].notna().any() and several)


def has_m(cells: pd.DataFrame) -> bool:
    """Return whether several widths are there."""
    return bool(cells["m"].nunique() > 1)


def has_deviations(data: FigureData) -> bool:
    """Return whether several deviations of the initial weights and several widths are there."""
    return has_m(data.cells) and bool(data.cells["sigma"].nunique() > 1)


@styled
def draw_worst_drift(data: FigureData, options: FigureOptions) -> Picture:
    """Draw the largest ‖H(W) − H(W̃)‖_F within R over R n against m, a panel for each σ and n.

    Means of all seeds, those with 0 too, with their 95 % intervals. ReLU's dashed line is an upper
    bound, with open markers where m R < 10 log(n²/δ), the others lower ones. The dotted lines are
    the constants of the text after Lemma 5.1, without their n^o(1). Of one width every seed is
    drawn, against n and at both R.

    Raises:
        UserError: if another parameter varies, or no cell is done.
    """
    cells = done_cells(data, ("activation", "m", "n", "sigma"))
    if not has_m(cells):
        return _draw_one_width(cells)
    sigmas, sizes = sorted(cells["sigma"].unique()), sorted(cells["n"].unique())
    figure, grid = new_grid(len(sizes), len(sigmas))
    for row, n in zip(grid, sizes, strict=True):
        for axes, sigma in zip(row, sigmas, strict=True):
            chosen = cells[(cells["n"] == n) & (cells["sigma"] == sigma)]
            _draw_means(axes, chosen)
            for activation, constant in CONSTANTS.items():
                axes.axhline(
                    constant, linestyle=":", color=NETWORKS[activation].colour, linewidth=0.9
                )
            axes.set_title(rf"$\sigma = {sigma:g}$, $n = {n}$")
    limits = [end for axes in grid.flat for end in axes.get_ylim()]
    widths = sorted(cells["m"].unique())
    for axes in grid.flat:
        axes.set_ylim(min(limits), max(limits))
        log_ticks(axes.yaxis, min(limits), max(limits))
        axes.set_xticks(widths, [str(width) for width in widths])
        axes.minorticks_off()
    for axes in grid[:, 0]:
        axes.set_ylabel(_LARGEST)
    for axes in grid[-1]:
        axes.set_xlabel("hidden units $m$")
    seeds = plural(cells["seed"].nunique(), "seed")
    figure.facts.append(
        f"Means of all {seeds}, those with 0 too, with 95 % intervals. R = {RADII[0]:g}. Softmax "
        "and exp by ascent over directions: at least so much. ReLU, dashed, by counting the units "
        "that can flip: at most so much; markers are open where m R < 10 log(n²/δ)."
    )
    extra: list[tuple[LineStyleType, str]] = [
        ("--", "at most (ReLU)"),
        ("-", "at least"),
        (":", "constant of the text"),
    ]
    legend_below(figure, legend_of(cells, extra), columns=3)
    return figure


def _draw_means(axes: matplotlib.axes.Axes, cells: pd.DataFrame) -> None:
    """Draw the mean of `worst_drift` over all seeds against m, a line for each activation."""
    for activation, rows in cells.groupby("activation"):
        look = NETWORKS[str(activation)]
        widths = np.sort(rows["m"].unique()).astype(float)
        estimates = [
            mean_estimate(rows.loc[rows["m"] == m, "worst_drift"].astype(float)) for m in widths
        ]
        means = np.array([estimate.value for estimate in estimates])
        ends = np.array([(estimate.low, estimate.high) for estimate in estimates])
        low = np.maximum(ends[:, 0], means / 10)  # an interval with 0 has no end on this axis
        is_bound = activation == "relu"
        is_open = is_bound & (widths * RADII[0] < _least_units(rows["n"].iloc[0]))
        axes.plot(widths, means, "--" if is_bound else "-", color=look.colour, linewidth=1.0)
        axes.vlines(widths, low, ends[:, 1], colors=look.colour, linewidth=1.0)
        for width, mean, hollow in zip(widths, means, is_open, strict=True):
            face = "white" if hollow else look.colour
            axes.plot(width, mean, look.marker, markersize=3.5, color=look.colour, mfc=face)
    axes.set_xscale("log")
    axes.set_yscale("log")


def _draw_one_width(cells: pd.DataFrame) -> Picture:
    """Draw the largest change of every seed against n at both R, a panel for each σ."""
    sigmas, sizes = sorted(cells["sigma"].unique()), sorted(cells["n"].unique())
    names = [name for name in CONSTANTS if (cells["activation"] == name).any()]
    columns = [(name, number) for name in names for number in range(len(RADII))]
    width = 0.8 / len(columns)
    figure, grid = new_grid(1, len(sigmas))
    for axes, sigma in zip(grid[0], sigmas, strict=True):
        for index, (name, number) in enumerate(columns):
            first = (index - (len(columns) - 1) / 2) * width
            for place, n in enumerate(sizes):
                chosen = cells[(cells["sigma"] == sigma) & (cells["n"] == n)]
                of_name = chosen[chosen["activation"] == name]
                _draw_seeds(axes, of_name, number, place + first, width)
        for name in names:
            colour = NETWORKS[name].colour
            axes.axhline(CONSTANTS[name], linestyle=":", color=colour, linewidth=1.2)
        axes.set_title(rf"$m = {cells['m'].iloc[0]}$, $\sigma = {sigma:g}$")
        axes.set_xticks(range(len(sizes)), [str(n) for n in sizes])
        axes.set_xlim(-0.5, len(sizes) - 0.5)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("training samples $n$")
    grid[0, 0].set_ylabel(_LARGEST)
    ways = {
        "relu": "ReLU by counting the units that can flip: at most so much.",
        "softmax": "Softmax by ascent over directions: at least so much.",
        "exp": "Exp by ascent over directions: at least so much.",
    }
    seeds = plural(cells["seed"].nunique(), "seed")
    figure.facts.append(f"A marker for each of {seeds}. {' '.join(ways[name] for name in names)}")
    grey: dict[str, Any] = {"color": "0.4", "linestyle": ""}
    legend: Legend = [
        (Line2D([], [], **grey | {"color": look.colour}, marker=look.marker), look.name)
        for look in (NETWORKS[name] for name in names)
    ]
    if "relu" in names:
        hollow = Line2D([], [], **grey, marker=NETWORKS["relu"].marker, mfc="none")
        legend.append((hollow, r"$m R < 10\,\log(n^2/\delta)$"))
    legend.append((Line2D([], [], color="0.15", linewidth=1.4), "median"))
    legend.append((Line2D([], [], color="0.4", linestyle=":"), "constant of the text"))
    legend_below(figure, legend, columns=2)
    return figure


def _draw_seeds(
    axes: matplotlib.axes.Axes, cells: pd.DataFrame, number: int, middle: float, width: float
) -> None:
    """Draw the seeds of one setting side by side at one of the two R, and their median."""
    if cells.empty:
        return
    row, radius = cells.iloc[0], RADII[number]
    drifts = cells[("worst_drift", "worst_drift_far")[number]].astype(float)
    is_open = row["activation"] == "relu" and row["m"] * radius < _least_units(row["n"])
    look = NETWORKS[row["activation"]]
    axes.plot(
        middle + width * np.linspace(-0.35, 0.35, len(drifts)),
        drifts,
        look.marker,
        markersize=2.5,
        markeredgewidth=0.6,
        color=look.colour,
        mfc="none" if is_open else look.colour,
    )
    ends = middle - 0.42 * width, middle + 0.42 * width
    axes.hlines(drifts.median(), *ends, colors="0.15", linewidth=1.4, zorder=3)
    axes.annotate(f"$R = {radius:g}$", (middle, 0.03), ha="center", size=6)


def _least_units(n: float) -> float:
    """Return the least m R with which the probability in ReLU's quoted lemma is 1 − δ."""
    return float(10 * np.log(float(n) ** 2 / CHANCE))


_LARGEST = "largest $\\Vert H(W) - H(\\tilde W)\\Vert_F\\,/\\,(R\\,n)$"

_HALF_SPAN = 0.4
"""Half of what each panel of the crossover spans: the same, so that slopes compare."""

_POWERS = {
    "drift": ("m", "kernel_drift", -2.0, r"$m$ in $\Vert H-H^*\Vert_F$"),
    "movement": ("m", "movement", -1.0, "$m$ in the movement"),
    "gap": ("kernel_drift", "test_gap", 1.0, r"$\Vert H-H^*\Vert_F$ in the test gap"),
}


@styled
def draw_crossover(data: FigureData, options: FigureOptions) -> Picture:
    """Draw the powers of m in drift and movement, and of the drift in the test gap, against σ.

    Means with their 95 % intervals over seeds. The dashed line is the power of the largest of m
    lognormal units, −1 + σ/√(2 log m); dotted lines are the powers at σ = 0.

    Raises:
        UserError: if another parameter varies, or no cell is done.
    """
    cells = done_cells(data, ("m", "sigma"))
    figure, grid = new_grid(1, len(_POWERS), one_y=False)
    sigmas = sorted(cells["sigma"].unique())
    for axes, (name, (cause, value, limit, words)) in zip(grid[0], _POWERS.items(), strict=True):
        estimates = [
            mean_estimate(powers_of(cells[cells["sigma"] == sigma], cause, value))
            for sigma in sigmas
        ]
        middle = np.array([estimate.value for estimate in estimates])
        errors = [
            middle - [estimate.low for estimate in estimates],
            [estimate.high for estimate in estimates] - middle,
        ]
        axes.errorbar(sigmas, middle, yerr=errors, marker="o", markersize=3, color=PALETTE[0])
        axes.axhline(limit, linestyle=":", color="0.4", linewidth=0.9)
        if name == "movement":
            line = [stated_power(sigma, cells["m"].unique()) for sigma in sigmas]
            axes.plot(sigmas, line, "--", color=PALETTE[1])
        axes.set_title(f"power of {words}")
        axes.set_xlabel(r"deviation $\sigma$ of the initial weights")
        middle_of_axis = sum(axes.get_ylim()) / 2
        axes.set_ylim(middle_of_axis - _HALF_SPAN, middle_of_axis + _HALF_SPAN)
    grid[0, 0].set_ylabel("power")
    seeds = plural(cells["seed"].nunique(), "seed")
    figure.facts.append(f"Means of {seeds} with 95 % intervals.")
    legend: Legend = [
        (Line2D([], [], color=PALETTE[0], marker="o", markersize=3), "measured"),
        (Line2D([], [], color="0.4", linestyle=":"), r"power as $\sigma \to 0$"),
        (Line2D([], [], color=PALETTE[1], linestyle="--"), r"$-1+\sigma/\sqrt{2\log m}$"),
    ]
    legend_below(figure, legend, columns=3)
    return figure
