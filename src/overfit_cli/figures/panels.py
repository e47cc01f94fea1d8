"""Panels: one for each value of a parameter, or for each run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from matplotlib.typing import ColorType

from overfit_cli.core.cells import Cells
from overfit_cli.core.errors import BadValue
from overfit_cli.core.figure import MOST_PANELS
from overfit_cli.core.parameters import Value, describe
from overfit_cli.core.study import RUN, Field
from overfit_cli.core.text import suggestion
from overfit_cli.figures.labels import axis_label, brief, contrast, is_word, literal, setting
from overfit_cli.figures.style import PALETTE
from overfit_cli.stats.pairs import pair_up


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
    for name in by:
        if name not in data.values:
            hint = suggestion(name, data.values)
            raise BadValue("by", name, f"{data.study.name} has no parameter {name!r}; {hint}")
    parts = [
        Panel(", ".join(setting(data.schema, *each) for each in values.items()), part)
        for values, part in data.settings(by)
    ]
    if len(parts) > MOST_PANELS:
        accepts = f"it makes {len(parts)} panels here; at most {MOST_PANELS} fit side by side."
        raise BadValue("by", by[-1], accepts)
    return parts


def panels_of_runs(data: Cells, by: str | None) -> list[Panel]:
    """Split the data by its run directories and as `panels` does."""
    return panels(data, RUN if data.run_names else None, by)


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
        schema=first.schema.with_field(
            Field(RUN, "literal", choices=tuple(names), label="run", role="cell")
        ),
        read_steps=lambda: pd.concat(
            [_tagged(name, part.steps) for name, part in called], ignore_index=True
        ),
        runs=tuple(replace(run, name=name) for name, part in called for run in part.runs),
        differs=_differences(names, parts) if is_one_study else (),
        parts=dict(called),
    )


def _differing(parts: Sequence[Cells]) -> dict[str, tuple[Value, ...]]:
    """The parameters with one value in each part that is not the same, and these values."""
    every = [part.values for part in parts]
    taken = {name: [values.get(name, ()) for values in every] for name in every[0]}
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
        unknown = {*varied.varying()} - {*describe(fixed.study.parameters)}
        if unknown:
            accepts = f"{fixed.study.name} has no parameter {min(unknown)!r}, which varies in "
            accepts += f"{varied_name}; name runs of the same parameters."
            raise BadValue("from", name, accepts)


def _tagged(name: str, frame: pd.DataFrame) -> pd.DataFrame:
    keys = {"key": f"{name}/" + frame["key"].astype(str)} if "key" in frame else {}
    return frame.assign(**{RUN: name}, **keys)


def difference(data: Cells, minus: Cells, called: tuple[str, str], column: str) -> Cells:
    """Return cells whose column is its difference to that of their counterparts.

    Counterparts have the same seed and values of the parameters that vary. Without a seed in common
    means over seeds are subtracted. The rows are of these cells; where these are published points,
    which have no keys, of the others. The label of the column says what is subtracted.

    Args:
        called: the names of both.
    """
    parts, varied = [data, minus], {*data.varying(), *minus.varying()}
    names = [n for n in dict.fromkeys([*data.parameters, *minus.parameters]) if n in varied]
    for name in (*names, column):
        if any(name not in part.frame for part in parts):
            accepts = f"its cells and the others don't share {name}."
            raise BadValue("minus", called[1], accepts)
    pairs = pair_up(data.trained, minus.trained, names, [column])
    if not pairs.both:
        shared = ", ".join(names) or "the parameters"
        accepts = f"no cell of it has the seed and the values of {shared} of a cell here."
        raise BadValue("minus", called[1], accepts)
    left, right = pairs.left, pairs.right
    failed = (left["status"] == "failed") | (right["status"] == "failed")
    reasons = [side.get("reason", pd.Series("", side.index)) for side in (left, right)]
    cells, rows = (data, left) if "key" in left else (minus, right)
    changed = rows.assign(
        **{column: left[column].astype(float) - right[column].astype(float)},
        status=np.where(failed, "failed", "done"),
        reason=reasons[0].where(left["status"] == "failed", reasons[1]),
    )
    field, differing = data.schema[column], _differing(parts)
    less = f", less that of {literal(called[1])}"
    less = f": {contrast(data.schema, *differing.items())}" if len(differing) == 1 else less
    label = f"{axis_label(data.schema, column)}{less}"
    # A number that one side missed is no difference: it is not known.
    field = replace(field, label=label, unit="", symbol="", reached=True, diverges=False)
    return replace(
        cells.with_trained(changed) if cells.run.sparse else cells.without_plan(changed),
        schema=cells.schema.with_field(field),
        pairs=pairs,
        differs=_differences(called, parts),
        parts=dict(zip(called, parts, strict=True)),
    )
