"""Interactive phase diagrams of the page, with the numbers over seeds at each point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.colors import Normalize, to_hex
from matplotlib.figure import Figure as MatplotlibFigure

from overfit_cli.core.arrays import Floats, finite_column
from overfit_cli.core.errors import UserError
from overfit_cli.core.figure import Figure, FigureOptions
from overfit_cli.core.registry import figures_of
from overfit_cli.core.study import FigureData
from overfit_cli.core.text import round_digits
from overfit_cli.figures.axes import Axis
from overfit_cli.figures.grid import Grid, is_lost, seed_numbers
from overfit_cli.figures.heatmap import Map, contour_level, lay_out_map
from overfit_cli.figures.inputs import resolve_options, usable_cells
from overfit_cli.figures.labels import axis_label, brief, formula_symbol, tick_number, typeset
from overfit_cli.figures.laws import (
    constant_side,
    constants_of,
    equation_curve,
    parse_equations,
    values_in_words,
)
from overfit_cli.figures.style import RC
from overfit_cli.stats.bands import MEANS, Averaging, natural_bounds
from overfit_cli.stats.equations import equation_in_mathtext
from overfit_cli.stats.intervals import FEWEST_FOR_MEDIAN
from overfit_cli.sweeps.load import chosen_data, load_figure_data
from overfit_cli.sweeps.store import RunDirectory

Diagram = Mapping[str, Any]
"""The data of a diagram for the page's script, which can be written as JSON."""

MapLine = tuple[str, str, list[str]]
"""A line's name, its style (`contour` or `law`) and its path in each panel."""

COLOURS = 32
MOST_VALUES = 100
"""The limit of values along an axis: a reader cannot point at smaller points."""
FEWEST_VALUES = 3
"""The least number of values along one of the axes: fewer are no diagram."""
MOST_POINTS = 40
"""The limit of steps of a loss curve, and of points of a line."""

_MOST_CURVES = 2
_DIGITS = 4
_FULL = 17


def load_diagram(
    run: RunDirectory, conditions: Sequence[str] = (), cells: pd.DataFrame | None = None
) -> Diagram | None:
    """Return the map of a run's cells as numbers; None where they make none: see `make_diagram`."""
    data = chosen_data(load_figure_data(run, cells), conditions)
    heatmap = figures_of(data.study).get("heatmap")
    return None if heatmap is None else make_diagram(data, heatmap)


def make_diagram(data: FigureData, heatmap: Figure) -> Diagram | None:
    """Return the map that `overfit plot heatmap` draws of these cells, as numbers.

    Each point has the heatmap's statistic with its 95 % interval, the least and the greatest value
    over seeds, the numbers of seeds with a value and without one, and the logged losses of a seed.

    Returns:
        The diagram; None where these cells make no map, or one with too few or too many points, one
        colour, or no number at half of its points or more.
    """
    try:
        options = resolve_options(heatmap, FigureOptions(), data)
        plan = lay_out_map(data, options)
    except UserError:
        return None
    lengths = [len(plan.x.values), len(plan.y.values)]
    places = lengths[0] * lengths[1] * len(plan.grids)
    if plan.nothing or 2 * len(plan.numbers) <= places:
        return None
    if not FEWEST_VALUES <= max(lengths) <= MOST_VALUES:
        return None
    norm, columns = plan.norm, _logged_losses(data)
    bounds = natural_bounds(np.asarray(finite_column(data.cells, plan.value), dtype=np.float64))
    lines = map_lines(data, plan, options)
    return {
        "value": typeset(plan.label),
        "mean": MEANS[plan.mean],
        "why": plan.why,
        "x": _axis(plan.x),
        "y": _axis(plan.y),
        "colours": [
            to_hex(matplotlib.colormaps[RC["image.cmap"]](share)) for share in _colour_shares()
        ],
        "low": _json_number(norm.vmin),
        "middle": _json_number(float(norm.inverse(0.5))),
        "high": _json_number(norm.vmax),
        **_threshold(data, plan),
        "logged": [typeset(axis_label(data.study, name, logged=True)) for name in columns],
        "step": data.study.step,
        "lines": [{"name": name, "style": style} for name, style, _ in lines],
        "panels": [
            {
                "title": typeset(part.title),
                "lines": [paths[index] for *_, paths in lines],
                "places": _points(part.data, plan, grid, bounds, columns),
            }
            for index, (part, grid) in enumerate(zip(plan.parts, plan.grids, strict=True))
        ],
    }


