"""The measured columns that two sides are compared in."""

from __future__ import annotations

from collections.abc import Sequence

from overfit_cli.analysis.pairs import finite
from overfit_cli.errors import UserError, nearest
from overfit_cli.report.comparison.sides import Side
from overfit_cli.words import plural


def asked_columns(a: Side, b: Side, values: Sequence[str]) -> list[str]:
    """Return the columns that the user names.

    Raises:
        UserError: if a name is unknown, or a side has no number of it.
    """
    known = [*_measured(a), "seconds"]
    for name in values:
        if name not in known:
            raise UserError(
                f"--value {name}: {a.study.name} measures no {name!r}; {nearest(name, known)}"
            )
        for one in (a, b):
            if not _has_numbers(one, name):
                raise UserError(f"--value {name}: {one.letter} {one.path} has no number of it.")
    return list(dict.fromkeys(values))


def shared_columns(a: Side, b: Side) -> list[str]:
    """Return the columns that both sides have numbers of, the headline first.

    Raises:
        UserError: if there is none.
    """
    of_a = [name for name in _measured(a) if _has_numbers(a, name)]
    shared = [name for name in of_a if _has_numbers(b, name) and not _counts_nothing(name, a, b)]
    if not of_a:
        raise UserError(f"A {a.path}: none of its {plural(len(a.cells), 'cell')} has a number.")
    if not shared:
        raise UserError(
            f"B {b.path}: it has no number of what A has numbers of: {', '.join(of_a)}."
        )
    return shared


def lonely_columns(one: Side, other: Side) -> list[str]:
    """Return the columns that one side has numbers of, and the other doesn't."""
    names = _measured(one)
    return [name for name in names if _has_numbers(one, name) and not _has_numbers(other, name)]


def _measured(side: Side) -> list[str]:
    """What a study measures, the headline first."""
    study = side.study
    names = [study.headline, *(column.name for column in study.columns), "steps"]
    return [name for name in dict.fromkeys(names) if name]


def _has_numbers(side: Side, name: str) -> bool:
    return name in side.cells and bool(finite(side.cells, name).notna().any())


def _counts_nothing(name: str, a: Side, b: Side) -> bool:
    """Whether these are the steps of a study that takes none."""
    return name == "steps" and not any(finite(one.cells, name).any() for one in (a, b))
