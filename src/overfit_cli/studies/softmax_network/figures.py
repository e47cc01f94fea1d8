"""Lines over a parameter on logarithmic axes, one for each network: what the figures share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import matplotlib.axes
import numpy as np
import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.typing import LineStyleType

from overfit_cli.core.errors import UserError
from overfit_cli.core.study import FigureData
from overfit_cli.core.text import plural
from overfit_cli.figures.labels import varying_parameters
from overfit_cli.figures.picture import Picture
from overfit_cli.figures.style import COLUMN, PAGE, PALETTE, Legend, log_ticks
from overfit_cli.stats.boundaries import scaling_exponents
from overfit_cli.studies.softmax_network.paper import NAMES


@dataclass(frozen=True)
class Look:
    """How a line is drawn, and what it is called in a legend."""

    name: str
    colour: str
    marker: str


NETWORKS: Mapping[str, Look] = {
    activation: Look(name, colour, marker)
    for (activation, name), colour, marker in zip(NAMES.items(), PALETTE, "os^", strict=False)
}


def done_cells(data: FigureData, varying: Iterable[str]) -> pd.DataFrame:
    """Return the cells that are done.

    Raises:
        UserError: if another one does, or no cell is done.
    """
    if undrawn := [name for name in varying_parameters(data) if name not in {*varying}]:
        vary, each = ("varies", "it") if len(undrawn) == 1 else ("vary", "each")
        raise UserError(
            f"{' and '.join(undrawn)} {vary} here, and this figure doesn't draw that; choose one "
            f"value of {each}, as by the condition {undrawn[0]}=VALUE."
        )
    done = data.cells[data.cells["status"] == "done"]
    if done.empty:
        raise UserError("No cell is done here.")
    return done


def new_grid(
    rows: int, columns: int, *, one_x: bool = True, one_y: bool = True
) -> tuple[Picture, np.ndarray]:
    """Return a figure with a grid of axes."""
    width = min(COLUMN * max(1.0, 0.8 * columns), PAGE)
    figure = Picture(width, 1.7 * rows + 0.7, least=1.5 * columns)
    grid = figure.subplots(
        rows,
        columns,
        sharex="col" if one_x else False,
        sharey="row" if one_y else False,
        squeeze=False,
    )
    return figure, grid


def draw_series(
    axes: matplotlib.axes.Axes,
    cells: pd.DataFrame,
    x: str,
    value: str,
    *,
    by: str = "activation",
    looks: Mapping[str, Look] = NETWORKS,
    dash: LineStyleType = "-",
    marker: bool = True,
) -> None:
    """Draw geometric means over seeds with bands of one deviation, a line per value of `by`."""
    for value_of_line, look in looks.items():
        chosen = cells[(cells[by] == value_of_line) & (cells[value] > 0)]
        if chosen.empty:
            continue
        logs = chosen[value].astype(float).map(math.log).groupby(chosen[x])
        middle, spread = logs.mean(), logs.std().fillna(0.0)
        shape = look.marker if marker else None
        axes.plot(
            middle.index,
            np.exp(middle),
            linestyle=dash,
            color=look.colour,
            marker=shape,
            markersize=3,
        )
        low, high = np.exp(middle - spread), np.exp(middle + spread)
        axes.fill_between(middle.index, low, high, color=look.colour, alpha=0.15, linewidth=0)
    axes.set_xscale("log")
    axes.set_yscale("log")
    log_ticks(axes.xaxis, float(cells[x].min()), float(cells[x].max()))
    log_ticks(axes.yaxis, *axes.get_ylim())


def say_how_averaged(figure: Picture, cells: pd.DataFrame, addition: str = "") -> None:
    """Put in a figure's caption what its lines and bands are, and what else is to be said."""
    seeds = plural(cells["seed"].nunique(), "seed")
    figure.facts.append(
        f"Lines: geometric means of {seeds}, bands of one standard deviation{addition}."
    )


def slopes_in_words(cells: pd.DataFrame, x: str, value: str) -> str:
    """Name each network's power of x in a column, the mean of the seeds' own slopes."""
    lines = []
    for activation in NAMES:
        chosen = cells[(cells["activation"] == activation) & (cells[value] > 0)]
        powers = scaling_exponents(chosen, [x], value)
        if powers is not None:
            lines.append(f"{NAMES[activation]}: {powers[x].value:.2f}".replace("-", "−"))
    return "\n".join(lines)


def legend_of(
    cells: pd.DataFrame,
    extra: Sequence[tuple[LineStyleType, str]] = (),
    *,
    by: str = "activation",
    looks: Mapping[str, Look] = NETWORKS,
) -> Legend:
    """Return a legend of the lines that there are, and of what else is drawn in grey."""
    lines: Legend = [
        (Line2D([], [], color=look.colour, marker=look.marker, markersize=3), look.name)
        for line_value, look in looks.items()
        if (cells[by] == line_value).any()
    ]
    return lines + [(Line2D([], [], color="0.4", linestyle=dash), text) for dash, text in extra]
