"""Kernel drift, and how far networks part from kernel regression, against width and over steps."""

from __future__ import annotations

import matplotlib.axes
import pandas as pd

from overfit_cli.core.figure import FigureData, FigureOptions
from overfit_cli.core.text import UserError
from overfit_cli.figures.picture import Picture, styled
from overfit_cli.figures.style import legend_below
from overfit_cli.studies.softmax_network.series import (
    done_cells,
    draw_series,
    legend_of,
    new_grid,
    say_how_averaged,
    slopes_in_words,
    varying_parameters,
)

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
        own = cells[cells["initialisation"] == way]
        own = own.assign(bound=own["movement"] * own["n"] * own["outputs"])
        drift.set_title(way)
        draw_series(drift, own, "m", "kernel_drift")
        draw_series(drift, own, "m", "bound", dash="--", marker=False)
        draw_series(movement, own, "m", "movement")
        _write_powers(drift, own, "kernel_drift")
        _write_powers(movement, own, "movement")
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
        own = cells[cells["initialisation"] == way]
        over_width.set_title(way)
        draw_series(over_width, own, "m", "test_gap")
        _write_powers(over_width, own, "test_gap")
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
    there = steps.groupby(["activation", "step"])["seed"].transform("nunique")
    return steps[there == seeds]


def _write_powers(axes: matplotlib.axes.Axes, cells: pd.DataFrame, value: str) -> None:
    words = slopes_in_words(cells, "m", value)
    if words:
        axes.text(
            0.03, 0.04, f"power of $m$\n{words}", transform=axes.transAxes, va="bottom", size=6
        )
