"""Panels: one for each value of a parameter, or for each run; rows of sample images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from overfit_cli.core.errors import BadValue
from overfit_cli.core.figure import MOST_PANELS
from overfit_cli.core.parameters import Value, describe
from overfit_cli.core.study import FigureData
from overfit_cli.core.text import suggestion
from overfit_cli.figures.labels import (
    RUN,
    brief,
    contrast,
    is_word,
    parameter_values,
    setting,
    settings,
    split_settings,
    varying_parameters,
)
from overfit_cli.figures.picture import Picture, styled
from overfit_cli.figures.style import COLUMN
from overfit_cli.stats.pairs import Pairs, pair_up


@dataclass(frozen=True)
class Panel:
    """A part of the data with its title; the title of a single panel is empty."""

    title: str
    data: FigureData


def panels(data: FigureData, by: str | None) -> list[Panel]:
    """Split the data by the values of the parameter `by`; None makes one panel."""
    if by is None:
        return [Panel("", data)]
    values = parameter_values(data)
    if by not in values:
        hint = suggestion(by, values)
        raise BadValue("by", by, f"{data.study.name} has no parameter {by!r}; {hint}")
    if len(values[by]) > MOST_PANELS:
        raise BadValue(
            "by",
            by,
            f"it has {len(values[by])} values here; at most {MOST_PANELS} fit side by side.",
        )
    return [
        Panel(setting(data.study, by, value), _panel_data(data, by, value)) for value in values[by]
    ]


def panels_of_runs(data: FigureData, by: str | None) -> list[Panel]:
    """Split the data by its run directories and as `panels` does."""
    if not data.runs or by == RUN:
        return panels(data, by)
    parts = [
        Panel(", ".join(filter(None, [run_panel.title, part.title])), part.data)
        for run_panel in panels(data, RUN)
        for part in panels(_single_run(run_panel), by)
    ]
    if len(parts) > MOST_PANELS:
        raise BadValue(
            "by",
            by,
            f"{len(data.runs)} run directories make {len(parts)} panels of it; at most "
            f"{MOST_PANELS} fit side by side.",
        )
    return parts


def _single_run(panel: Panel) -> FigureData:
    refined = panel.data.cells[RUN].isin(panel.data.refined_runs).any()
    return replace(panel.data, runs=(), refined=bool(refined))


def setting_panels(data: FigureData) -> list[Panel]:
    """Split the data by the settings of all parameters that vary, in order."""
    return [
        Panel(settings(data.study, values), replace(data, cells=cells))
        for values, cells in split_settings(data, varying_parameters(data))
    ]


def panels_for_lines(data: FigureData, names: Sequence[str], limit: int) -> str | None:
    """Return the parameter to make panels of where there would be more lines than colours.

    It is None where the lines are few enough, where no single parameter suffices, or where the
    lines differ by one number, so that shades of a colour show it.

    Args:
        limit: the largest number of lines of a panel.
    """
    fit = not names or len(data.cells[list(names)].drop_duplicates()) <= limit
    if fit or is_one_number(data, names):
        return None
    return panels_that_help(data.cells, names, limit)


def is_one_number(data: FigureData, names: Sequence[str]) -> bool:
    """Return whether lines differ by one parameter only, and it is a number."""
    described = describe(data.study.parameters)
    return len(names) == 1 and names[0] in described and not is_word(data.study, names[0])


def panels_that_help(cells: pd.DataFrame, names: Sequence[str], limit: int) -> str | None:
    """Return the parameter whose panels have few enough lines each; None without one.

    Args:
        limit: the largest number of lines of a panel.
    """
    lines = cells[list(names)].drop_duplicates()
    for name in names:
        remaining = lines.drop(columns=name).drop_duplicates()
        if lines[name].nunique() <= MOST_PANELS and max(len(remaining), 1) <= limit:
            return name
    return None


def _panel_data(data: FigureData, by: str, value: Value) -> FigureData:
    planned = data.planned
    return replace(
        data,
        cells=data.cells[data.cells[by] == value],
        planned=planned[planned[by] == value] if by in planned else planned,
    )


def side_by_side(
    names: Sequence[str], parts: Sequence[FigureData], needed: Sequence[str] = ()
) -> FigureData:
    """Return the data of several run directories together, with the column `run directory`.

    Args:
        needed: the columns that the figure draws: the axes and the measured one.
    """
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    for name, part in zip(names, parts, strict=True):
        _check_alike(first, part, names[0], name)
        if part.study.name != first.study.name:
            _check_has(part, needed, name, names[0])
    frames = [_tag_run(name, part) for name, part in zip(names, parts, strict=True)]
    cells, planned, trajectories = (
        pd.concat(list(column), ignore_index=True) for column in zip(*frames, strict=True)
    )
    return replace(
        first,
        cells=cells,
        planned=planned,
        trajectories=trajectories,
        refined=any(part.refined for part in parts),
        sparse=any(part.sparse for part in parts),
        boundary=first.boundary if len({part.boundary for part in parts}) == 1 else None,
        runs=tuple(names),
        refined_runs=frozenset(
            name for name, part in zip(names, parts, strict=True) if part.refined
        ),
        differs=_differences(names, parts) if _is_one_study(parts) else (),
        parts=dict(zip(names, parts, strict=True)),
    )


def _is_one_study(parts: Sequence[FigureData]) -> bool:
    return len({part.study.name for part in parts}) == 1


def _differing(parts: Sequence[FigureData]) -> dict[str, tuple[Value, ...]]:
    values = [parameter_values(part) for part in parts]
    differing = {}
    for parameter in values[0]:
        values_by_part = [part_values.get(parameter, ()) for part_values in values]
        if all(len(choices) == 1 for choices in values_by_part) and len(set(values_by_part)) > 1:
            differing[parameter] = tuple(choices[0] for choices in values_by_part)
    return differing


def _differences(names: Sequence[str], parts: Sequence[FigureData]) -> tuple[str, ...]:
    return tuple(
        f"{parameter} "
        + ", ".join(f"{brief(value)} ({name})" for name, value in zip(names, values, strict=True))
        for parameter, values in _differing(parts).items()
    )


def _check_alike(first: FigureData, second: FigureData, called: str, name: str) -> None:
    for varied_part, varied_name, fixed_part in ((first, called, second), (second, name, first)):
        unknown = set(varying_parameters(varied_part)) - set(describe(fixed_part.study.parameters))
        if unknown:
            raise BadValue(
                "from",
                name,
                f"{fixed_part.study.name} has no parameter {sorted(unknown)[0]!r}, which varies in "
                f"{varied_name}; name runs of the same parameters.",
            )


def _check_has(part: FigureData, needed: Sequence[str], name: str, first: str) -> None:
    for column in needed:
        frames = (part.cells, part.trajectories)
        if not any(column in frame and frame[column].notna().any() for frame in frames):
            raise BadValue(
                "from",
                name,
                f"its cells are of {part.study.name} and have no {column}, which the figure of "
                f"{first} draws; name runs of one study, or a column that both have.",
            )


def _tag_run(name: str, data: FigureData) -> list[pd.DataFrame]:
    marked = []
    for frame in (data.cells, data.planned, data.trajectories):
        keys = {"key": f"{name}/" + frame["key"].astype(str)} if "key" in frame else {}
        marked.append(frame.assign(**{RUN: name}, **keys))
    return marked


def difference(data: FigureData, minus: FigureData, name: str, value: str | None) -> FigureData:
    """Return data whose measured column is that of `data` minus that of `minus`, cell by cell.

    Cells form a pair where they have the same seed and the same value of each parameter that
    varies; without a common seed the means over seeds are subtracted.
    """
    column = value or data.study.headline
    varying = sorted({*varying_parameters(data), *varying_parameters(minus)})
    for part in (data, minus):
        for name_needed in (*varying, column):
            if name_needed not in part.cells:
                raise BadValue(
                    "minus", name, f"its cells and the others don't share {name_needed}."
                )
    seeds = [part.cells["seed"].nunique() for part in (data, minus)]
    pairs = pair_up(data.cells, minus.cells, varying, [column])
    if not pairs.both:
        raise BadValue(
            "minus",
            name,
            f"no cell of it has the seed and the values of "
            f"{', '.join(varying) or 'the parameters'} of a cell here.",
        )
    means = pairs.by == "means"
    return replace(
        data,
        cells=subtract(pairs.left, pairs.right, column),
        planned=data.planned if data.sparse else data.planned.iloc[:0],
        less=name,
        contrast=contrast(data.study, _differing([data, minus])),
        averaged=f"mean of {seeds[0]} seeds less mean of {seeds[1]} seeds" if means else "",
        unpaired=_unpaired(pairs, "places" if means else "cells"),
        differs=_differences(["here", name], [data, minus]),
        parts={"here": data, name: minus},
    )


def subtract(cells: pd.DataFrame, subtrahend: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return cells with the difference of their column to that of their counterparts.

    Args:
        column: the measured column; a pair with a failed cell has failed.
    """
    failed = (cells["status"] == "failed") | (subtrahend["status"] == "failed")
    numbers = cells[column].astype(float) - subtrahend[column].astype(float)
    changed = cells.assign(**{column: numbers}, status=np.where(failed, "failed", "done"))
    if "reason" not in cells or "reason" not in subtrahend:
        return changed
    reasons = cells["reason"].where(cells["status"] == "failed", subtrahend["reason"])
    return changed.assign(reason=reasons)


def _unpaired(pairs: Pairs, noun: str) -> str:
    if pairs.here == pairs.there == pairs.both:
        return ""
    return f"{pairs.both} of {pairs.here} {noun} here and of {pairs.there} there have a counterpart"


@dataclass(frozen=True)
class ImageRow:
    """A row of grey images.

    Attributes:
        images: each of shape (height, width); those beyond the number of columns are not shown.
        black, white: the levels that are shown as black and as white.
    """

    name: str
    images: Sequence[ArrayLike]
    black: float
    white: float


@styled
def draw_image_rows(rows: Sequence[ImageRow], columns: int) -> Picture:
    """Draw rows of images with a number of columns, as wide as a paper's column."""
    height = 0.15 + 0.95 * COLUMN / columns * len(rows)
    figure = Picture(COLUMN, height)
    grid = figure.subplots(len(rows), columns, squeeze=False)
    for axes_of_row, row in zip(grid, rows, strict=True):
        axes_of_row[0].set_ylabel(row.name, fontsize="small")
        for axes, image in zip(axes_of_row, row.images, strict=False):
            axes.imshow(image, cmap="gray", vmin=row.black, vmax=row.white)
        for axes in axes_of_row:
            axes.set(xticks=[], yticks=[])
    return figure
