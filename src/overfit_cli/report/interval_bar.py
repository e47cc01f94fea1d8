"""Drawing of a measurement on one line: its margin as a band, its interval, value and target.

The scale is logarithmic where all numbers are positive and span more than `DECADE`: such claims are
about ratios and powers of ten. An open end of a margin or an interval reaches the drawing's edge.
A theorem has no margin: its band is the number that it requires.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from overfit_cli.core.claim import Kind, Measurement
from overfit_cli.core.text import three_digits

WIDTH, HEIGHT = 140.0, 16.0
DECADE = 10.0
_ROOM = 0.12  # of the drawn numbers' span, on either side
_REQUIRED = 6.0
"""The width of the band of a theorem, which requires a single number."""


@dataclass(frozen=True)
class IntervalBar:
    """The positions of a drawing, in its own units from 0 to `WIDTH`.

    Attributes:
        margin: where the margin begins, and its width; None without one.
        interval: where the interval begins, and its width, 0 where its ends agree; None without
            one.
        target: the position of the number that the claim states; None where it is an end of the
            margin.
    """

    margin: tuple[float, float] | None
    interval: tuple[float, float] | None
    value: float
    target: float | None
    log: bool
    words: str


def interval_bar(measurement: Measurement, kind: Kind = "ours") -> IntervalBar | None:
    """Return the drawing of a measurement; None without a finite number and something around it."""
    value, margin, target = measurement.value, measurement.margin, measurement.target
    around = measurement.interval
    interval = (around.low, around.high) if around else None
    if value is None or not math.isfinite(value) or not (margin or interval):
        return None
    stated = () if target is None else (target,)
    ends = [end for pair in (margin, interval) if pair for end in pair]
    numbers = [value, *stated, *(end for end in ends if math.isfinite(end))]
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

    aim = None if target is None else position(target)
    band, tick = span(margin), aim
    if aim is not None and margin is None:
        band, tick = (aim - _REQUIRED / 2, _REQUIRED), None
    return IntervalBar(
        band,
        span(interval),
        position(value),
        tick,
        log,
        f"{requirement_in_words(measurement, kind)}; {'logarithmic' if log else 'linear'} scale",
    )


def requirement_in_words(measurement: Measurement, kind: Kind = "ours") -> str:
    """Return the number that a claim states, and from where on a number counts as it.

    It is `paper: 2; holds from 1.75 to 2.25`, or `must be 1, without an exception` of a theorem.
    """
    target = measurement.target
    counted = margin_in_words(measurement.margin, name="holds", both="from ")
    if target is None:
        return counted
    if not counted:
        return f"must be {three_digits(target)}, without an exception"
    whose = "paper" if kind == "paper" else "stated"
    return f"{whose}: {three_digits(target)}; {counted}"


def is_a_point(measurement: Measurement) -> bool:
    """Return whether the ends of the interval agree in three digits: it is drawn as a tick."""
    interval = measurement.interval
    return interval is not None and three_digits(interval.low) == three_digits(interval.high)


def margin_in_words(
    margin: tuple[float | None, float | None] | None, *, name: str = "margin", both: str = ""
) -> str:
    """Return a margin in three digits: `margin 1.75 to 2.25`, `margin below 10`; empty without.

    Args:
        margin: its ends; infinite or None where it is open.
        both: a word between that and two ends.
    """
    least, most = (
        None if end is None or math.isinf(end) else three_digits(end)
        for end in margin or (None,) * 2
    )
    if least is None:
        return f"{name} below {most}" if most else ""
    return f"{name} {both}{least} to {most}" if most else f"{name} above {least}"
