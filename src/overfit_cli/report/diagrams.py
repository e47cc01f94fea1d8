"""Phase diagrams that a reader of the page explores, with the numbers over seeds at each place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.colors import LogNorm, Normalize, to_hex

from overfit_cli.core.figure import Figure, FigureOptions
from overfit_cli.core.study import FigureData
from overfit_cli.core.text import UserError
from overfit_cli.figures.axes import Axis
from overfit_cli.figures.heatmap import Map, lay_out_map
from overfit_cli.figures.inputs import checked_scale, resolved_options, usable_cells
from overfit_cli.figures.labels import axis_label, brief, typeset
from overfit_cli.figures.style import RC
from overfit_cli.stats.intervals import t_half_width

Diagram = Mapping[str, Any]
"""What the page's script draws one from; it can be written as JSON."""

COLOURS = 32
MOST_VALUES = 100
"""The limit of values along an axis: the places of a finer one can't be pointed at."""
MOST_POINTS = 40
"""The limit of steps of a loss curve."""

_MOST_CURVES = 2
_DIGITS = 4


def explorable(data: FigureData, heatmap: Figure) -> Diagram | None:
    """Return the map that `overfit plot heatmap` draws of these cells, as numbers.

    For each place: the mean with its 95 % t interval, the least and the most over seeds; how many
    seeds have a value, are done without one, and failed; and one seed's logged losses, where there
    are any.

    Args:
        data: what the map is drawn from.
        heatmap: the study's figure.

    Returns:
        None where these cells make no map, or one whose places are too small to point at.
    """
    try:
        shown = lay_out_map(data, resolved_options(heatmap, FigureOptions(), data))
    except UserError:
        return None
    if max(len(shown.x.values), len(shown.y.values)) > MOST_VALUES:
        return None
    means = pd.Series(np.concatenate([grid.mean.ravel() for grid in shown.grids])).dropna()
    if means.empty:
        return None
    low, high = float(means.min()), float(means.max())
    by_ratio = checked_scale(None, means, factor=100)
    norm = LogNorm(low, high) if by_ratio else Normalize(low, high)
    columns = _logged_losses(data)
    return {
        "value": typeset(shown.label),
        "x": _axis(shown.x),
        "y": _axis(shown.y),
        "colours": [to_hex(matplotlib.colormaps[RC["image.cmap"]](at)) for at in _places()],
        "low": _rounded(low),
        "middle": _rounded(float(norm.inverse(0.5))),
        "high": _rounded(high),
        **_threshold(data, shown),
        "logged": [typeset(axis_label(data.study, name, logged=True)) for name in columns],
        "step": data.study.step,
        "panels": [
            {"title": typeset(part.title), "places": _panel(part.data, shown, norm, columns)}
            for part in shown.parts
        ],
    }


def _threshold(data: FigureData, shown: Map) -> dict[str, Any]:
    """The study's threshold and what lies on either side, where the map is of its headline."""
    study = data.study
    if study.threshold is None or shown.value != study.headline or not all(study.sides):
        return {}
    return {"threshold": study.threshold, "sides": list(study.sides)}


def _places() -> Sequence[float]:
    """Where the colours lie on the map of colours, from 0 to 1."""
    return [float(at) for at in np.linspace(0, 1, COLOURS)]


def _axis(axis: Axis) -> dict[str, Any]:
    """What an axis is called, and its values: in full to be read, shortly to be ticks."""
    short = [float(f"{one:.2g}") if isinstance(one, float) else one for one in axis.values]
    return {
        "label": typeset(axis.label),
        "values": [typeset(brief(one)) for one in axis.values],
        "ticks": [typeset(brief(one)) for one in short],
    }


def _panel(
    data: FigureData, shown: Map, norm: Normalize, columns: Sequence[str]
) -> list[dict[str, Any] | None]:
    """The places of a panel, the lowest row first; None where there are no cells."""
    names = [shown.y.name, shown.x.name]
    usable = usable_cells(data, shown.value)
    of_place = usable.groupby(names)[shown.value]
    found = of_place.agg(["mean", "std", "count", "min", "max"]).to_dict("index")
    above = {}
    if "threshold" in _threshold(data, shown):
        is_above = usable[shown.value] > data.study.threshold
        above = is_above.groupby([usable[name] for name in names]).sum().to_dict()
    is_failed = data.cells["status"] == "failed"
    failed = data.cells[is_failed].groupby(names).size().to_dict()
    without = data.cells[~is_failed & ~data.cells["key"].isin(usable["key"])]
    valueless = without.groupby(names).size().to_dict()
    curves = _curves(data, names, shown.value, columns) if columns else {}
    places: list[dict[str, Any] | None] = []
    for at in ((y, x) for y in shown.y.values for x in shown.x.values):
        place: dict[str, Any] = {}
        if at in found:
            place = _numbers(found[at], norm)
        if at in above:
            place["above"] = int(above[at])
        if at in valueless:
            place["valueless"] = int(valueless[at])
        if at in failed:
            place["failed"] = int(failed[at])
        if at in curves:
            place["curve"] = curves[at]
        places.append(place or None)
    return places


def _numbers(row: Mapping[Any, float], norm: Normalize) -> dict[str, Any]:
    """The numbers over seeds at a place, and its colour's number."""
    count, mean = int(row["count"]), float(row["mean"])
    shade = 0.5 if norm.vmin == norm.vmax else float(norm(mean))
    place = {
        "mean": _rounded(mean),
        "least": _rounded(row["min"]),
        "most": _rounded(row["max"]),
        "seeds": count,
        "colour": round(shade * (COLOURS - 1)),
    }
    if count > 1:
        half = float(t_half_width(row["std"], count))
        place |= {"from": _rounded(mean - half), "to": _rounded(mean + half)}
    return place


def _logged_losses(data: FigureData) -> list[str]:
    """The logged columns that are losses, or the first that is shown while a cell trains."""
    if data.trajectories.empty:
        return []
    losses = [name for name in data.study.progress_columns if name.endswith("loss")]
    chosen = losses or data.study.progress_columns[:1]
    return [name for name in chosen if name in data.trajectories][:_MOST_CURVES]


def _curves(
    data: FigureData, names: Sequence[str], value: str, columns: Sequence[str]
) -> dict[Any, dict[str, Any]]:
    """The logged losses of the seed in the middle, by place."""
    logged = dict(iter(data.trajectories.groupby("key")))
    curves: dict[Any, dict[str, Any]] = {}
    for at, cells in usable_cells(data, value).groupby(list(names)):
        with_steps = cells[cells["key"].isin(logged.keys())].sort_values([value, "seed"])
        if with_steps.empty:
            continue
        middle = with_steps.iloc[(len(with_steps) - 1) // 2]
        # Losses may be logged at some steps alone.
        steps = logged[middle["key"]].dropna(subset=list(columns), how="all").sort_values("step")
        if steps.empty:
            continue
        some = np.unique(np.linspace(0, len(steps) - 1, MOST_POINTS).round().astype(int))
        chosen = steps.iloc[some]
        curves[at] = {
            "seed": int(middle["seed"]),
            "steps": chosen["step"].astype(int).tolist(),
            "columns": [[_rounded(one) for one in chosen[name]] for name in columns],
        }
    return curves


def _rounded(number: Any) -> float | None:
    """A number with the digits that a reader is shown; JSON has neither nan nor infinity."""
    return float(f"{number:.{_DIGITS}g}") if pd.notna(number) and np.isfinite(number) else None
