"""Values that users give: kinds of choices, and readers for the command line and for Python alike.

Typer turns the words of a command line into numbers, paths and choices. The readers hold these, and
what Python gives, to what is accepted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal, TypeVar

from overfit_cli.core.errors import BadValue
from overfit_cli.core.files import error_text
from overfit_cli.core.text import is_text

DeviceChoice = Literal["auto", "cpu", "cuda"]
Backend = Literal["loky", "threading", "dask", "ray"]
ProfileName = Literal["quick", "paper"]
Mean = Literal["arithmetic", "geometric", "median"]
Band = Literal["interval", "sd", "quartiles", "seeds"]

LARGEST = 2**63 - 1
"""The largest whole number that a file of cells holds."""

_Choice = TypeVar("_Choice")


def whole_number(name: str, given: Any, at_least: int, at_most: int = LARGEST) -> int:
    """Return a whole number, of any library."""
    is_whole = isinstance(given, Integral) and not isinstance(given, bool)
    if not is_whole or not at_least <= given <= at_most:
        raise BadValue(name, given, f"it takes {number_in_words(int, at_least, at_most)}.")
    return int(given)


def finite_number(name: str, given: Any, above: float = -math.inf) -> float:
    """Return a finite number, of any library."""
    is_number = isinstance(given, Real) and not isinstance(given, bool)
    if not is_number or not math.isfinite(given) or given <= above:
        accepts = number_in_words(float) if above == -math.inf else f"a number above {above:g}"
        raise BadValue(name, given, f"it takes {accepts}.")
    return float(given)


JOBS_ACCEPTED = "a whole number of at least 1, or -1 for one per core"


def number_of_jobs(given: Any) -> int:
    """Return how many cells to train at the same time; -1 is one per core."""
    is_whole = isinstance(given, Integral) and not isinstance(given, bool)
    if not is_whole or not (given == -1 or 1 <= given <= LARGEST):
        raise BadValue("jobs", given, f"it takes {JOBS_ACCEPTED}.")
    return int(given)


def usable_path(name: str, given: Any) -> Path:
    """Return the path of a file or a folder, which need not exist."""
    if not isinstance(given, str | Path):
        raise BadValue(name, given, "it takes a path.")
    if not str(given).strip():
        raise BadValue(name, given, "give a path.")
    if not is_text(str(given)):
        raise BadValue(name, given, "the name isn't text; it takes a path in UTF-8.")
    try:
        Path(given).exists()
    except OSError as error:
        raise BadValue(name, given, f"it can't be used: {error_text(error)}.") from error
    return Path(given)


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


def number_in_words(kind: type, at_least: float | None = None, at_most: float | None = None) -> str:
    """Return which numbers are accepted: `a whole number of at least 20 and up to 2400`."""
    if at_least is None and at_most is None:
        return "a whole number" if kind is int else "a finite number"
    noun = "a whole number" if kind is int else "a number"
    limits = [] if at_least is None else [f"of at least {at_least}"]
    if at_most is not None and at_most < LARGEST:
        limits.append(f"up to {at_most}" if limits else f"of up to {at_most}")
    return f"{noun} {' and '.join(limits)}"
