"""The line of one setting: its numbers at each value of x, and how it is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.transforms import Transform, offset_copy
from matplotlib.typing import ColorType

from overfit_cli.core.arrays import Floats, finite_column
from overfit_cli.core.parameters import Value
from overfit_cli.figures.axes import Axis
from overfit_cli.figures.hidden_lines import name_line
from overfit_cli.figures.inputs import measured_or_missed, misses_in_words
from overfit_cli.figures.palette import LineLook
from overfit_cli.figures.powers import fitted_power
from overfit_cli.figures.style import PALETTE, band_look
from overfit_cli.stats.bands import Averaging

Statistic = tuple[Averaging, tuple[float, float]]
"""A statistic over seeds, and the bounds of its band."""

BEHIND: dict[str, Any] = {
    "linestyle": (0, (1.8, 0.7)),
    "linewidth": 3.0,
    "alpha": 0.45,
    "zorder": 1.5,
}
"""The look of a theory's column: wide and pale, so that it is seen where the line lies on it."""

BEHIND_IN_LEGEND: dict[str, Any] = {**BEHIND, "linestyle": (0, (1.25, 0.7))}
"""The same, with two whole dashes in a legend."""


@dataclass(frozen=True)
class Line:
    """The line of a setting of the parameters other than x; arrays have shape (values of x,).

    Attributes:
        mean, low, high: the statistic and its band over the seeds; nan without one. The upper end
            is infinite where it lies among seeds that miss.
        open: the median of the seeds that arrive, where a median is among those that miss; nan
            elsewhere.
        misses: whether no seed arrives.
        seeds: the values of each seed, shape (values of x, seeds); infinite where it misses.
        theory: the median over seeds of the column of a theory where that is the statistic, else
            the arithmetic mean, over the cells with a number; None without one.
        endless: where a band that is drawn has no upper end, shape (values of x,).
    """

    text: str
    settings: Mapping[str, Value]
    x: Floats
    mean: Floats
    low: Floats
    high: Floats
    open: Floats
    misses: np.ndarray
    reason: str
    seeds: Floats
    count: np.ndarray
    theory: Floats | None
    cells: pd.DataFrame
    endless: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=bool))

    @property
    def shown(self) -> Floats:
        """The height of each point, filled or open; nan without one."""
        return np.where(np.isfinite(self.open), self.open, self.mean)


def setting_line(
    text: str,
    settings: Mapping[str, Value],
    cells: pd.DataFrame,
    x: Axis,
    columns: tuple[str, str],
    statistic: Statistic,
    *,
    less: bool = False,
) -> Line:
    """Return the line of some cells, of a column and, unless its name is empty, of a theory's.

    Args:
        less: whether the column is a difference, which a seed without a number misses on no side.
    """
    (value, theory), (over_seeds, bounds) = columns, statistic
    positions = cells[x.name].map(dict(zip(x.values, x.positions, strict=True)))
    x_values = np.array(sorted(positions.unique()), dtype=np.float64)
    numbers = finite_column(cells, value) if less else measured_or_missed(cells, value)
    seeds = numbers.groupby([positions, cells["seed"]]).mean().unstack().to_numpy()
    mean, low, high = over_seeds.summarise(seeds, bounds)
    finite = np.isfinite(seeds)
    count = finite.sum(axis=1)
    failed = (cells["status"] == "failed").groupby(positions).all().to_numpy()
    misses = (count == 0) & (failed | np.isinf(seeds).any(axis=1))
    is_open = np.isinf(mean) & (count > 0)
    medians = [
        np.median(row[kept]) if kept.any() else np.nan
        for row, kept in zip(seeds, finite, strict=True)
    ]
    hidden = positions.isin(x_values[misses])
    mean, low, high = np.where(np.isfinite(mean), [mean, low, high], np.nan)
    return Line(
        text,
        settings,
        x_values,
        mean,
        low,
        high,
        np.where(is_open, medians, np.nan),
        misses,
        misses_in_words(cells[hidden]),
        seeds,
        count,
        _expected(cells, theory, numbers, positions, over_seeds) if theory else None,
        cells,
    )


def _expected(
    cells: pd.DataFrame,
    theory: str,
    measured: pd.Series[float],
    positions: pd.Series[float],
    over_seeds: Averaging,
) -> Floats:
    """The theory at each x, of the cells with a number there; of all where none has one.

    A median counts the cells that miss as beyond the others, as that of the measurements does;
    where half of them miss, it is that of the others.
    """
    arrived = measured.notna() & (measured != np.inf)
    has_none = ~arrived.groupby(positions).transform("any")
    numbers = finite_column(cells, theory).where(arrived | has_none)
    if over_seeds.mean != "median":
        return np.asarray(numbers.groupby(positions).mean(), dtype=np.float64)
    of_all = numbers.mask(np.isinf(measured) & ~has_none, np.inf).groupby(positions).median()
    expected = of_all.where(np.isfinite(of_all), numbers.groupby(positions).median())
    return np.asarray(expected, dtype=np.float64)


