"""Axes: scales, ticks, labels.

Names as figures write them: parameters, columns, settings and equations.

A parameter along an axis: its values in order, their scale, and their ticks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

import matplotlib.axes
import numpy as np
import pandas as pd
from matplotlib.ticker import AutoLocator, MaxNLocator, NullLocator, ScalarFormatter
from numpy.typing import NDArray

from overfit_cli.core.figure import FigureData
from overfit_cli.core.parameters import Value, describe, parameter_named
from overfit_cli.core.study import AnyStudy
from overfit_cli.core.text import UserError, nearest
from overfit_cli.figures.style import HIGH, WIDE, brief, literal, log_ticks, plain, wrapped
from overfit_cli.stats.pairs import by_ratio

RUN = "run directory"
"""The name under which run directories vary, as a parameter does; no parameter can have it."""


def axis_label(study: AnyStudy, name: str, *, logged: bool = False) -> str:
    """Return the label of a parameter or column: a few words, symbol and unit, in mathtext.

    What has no words given is called by its name.

    Args:
        study: whose parameter or column it is.
        name: its name.
        logged: whether a column of trajectories is meant, if one of cells has the same name.

    Raises:
        UserError: if the study has neither a parameter nor a column of that name.
    """
    if name in {"steps", "step"}:
        return study.step
    if name in {"seconds", RUN}:
        return {"seconds": "time (s)", RUN: "run"}[name]
    parameters = describe(study.parameters)
    of_cells, of_steps = study.columns, study.trajectory_columns
    both = (*of_cells, *of_steps) if logged else (*of_steps, *of_cells)  # the last of a name stays
    columns = {column.name: column for column in both}
    if name not in parameters and name not in columns:
        known = [*parameters, *columns, "steps"]
        raise UserError(f"{study.name} has no column {name!r}; {nearest(name, known)}")
    described = parameters[name] if name in parameters else columns[name]
    words = described.label or described.meaning or name.replace("_", " ")
    symbol = f" ${described.symbol}$" if described.symbol else ""
    unit = f" ({described.unit})" if described.unit else ""
    return f"{words}{symbol}{unit}"


def opening(label: str) -> str:
    """Return a label as a sentence begins with it: capital, and a comma after it if it has one."""
    return f"{label[:1].upper()}{label[1:]}{',' if ',' in label else ''}"


def symbol_of(study: AnyStudy, name: str) -> str:
    """Return what stands for a parameter or column in a formula, in mathtext without dollars."""
    columns = {column.name: column for column in (*study.columns, *study.trajectory_columns)}
    described = describe(study.parameters).get(name) or columns.get(name)
    if described is not None and described.symbol:
        return described.symbol
    word = name.replace("_", r"\_")
    return rf"\mathrm{{{word}}}"


def setting(study: AnyStudy, name: str, value: object) -> str:
    """Return a parameter's value for a title: `$N$ = 5`, `attention kernel: softmax`, `seed 3`."""
    if is_word(study, name):
        return f"{describe(study.parameters)[name].label}: {literal(str(value))}"
    return short_setting(study, name, value)


def short_setting(study: AnyStudy, name: str, value: object) -> str:
    """Return a parameter's value for a legend, where words stand for themselves: `softmax`."""
    if name in (RUN, "seed"):
        return literal(str(value)) if name == RUN else f"seed {value}"
    info = describe(study.parameters)[name]
    if is_word(study, name):
        return literal(str(value))
    called = f"${info.symbol}$" if info.symbol else info.label
    unit = f" {info.unit}" if info.unit else ""
    return f"{called} = {brief(value)}{unit}"


def is_word(study: AnyStudy, name: str) -> bool:
    """Return whether a parameter's values are words."""
    described = describe(study.parameters)
    return name in described and described[name].kind in ("literal", "text")


def settings(study: AnyStudy, values: Mapping[str, object]) -> str:
    """Return several parameters' values for a title, with commas between."""
    return ", ".join(setting(study, name, value) for name, value in values.items())


def short_settings(study: AnyStudy, values: Mapping[str, object]) -> str:
    """Return several parameters' values for a legend, whose heading names what words are of."""
    return ", ".join(short_setting(study, name, value) for name, value in values.items())


def heading(study: AnyStudy, names: Collection[str]) -> str:
    """Return a legend's heading: the parameters whose values stand in it as words."""
    described = describe(study.parameters)
    return ", ".join(described[name].label for name in names if is_word(study, name))


