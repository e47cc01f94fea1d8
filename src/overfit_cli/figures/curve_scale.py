"""Scales of lines and curves: logarithms of what is measured and of steps, and the least shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from overfit_cli.core.arrays import Floats
from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.text import round_digits
from overfit_cli.figures.curve_data import Curve
from overfit_cli.figures.inputs import choose_scale, is_log, value_is_log
from overfit_cli.figures.labels import power
from overfit_cli.figures.style import Legend, log_steps, log_ticks

WIDE_SPAN = 1e6
"""The span from which y is logarithmic although some numbers are 0."""

ROUND_OFF = 1e-12
"""A squared loss below this share of its start is round-off."""

LEAST_SHARE = 1e-16
"""The share of a start, or of the largest number, below which a logarithmic axis ends.

What lies below changes no double-precision number of that size; 30 decades of it would squeeze
what is measured.
"""

_SHADE = "0.9"
_EARLY, _MOST_OF_FALL, _LITTLE = 0.1, 0.9, 0.05


def is_log_value(log: bool | None, numbers: Floats) -> bool:
    """Return whether y is logarithmic: by the user's choice, or where the numbers span decades.

    Zeros, such as an underflowed loss, don't prevent it where the others span `WIDE_SPAN`.
    """
    finite = numbers[np.isfinite(numbers)]
    positive = finite[finite > 0]
    if log is None and positive.size and finite.min() == 0:
        finite = positive if positive.max() / positive.min() > WIDE_SPAN else finite
    return choose_scale(log, pd.Series(finite), factor=10)


def least_shown(numbers: Floats, start: float, share: float = LEAST_SHARE) -> float:
    """Return the number at which a logarithmic axis ends below; 0 where it shows all of them."""
    finite = numbers[np.isfinite(numbers)]
    floor = share * start
    return floor if finite.size and finite.min() < floor else 0.0


def shade_below(
    all_axes: Iterable[Axes], floor: float, of: str, share: float = LEAST_SHARE
) -> Legend:
    """Shade what a logarithmic axis doesn't resolve; return the legend of it."""
    for axes in all_axes:
        axes.set_ylim(bottom=floor / 30)
        axes.axhspan(floor / 30, floor, color=_SHADE, linewidth=0, zorder=0)
    words = f"below {power(share)} of the {of}"
    words = f"round-off, {words}" if share == ROUND_OFF else words
    return [(Patch(color=_SHADE), words)]


def falls_early(curves: Sequence[pd.Series[float]], *, log: bool) -> bool:
    """Return whether most curves have nearly all of their change in a tenth of the steps."""
    last = max((float(curve.index.max()) for curve in curves if len(curve)), default=0.0)
    changes = list[tuple[float, float]]()
    for curve in curves:
        values = curve[curve > 0].map(np.log) if log else curve
        if len(values) > 1:
            early = values[values.index <= _EARLY * last]
            changes.append((float(np.ptp(early)) if len(early) else 0.0, float(np.ptp(values))))
    largest = max((change for _, change in changes), default=0.0)
    moving = [early >= _MOST_OF_FALL * all_ for early, all_ in changes if all_ > _LITTLE * largest]
    return largest > 0 and 2 * sum(moving) >= len(moving)


@dataclass(frozen=True)
class CurveScale:
    """The scales of curves.

    Attributes:
        limits: the limits of a logarithmic y; None where it is linear.
        floor: the least number that is shown; 0 without one.
        cut: whether later ones are not, as all bands lie below the floor there.
    """

    limits: tuple[float, float] | None
    floor: float
    log_steps: bool
    last: float
    cut: bool = False

    def dress(self, axes: Axes) -> None:
        """Set the scales, limits and ticks of axes."""
        if self.limits is not None:
            low, high = self.limits
            axes.set_yscale("log")
            axes.set_ylim(low / 1.5, high * 1.3)
            log_ticks(axes.yaxis, low, high)
        axes.margins(x=0.02)
        if self.cut:
            axes.set_xlim(-0.02 * self.last, self.last)
        if self.log_steps:
            log_steps(axes, self.last)
        else:
            locator = MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10])
            if self.last >= 1000:
                locator.set_params(nbins=4)  # long numbers
            axes.xaxis.set_major_locator(locator)


def curve_scale(
    curves: Sequence[Curve],
    columns: Sequence[str],
    theory: Sequence[str],
    options: FigureOptions,
    least_share: float = LEAST_SHARE,
) -> CurveScale:
    """Return the scales of curves, the user's where given.

    The measured columns set the limits, with the lower ends of the first one's bands: a bound
    outside them does not compress the measurements.

    Args:
        least_share: the share of the start below which a logarithmic axis ends.
    """
    names = [*columns, *theory]
    every = np.concatenate([curve.mean[names].to_numpy().ravel() for curve in curves])
    first = [curve.mean[columns[0]].dropna() for curve in curves]
    low = np.concatenate([curve.low[columns[0]].dropna() for curve in curves])
    level = [] if options.threshold is None else [options.threshold]
    measured = [curve.mean[name].dropna() for curve in curves for name in columns]
    limiting = np.concatenate([*measured, level])
    log = is_log_value(value_is_log(options), every)
    start = max((float(curve.iloc[0]) for curve in first if len(curve)), default=0.0)
    limiting = np.concatenate([limiting, low])
    is_loss = log and "loss" in columns[0]
    floor = least_shown(limiting, start, least_share) if is_loss else 0.0
    limits = None
    if log:
        positive = limiting[limiting > 0]
        limits = max(float(positive.min()), floor), float(positive.max())
        first = [curve.clip(lower=floor) for curve in first]
    log_x = is_log(options, "x")
    early = falls_early(first, log=log) if log_x is None else log_x
    last = max((float(curve.index.max()) for curve in first if len(curve)), default=1.0)
    shown = 1.25 * max(_last_above(curve, columns[0], floor) for curve in curves)
    if floor and not early and 0 < shown < _MOST_CUT * last:
        return CurveScale(limits, floor, early, round_digits(shown, 1), cut=True)
    return CurveScale(limits, floor, early, last)


_MOST_CUT = 0.7
"""Steps are cut where at most this share of them would be left."""


def _last_above(curve: Curve, column: str, floor: float) -> float:
    upper = pd.concat([curve.mean[column], curve.high[column]])
    return float(upper[upper > floor].index.max()) if (upper > floor).any() else 0.0