def fit_to_axis(lines: Sequence[Line], floor: float, *, log: bool) -> list[Line]:
    """Return lines whose bands end on the axis: above 0 if it is logarithmic, and not infinite."""
    ends = np.concatenate(
        [[*line.shown, *line.low, *line.high, *line.seeds.ravel()] for line in lines]
    )
    ends = ends[np.isfinite(ends)]
    top = max(ends, default=1.0)
    top = 1.5 * top if log else top + 0.1 * float(np.ptp(ends) if ends.size else 1.0)
    least = -np.inf
    if log:
        least = floor or min(ends[ends > 0], default=3.0) / 3
    return [
        replace(
            line,
            mean=np.maximum(line.mean, floor) if floor else line.mean,
            open=np.maximum(line.open, floor) if floor else line.open,
            seeds=np.maximum(line.seeds, floor) if floor else line.seeds,
            low=np.maximum(line.low, least),
            high=np.minimum(np.maximum(line.high, least), top),
            endless=np.isinf(line.high) & np.isfinite(line.mean),
        )
        for line in lines
    ]


def shifts(lines: Sequence[Line], count: int, *, log: bool) -> Floats:
    """Return by how many points each of `count` lines stands aside, so that none hides another.

    Lines stay in place where no two have most of their points in common, and many lines in any
    case.
    """
    coincide = count <= len(PALETTE) and any(
        _coincide(first, second, log=log)
        for index, first in enumerate(lines)
        for second in lines[:index]
    )
    return _ASIDE * coincide * (np.arange(count, dtype=np.float64) - (count - 1) / 2)


_ASIDE = 3.0

COINCIDE = 0.01
"""The share of their span within which lines coincide."""


def largest_gap(first: Sequence[Line], second: Sequence[Line], *, log: bool) -> float:
    """Return the largest gap between two panels' lines and bands, as a share of their span.

    It is infinite where they have not the same lines and points.
    """
    if [line.text for line in first] != [line.text for line in second]:
        return np.inf
    stacks = [
        np.concatenate([[line.shown, line.low, line.high] for line in lines], axis=1)
        for lines in (first, second)
    ]
    stacks = [np.log(np.maximum(stack, 1e-300)) if log else stack for stack in stacks]
    same_x = all(np.array_equal(a.x, b.x) for a, b in zip(first, second, strict=True))
    misses = any(line.misses.any() for line in [*first, *second])
    if misses or not same_x or not np.array_equal(np.isnan(stacks[0]), np.isnan(stacks[1])):
        return np.inf
    if np.isnan(stacks[0]).all():
        return np.inf
    span = float(np.nanmax(stacks) - np.nanmin(stacks))
    return float(np.nanmax(np.abs(stacks[0] - stacks[1]))) / span if span else 0.0


def powers_in_words(lines: Sequence[Line], symbol: str) -> list[str]:
    """Return a sentence with the fitted power of each line, if a theory gives all one slope.

    Args:
        lines: those of a figure with two logarithmic axes.
    """
    if not _share_theory(lines):
        return []
    powers = {line.text: fitted_power(_seed_table(line), "x", "value") for line in lines}
    texts = [f"{text}: {power}" if text else f"{power}" for text, power in powers.items() if power]
    return [
        f"Fitted powers of ${symbol}$, means over the seeds' own with 95 % intervals, and the "
        f"largest share by which a median is off: {'; '.join(texts)}."
    ]


def _seed_table(line: Line) -> pd.DataFrame:
    seeds = line.seeds.shape[1]
    return pd.DataFrame(
        {
            "x": np.repeat(line.x, seeds),
            "seed": np.tile(np.arange(seeds), len(line.x)),
            "value": line.seeds.ravel(),
        }
    )


def _share_theory(lines: Sequence[Line]) -> bool:
    theories = [(line.x, line.theory) for line in lines if line.theory is not None]
    return len(theories) == len(lines) > 0 and all(
        np.array_equal(x, theories[0][0]) and np.array_equal(theory, theories[0][1], equal_nan=True)
        for x, theory in theories
    )


def _coincide(first: Line, second: Line, *, log: bool) -> bool:
    heights = [pd.Series(line.shown, line.x).dropna() for line in (first, second)]
    if log:
        heights = [series[series > 0].map(np.log) for series in heights]
    gaps = (heights[0] - heights[1]).dropna().abs()
    if len(gaps) < 2:
        return False
    span = float(np.ptp(np.concatenate([series.to_numpy() for series in heights])))
    return bool(2 * (gaps <= COINCIDE * span).sum() > len(gaps))


