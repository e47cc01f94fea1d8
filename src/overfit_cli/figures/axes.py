"""Axes and what is written on them: parameters along them, ticks, legends, curves of equations."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib import patheffects, ticker
from matplotlib.axes import Axes
from matplotlib.axis import Axis as MplAxis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.typing import ColorType, LineStyleType

from overfit_cli.core.arrays import Floats, finite_column
from overfit_cli.core.cells import Cells
from overfit_cli.core.errors import BadValue
from overfit_cli.core.expressions import CLOSE, Compared, read_equation
from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.parameters import Value
from overfit_cli.core.text import shorten, suggestion
from overfit_cli.figures import labels, picture, style
from overfit_cli.stats.pairs import is_log_spaced

Scale = Literal["linear", "log", "category"]
FEW_VALUES = 8  # the largest number of values that each have a tick


@dataclass(frozen=True)
class Axis:
    """A parameter along an axis.

    Attributes:
        scale: `linear`, `log`, or `category` for values that are not numbers.
        value_labels: what ticks call categories that have a label.
    """

    name: str
    label: str
    values: tuple[Value, ...]
    scale: Scale
    whole: bool
    value_labels: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def positions(self) -> Floats:
        """The positions of the values, ascending, shape (values,); categories at 0, 1, 2, ..."""
        is_number = self.scale != "category"
        return self.numbers if is_number else np.arange(len(self.values), dtype=np.float64)

    @property
    def numbers(self) -> Floats:
        """The values, shape (values,); the positions of those that are no numbers."""
        is_word = any(isinstance(value, str) for value in self.values)
        return self.positions if is_word else np.array(self.values, dtype=np.float64)

    @property
    def edges(self) -> Floats:
        """The borders of the values' cells, midway between neighbours, shape (values + 1,).

        The first and the last cell are whole: as wide on both sides of their values, as far as a
        positive parameter stays positive. A lone number has a cell as wide as itself.
        """
        scaled = self.scaled(self.positions)
        if scaled.size == 1:
            half = abs(scaled[0]) / 2 if self.scale == "linear" and scaled[0] else 0.5
            return self.unscaled(np.array([scaled[0] - half, scaled[0] + half]))
        middle = (scaled[1:] + scaled[:-1]) / 2
        ends = [2 * scaled[0] - middle[0], 2 * scaled[-1] - middle[-1]]
        if self.scale == "linear" and scaled[0] > 0:
            ends[0] = max(ends[0], scaled[0] / 2)
        return self.unscaled(np.concatenate([ends[:1], middle, ends[1:]]))

    def within(self, share: float) -> Floats:
        """The positions at this share of the values' cells, shape (values,)."""
        ends = self.scaled(self.edges)
        return self.unscaled(ends[:-1] + share * np.diff(ends))

    def spread(self) -> Axis:
        """Return the axis with cells of one width, if its values are few and their cells differ."""
        widths = np.diff(self.scaled(self.edges))
        if len(self.values) > FEW_VALUES or widths.max() < 1.1 * widths.min():
            return self
        return replace(self, scale="category")

    def only(self, values: Collection[Value]) -> Axis:
        """Return the axis with those of its values that are among these; categories stay."""
        if self.scale == "category":
            return self
        return replace(self, values=tuple(value for value in self.values if value in values))

    def scaled(self, positions: Floats) -> Floats:
        """Return positions on the scale of the axis."""
        return np.log(positions) if self.scale == "log" else positions

    def unscaled(self, scaled: Floats) -> Floats:
        """Return the positions whose values on the scale of the axis are these."""
        return np.exp(scaled) if self.scale == "log" else scaled

    def dress(self, axes: Axes, side: Literal["x", "y"]) -> None:
        """Set scale, limits, ticks and label of one side of `axes`."""
        scale = "log" if self.scale == "log" else "linear"
        low, *_, high = self.edges
        label = labels.wrap_text(self.label, style.WIDE if side == "x" else style.HIGH)
        axes.set(**{f"{side}scale": scale, f"{side}lim": (low, high), f"{side}label": label})
        self.place_ticks(axes.xaxis if side == "x" else axes.yaxis, low, high)

    def place_ticks(self, axis: MplAxis, low: float, high: float) -> None:
        """Put ticks at the values where they are few and stand apart, else at round numbers."""
        if self.scale == "category" or self._has_room_for_ticks():
            texts = [self._short(value) for value in self.values]
            letters = sum(len(labels.typeset(text)) + 2 for text in texts)
            most = style.letters_across(axis.axes, "xtick.labelsize")
            is_long = axis is axis.axes.xaxis and letters > most
            axis.set_ticks(list(self.positions), texts, rotation=90.0 * is_long)
            axis.set_minor_locator(ticker.NullLocator())
        elif self.whole and self.scale == "log" and np.ptp(np.diff(np.log(self.positions))) < 1e-9:
            every = -(-len(self.values) // FEW_VALUES)
            replace(self, values=self.values[::every]).place_ticks(axis, low, high)
        elif self.whole and (self.scale == "linear" or high < 4 * low):
            axis.set_major_locator(ticker.MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10]))
            axis.set_major_formatter(ticker.ScalarFormatter())
            axis.set_minor_locator(ticker.NullLocator())
        elif self.scale == "log":
            log_ticks(axis, low, high)

    def _short(self, value: Value) -> str:
        if isinstance(value, float):
            return labels.three_digits(value)
        if self.whole:
            return labels.brief(value)
        return self.value_labels.get(str(value)) or labels.literal(str(value))

    def _has_room_for_ticks(self) -> bool:
        scaled = self.scaled(self.positions)
        gaps = np.diff(scaled) / max(float(np.ptp(scaled)), 1e-12)
        return scaled.size <= FEW_VALUES and bool((gaps > 0.11).all())


