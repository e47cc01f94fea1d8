"""A parameter along an axis: its values in order, their scale, and their ticks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import matplotlib.axes
import numpy as np
from matplotlib.ticker import AutoLocator, MaxNLocator, NullLocator
from numpy.typing import NDArray

from overfit_cli.errors import UserError, nearest
from overfit_cli.figure import FigureData
from overfit_cli.figures.style import HIGH, WIDE, log_ticks, plain, wrapped
from overfit_cli.parameters import Value, describe
from overfit_cli.study import AnyStudy

Floats = NDArray[np.float64]
FEW = 8  # up to so many values, each has its own tick


@dataclass(frozen=True)
class Axis:
    """A parameter along an axis.

    Attributes:
        name: the parameter.
        label: its meaning, symbol and unit.
        values: the values that occur, in order.
        scale: `linear`, `log`, or `category` for what isn't a number.
        whole: whether its values are whole numbers.
    """

    name: str
    label: str
    values: tuple[Value, ...]
    scale: Literal["linear", "log", "category"]
    whole: bool

    @property
    def positions(self) -> Floats:
        """Where the values lie, ascending, of shape (values,); categories at 0, 1, 2, ..."""
        if self.scale == "category":
            return np.arange(len(self.values), dtype=np.float64)
        return np.array(self.values, dtype=np.float64)

    @property
    def edges(self) -> Floats:
        """The borders of the values' cells, midway between neighbours, of shape (values + 1,)."""
        at = np.log(self.positions) if self.scale == "log" else self.positions
        middle = (at[1:] + at[:-1]) / 2
        edges = np.concatenate([[2 * at[0] - middle[0]], middle, [2 * at[-1] - middle[-1]]])
        return np.exp(edges) if self.scale == "log" else edges

    def dress(self, axes: matplotlib.axes.Axes, side: Literal["x", "y"]) -> None:
        """Set scale, limits, ticks and label of one side of `axes`."""
        scale = "log" if self.scale == "log" else "linear"
        edges = self.edges
        limits, label = (edges[0], edges[-1]), wrapped(self.label, WIDE if side == "x" else HIGH)
        axes.set(**{f"{side}scale": scale, f"{side}lim": limits, f"{side}label": label})
        axis = axes.xaxis if side == "x" else axes.yaxis
        if self.scale == "category" or self._has_room_for_each():
            axis.set_ticks(list(self.positions), [_short(value) for value in self.values])
            axis.set_minor_locator(NullLocator())
        elif self.scale == "log":
            log_ticks(axis, edges[0], edges[-1])
        else:
            axis.set_major_locator(MaxNLocator(integer=True) if self.whole else AutoLocator())

    def _has_room_for_each(self) -> bool:
        at = np.log(self.positions) if self.scale == "log" else self.positions
        return bool(at.size <= FEW and np.diff(at).min() > 0.08 * (at[-1] - at[0]))


def axis_label(study: AnyStudy, name: str) -> str:
    """Return the label of a parameter or column: meaning, symbol and unit, in mathtext.

    What has no meaning given is called by its name.

    Raises:
        UserError: if the study has neither a parameter nor a column of that name.
    """
    parameters = describe(study.parameters)
    columns = {column.name: column for column in (*study.columns, *study.trajectory_columns)}
    if name in {"steps", "step"}:
        return study.step
    if name not in parameters and name not in columns:
        known = [*parameters, *columns, "steps"]
        raise UserError(f"{study.name} has no column {name!r}; {nearest(name, known)}")
    described = parameters[name] if name in parameters else columns[name]
    symbol = f" ${described.symbol}$" if described.symbol else ""
    unit = f" ({described.unit})" if described.unit else ""
    return f"{described.meaning or name.replace('_', ' ')}{symbol}{unit}"


def parameter_values(data: FigureData) -> dict[str, tuple[Value, ...]]:
    """Return the values that each parameter takes in cells and plan, in order, by its name."""
    found: dict[str, tuple[Value, ...]] = {}
    for name, info in describe(data.study.parameters).items():
        columns = [frame[name] for frame in (data.cells, data.planned) if name in frame]
        values = {value for column in columns for value in column.dropna().unique().tolist()}
        if info.kind == "literal":
            found[name] = tuple(choice for choice in info.choices if choice in values)
        else:
            found[name] = tuple(sorted(values))
    return found


def parameter_axis(data: FigureData, flag: str, name: str | None) -> Axis:
    """Lay the parameter `name`, which the user gave as `flag`, along an axis.

    Raises:
        UserError: if it isn't a parameter of the study, or has fewer than two values here.
    """
    every = parameter_values(data)
    varying = [parameter for parameter, values in every.items() if len(values) > 1]
    hint = f"here vary: {', '.join(varying)}" if varying else "no parameter varies here"
    if name is None:
        raise UserError(f"{flag}: this figure needs the name of a parameter; {hint}.")
    if name not in every:
        raise UserError(
            f"{flag} {name}: {data.study.name} has no parameter {name!r}; {nearest(name, every)}"
        )
    label = axis_label(data.study, name)
    if name not in varying:
        raise UserError(f"{flag} {name}: {name} has one value in these cells; {hint}.")
    info = describe(data.study.parameters)[name]
    numeric = info.kind in ("int", "float")
    scale = _scale(every[name]) if numeric else "category"
    return Axis(name, label, every[name], scale, whole=info.kind == "int")


def _short(value: Value) -> str:
    return plain(float(f"{value:.3g}")) if isinstance(value, float) else str(value)


def _scale(values: tuple[Value, ...]) -> Literal["linear", "log"]:
    """Return the scale on which `values` are spaced more evenly."""
    at = np.array(values, dtype=np.float64)
    if at.size < 3 or at[0] <= 0:
        return "linear"
    gaps, ratios = np.diff(at), np.diff(np.log(at))
    return "log" if ratios.std() / ratios.mean() < gaps.std() / gaps.mean() else "linear"
