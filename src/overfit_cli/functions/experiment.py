"""The decorator `experiment`: what a function's signature doesn't say of a study."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from overfit_cli.claim import Claim
from overfit_cli.study import Column
from overfit_cli.study_checks import (
    sides_problem,
    text_problem,
    threshold_problem,
    version_problem,
)

Function = TypeVar("Function", bound=Callable[..., Any])

_ATTRIBUTE = "__overfit__"
_HOLDS: dict[str, Any] = {"columns": Column, "claims": Claim}


@dataclass(frozen=True)
class Description:
    """What `experiment` says of a function; see there."""

    name: str | None = None
    version: int = 1
    title: str | None = None
    headline: str = ""
    threshold: float | None = None
    sides: tuple[str, str] = ("", "")
    columns: tuple[Column, ...] = ()
    claims: tuple[Claim, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what is of another type.

        Raises:
            TypeError: naming it.
        """
        problems = {
            "name": self.name is not None and text_problem(self.name),
            "version": version_problem(self.version),
            "title": not isinstance(self.title, str | None) and "it takes a text",
            "headline": not isinstance(self.headline, str) and "it takes the name of a column",
            "threshold": threshold_problem(self.threshold),
            "sides": sides_problem(self.sides),
        }
        for name, why in problems.items():
            if why:
                raise TypeError(f"experiment({name}={getattr(self, name)!r}): {why}")
        for name, kind in _HOLDS.items():
            for one in getattr(self, name):
                if not isinstance(one, kind):
                    words = f"it takes a list of {kind.__name__}(...)"
                    raise TypeError(f"experiment({name}=[{one!r}]): {words}")


def experiment(
    *without_names: object,
    name: str | None = None,
    version: int = 1,
    title: str | None = None,
    headline: str = "",
    threshold: float | None = None,
    sides: tuple[str, str] = ("", ""),
    columns: Sequence[Column] = (),
    claims: Sequence[Claim] = (),
) -> Callable[[Function], Function]:
    """Decorate a function that is a study, to say what its signature doesn't.

    Args:
        name: the study's name; by default the module's and the function's.
        version: raised when the same cell would give other numbers; cells of two aren't mixed.
        title: what it is, in a line; by default the first line of its documentation.
        headline: the column shown while a sweep runs; by default the first that it returns.
        threshold: the value of the headline at which a cell changes sides.
        sides: what a cell is called whose headline is up to the threshold, and above it.
        columns: meaning, symbol, unit and label of columns that it returns or yields.
        claims: what its cells can decide; `overfit report` judges them.

    Raises:
        TypeError: if one of them is of another type, or the parentheses are missing.
    """
    if without_names:
        raise TypeError("it is written @experiment(...), with its parentheses and names in them")
    for what, given in (("columns", columns), ("claims", claims)):
        if not isinstance(given, Iterable):
            raise TypeError(f"experiment({what}={given!r}): it takes a list")
    said = Description(
        name, version, title, headline, threshold, sides, tuple(columns), tuple(claims)
    )

    def mark(function: Function) -> Function:
        setattr(function, _ATTRIBUTE, said)
        return function

    return mark


def description_of(function: Callable[..., Any]) -> Description | None:
    """Return what `experiment` says of a function; None of one that it doesn't decorate."""
    found: Description | None = getattr(function, _ATTRIBUTE, None)
    return found