def draw_joined(
    axes: Axes, line: Line, look: LineLook, *, shift: float, band: str, mean: bool
) -> None:
    """Draw a line, with a band or with a line for each seed, and its open points.

    Args:
        shift: how many points it stands aside.
        band: `band`, `seeds`, or empty for neither.
    """
    aside = offset_copy(axes.transData, axes.get_figure(root=True), shift, units="points")
    if mean:
        look_of_line: dict[str, Any] = {
            "color": look.colour,
            "marker": look.marker,
            "linestyle": look.dash,
        }
        [drawn] = axes.plot(line.x, line.mean, **look_of_line)
        drawn.set_transform(aside)  # afterwards: limits are those of the numbers
        if not shift:
            name_line(drawn, "", line.text)
        draw_open_points(axes, line, look, line.x, aside)
    if band == "seeds":
        for seed in line.seeds.T:  # joined across values of x without a cell
            valid = np.isfinite(seed)
            axes.plot(line.x[valid], seed[valid], color=look.colour, linewidth=0.5, alpha=0.6)
    elif band:
        ground = axes.fill_between(line.x, line.low, line.high, **band_look(look.colour))
        ground.set_transform(aside)
        _count_endless(axes, line)


_HIDES = {"linewidth": "lines", "markersize": "markers"}
"""The sizes below which a band is hidden, and by what."""


def hidden_bands_in_words(all_axes: Sequence[Axes], panels: Sequence[Sequence[Line]]) -> list[str]:
    """Return a sentence where no band is seen beside its line, or its markers.

    Args:
        all_axes: with their final scales and limits.
    """
    heights = [
        _band_height(axes, line)
        for axes, lines in zip(all_axes, panels, strict=True)
        for line in lines
    ]
    known = [height for height in heights if np.isfinite(height)]
    settings: Any = matplotlib.rcParams
    hiding = [
        words for name, words in _HIDES.items() if known and max(known) < settings[f"lines.{name}"]
    ]
    return [f"The bands are narrower than the {hiding[0]}."] if hiding else []


def _band_height(axes: Axes, line: Line) -> float:
    known = np.isfinite(line.low) & np.isfinite(line.high)
    if not known.any():
        return np.nan
    ends = [
        axes.transData.transform(np.column_stack([line.x, end])[known])[:, 1]
        for end in (line.low, line.high)
    ]
    return float((ends[1] - ends[0]).max() * 72 / axes.figure.dpi)


def _count_endless(axes: Axes, line: Line) -> None:
    middle = float(np.mean(axes.get_xlim()))
    for x, height, count, seeds in zip(
        line.x[line.endless],
        line.high[line.endless],
        line.count[line.endless],
        line.seeds[line.endless],
        strict=True,
    ):
        inwards = -1 if x > middle else 1
        axes.annotate(
            f"{count}/{int((~np.isnan(seeds)).sum())}",
            (x, height),
            (4 * inwards, -3),
            textcoords="offset points",
            ha="right" if inwards < 0 else "left",
            va="top",
            fontsize="x-small",
        )


def draw_theories(axes: Axes, lines: Sequence[Line], colours: Sequence[ColorType]) -> None:
    """Draw the theory behind each line in its colour; one that all lines share once, in grey."""
    known = [
        (line, line.theory, colour)
        for line, colour in zip(lines, colours, strict=True)
        if line.theory is not None
    ]
    shared = len(known) > 1 and all(
        np.array_equal(line.x, known[0][0].x)
        and np.array_equal(theory, known[0][1], equal_nan=True)
        for line, theory, _ in known
    )
    for line, theory, colour in known[:1] if shared else known:
        axes.plot(line.x, theory, color="0.3" if shared else colour, **BEHIND)


def draw_open_points(axes: Axes, line: Line, look: LineLook, x: Floats, aside: Transform) -> None:
    """Draw points at which half of the seeds or more miss: open, and with their count."""
    outlined: dict[str, Any] = {"color": look.colour, "markerfacecolor": "white", "linestyle": ""}
    marker = look.marker or "o"
    for place, height, count, seeds in zip(x, line.open, line.count, line.seeds, strict=True):
        if np.isfinite(height):
            [point] = axes.plot([place], [height], marker, **outlined)
            point.set_transform(aside)
            text = f"{count}/{int((~np.isnan(seeds)).sum())}"
            axes.annotate(
                text, (place, height), (3, 3), textcoords="offset points", fontsize="x-small"
            )


def draw_points(axes: Axes, line: Line, look: LineLook, x: Floats, *, seed_points: bool) -> None:
    """Draw points with bars, or with a mark for each seed."""
    colour = look.colour
    if seed_points:
        seeds = np.repeat(x, line.seeds.shape[1])
        heights = np.where(np.isfinite(line.seeds), line.seeds, np.nan).ravel()
        axes.plot(seeds, heights, "_", color=colour, markersize=4, alpha=0.6)
        axes.plot(x, line.mean, linestyle="", color=colour, marker=look.marker)
    else:
        bars = [line.mean - line.low, line.high - line.mean]
        axes.errorbar(x, line.mean, bars, linestyle="", capsize=2, color=colour, marker=look.marker)
    draw_open_points(axes, line, look, x, axes.transData)
    if line.theory is not None:
        axes.plot(x, line.theory, "_", color=colour, markersize=9)


def cross_misses(axes: Axes, x: Floats, look: LineLook, height: float) -> None:
    """Cross values of x at a height, a share of the axes: one for each line, so none is hidden."""
    if x.size:
        top = axes.get_xaxis_transform()
        axes.plot(x, np.full(x.size, height), "x", color=look.colour, transform=top)
