"""A choice of cells by the values of their parameters or seeds: `n=5:20`, `kernel=softmax`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from overfit_cli.errors import UserError, nearest, shortened
from overfit_cli.figure import FigureData
from overfit_cli.parameter_values import parse_value
from overfit_cli.parameters import ParameterInfo, Value, describe, parameter_named

if TYPE_CHECKING:
    import pandas as pd

    from overfit_cli.study import AnyStudy

_SEED = ParameterInfo("seed", "int", 0, "seed", "", "", (), "a whole number of at least 0")
_CLOSE = 1e-9
"""Real numbers that differ by less, relative to themselves, are one value."""


@dataclass(frozen=True)
class Selection:
    """A condition on one parameter, or on the seed.

    Attributes:
        name: the parameter's, or `seed`.
        text: what the user wrote, for messages.
        values: those that are chosen; with `between`, the two ends of a range.
        between: whether everything between the two ends is chosen.
        flag: the flag that gave it, for messages.
    """

    name: str
    text: str
    values: tuple[Value, ...]
    between: bool
    flag: str = "--where"

    def holds(self, column: pd.Series[Any]) -> pd.Series[bool]:
        """Return which rows are chosen."""
        if self.between:
            low, high = (cast(float, value) for value in self.values)
            slack = _CLOSE * max(abs(low), abs(high))
            return column.between(low - slack, high + slack)
        if column.dtype.kind != "f":
            return column.isin(self.values)
        wanted = np.array(self.values, dtype=np.float64)
        near = np.isclose(column.to_numpy()[:, None], wanted, rtol=_CLOSE, atol=0).any(1)
        chosen: pd.Series[bool] = column.notna() & near
        return chosen


def read_selections(
    texts: Sequence[str], study: AnyStudy, flag: str = "--where"
) -> list[Selection]:
    """Read conditions such as `n=5:20`, `snr=0.1:16`, `kernel=softmax,gaussian` or `seed=0:9`.

    A parameter may be called by its symbol: `SNR=0.1:16`.

    Raises:
        UserError: for a name that is no parameter of the study, or a value that it doesn't take.
    """
    known = {**describe(study.parameters), "seed": _SEED}
    return [_read(text, known, study, flag) for text in texts]


def _read(text: str, known: Mapping[str, ParameterInfo], study: AnyStudy, flag: str) -> Selection:
    written, equals, values = (part.strip() for part in text.partition("="))
    name = parameter_named(study.parameters, written)
    if not equals or not name or not values:
        raise UserError(
            f"{flag} {shortened(text)}: write NAME=VALUE, NAME=LOW:HIGH or a list NAME=A,B."
        )
    if name not in known:
        hint = nearest(name, known)
        raise UserError(f"{flag} {shortened(text)}: {study.name} has no parameter {name!r}; {hint}")
    info, said = known[name], f"{flag} {written}"
    between = values.count(":") == 1 and info.kind in ("int", "float")
    parts = values.split(":" if between else ",")
    read = tuple(parse_value(info, part, said) for part in parts)
    if between and cast(float, read[0]) > cast(float, read[1]):
        raise UserError(f"{flag} {shortened(text)}: the range runs backwards.")
    return Selection(name, text, read, between, flag)


def chosen_cells(cells: pd.DataFrame, selections: Sequence[Selection]) -> pd.DataFrame:
    """Return the rows that all conditions choose.

    Raises:
        UserError: if none is left, naming the condition that leaves none.
    """
    for one in selections:
        if one.name not in cells:  # those of an older version of the study may lack a parameter
            raise UserError(f"{one.flag} {one.text}: these cells don't hold {one.name}.")
        left = cells[one.holds(cells[one.name])]
        if left.empty and not cells.empty:
            there = sorted(cells[one.name].dropna().unique().tolist())
            some = ", ".join(str(value) for value in there[:6])
            more = " and more" if len(there) > 6 else ""
            raise UserError(f"{one.flag} {one.text}: no cell has that; there is {some}{more}.")
        cells = left
    return cells


def chosen_data(data: FigureData, texts: Sequence[str]) -> FigureData:
    """Return what a figure is drawn from, of the chosen cells alone.

    Raises:
        UserError: see `read_selections` and `chosen_cells`.
    """
    if not texts:
        return data
    selections = read_selections(texts, data.study)
    cells = chosen_cells(data.cells, selections)
    planned, steps = data.planned, data.trajectories
    for one in selections:
        planned = planned[one.holds(planned[one.name])] if one.name in planned else planned
    steps = steps[steps["key"].isin(cells["key"])] if "key" in steps else steps
    return replace(data, cells=cells, planned=planned, trajectories=steps)