def _threshold(data: FigureData, plan: Map) -> dict[str, Any]:
    study = data.study
    if study.threshold is None or plan.value != study.headline or not all(study.sides):
        return {}
    return {"threshold": study.threshold, "sides": list(study.sides)}


def _colour_shares() -> Sequence[float]:
    return [float(share) for share in np.linspace(0, 1, COLOURS)]


def _axis(axis: Axis) -> dict[str, Any]:
    for digits in (2, 3, 4, _FULL):
        short = [
            round_digits(value, digits) if isinstance(value, float) else value
            for value in axis.values
        ]
        if len(set(short)) == len(axis.values):
            break
    return {
        "label": typeset(axis.label),
        "values": [typeset(brief(value)) for value in axis.values],
        "ticks": [typeset(brief(value)) for value in short],
    }


def _points(
    data: FigureData,
    plan: Map,
    grid: Grid,
    bounds: tuple[float, float],
    columns: Sequence[str],
) -> list[dict[str, Any] | None]:
    names = [plan.y.name, plan.x.name]
    numbers = seed_numbers(data, plan.value)
    samples = dict(iter(numbers.groupby([data.cells[name] for name in names])))
    threshold = _threshold(data, plan).get("threshold")
    curves = _curves(data, names, plan.value, columns) if columns else {}
    statistic = Averaging(plan.mean, "interval")
    points: list[dict[str, Any] | None] = []
    for key in ((y, x) for y in plan.y.values for x in plan.x.values):
        if key not in samples:
            points.append(None)
            continue
        sample: Floats = np.asarray(samples[key], dtype=np.float64)
        arrived: Floats = np.asarray(sample[np.isfinite(sample)], dtype=np.float64)
        point: dict[str, Any] = {"seeds": arrived.size}
        if lost := sample.size - arrived.size:
            point["lost"] = lost
        if not is_lost(arrived.size, sample.size, plan.mean):
            point |= _summary(sample, arrived, statistic, bounds, plan.norm)
        if arrived.size and threshold is not None:
            point["above"] = int((arrived > threshold).sum())
        if key in curves:
            point["curve"] = curves[key]
        points.append(point)
    return points


def _summary(
    sample: Floats,
    arrived: Floats,
    statistic: Averaging,
    bounds: tuple[float, float],
    norm: Normalize,
) -> dict[str, Any]:
    middle, low, high = (ends[0] for ends in statistic.summarise(sample[None], bounds))
    shade = 0.5 if norm.vmin == norm.vmax else float(norm(middle))
    summary = {"middle": _json_number(middle), "colour": round(shade * (COLOURS - 1))}
    if arrived.size > 1:
        summary |= {"least": _json_number(arrived.min()), "most": _json_number(arrived.max())}
    has_interval = statistic.mean != "median" or sample.size >= FEWEST_FOR_MEDIAN
    if arrived.size > 1 and has_interval:
        summary |= {"from": _json_number(low), "to": _json_number(high)}
    return summary