def spellings(study: AnyStudy, names: Collection[str]) -> dict[str, str]:
    """Return how each of some parameters may be spelled in an equation: its name, its symbol."""
    found = {name: name for name in names}
    for name, info in describe(study.parameters).items():
        for symbol in info.spelled_symbols if name in names else ():
            if parameter_named(study.parameters, symbol) == name:
                found[symbol] = name
    return found


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
        """The borders of the values' cells, midway between neighbours, of shape (values + 1,).

        Of many numbers the first and the last are borders themselves: no colour lies beyond what
        was measured. Few have whole cells.
        """
        at = self.scaled(self.positions)
        middle = (at[1:] + at[:-1]) / 2
        ends = [at[0], at[-1]]
        if self.scale == "category" or at.size <= FEW:
            ends = [2 * at[0] - middle[0], 2 * at[-1] - middle[-1]]
            if self.scale == "linear" and at[0] > 0:
                ends[0] = max(ends[0], at[0] / 2)  # a positive parameter stays so
        edges = np.concatenate([ends[:1], middle, ends[1:]])
        return self.unscaled(edges)

    def scaled(self, at: Floats) -> Floats:
        """Return places on the axis on the scale on which they are drawn evenly."""
        return np.log(at) if self.scale == "log" else at

    def unscaled(self, at: Floats) -> Floats:
        """Return the places that `scaled` gives these for."""
        return np.exp(at) if self.scale == "log" else at

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
        elif self.whole and (self.scale == "linear" or edges[-1] < 4 * edges[0]):
            axis.set_major_locator(MaxNLocator("auto", integer=True))
            axis.set_major_formatter(ScalarFormatter())
            axis.set_minor_locator(NullLocator())
        elif self.scale == "log":
            log_ticks(axis, edges[0], edges[-1])
        else:
            axis.set_major_locator(AutoLocator())

    def _has_room_for_each(self) -> bool:
        at = self.scaled(self.positions)
        return bool(at.size <= FEW and np.diff(at).min() > 0.08 * (at[-1] - at[0]))


def parameter_values(data: FigureData) -> dict[str, tuple[Value, ...]]:
    """Return the values that each parameter takes in cells and plan, in order, by its name."""
    found: dict[str, tuple[Value, ...]] = {RUN: data.runs} if data.runs else {}
    for name, info in describe(data.study.parameters).items():
        columns = [frame[name] for frame in (data.cells, data.planned) if name in frame]
        values = {value for column in columns for value in column.dropna().unique().tolist()}
        if info.kind == "literal":
            found[name] = tuple(choice for choice in info.choices if choice in values)
        else:
            found[name] = tuple(sorted(values))
        if data.runs and len(values) > 1 and not _varies_within_a_run(data, name):
            found[name] = found[name][:1]  # the run says which
    return found


def _varies_within_a_run(data: FigureData, name: str) -> bool:
    return bool((data.cells.groupby(RUN)[name].nunique() > 1).any())


def varying_parameters(data: FigureData) -> list[str]:
    """Return the names of the parameters that take several values, run directories among them."""
    return [name for name, values in parameter_values(data).items() if len(values) > 1]


def split_by(
    data: FigureData, names: Sequence[str]
) -> Iterator[tuple[dict[str, Value], pd.DataFrame]]:
    """Give the cells of each setting of some parameters with its values, in their order."""
    if not names:
        yield {}, data.cells
        return
    places = {
        name: {value: place for place, value in enumerate(values)}
        for name, values in parameter_values(data).items()
    }
    places["seed"] = {seed: seed for seed in data.cells["seed"].unique()}
    order = pd.DataFrame({name: data.cells[name].map(places[name]) for name in names})
    for _, at in order.reset_index(drop=True).groupby(list(names), sort=True):
        cells = data.cells.iloc[at.index]
        yield {name: cells[name].iloc[0] for name in names}, cells


def parameter_axis(
    data: FigureData, flag: str, name: str | None, *, log: bool | None = None
) -> Axis:
    """Lay the parameter `name`, which the user gave as `flag`, along an axis.

    Args:
        data: of the figure.
        flag: for messages.
        name: the parameter's.
        log: whether the axis is logarithmic; None for what spaces its values more evenly.

    Raises:
        UserError: if it isn't a parameter of the study, has fewer than two values here, or can't
            be logarithmic.
    """
    every, varying = parameter_values(data), varying_parameters(data)
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
    kind = "run" if name == RUN else describe(data.study.parameters)[name].kind
    scale = _scale(every[name]) if kind in ("int", "float") else "category"
    if log is not None and scale != "category":
        scale = "log" if log else "linear"
    if log and scale == "category":
        raise UserError(f"--log {flag.strip('-')}: the values of {name} aren't numbers.")
    if log and cast("float", every[name][0]) <= 0:
        raise UserError(f"--log {flag.strip('-')}: {name} isn't positive throughout.")
    return Axis(name, label, every[name], scale, whole=kind == "int")


def _short(value: Value) -> str:
    return plain(float(f"{value:.3g}")) if isinstance(value, float) else literal(str(value))


def _scale(values: tuple[Value, ...]) -> Literal["linear", "log"]:
    """Return the scale on which `values` are spaced more evenly."""
    return "log" if by_ratio(np.array(values, dtype=np.float64)) else "linear"
