"""Drawing of a measurement on one line: its margin as a band, its interval and its value.

The scale is logarithmic where all numbers are positive and span more than `DECADE`: such claims are
about ratios and powers of ten. An open end of a margin or an interval reaches the drawing's edge.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from overfit_cli.core.claim import Measurement

WIDTH, HEIGHT = 140.0, 16.0
DECADE = 10.0
_ROOM = 0.12  # of the drawn numbers' span, on either side


@dataclass(frozen=True)
class IntervalBar:
    """The positions of a drawing, in its own units from 0 to `WIDTH`.

    Attributes:
        margin: where the margin begins, and its width; None without one.
        interval: where the interval begins, and its width; None without one.
        value: the measured number's position.
        log: whether the scale is logarithmic.
        words: the drawing in words.
    """

    margin: tuple[float, float] | None
    interval: tuple[float, float] | None
    value: float
    log: bool
    words: str


def interval_bar(measurement: Measurement) -> IntervalBar | None:
    """Return the drawing of a measurement; None without a finite number and something around it."""
    value, margin = measurement.value, measurement.margin
    around = measurement.interval
    interval = (around.low, around.high) if around else None
    if value is None or not math.isfinite(value) or not (margin or interval):
        return None
    ends = [end for pair in (margin, interval) if pair for end in pair]
    numbers = [value, *(end for end in ends if math.isfinite(end))]
    log = min(numbers) > 0 and max(numbers) > DECADE * min(numbers)

    def scaled(number: float) -> float:
        return math.log(number) if log else number

    low, high = scaled(min(numbers)), scaled(max(numbers))
    room = _ROOM * (high - low) or abs(low) or 1.0

    def position(number: float) -> float:
        if math.isinf(number):
            return 0.0 if number < 0 else WIDTH
        return WIDTH * (scaled(number) - low + room) / (high - low + 2 * room)

    def span(pair: tuple[float, float] | None) -> tuple[float, float] | None:
        if pair is None or any(map(math.isnan, pair)):
            return None
        return position(pair[0]), position(pair[1]) - position(pair[0])

    return IntervalBar(span(margin), span(interval), position(value), log, _words(measurement, log))


def _words(measurement: Measurement, log: bool) -> str:
    """The drawing in words, for readers who do not see it."""
    margin = margin_in_words(measurement.margin)
    return f"{f'{margin}; ' if margin else ''}{'logarithmic' if log else 'linear'} scale"


def margin_in_words(margin: tuple[float | None, float | None] | None) -> str:
    """Return a margin in three digits: `margin 1.75 to 2.25`, `margin below 10`; empty without.

    Args:
        margin: its ends; infinite or None where it is open.
    """
    least, most = (
        None if end is None or math.isinf(end) else three_digits(end)
        for end in margin or (None,) * 2
    )
    if least is None:
        return f"margin below {most}" if most else ""
    return f"margin {least} to {most}" if most else f"margin above {least}"


def three_digits(number: float) -> str:
    """Return a number in three digits, without an exponent below a million: `1010`, `0.00125`."""
    if abs(number) < 1e-300:
        return "0"
    if math.isinf(number):
        return "∞" if number > 0 else "-∞"
    rounded = float(f"{number:.3g}")
    return f"{rounded:.7g}" if 1e-4 <= abs(rounded) < 1e6 else f"{rounded:.3g}"
