"""Interactive phase diagrams of the page, with the numbers over seeds at each point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.colors import LogNorm, Normalize, to_hex

from overfit_cli.core.errors import UserError
from overfit_cli.core.figure import Figure, FigureOptions
from overfit_cli.core.study import FigureData
from overfit_cli.core.text import round_digits
from overfit_cli.figures.axes import Axis
from overfit_cli.figures.heatmap import Map, lay_out_map
from overfit_cli.figures.inputs import choose_scale, resolve_options, usable_cells
from overfit_cli.figures.labels import axis_label, brief, typeset
from overfit_cli.figures.style import RC
from overfit_cli.stats.intervals import t_half_width

Diagram = Mapping[str, Any]
"""The data of a diagram for the page's script, which can be written as JSON."""

COLOURS = 32
MOST_VALUES = 100
"""The limit of values along an axis: a reader cannot point at smaller points."""
MOST_POINTS = 40
"""The limit of steps of a loss curve."""

_MOST_CURVES = 2
_DIGITS = 4


def make_diagram(data: FigureData, heatmap: Figure) -> Diagram | None:
    """Return the map that `overfit plot heatmap` draws of these cells, as numbers.

    Each point has the mean with its 95 % t interval, the least and the greatest value over seeds,
    the numbers of seeds with a value, without one, and failed, and the logged losses of a seed.

    Args:
        data: the data of the map.
        heatmap: the study's figure.

    Returns:
        The diagram; None where these cells make no map, or one with too many points.
    """
    try:
        plan = lay_out_map(data, resolve_options(heatmap, FigureOptions(), data))
    except UserError:
        return None
    if max(len(plan.x.values), len(plan.y.values)) > MOST_VALUES:
        return None
    means = pd.Series(np.concatenate([grid.mean.ravel() for grid in plan.grids])).dropna()
    if means.empty:
        return None
    low, high = float(means.min()), float(means.max())
    logarithmic = choose_scale(None, means, factor=100)
    norm = LogNorm(low, high) if logarithmic else Normalize(low, high)
    columns = _logged_losses(data)
    return {
        "value": typeset(plan.label),
        "x": _axis(plan.x),
        "y": _axis(plan.y),
        "colours": [
            to_hex(matplotlib.colormaps[RC["image.cmap"]](share)) for share in _colour_shares()
        ],
        "low": _json_number(low),
        "middle": _json_number(float(norm.inverse(0.5))),
        "high": _json_number(high),
        **_threshold(data, plan),
        "logged": [typeset(axis_label(data.study, name, logged=True)) for name in columns],
        "step": data.study.step,
        "panels": [
            {"title": typeset(part.title), "places": _points(part.data, plan, norm, columns)}
            for part in plan.parts
        ],
    }


def _threshold(data: FigureData, plan: Map) -> dict[str, Any]:
    """The study's threshold and the names of its sides, for a map of its headline."""
    study = data.study
    if study.threshold is None or plan.value != study.headline or not all(study.sides):
        return {}
    return {"threshold": study.threshold, "sides": list(study.sides)}


def _colour_shares() -> Sequence[float]:
    """The shares of the colour map of the colours, from 0 to 1."""
    return [float(share) for share in np.linspace(0, 1, COLOURS)]


def _axis(axis: Axis) -> dict[str, Any]:
    """The label of an axis and its values, in full and shortened for ticks."""
    short = [round_digits(value, 2) if isinstance(value, float) else value for value in axis.values]
    return {
        "label": typeset(axis.label),
        "values": [typeset(brief(value)) for value in axis.values],
        "ticks": [typeset(brief(value)) for value in short],
    }


def _points(
    data: FigureData, plan: Map, norm: Normalize, columns: Sequence[str]
) -> list[dict[str, Any] | None]:
    """The points of a panel, the lowest row first; None without cells."""
    names = [plan.y.name, plan.x.name]
    usable = usable_cells(data, plan.value)
    grouped = usable.groupby(names)[plan.value]
    statistics = grouped.agg(["mean", "std", "count", "min", "max"]).to_dict("index")
    above = {}
    if "threshold" in _threshold(data, plan):
        is_above = usable[plan.value] > data.study.threshold
        above = is_above.groupby([usable[name] for name in names]).sum().to_dict()
    is_failed = data.cells["status"] == "failed"
    failed = data.cells[is_failed].groupby(names).size().to_dict()
    no_number = data.cells[~is_failed & ~data.cells["key"].isin(usable["key"])]
    valueless = no_number.groupby(names).size().to_dict()
    curves = _curves(data, names, plan.value, columns) if columns else {}
    points: list[dict[str, Any] | None] = []
    for key in ((y, x) for y in plan.y.values for x in plan.x.values):
        point: dict[str, Any] = {}
        if key in statistics:
            point = _numbers(statistics[key], norm)
        if key in above:
            point["above"] = int(above[key])
        if key in valueless:
            point["valueless"] = int(valueless[key])
        if key in failed:
            point["failed"] = int(failed[key])
        if key in curves:
            point["curve"] = curves[key]
        points.append(point or None)
    return points


def _numbers(row: Mapping[Any, float], norm: Normalize) -> dict[str, Any]:
    """The numbers over seeds at a point, and the number of its colour."""
    count, mean = int(row["count"]), float(row["mean"])
    shade = 0.5 if norm.vmin == norm.vmax else float(norm(mean))
    numbers = {
        "mean": _json_number(mean),
        "least": _json_number(row["min"]),
        "most": _json_number(row["max"]),
        "seeds": count,
        "colour": round(shade * (COLOURS - 1)),
    }
    if count > 1:
        half = float(t_half_width(row["std"], count))
        numbers |= {"from": _json_number(mean - half), "to": _json_number(mean + half)}
    return numbers


def _logged_losses(data: FigureData) -> list[str]:
    """The logged columns that are losses, or the first progress column."""
    if data.trajectories.empty:
        return []
    losses = [name for name in data.study.progress_columns if name.endswith("loss")]
    columns = losses or data.study.progress_columns[:1]
    return [name for name in columns if name in data.trajectories][:_MOST_CURVES]


def _curves(
    data: FigureData, names: Sequence[str], value: str, columns: Sequence[str]
) -> dict[Any, dict[str, Any]]:
    """The logged losses of the median seed, by point."""
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
    """A number with the digits that the page shows; None for nan and infinity."""
    return round_digits(number, _DIGITS) if pd.notna(number) and np.isfinite(number) else None
