"""Small multiples: the same figure for each value of a parameter, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd

from overfit_cli.errors import UserError, nearest
from overfit_cli.figure import MOST_PANELS, FigureData
from overfit_cli.figures.axis import parameter_values, split_by, varying_parameters
from overfit_cli.figures.labels import RUN, is_word, setting, settings
from overfit_cli.parameters import Value, describe


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
    return [Panel(setting(data.study, by, value), _at(data, by, value)) for value in values[by]]


def panels_of_runs(data: FigureData, by: str | None) -> list[Panel]:
    """Split the data as `panels` does, and by the run directories that it is from.

    Raises:
        UserError: as `panels` does.
    """
    if not data.runs or by == RUN:
        return panels(data, by)
    every = [
        Panel(", ".join(filter(None, [of_run.title, part.title])), part.data)
        for of_run in panels(data, RUN)
        for part in panels(_of_one_run(of_run), by)
    ]
    if len(every) > MOST_PANELS:
        raise UserError(
            f"--by {by}: {len(data.runs)} run directories make {len(every)} panels of it; at most "
            f"{MOST_PANELS} fit side by side."
        )
    return every


def _of_one_run(panel: Panel) -> FigureData:
    """A run's data, as if it were drawn alone."""
    refined = panel.data.cells[RUN].isin(panel.data.refined_runs).any()
    return replace(panel.data, runs=(), refined=bool(refined))


def by_setting(data: FigureData) -> list[Panel]:
    """Split the data into the settings of all parameters that vary, in their order."""
    return [
        Panel(settings(data.study, values), replace(data, cells=cells))
        for values, cells in split_by(data, varying_parameters(data))
    ]


def panels_for_lines(data: FigureData, names: Sequence[str], most: int) -> str | None:
    """Return the parameter that makes panels where there would be more lines than colours.

    None where there are few enough, or where no one parameter's panels suffice, or where the lines
    differ by one number: shades of a colour tell those apart.

    Args:
        data: of the figure.
        names: parameters that vary, of whose settings each is a line.
        most: how many lines a panel shows.
    """
    few = not names or len(data.cells[list(names)].drop_duplicates()) <= most
    if few or is_one_number(data, names):
        return None
    return panels_that_help(data.cells, names, most)


def is_one_number(data: FigureData, names: Sequence[str]) -> bool:
    """Return whether lines differ by one parameter alone, which is a number."""
    described = describe(data.study.parameters)
    return len(names) == 1 and names[0] in described and not is_word(data.study, names[0])


def panels_that_help(cells: pd.DataFrame, names: Sequence[str], most: int) -> str | None:
    """Return the parameter whose panels leave few enough lines in each; None where none does.

    Args:
        cells: one row per cell.
        names: parameters that vary, of whose settings each is a line.
        most: how many lines a panel shows.
    """
    lines = cells[list(names)].drop_duplicates()
    for name in names:
        others = lines.drop(columns=name).drop_duplicates()
        if lines[name].nunique() <= MOST_PANELS and max(len(others), 1) <= most:
            return name
    return None


def _at(data: FigureData, by: str, value: Value) -> FigureData:
    planned = data.planned
    return replace(
        data,
        cells=data.cells[data.cells[by] == value],
        planned=planned[planned[by] == value] if by in planned else planned,
    )
