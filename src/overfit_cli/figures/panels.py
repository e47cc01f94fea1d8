"""Small multiples: the same figure for each value of a parameter, side by side."""

from __future__ import annotations

from dataclasses import dataclass, replace

from overfit_cli.errors import UserError, nearest
from overfit_cli.figure import MOST_PANELS, FigureData
from overfit_cli.figures.axis import parameter_values
from overfit_cli.figures.style import brief
from overfit_cli.parameters import Value


@dataclass(frozen=True)
class Panel:
    """A part of the data with a title of its own; empty where it is all of it."""

    title: str
    data: FigureData


def panels(data: FigureData, by: str | None) -> list[Panel]:
    """Split the data by the values of the parameter `by`; None leaves it whole.

    Raises:
        UserError: if `by` is no parameter, or has more values than fit on a page.
    """
    if by is None:
        return [Panel("", data)]
    values = parameter_values(data)
    if by not in values:
        known = nearest(by, values)
        raise UserError(f"--by {by}: {data.study.name} has no parameter {by!r}; {known}")
    if len(values[by]) > MOST_PANELS:
        raise UserError(
            f"--by {by}: it has {len(values[by])} values here; at most {MOST_PANELS} fit side by "
            "side."
        )
    return [Panel(f"{by} = {brief(value)}", _at(data, by, value)) for value in values[by]]


def by_setting(data: FigureData) -> list[Panel]:
    """Split the data into the settings of all parameters that vary, in their order."""
    names = [name for name, values in parameter_values(data).items() if len(values) > 1]
    if not names:
        return [Panel("", data)]
    found = []
    for setting, cells in data.cells.groupby(names, sort=True):
        values = dict(zip(names, setting, strict=True))
        title = ", ".join(f"{name} = {brief(value)}" for name, value in values.items())
        found.append(Panel(title, replace(data, cells=cells)))
    return found


def _at(data: FigureData, by: str, value: Value) -> FigureData:
    planned = data.planned
    return replace(
        data,
        cells=data.cells[data.cells[by] == value],
        planned=planned[planned[by] == value] if by in planned else planned,
    )
