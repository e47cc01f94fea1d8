"""Errors that a user reads, and readers of the values that users give.

Typer turns the words of a command line into numbers, paths and choices. The readers hold these, and
what Python gives, to what is accepted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from overfit_cli.core.text import shorten

if TYPE_CHECKING:
    from pydantic import ValidationError


class UserError(Exception):
    """A sentence for the user: the given value, and the accepted ones.

    The command line prints it and exits with `exit_code`: 2 for bad input, 1 when something failed.
    """

    def __init__(self, sentence: str, *, exit_code: int = 2) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code


class BadValue(UserError):
    """A value that its parameter or option does not accept, with what it takes.

    Python shows `name='value': …`, and the command line `--name value: …`.
    """

    def __init__(self, name: str, value: object, accepts: str, *, exit_code: int = 2) -> None:
        start = name if value is None else f"{name}={value!r}"
        super().__init__(f"{start}: {accepts}", exit_code=exit_code)
        self.name, self.value, self.accepts = name, value, accepts


def first_problem(error: ValidationError) -> str:
    """Return what pydantic refuses first, with its place: `runs.0.seeds: Field required`."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return ": ".join(filter(None, [shorten(".".join(map(str, first["loc"][:4]))), first["msg"]]))


class MissingError(UserError):
    """Data or an optional package that a study needs and that isn't here."""


class MissingValue(BadValue, MissingError):
    """A value that names data which isn't there."""


# Values

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
