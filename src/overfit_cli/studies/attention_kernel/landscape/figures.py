"""Figure 4 of Song et al. 2024: the surfaces of one network, one row per kernel."""

from __future__ import annotations

import matplotlib.figure
import numpy as np
import pandas as pd

from overfit_cli.errors import UserError
from overfit_cli.figure import FigureData, FigureOptions
from overfit_cli.figures.axis import parameter_values
from overfit_cli.figures.surface import Surface, draw_surfaces

DIRECTIONS = ("direction $d_1$ in $W^Q$", "direction $d_2$ in $W^K$")


def draw_landscape(data: FigureData, options: FigureOptions) -> matplotlib.figure.Figure:
    """Draw the surfaces of the first network and pair of directions, one row per kernel and task.

    The measures of roughness stand above the contours, and a line below says how many networks and
    pairs the run directory holds.

    Raises:
        UserError: if no cell with a surface is done.
    """
    cells = data.cells[data.cells["key"].isin(data.trajectories["key"])]
    cells = cells[cells["status"] == "done"]
    if cells.empty:
        raise UserError("No cell with a surface is done here.")
    first = cells.sort_values(["seed", "pair"]).iloc[0]
    shown = cells[(cells["seed"] == first["seed"]) & (cells["pair"] == first["pair"])]
    varying = [name for name, values in parameter_values(data).items() if len(values) > 1]
    names = [name for name in varying if name not in ("pair", "kernel")]
    rows = [
        _surface(row, names, data) for _, row in shown.sort_values([*names, "kernel"]).iterrows()
    ]
    shared = (
        f"network {first['seed']}, pair of directions {first['pair']} "
        f"(networks here: {cells['seed'].nunique()}, pairs of each: {cells['pair'].nunique()})"
    )
    return draw_surfaces(rows, (*DIRECTIONS, "loss less the centre's"), shared)


def _surface(row: pd.Series, names: list[str], data: FigureData) -> Surface:
    points = data.trajectories[data.trajectories["key"] == row["key"]].sort_values("step")
    across, up = (np.unique(points[name].to_numpy(dtype=np.float64)) for name in ("a", "b"))
    heights = points["loss"].to_numpy(dtype=np.float64).reshape(len(across), len(up))
    metrics = (
        f"loss {row['centre_loss']:.4f} at the centre",
        f"minima {int(row['interior_minima'])}",
        f"rms Laplacian {row['rms_laplacian']:.3g}",
        f"quadratic residual {row['quadratic_residual']:.2g}",
        f"sharpness {row['sharpness']:.2g}",
    )
    return Surface(
        title=", ".join([str(row["kernel"]), *(f"{name} = {row[name]}" for name in names)]),
        caption=", ".join(metric.replace(" ", "\xa0") for metric in metrics),
        across=across,
        up=up,
        heights=heights - float(row["centre_loss"]),
    )
