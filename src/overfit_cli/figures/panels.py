"""Panels: one for each value of a parameter, or for each run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd
from matplotlib.typing import ColorType

from overfit_cli.core.cells import Cells
from overfit_cli.core.errors import BadValue
from overfit_cli.core.figure import MOST_PANELS
from overfit_cli.core.parameters import Value, describe
from overfit_cli.core.schema import RUN, Field
from overfit_cli.core.text import suggestion
from overfit_cli.figures.labels import (
    brief,
    contrast,
    is_word,
    parameter_values,
    setting,
    varying_parameters,
)
from overfit_cli.figures.style import PALETTE


@dataclass(frozen=True)
class Panel:
    """A part of the data with its title; the title of a single panel is empty.

    Attributes:
        colour: that of its only line, where panels have a line each.
    """

    title: str
    data: Cells
    colour: ColorType = PALETTE[0]


def panels(data: Cells, *names: str | None) -> list[Panel]:
    """Split the data by the values of parameters, in order; one that is None splits nothing."""
    by = list(dict.fromkeys(name for name in names if name is not None))
    if not by:
        return [Panel("", data)]
    values, first = parameter_values(data), by[0]
    if first not in values:
        hint = suggestion(first, values)
        raise BadValue("by", first, f"{data.study.name} has no parameter {first!r}; {hint}")
    parts = [
        Panel(", ".join(filter(None, [setting(data.schema, first, value), part.title])), part.data)
        for value in values[first]
        for part in panels(_with_value(data, first, value), *by[1:])
    ]
    if len(parts) > MOST_PANELS:
        accepts = f"it makes {len(parts)} panels here; at most {MOST_PANELS} fit side by side."
        raise BadValue("by", by[-1], accepts)
    return parts


def panels_of_runs(data: Cells, by: str | None) -> list[Panel]:
    """Split the data by its run directories and as `panels` does."""
    return panels(data, RUN if data.run_names else None, by)


def _with_value(data: Cells, name: str, value: Value) -> Cells:
    runs = tuple(run for run in data.runs if run.name == value) if name == RUN else data.runs
    return replace(data, frame=data.frame[data.frame[name] == value], runs=runs)


def panels_for_lines(data: Cells, names: Sequence[str]) -> str | None:
    """Return the parameter to make panels of where there would be more lines than colours.

    It is None where the lines are few enough, where no single parameter suffices, or where the
    lines differ by one number, so that shades of a colour show it.
    """
    lines = data.trained[list(names)].drop_duplicates()
    if not names or len(lines) <= len(PALETTE) or is_one_number(data, names):
        return None
    for name in names:
        remaining = lines.drop(columns=name).drop_duplicates()
        if lines[name].nunique() <= MOST_PANELS and max(len(remaining), 1) <= len(PALETTE):
            return name
    return None


def is_one_number(data: Cells, names: Sequence[str]) -> bool:
    """Return whether lines differ by one parameter only, and it is a number."""
    return len(names) == 1 and names[0] != RUN and not is_word(data.schema, names[0])


def side_by_side(names: Sequence[str], parts: Sequence[Cells], value: str = "") -> Cells:
    """Return the data of several run directories together, with the column `run directory`.

    Args:
        value: the column that the figure draws, which all of them have.
    """
    if len(parts) == 1:
        return parts[0]
    first, is_one_study = parts[0], len({part.study.name for part in parts}) == 1
    for name, part in zip(names, parts, strict=True):
        _check_alike(first, part, names[0], name)
        if value and not is_one_study and not {value} & {*part.frame, *part.steps}:
            accepts = f"its cells are of {part.study.name} and have no {value}, which the figure "
            accepts += f"of {names[0]} draws; name runs of one study, or a column that both have."
            raise BadValue("from", name, accepts)
    called = list(zip(names, parts, strict=True))
    return replace(
        first,
        frame=pd.concat([_tagged(name, part.frame) for name, part in called], ignore_index=True),
        schema=first.schema.with_field(Field(RUN, "text", label="run", role="cell")),
        read_steps=lambda: pd.concat(
            [_tagged(name, part.steps) for name, part in called], ignore_index=True
        ),
        runs=tuple(replace(run, name=name) for name, part in called for run in part.runs),
        differs=_differences(names, parts) if is_one_study else (),
        parts=dict(called),
    )


def _differing(parts: Sequence[Cells]) -> dict[str, tuple[Value, ...]]:
    values = [parameter_values(part) for part in parts]
    taken = {name: [each.get(name, ()) for each in values] for name in values[0]}
    return {
        name: tuple(choices[0] for choices in by_part)
        for name, by_part in taken.items()
        if all(len(choices) == 1 for choices in by_part) and len(set(by_part)) > 1
    }


def _differences(names: Sequence[str], parts: Sequence[Cells]) -> tuple[str, ...]:
    return tuple(
        f"{parameter} "
        + ", ".join(f"{brief(value)} ({name})" for name, value in zip(names, values, strict=True))
        for parameter, values in _differing(parts).items()
    )


def _check_alike(first: Cells, second: Cells, called: str, name: str) -> None:
    for varied, varied_name, fixed in ((first, called, second), (second, name, first)):
        unknown = {*varying_parameters(varied)} - {*describe(fixed.study.parameters)}
        if unknown:
            accepts = f"{fixed.study.name} has no parameter {min(unknown)!r}, which varies in "
            accepts += f"{varied_name}; name runs of the same parameters."
            raise BadValue("from", name, accepts)


def _tagged(name: str, frame: pd.DataFrame) -> pd.DataFrame:
    keys = {"key": f"{name}/" + frame["key"].astype(str)} if "key" in frame else {}
    return frame.assign(**{RUN: name}, **keys)


def difference(data: Cells, minus: Cells, names: tuple[str, str], column: str) -> Cells:
    """Return data less that of a run directory, with what differs between them in words."""
    parts = [data, minus]
    return replace(
        data.minus(minus, column, names[1]),
        contrast=contrast(data.schema, _differing(parts)),
        differs=_differences(names, parts),
        parts=dict(zip(names, parts, strict=True)),
    )