def require_parameter(data: Cells, option: str, name: str) -> None:
    """Refuse a name of no parameter."""
    if name not in data.values:
        hint = suggestion(name, data.values)
        raise BadValue(option, name, f"{data.study.name} has no parameter {name!r}; {hint}")


def parameter_axis(data: Cells, side: str, name: str | None, *, log: bool | None = None) -> Axis:
    """Lay the parameter `name` along the axis `side`.

    Args:
        side: `x` or `y`, the option that names the parameter.
        log: whether the axis is logarithmic; None for the scale with the more even spacing.
    """
    values, varying = data.values, data.varying()
    hint = f"here varies: {', '.join(varying) or 'nothing'}."
    if name is None:
        raise BadValue(side, None, f"name the parameter on this axis; {hint}")
    require_parameter(data, side, name)
    if name not in varying:
        raise BadValue(side, name, f"{name} is constant in these cells; {hint}")
    field, label, at = data.schema[name], labels.axis_label(data.schema, name), values[name]
    if log and not (field.is_number and float(at[0]) > 0):
        raise BadValue("log", side, f"the values of {name} aren't all positive numbers.")
    is_log = field.is_number and (is_log_spaced(at) if log is None else log)
    scale: Scale = "log" if is_log else "linear" if field.is_number else "category"
    return Axis(name, label, at, scale, field.kind == "int", field.value_labels)


# Legends and ticks


