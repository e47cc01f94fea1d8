"""The decorator `experiment`: what a function's signature doesn't say of a study."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from overfit_cli.claim import Claim
from overfit_cli.study import Column

Function = TypeVar("Function", bound=Callable[..., Any])

_ATTRIBUTE = "__overfit__"
_TAKES: dict[str, tuple[Any, str]] = {
    "name": (str, "a text"),
    "version": (int, "a whole number"),
    "title": (str, "a text"),
    "headline": (str, "the name of a column"),
    "threshold": (int | float, "a number"),
}
_HOLDS: dict[str, Any] = {"columns": Column, "claims": Claim}


@dataclass(frozen=True)
class Description:
    """What `experiment` says of a function; see there."""

    name: str | None = None
    version: int = 1
    title: str | None = None
    headline: str = ""
    threshold: float | None = None
    columns: tuple[Column, ...] = ()
    claims: tuple[Claim, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what is of another type.

        Raises:
            TypeError: naming it.
        """
        for name, (kind, words) in _TAKES.items():
            given = getattr(self, name)
            if given is not None and not isinstance(given, kind):
                raise TypeError(f"experiment({name}={given!r}): it takes {words}")
        for name, kind in _HOLDS.items():
            for one in getattr(self, name):
                if not isinstance(one, kind):
                    words = f"it takes a list of {kind.__name__}(...)"
                    raise TypeError(f"experiment({name}=[{one!r}]): {words}")


def experiment(
    *,
    name: str | None = None,
    version: int = 1,
    title: str | None = None,
    headline: str = "",
    threshold: float | None = None,
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
        columns: meaning, symbol and unit of columns that it returns or yields.
        claims: what its cells can decide; `overfit report` judges them.

    Raises:
        TypeError: if one of them is of another type.
    """
    said = Description(name, version, title, headline, threshold, tuple(columns), tuple(claims))

    def mark(function: Function) -> Function:
        setattr(function, _ATTRIBUTE, said)
        return function

    return mark


def description_of(function: Callable[..., Any]) -> Description | None:
    """Return what `experiment` says of a function; None of one that it doesn't decorate."""
    found: Description | None = getattr(function, _ATTRIBUTE, None)
    return found
