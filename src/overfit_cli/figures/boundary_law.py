"""The power law through a boundary, and what its grid leaves open, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeGuard

import numpy as np
import pandas as pd
from matplotlib.typing import ColorType

from overfit_cli.core.arrays import Floats
from overfit_cli.core.study import AnyStudy
from overfit_cli.core.text import round_digits
from overfit_cli.figures.axes import Axis
from overfit_cli.figures.labels import formula_symbol, tick_number
from overfit_cli.stats.boundaries import FEWEST_FOR_LAW, PowerLaw, exponents_of, slopes_within


@dataclass(frozen=True)
class DrawnBoundary:
    """A boundary to draw.

    Attributes:
        title: its run or panel; empty where it is the only one.
        rows: the median crossing for each y; see `medians_by_row`.
        curves: the crossing of each curve; see `crossings`.
        off_grid: by each y whose median lies off the grid, what its curves do, in words.
    """

    title: str
    colour: ColorType
    rows: pd.DataFrame
    curves: pd.DataFrame
    off_grid: pd.Series[str]
    fit: PowerLaw | None


def is_on_grid(rows: pd.DataFrame) -> pd.Series[bool]:
    """Whether each median lies on the grid."""
    return (rows["crossing"] > 0) & (rows["crossing"] < np.inf)


def can_be_written(fit: PowerLaw | None) -> TypeGuard[PowerLaw]:
    """Whether there is a fit with a constant that isn't too large or too small for a number."""
    return (
        fit is not None
        and 0 < fit.constant.value < np.inf
        and bool(np.isfinite(fit.exponent.value))
    )


def fit_ends(boundary: DrawnBoundary, y: Axis) -> tuple[Floats, Floats]:
    """The ends of the fit's line, its x and its y; none without a fit that can be written."""
    if not can_be_written(boundary.fit):
        return np.empty(0), np.empty(0)
    ends = boundary.rows.loc[is_on_grid(boundary.rows), y.name].to_numpy(dtype=np.float64)[[0, -1]]
    return (boundary.fit.constant.value / ends) ** (1 / boundary.fit.exponent.value), ends


def power_law(study: AnyStudy, x: Axis, y: Axis, *, rises: bool) -> str:
    """The fitted law in mathtext."""
    x_symbol, y_symbol = (formula_symbol(study, axis.name) for axis in (x, y))
    if rises:
        return rf"${{{x_symbol}}} \propto {{{y_symbol}}}^q$"
    return rf"${{{y_symbol}}} \cdot {{{x_symbol}}}^p = C$"


def fit_text(boundary: DrawnBoundary, y: Axis, equation: str, *, rises: bool) -> str:
    """The fitted law, its numbers, and its lack of fit."""
    title = f"{boundary.title}: " if boundary.title else ""
    if not can_be_written(boundary.fit):
        few = is_on_grid(boundary.rows).sum() < FEWEST_FOR_LAW
        why = "fewer than three points" if few else f"it hardly changes with {y.label}"
        return f"{title}no fit of {equation}, {why}"
    blank = "\N{NO-BREAK SPACE}"
    estimates = {"p": boundary.fit.exponent, "C": boundary.fit.constant}
    estimates = {"q": boundary.fit.slope} if rises else estimates
    numbers = [
        f"${name}$ = {_estimate_text(*estimate[:3])}".replace(" ", blank)
        for name, estimate in estimates.items()
    ]
    lines = [title.removesuffix(": ") or equation, *numbers]
    return "\n".join([*lines, f"largest residual {share_in_words(boundary.fit.residual)}"])


def fit_in_words(boundary: DrawnBoundary, fit: str, law: str) -> str:
    """A sentence on a boundary's line with the text of its fit, or on why it has none."""
    numbers = ", ".join(fit.splitlines())
    if not can_be_written(boundary.fit):
        return f"Not fitted: {numbers}."
    named = f"{law}, {numbers}" if boundary.title else numbers
    return f"Dashed: {named}, with 95 % bootstrap intervals of interpolated curves."


def on_a_line(text: str) -> str:
    """Join the lines of a fit's text: its law or title, its numbers, its lack of fit."""
    first, *rest = text.split("\n")
    return f"{first}: {', '.join(rest)}" if rest else first


def share_in_words(share: float) -> str:
    """Write by how much a number is off another: `12 %`, `below 1 %`, `a factor of 2.3`."""
    if share >= 1:
        return f"a factor of {1 + share:.2g}"
    return f"{100 * share:.0f} %" if share >= 0.01 else "below 1 %"


def _estimate_text(*numbers: float) -> str:
    value, low, high = (tick_number(round_digits(number, 3)) for number in numbers)
    return f"{value} [{low}, {high}]"


_BENT = 0.2
"""The residual from which points lie on no one power law."""


def bend_in_words(boundary: DrawnBoundary, study: AnyStudy, y: Axis, *, rises: bool) -> list[str]:
    """A sentence with the powers of both halves of a boundary that is far off its fit."""
    on_grid = boundary.rows[is_on_grid(boundary.rows)]
    if boundary.fit is None or boundary.fit.residual < _BENT or len(on_grid) < 2 * FEWEST_FOR_LAW:
        return []
    logs = np.log(on_grid[[y.name, "crossing"]].to_numpy(dtype=np.float64))
    half = len(logs) // 2
    slopes = [np.polyfit(part[:, 0], part[:, 1], 1)[0] for part in (logs[:half], logs[half:])]
    numbers = [round_digits(float(slope if rises else -1 / slope), 2) for slope in slopes]
    middle = [tick_number(float(on_grid[y.name].iloc[index])) for index in (half - 1, half)]
    name, symbol = "q" if rises else "p", formula_symbol(study, y.name)
    title = f"{boundary.title}: " if boundary.title else ""
    return [
        f"{title}No one power law: {name} is {tick_number(numbers[0])} for ${symbol}$ up to "
        f"{middle[0]}, and {tick_number(numbers[1])} from {middle[1]} on."
    ]


def spacing_in_words(x: Axis) -> str:
    """Return the spacing of the values between which curves are interpolated."""
    steps = np.diff(x.scaled(x.positions))
    ends = np.exp([steps.min(), steps.max()]) if x.scale == "log" else [steps.min(), steps.max()]
    numbers = dict.fromkeys(tick_number(round_digits(float(end), 3)) for end in ends)
    distance = f"{'a factor of ' if x.scale == 'log' else ''}{' to '.join(numbers)}"
    return f"Curves are interpolated between values of {x.label} that are {distance} apart."


def grid_in_words(boundary: DrawnBoundary, x: Axis, y: Axis, *, rises: bool) -> str:
    """Return which powers the values of x leave, wherever in its step each median crosses.

    It is empty without a fit.
    """
    if not can_be_written(boundary.fit):
        return ""
    on_grid = boundary.rows[is_on_grid(boundary.rows)]
    index = np.searchsorted(x.positions, on_grid["crossing"]).clip(1, len(x.positions) - 1)
    slopes = slopes_within(on_grid[y.name], x.positions[index - 1], x.positions[index])
    least, most = slopes if rises else exponents_of(*slopes)
    ends = (tick_number(round_digits(end, 2)) for end in (least, most))
    if not np.isfinite(most):
        return f"grid alone: ${'q' if rises else 'p'}$ from {next(ends)} on"
    return f"grid alone: ${'q' if rises else 'p'}$ from {' to '.join(ends)}"