def map_lines(data: FigureData, plan: Map, options: FigureOptions) -> list[MapLine]:
    """Return the lines that the heatmap draws over its colours: its contour and its equations.

    Returns:
        For each line what it is, its style, and its path in each panel as SVG writes it, in cells
        to the right and upward from the lower left corner; empty where it is out of view.
    """
    lines: list[MapLine] = []
    level = contour_level(data, options, plan)
    if level is not None:
        paths = [_path(_contour(grid.number, level)) for grid in plan.grids]
        name = f"{typeset(plan.label)} = {typeset(tick_number(level))}"
        lines.append((name, "contour", paths))
    names = (plan.x.name, plan.y.name)
    for equation in parse_equations(data, options, (plan.x, plan.y)):
        paths = []
        for part in plan.parts:
            constants = constants_of(equation, names, part.data.cells)
            x_span, y_span = (
                (float(axis.edges[0]), float(axis.edges[-1])) for axis in (plan.x, plan.y)
            )
            log_x, log_y = plan.x.scale == "log", plan.y.scale == "log"
            curve = equation_curve(
                equation, *names, x_span, y_span, constants, log_x=log_x, log_y=log_y
            )
            paths.append(_path(_in_cells(curve, plan)))
        text = equation_in_mathtext(equation, partial(formula_symbol, data.study))
        text += values_in_words(
            [constant_side(equation, names, part.data.cells) for part in plan.parts]
        )
        lines.append((typeset(text), "law", paths))
    return [line for line in lines if any(line[-1])]


def _contour(numbers: Floats, level: float) -> Floats:
    """The contour of numbers at a level, in cells; rows of nan separate its pieces."""
    heights = np.ma.masked_invalid(numbers)
    if min(heights.shape) < 2 or not heights.count() or not heights.min() < level < heights.max():
        return np.empty((0, 2))
    if level > 0 and heights.min() > 0:
        heights, level = np.ma.log(heights), float(np.log(level))
    drawn = MatplotlibFigure().add_subplot().contour(heights, levels=[level])
    gap = np.full((1, 2), np.nan)
    return np.concatenate([part + 0.5 for piece in drawn.allsegs[0] for part in (piece, gap)])


def _in_cells(curve: Floats, plan: Map) -> Floats:
    columns = [
        np.interp(axis.scaled(values), axis.scaled(axis.edges), np.arange(len(axis.edges)))
        for axis, values in ((plan.x, curve[:, 0]), (plan.y, curve[:, 1]))
    ]
    return np.column_stack(columns)


def _path(curve: Floats) -> str:
    pieces = np.split(curve, np.flatnonzero(np.isnan(curve).any(axis=1)))
    path = ""
    for piece in pieces:
        known = piece[np.isfinite(piece).all(axis=1)]
        if len(known) > 1:
            rows = np.unique(np.linspace(0, len(known) - 1, MOST_POINTS).round().astype(int))
            path += "M" + "L".join(f"{x:.2f} {y:.2f}" for x, y in known[rows].tolist())
    return path


def _logged_losses(data: FigureData) -> list[str]:
    if data.trajectories.empty:
        return []
    losses = [name for name in data.study.progress_columns if name.endswith("loss")]
    columns = losses or data.study.progress_columns[:1]
    return [name for name in columns if name in data.trajectories][:_MOST_CURVES]


def _curves(
    data: FigureData, names: Sequence[str], value: str, columns: Sequence[str]
) -> dict[Any, dict[str, Any]]:
    logged = dict(iter(data.trajectories.groupby("key")))
    curves: dict[Any, dict[str, Any]] = {}
    for key, cells in usable_cells(data, value).groupby(list(names)):
        candidates = cells[cells["key"].isin(logged.keys())].sort_values([value, "seed"])
        if candidates.empty:
            continue
        middle = candidates.iloc[(len(candidates) - 1) // 2]
        # Losses may be logged at some of the steps only.
        steps = logged[middle["key"]].dropna(subset=list(columns), how="all").sort_values("step")
        if steps.empty:
            continue
        rows = np.unique(np.linspace(0, len(steps) - 1, MOST_POINTS).round().astype(int))
        selected = steps.iloc[rows]
        curves[key] = {
            "seed": int(middle["seed"]),
            "steps": selected["step"].astype(int).tolist(),
            "columns": [[_json_number(loss) for loss in selected[name]] for name in columns],
        }
    return curves


def _json_number(number: Any) -> float | None:
    return round_digits(number, _DIGITS) if pd.notna(number) and np.isfinite(number) else None