def legend_below(figure: Figure, legend: style.Legend, columns: int = 3, heading: str = "") -> int:
    """Put a legend under the axes, in as many columns as fit, and at most so many.

    Returns:
        how many lines it is high.
    """
    if not legend:
        return 0
    size = style.points("legend.fontsize")
    letters = int(style.WIDE * figure.get_figwidth() / style.COLUMN * 7 / size)
    texts = [labels.wrap_text(text, letters) for _, text in legend]
    longest = max(len(labels.typeset(line)) for text in texts for line in text.split("\n"))
    across = max(1, min(columns, letters // (longest + 4)))
    how: Any = {"loc": "outside lower center", "ncols": across, "title": heading or None}
    figure.legend([artist for artist, _ in legend], texts, **how)
    return -(-sum(text.count("\n") + 1 for text in texts) // across) + bool(heading)


def log_ticks(axis: MplAxis, low: float, high: float) -> None:
    """Set the ticks of a logarithmic axis from `low` to `high`, as plain numbers where short."""
    write = labels.tick_number if low >= 1e-3 and high < 1e5 else labels.power
    with np.errstate(over="ignore"):
        ratio = np.float64(high) / low
    subs = (1.0, 2.0, 5.0) if ratio < 100 else (1.0, 3.0) if ratio < 1000 else (1.0,)
    axis.set_major_locator(ticker.AutoLocator() if ratio < 4 else ticker.LogLocator(subs=subs))
    axis.set_major_formatter(lambda value, _: write(value))
    axis.set_minor_locator(ticker.NullLocator())
    axis.set_minor_formatter(ticker.NullFormatter())


def whole_steps(axes: Axes, last: float) -> None:
    """Put ticks at whole steps along x; long numbers take room."""
    most: Any = 4 if last >= 1000 else "auto"
    axes.xaxis.set_major_locator(ticker.MaxNLocator(most, integer=True, steps=[1, 2, 5, 10]))


def log_steps(axes: Axes, last: float) -> None:
    """Scale the steps along x as log(t + 1), with ticks at 0 and at powers of ten."""
    axes.set_xscale("function", functions=(_log_from_zero, np.expm1))
    decades = int(np.log10(max(last, 1.0)))
    stride = 1 + decades // 5
    first = stride if decades > 7 else 0  # at 1 a number would touch that at 0
    ticks = [0.0, *(10.0**decade for decade in range(first, decades + 1, stride))]
    axes.xaxis.set_major_locator(ticker.FixedLocator(ticks))
    axes.xaxis.set_major_formatter(
        lambda tick, _: labels.power(tick) if tick >= 1e4 else labels.tick_number(tick)
    )
    axes.xaxis.set_minor_locator(ticker.NullLocator())


def _log_from_zero(step: Floats) -> Floats:
    return np.log1p(np.maximum(step, -0.999))  # margins reach below step 0


POINTS = 400  # per axis: the error of a power law's curve is then about 1e-4
EQUATION_DASHES: Mapping[str, LineStyleType] = {
    "Line": "-",
    "Dashed line": (0, (3.2, 1.8)),  # two fit into a legend
    "Dotted line": (0, (1, 1.5)),
    "Dash-dotted line": (0, (5, 1.5, 1, 1.5)),
}
"""The dashes of equations, in order, by what a caption calls them."""
CEILING = 1e100  # keeps the arithmetic of contouring finite


@dataclass(frozen=True)
class Place:
    """The axes on which equations are drawn, with the cells of their constants.

    Attributes:
        axes: axes with their final scales and limits.
        colour: the colour of an equation that differs between places of the same axes.
    """

    axes: Axes
    cells: pd.DataFrame
    colour: ColorType = style.HIGHLIGHT
    outlined: bool = True


def equation_curve(
    equation: Compared, names: Sequence[str], axes: Axes, constants: Mapping[str, float]
) -> Floats:
    """Return the points of axes where an equation holds.

    Args:
        equation: an equation in the names along x and y, and of the constants.

    Returns:
        x and y, shape (points, 2); rows of nan separate the pieces.
    """
    logs = axes.get_xscale() == "log", axes.get_yscale() == "log"

    def difference(u: Floats, v: Floats) -> Floats:
        values: dict[str, Any] = dict(constants)
        for name, at, log in zip(names, (u, v), logs, strict=True):
            values[name] = np.exp(at) if log else at
        return np.clip(equation.difference(values), -CEILING, CEILING)

    spans = zip((axes.get_xlim(), axes.get_ylim()), logs, strict=True)
    ends = [np.log(span) if log else span for span, log in spans]
    u, v = (np.linspace(low, high, POINTS) for low, high in ends)
    height = np.ma.masked_invalid(difference(u[None, :], v[:, None]))
    if not height.count() or height.min() >= 0 or height.max() <= 0:
        return np.empty((0, 2))
    contour = Figure().add_subplot().contour(u, v, height, levels=[0.0])
    gap = np.full((1, 2), np.nan)
    curve = np.concatenate([part for piece in contour.allsegs[0] for part in (piece, gap)])
    # At a pole the sign changes too, but there the difference is largest, not smallest.
    (x, y), step = curve.T, (u[1] - u[0], v[1] - v[0])
    sides = [(x - step[0], y), (x + step[0], y), (x, y - step[1]), (x, y + step[1])]
    around = np.fmax.reduce(np.abs([difference(*side) for side in sides]))
    curve[~(np.abs(difference(x, y)) < around / 2)] = np.nan
    curve[:, list(logs)] = np.exp(curve[:, list(logs)])
    return curve


def draw_equations(
    figure: picture.Picture,
    places: Sequence[Place],
    data: Cells,
    options: FigureOptions,
    along: Sequence[Axis],
    column: str = "",
    *,
    colour: str = style.HIGHLIGHT,
    first_dash: int = 0,
) -> style.Legend:
    """Draw the equations of the options in every place, each with its own dash; return the legend.

    They are in the names of the axes that are numbers, and of constants.

    Args:
        places: where they are drawn. Places of the same axes with the same constants have one
            curve; otherwise each has a curve in its own colour.
        column: the measured column along y, if no parameter is.
    """
    legend: style.Legend = []
    names = [*(axis.name for axis in along), *filter(None, [column])]
    words = {axis.name for axis in along if axis.scale == "category"}
    known = {*names, *data.number_parameters} - words - data.replaced
    white = patheffects.withStroke(linewidth=2.0, foreground="white")
    for index, text in enumerate(options.law or (), start=first_dash):
        equation = read_equation(text, data.schema.placed.among(known))
        if not equation.names & {*names}:
            raise BadValue("law", text, f"it names none of the axes: {', '.join(names)}.")
        called, dash = list(EQUATION_DASHES.items())[index % len(EQUATION_DASHES)]
        distinct = dict[tuple[Axes, tuple[float, ...]], tuple[Place, dict[str, float]]]()
        for place in places:
            constants = constants_of(equation, names, place.cells)
            distinct.setdefault((place.axes, tuple(constants.values())), (place, constants))
        varies = len(distinct) > len({axes for axes, _ in distinct})
        lines = []
        for place, constants in distinct.values():
            curve = equation_curve(equation, names, place.axes, constants)
            ink, outline = place.colour if varies else colour, [white] if place.outlined else []
            look: dict[str, Any] = {"color": ink, "linestyle": dash, "path_effects": outline}
            lines.append(Line2D(*curve.T, label=f"law: {equation.text}", **look))
            place.axes.add_line(lines[-1])
        said = f"${equation.mathtext(data.symbol)}$"
        right = equation.sides[1]
        if right.names and not right.names & {*names}:  # its value in each place: `= 78, 228`
            values = [float(right.value(own)) for _, own in distinct.values()]
            said += f" = {', '.join(dict.fromkeys(map(labels.three_digits, values)))}"
        said += f" ({labels.literal(shorten(equation.label))})" if equation.label else ""
        if not any(np.isfinite(line.get_xydata()).any() for line in lines):
            said += " (out of view)"
        figure.facts.append(f"{called}: {said}.")
        legend.append((Line2D([], [], color="0.3", linestyle=dash) if varies else lines[0], said))
    return legend


def draw_theory(
    figure: picture.Picture,
    places: Sequence[Place],
    column: tuple[str, str] | None,
    along: tuple[Axis, Axis],
    threshold: float | None,
) -> style.Legend:
    """Draw a column with a prediction in every place; return the legend.

    Args:
        column: its name and its label; None for none.
    """
    if column is None:
        return []
    (name, label), white = column, patheffects.withStroke(linewidth=2.4, foreground="white")
    look: dict[str, Any] = {**style.BOUND, "linestyle": "-.", "path_effects": [white]}
    for place in places:
        curve = _theory_curve(place.cells, name, along, threshold)
        place.axes.add_line(Line2D(*curve.T, label=f"theory: {name}", zorder=3, **look))
    figure.facts.append(f"Dash-dotted: {label}.")
    return [(Line2D([], [], **look), label)]


def _theory_curve(
    cells: pd.DataFrame, name: str, along: tuple[Axis, Axis], threshold: float | None
) -> Floats:
    """The points of a prediction, (points, 2): where it is, if it follows one axis alone."""
    x, y = along
    numbers = finite_column(cells, name).groupby([cells[y.name], cells[x.name]]).median()
    table = numbers.dropna().unstack()  # (values of y, values of x)
    for axis, rows in ((y, table), (x, table.T)):
        spread, largest = rows.max(axis=1) - rows.min(axis=1), rows.abs().max(axis=1)
        if len(rows) > 1 and (spread <= CLOSE * largest).all():
            ends = rows.index, rows.median(axis=1)
            return np.column_stack(ends if axis is x else ends[::-1])
    if threshold is None or min(table.shape) < 2:
        accepts = "it changes along both axes, and predicts the value: name a threshold."
        raise BadValue("theory", name, accepts)
    points = table.columns, table.index, table.to_numpy()
    found = Figure().add_subplot().contour(*points, levels=[threshold])
    gap = np.full((1, 2), np.nan)
    return np.concatenate([gap, *(part for piece in found.allsegs[0] for part in (piece, gap))])


def constants_of(equation: Compared, names: Sequence[str], cells: pd.DataFrame) -> dict[str, float]:
    """Return the number of each constant of an equation."""
    constants = {}
    for name in sorted(equation.names.difference(names)):
        values = sorted(cells[name].dropna().unique().tolist())
        if len(values) != 1:
            shown = ", ".join([*map(str, values[:4]), *["..."] * bool(values[4:])])
            accepts = f"{name} varies here ({shown}), and is neither an axis nor a constant; "
            accepts += f"choose one value (option where, {name}=VALUE)."
            raise BadValue("law", equation.text, accepts)
        constants[name] = float(values[0])
    return constants
