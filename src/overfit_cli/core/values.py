"""Readers of the values that users give.

Typer turns the words of a command line into numbers, paths and choices. The readers hold these, and
what Python gives, to what is accepted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any, Literal, TypeVar

from overfit_cli.core.errors import BadValue

DeviceChoice = Literal["auto", "cpu", "cuda"]
Backend = Literal["loky", "threading", "dask", "ray"]
ProfileName = Literal["quick", "paper"]
Mean = Literal["arithmetic", "geometric", "median"]
Band = Literal["interval", "sd", "quartiles", "seeds"]

LARGEST = 2**63 - 1
"""The largest whole number that a file of cells holds."""

NUMBERS = {int: "a whole number", float: "a finite number"}

_Choice = TypeVar("_Choice")


def whole_number(name: str, given: Any, at_least: int, others: str = "") -> int:
    """Return a whole number, of any library; the message tells what else is accepted."""
    is_whole = isinstance(given, Integral) and not isinstance(given, bool)
    if not is_whole or not at_least <= given <= LARGEST:
        raise BadValue(name, given, f"it takes {NUMBERS[int]} of at least {at_least}{others}.")
    return int(given)


def finite_number(name: str, given: Any, above: float = -math.inf) -> float:
    """Return a finite number, of any library."""
    is_number = isinstance(given, Real) and not isinstance(given, bool)
    if not is_number or not math.isfinite(given) or given <= above:
        accepts = NUMBERS[float] if above == -math.inf else f"a number above {above:g}"
        raise BadValue(name, given, f"it takes {accepts}.")
    return float(given)


def valid_choice(name: str, given: _Choice, choices: Iterable[object]) -> _Choice:
    """Return one of a few names."""
    if given not in choices:
        raise BadValue(name, given, f"it takes {alternatives(choices)}.")
    return given


def list_of_texts(name: str, given: Any) -> list[str]:
    """Return one text, or several, as a list."""
    several = isinstance(given, Iterable) and not isinstance(given, str)
    texts = list(given) if several else [given]
    if not all(isinstance(text, str) for text in texts):
        raise BadValue(name, given, "it takes a text, or several.")
    return texts


def alternatives(choices: Iterable[object]) -> str:
    """Return names as alternatives: `auto, cpu or cuda`."""
    *others, last = [str(choice) for choice in choices]
    return f"{', '.join(others)} or {last}" if others else last
