"""The figures `kernel-drift` and `ntk-gap`: how far kernels move, and networks part from them."""

from __future__ import annotations

import pandas as pd

from overfit_cli.core.cells import Cells
from overfit_cli.core.errors import UserError
from overfit_cli.core.figure import FigureOptions
from overfit_cli.figures.axes import legend_below
from overfit_cli.figures.picture import Picture
from overfit_cli.studies.softmax_network.figures import (
    done_cells,
    draw_series,
    legend_of,
    letter_panels,
    new_grid,
    say_how_averaged,
    write_powers,
)

_AXES = ("activation", "m", "initialisation")


def has_widths(data: Cells) -> bool:
    """Return whether m varies, and nothing that the figures don't draw."""
    varying = data.varying()
    return "m" in varying and set(varying) <= set(_AXES)


def draw_kernel_drift(data: Cells, options: FigureOptions) -> Picture:
    """Draw ‖H − H*‖_F and R against m, a column for each initialisation, with fitted powers."""
    cells = done_cells(data, _AXES)
    ways = sorted(cells["initialisation"].unique(), reverse=True)
    figure, grid = new_grid(2, len(ways), heights=[2.2, 2.2], least=2.2)
    for (drift, movement), way in zip(grid.T, ways, strict=True):
        chosen = cells[cells["initialisation"] == way]
        chosen = chosen.assign(bound=chosen["movement"] * chosen["n"] * chosen["outputs"])
        drift.set_title(f"{way} initialisation")
        draw_series(drift, chosen, "m", "kernel_drift")
        draw_series(drift, chosen, "m", "bound", dash="--", marker=False)
        draw_series(movement, chosen, "m", "movement")
        movement.set_xlabel("hidden units $m$")
    letter_panels(grid.flat)
    parts = [cells[cells["initialisation"] == way] for way in ways]
    for row, value in zip(grid, ("kernel_drift", "movement"), strict=True):
        write_powers(row, parts, "m", value, _HEADING)
    grid[0, 0].set_ylabel(r"kernel drift $\Vert H - H^*\Vert_F$")
    grid[1, 0].set_ylabel("largest weight movement $R$")
    decades = -float(cells["drift_over_bound"].median())
    bound = (
        ". Dashed: R n per output, Lemma 5.1's bound R n e^(10B) without its exponential; with it "
        f"the bound lies {decades:.0f} decades above the drift. {_POWERS_IN_WORDS}"
    )
    say_how_averaged(figure, cells, bound)
    legend = legend_of(cells, [("--", r"$R\,n$: Lemma 5.1 without $e^{10B}$")])
    legend_below(figure, legend, columns=4)
    return figure


_HEADING = "power of $m$, stated −1; largest residual"

_POWERS_IN_WORDS = (
    "Powers of m are means over the seeds' own fits with 95 % intervals, and the largest share by "
    "which a median is off the line; −1 is the power of the bounds"
)


def draw_ntk_gap(data: Cells, options: FigureOptions) -> Picture:
    """Draw the gap to kernel regression at test inputs against m, and the widest over training."""
    cells = done_cells(data, _AXES)
    if data.steps.empty:
        raise UserError("No steps were logged here; `overfit sweep softmax-drift` logs them.")
    widest = cells[cells["m"] == cells["m"].max()]
    steps = data.steps.merge(widest[["key", "activation", "initialisation", "seed"]], on="key")
    ways = sorted(cells["initialisation"].unique(), reverse=True)
    figure, grid = new_grid(2, len(ways), one_x=False, heights=[2.2, 1.7], least=2.2)
    for (over_width, over_steps), way in zip(grid.T, ways, strict=True):
        chosen = cells[cells["initialisation"] == way]
        over_width.set_title(f"{way} initialisation")
        draw_series(over_width, chosen, "m", "test_gap")
        over_width.set_xlabel("hidden units $m$")
        logged = steps[(steps["initialisation"] == way) & (steps["step"] > 0)]
        draw_series(over_steps, _common(logged), "step", "test_gap", marker=False)
        over_steps.set_xlabel("gradient steps")
    letter_panels(grid.flat)
    parts = [cells[cells["initialisation"] == way] for way in ways]
    write_powers(grid[0], parts, "m", "test_gap", _HEADING)
    grid[0, 0].set_ylabel("test gap to kernel regression")
    grid[1, 0].set_ylabel(f"the same at $m$ = {cells['m'].max()}")
    say_how_averaged(figure, cells, f". {_POWERS_IN_WORDS}")
    legend_below(figure, legend_of(cells), columns=3)
    return figure


def _common(steps: pd.DataFrame) -> pd.DataFrame:
    seeds = steps.groupby("activation")["seed"].transform("nunique")
    reached = steps.groupby(["activation", "step"])["seed"].transform("nunique")
    return steps[reached == seeds]
