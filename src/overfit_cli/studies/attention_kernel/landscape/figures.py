"""Figure 4 of Song et al. 2024: loss surfaces of one network, a row for each kernel."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from overfit_cli.core.cells import Cells
from overfit_cli.core.errors import UserError
from overfit_cli.core.figure import FigureOptions
from overfit_cli.figures.labels import power as power_of_ten
from overfit_cli.figures.labels import short_settings
from overfit_cli.figures.picture import Picture, title_panels
from overfit_cli.figures.style import DIVERGING, PAGE

Floats = NDArray[np.float64]
LEVELS = 14
DIRECTIONS = ("direction $d_1$ in $W^Q$", "direction $d_2$ in $W^K$")


def draw_landscape(data: Cells, options: FigureOptions) -> Picture:
    """Draw the surfaces of the most typical network and pair of directions, one row per kernel."""
    cells = data.trained[data.trained["key"].isin(data.steps["key"])]
    cells = cells[cells["status"] == "done"]
    if cells.empty:
        raise UserError("No cell with a surface is done here.")
    names = data.varying(("pair", "kernel"))
    seed, pair = _most_typical(cells, [*names, "kernel"])
    is_shown = (cells["seed"] == seed) & (cells["pair"] == pair)
    settings = data.without_plan(cells).settings([*names, "kernel"])
    groups = [(values, group.frame) for values, group in settings]
    rows = [
        _surface(group, group[is_shown[group.index]].iloc[0], names, data) for _, group in groups
    ]
    figure: Picture = draw_surfaces(rows, (*DIRECTIONS, r"\Delta L"))
    figure.facts.append(
        f"Heights and colours are the loss less that at the centre. Network {seed}, pair of "
        f"directions {pair}: of those here (networks: {cells['seed'].nunique()}, pairs of each: "
        f"{cells['pair'].nunique()}) its measures are nearest to the medians, by the rank of the "
        f"farthest of them in any row{_outside_in_words(data, cells[is_shown], groups)}. "
        "Beside each surface: its measures, and the median and the middle half of all pairs of "
        "directions."
    )
    figure.facts += [*_loss_in_words(cells), _grid_in_words(rows[0]), _DEFINITIONS]
    return figure


_DEFINITIONS = (
    "Interior minima: points below their eight neighbours. Rms Laplacian: root mean square of the "
    "surface's second derivatives, added. Quadratic residual: of the best quadratic, as a share of "
    "the surface's deviation. Sharpness: the largest rise over the centre's loss, over one plus "
    "that loss."
)


def _most_typical(cells: pd.DataFrame, names: list[str]) -> tuple[int, int]:
    """The network and the pair of directions whose measures are nearest to the medians by rank."""
    settings = [cells[name] for name in names]
    ranks = cells[list(_MEASURES)].astype(float).groupby(settings).rank(pct=True)
    medians = ranks.groupby(settings).transform("median")
    farthest = (ranks - medians).abs().max(axis=1).groupby([cells["seed"], cells["pair"]])
    table = pd.DataFrame({"distance": farthest.max(), "settings": farthest.size()})
    table = table[table["settings"] == table["settings"].max()]
    seed, pair = table["distance"].idxmin()
    return int(seed), int(pair)


def _outside_in_words(
    data: Cells, shown: pd.DataFrame, groups: Sequence[tuple[Any, pd.DataFrame]]
) -> str:
    outside = []
    for _, group in groups:
        row = shown[shown.index.isin(group.index)].iloc[0]
        for column, words in _MEASURES.items():
            low, high = group[column].astype(float).quantile([0.25, 0.75])
            if not low <= float(row[column]) <= high:
                kernel = short_settings(data.schema, {"kernel": row["kernel"]})
                outside.append(f"{kernel}'s {words.replace(chr(10), ' ')}")
    return f"; outside the middle half: {', '.join(outside)}" if outside else ""


def _loss_in_words(cells: pd.DataFrame) -> list[str]:
    samples = sorted(cells["loss_samples"].unique())
    if len(samples) > 1:
        return []
    guess = math.log(2)
    near = (cells["centre_loss"].astype(float) - guess).abs().median() < 0.01
    words = ", of which most of these networks are within 0.01" if near else ""
    return [
        f"The loss is that of a fixed batch of {samples[0]} training samples; {guess:.3f} is "
        f"guessing{words}."
    ]


def _grid_in_words(surface: Surface) -> str:
    low, high = float(surface.across[0]), float(surface.across[-1])
    ends = f"{low:.2g} to {high:.2g}".replace("-", "−")
    return (
        f"Offsets reach from {ends}, a point further on one side, as the paper's from −0.48 to "
        "0.5: the centre (cross) is not halfway."
    )


def _surface(cells: pd.DataFrame, row: pd.Series, names: list[str], data: Cells) -> Surface:
    points = data.steps[data.steps["key"] == row["key"]].sort_values("step")
    across, up = (np.unique(points[name].to_numpy(dtype=np.float64)) for name in ("a", "b"))
    heights = points["loss"].to_numpy(dtype=np.float64).reshape(len(across), len(up))
    return Surface(
        title=short_settings(
            data.schema, {"kernel": row["kernel"], **{name: row[name] for name in names}}
        ),
        measures={
            words: (
                _write_number(row[column]),
                *(
                    _write_number(share)
                    for share in cells[column].astype(float).quantile([0.5, 0.25, 0.75])
                ),
            )
            for column, words in _MEASURES.items()
        },
        pairs=len(cells),
        across=across,
        up=up,
        heights=heights - float(row["centre_loss"]),
    )


_MEASURES = {
    "centre_loss": "loss at\ncentre",
    "interior_minima": "interior\nminima",
    "rms_laplacian": "rms\nLaplacian",
    "quadratic_residual": "quadratic\nresidual",
    "sharpness": "sharpness",
}


def _write_number(number: float) -> str:
    if number == 0 or abs(number) >= 0.001:
        return f"{number:.3g}" if abs(number) >= 0.1 else f"{number:.2g}"
    return power_of_ten(float(f"{number:.1e}"))


@dataclass(frozen=True)
class Surface:
    """One surface.

    Attributes:
        measures: what is told of it, by its name: the number here, and the median and quartiles of
            all surfaces of its setting.
        across, up: where its points lie, shape (n,) and (m,).
        heights: shape (n, m); 0 at the centre.
    """

    title: str
    measures: Mapping[str, tuple[str, ...]]
    pairs: int
    across: Floats
    up: Floats
    heights: Floats


def draw_surfaces(surfaces: Sequence[Surface], labels: tuple[str, str, str]) -> Picture:
    """Draw each surface as a row: in three dimensions, as contours, and its measures beside."""
    reach = max(float(np.abs(surface.heights).max()) for surface in surfaces) or 1.0
    decade = math.floor(math.log10(reach)) if reach < 0.01 else 0
    unit = rf"\ (10^{{{decade}}})" if decade else ""
    names = (labels[0], labels[1], f"${labels[2]}{unit}$")
    surfaces = [replace(surface, heights=surface.heights / 10.0**decade) for surface in surfaces]
    lowest = min(float(surface.heights.min()) for surface in surfaces)
    highest = max(float(surface.heights.max()) for surface in surfaces)
    reach /= 10.0**decade
    scale, levels = Normalize(-reach, reach), MaxNLocator(LEVELS).tick_values(lowest, highest)
    figure = Picture(PAGE, 0.4 + 2.2 * len(surfaces), least=6.0)
    grid = figure.add_gridspec(len(surfaces), 3, width_ratios=(1.15, 1, 1.2), wspace=0.12)
    flat = [figure.add_subplot(grid[row, 1]) for row in range(len(surfaces))]
    for row, (axes, surface) in enumerate(zip(flat, surfaces, strict=True)):
        solid: Any = figure.add_subplot(grid[row, 0], projection="3d")
        _draw_solid(solid, surface, scale, (lowest, highest), names[2])
        across, up = np.meshgrid(surface.across, surface.up, indexing="ij")
        figure.surfaces[solid] = np.column_stack(
            [numbers.ravel() for numbers in (across, up, surface.heights)]
        )
        filled = axes.contourf(
            surface.across, surface.up, surface.heights.T, levels, cmap=DIVERGING, norm=scale
        )
        axes.contour(filled, colors="0.25", linewidths=0.35)
        axes.plot(0, 0, "+", color="black", markersize=6)
        axes.set(xlabel=names[0], ylabel=names[1], aspect="equal")
        _write_measures(figure.add_subplot(grid[row, 2]), surface)
    title_panels(flat, [surface.title for surface in surfaces])
    figure.colorbar(filled, ax=flat, label=names[2], shrink=0.7, aspect=30, pad=0.03)
    return figure


def _draw_solid(
    axes: Any, surface: Surface, scale: Normalize, heights: tuple[float, float], label: str
) -> None:
    across, up = np.meshgrid(surface.across, surface.up, indexing="ij")
    axes.plot_surface(
        across, up, surface.heights, cmap=DIVERGING, norm=scale, rstride=1, cstride=1, linewidth=0
    )
    axes.set_zlim(*heights)
    axes.set(xlabel="$d_1$", ylabel="$d_2$")
    axes.text2D(0.98, 0.9, label, transform=axes.transAxes, ha="right", fontsize=7)
    axes.tick_params(labelsize=6, pad=-3)
    axes.tick_params(axis="z", pad=0)
    for axis, count in ((axes.xaxis, 3), (axes.yaxis, 3), (axes.zaxis, 4)):
        axis.set_major_locator(MaxNLocator(count))
    axes.xaxis.labelpad = axes.yaxis.labelpad = -9
    axes.view_init(elev=28, azim=-60)
    axes.set_box_aspect((1, 1, 0.75), zoom=0.98)


def _write_measures(axes: Axes, surface: Surface) -> None:
    axes.axis("off")
    axes.set(xlim=(0, 1), ylim=(0, 1))
    height = 1 / (len(surface.measures) + 1)
    heads = ("", f"this pair\n(1 of {surface.pairs})", "median of all\n[quartiles]")
    rows = [heads] + [
        (words, here, f"{middle}\n[{low}, {high}]")
        for words, (here, middle, low, high) in surface.measures.items()
    ]
    for number, row in enumerate(rows):
        centre = 1 - (number + 0.5) * height
        for place, text in zip((0.0, 0.47, 1.0), row, strict=True):
            side = "left" if place == 0 else "right"
            axes.text(place, centre, text, fontsize=6, ha=side, va="center", linespacing=1.1)
        axes.plot((0, 1), (centre - height / 2,) * 2, color="0.8", linewidth=0.4, clip_on=False)
