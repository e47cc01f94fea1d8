"""The language of ranges: `2:20`, `2:20:3`, `0.1:16`, `0.1:16:100:log`, `a,b,c`, or one value."""

from __future__ import annotations

import math
import re
import warnings
from typing import cast

import numpy as np

from overfit_cli.core.errors import BadValue
from overfit_cli.core.parameters import ParameterInfo, Value, parse_value
from overfit_cli.core.text import is_number, shorten

DEFAULT_POINTS = 40
MOST_VALUES = 100_000
ENDLESS = 10**19
"""The value of a count with more digits."""


def parse_range(info: ParameterInfo, text: str, *, distinct: bool = True) -> tuple[Value, ...]:
    """Return the values that `text` names, in the order given.

    Args:
        distinct: whether a value that a list repeats counts once.
    """
    if not text.strip():
        raise BadValue(
            info.name, shorten(text), f"no value given; {info.name} takes {_forms(info)}."
        )
    if ":" in text and info.kind != "text":
        return _spaced(info, text)
    items = text.split(",")
    if len(items) > 1 and not all(item.strip() for item in items):
        accepts = f"the list has an empty value; {info.name} takes {_forms(info)}."
        raise BadValue(info.name, shorten(text), accepts)
    if len(items) > MOST_VALUES:
        accepts = f"it names {len(items)} values, more than {MOST_VALUES}."
        raise BadValue(info.name, shorten(text), accepts)
    values = [_value(info, item) for item in items]
    return tuple(dict.fromkeys(values)) if distinct else tuple(values)


def _value(info: ParameterInfo, text: str) -> Value:
    """A value of a list or a range; where a number can't be read, the message shows every form."""
    try:
        return parse_value(info, text)
    except BadValue as error:
        if info.kind not in ("int", "float") or is_number(text):
            raise
        raise BadValue(error.name, error.value, f"{info.name} takes {_forms(info)}.") from None


def parse_seeds(text: str) -> tuple[int, ...]:
    """Return the seeds: `5` is five of them, 0 to 4; `3:7` and `0,4,9` name them."""
    info = ParameterInfo("seeds", "int", 3, "seeds", "", "", (), "a whole number of at least 1")
    values = cast("tuple[int, ...]", parse_range(info, text))
    if len(values) == 1 and not {":", ","} & set(text):
        if not 1 <= values[0] <= MOST_VALUES:
            accepts = f"the number of seeds is from 1 to {MOST_VALUES}"
            raise BadValue("seeds", shorten(text), f"{accepts}; to name seeds, write 3:7 or 0,4,9.")
        return tuple(range(values[0]))
    if min(values) < 0:
        raise BadValue("seeds", shorten(text), "a seed is a whole number of at least 0.")
    return values


def _spaced(info: ParameterInfo, text: str) -> tuple[Value, ...]:
    refusal = BadValue(info.name, shorten(text), f"{info.name} takes {_forms(info)}.")
    if info.kind not in ("int", "float"):
        raise refusal
    first, last, *rest = text.split(":")
    start, stop = (cast("float", _value(info, end)) for end in (first, last))
    if stop < start:
        accepts = f"the range runs backwards; write {last}:{first}."
        raise BadValue(info.name, shorten(text), accepts)
    if info.kind == "int":
        return _whole(int(start), int(stop), rest, refusal)
    return _real(start, stop, rest, refusal)


def _whole(start: int, stop: int, rest: list[str], refusal: BadValue) -> tuple[Value, ...]:
    if len(rest) == 2 and rest[1].strip() == "log":
        return _whole_by_ratio(start, stop, rest[0], refusal)
    if rest and re.fullmatch(r"0+|-[0-9]+", rest[0].strip()):
        accepts = f"the step of a range is at least 1, not {shorten(rest[0].strip())}."
        raise BadValue(refusal.name, refusal.value, accepts)
    step = _count(rest[0]) if rest else 1
    if len(rest) > 1 or not step or step == ENDLESS:
        raise refusal
    if step > max(1, stop - start):
        accepts = f"{refusal.accepts} Its step is larger than the range."
        raise BadValue(refusal.name, refusal.value, accepts)
    if (stop - start) // step >= MOST_VALUES:
        many = f"It names {(stop - start) // step + 1} values, more than {MOST_VALUES}."
        raise BadValue(refusal.name, refusal.value, f"{refusal.accepts} {many}")
    return tuple(range(start, stop + 1, step))


def _whole_by_ratio(start: int, stop: int, text: str, refusal: BadValue) -> tuple[Value, ...]:
    """Distinct whole numbers nearest to points spaced by ratio; a note where they are fewer."""
    spaced = cast("tuple[float, ...]", _real(start, stop, [text, "log"], refusal))
    inner = [min(max(round(value), start), stop) for value in spaced[1:-1]]
    values = tuple(dict.fromkeys([start, *inner, stop]))
    if len(values) < len(spaced):
        warnings.warn(
            f"{refusal.name} {refusal.value}: {len(spaced)} log-spaced points round to "
            f"{len(values)} distinct whole numbers",
            UserWarning,
            stacklevel=2,
        )
    return values


def _real(start: float, stop: float, rest: list[str], refusal: BadValue) -> tuple[Value, ...]:
    points = _count(rest[0]) if rest else DEFAULT_POINTS
    if len(rest) > 2 or points is None:
        raise refusal
    if len(rest) == 2 and rest[1].strip() not in ("log", "linear"):
        raise refusal
    if not (1 if start == stop else 2) <= points <= MOST_VALUES:
        shown = shorten(rest[0].strip())
        accepts = f"a range by points has from 2 to {MOST_VALUES} points, not {shown}."
        raise BadValue(refusal.name, refusal.value, accepts)
    if len(rest) == 2 and rest[1].strip() == "log":
        if start <= 0:
            accepts = "spacing by ratio needs a start above 0."
            raise BadValue(refusal.name, refusal.value, accepts)
        values = np.geomspace(start, stop, points)
    else:
        values = np.linspace(start, stop, points)
    return tuple(dict.fromkeys(rounded(value) for value in values.tolist()))


def _count(text: str) -> int | None:
    digits = text.strip()
    if not (digits.isascii() and digits.isdecimal()):
        return None
    digits = digits.lstrip("0") or "0"
    return int(digits) if len(digits) < 19 else ENDLESS


def rounded(value: float) -> float:
    """Return it with twelve digits: a point has one name, however its range was spaced."""
    return value if value == 0 or not math.isfinite(value) else float(f"{value:.12g}")


def _forms(info: ParameterInfo) -> str:
    if info.kind == "int":
        return (
            f"{info.accepts}; a range 2:20, 2:20:3 (step 3) or 2:200:8:log (8 points); or a list "
            "2,5,9"
        )
    if info.kind == "float":
        return (
            f"{info.accepts}; a range 0.1:16 ({DEFAULT_POINTS} points), 0.1:16:100 (100 points) or "
            "0.1:16:100:log; or a list 0.1,1,16"
        )
    return f"{info.accepts}, or a list of them"
