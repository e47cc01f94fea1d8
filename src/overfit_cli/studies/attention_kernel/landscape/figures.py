"""Figure 4 of Song et al. 2024: the surfaces of one network, one row per kernel."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from overfit_cli.core.figure import FigureData, FigureOptions
from overfit_cli.core.text import UserError
from overfit_cli.figures.axes import short_settings, split_by, varying_parameters
from overfit_cli.figures.picture import Picture
from overfit_cli.figures.surface import Surface, draw_surfaces

DIRECTIONS = ("direction $d_1$ in $W^Q$", "direction $d_2$ in $W^K$")


def draw_landscape(data: FigureData, options: FigureOptions) -> Picture:
    """Draw the surfaces of the first network and pair of directions, one row per kernel and task.

    The measures of roughness stand beside the contours; the caption says how many networks and
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
    names = [name for name in varying_parameters(data) if name not in ("pair", "kernel")]
    rows = [
        _surface(cells_of_one.iloc[0], names, data)
        for _, cells_of_one in split_by(replace(data, cells=shown), [*names, "kernel"])
    ]
    figure: Picture = draw_surfaces(rows, (*DIRECTIONS, r"$\Delta L$"))
    figure.facts.append(
        f"Heights and colours are the loss less that at the centre. Network {first['seed']}, pair "
        f"of directions {first['pair']} (networks here: {cells['seed'].nunique()}, pairs of each: "
        f"{cells['pair'].nunique()})."
    )
    return figure


def _surface(row: pd.Series, names: list[str], data: FigureData) -> Surface:
    points = data.trajectories[data.trajectories["key"] == row["key"]].sort_values("step")
    across, up = (np.unique(points[name].to_numpy(dtype=np.float64)) for name in ("a", "b"))
    heights = points["loss"].to_numpy(dtype=np.float64).reshape(len(across), len(up))
    return Surface(
        title=short_settings(
            data.study, {"kernel": row["kernel"], **{one: row[one] for one in names}}
        ),
        measures={
            "loss at centre": f"{row['centre_loss']:.4f}",
            "interior minima": f"{int(row['interior_minima'])}",
            "rms Laplacian": f"{row['rms_laplacian']:.3g}",
            "quadratic residual": f"{row['quadratic_residual']:.2g}",
            "sharpness": f"{row['sharpness']:.2g}",
        },
        across=across,
        up=up,
        heights=heights - float(row["centre_loss"]),
    )
