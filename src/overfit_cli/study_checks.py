"""Checks that a study is whole, made when it is loaded: what is wrong then costs no training."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from overfit_cli.parameters import StudyParameters, describe, is_finite_number
from overfit_cli.study import Column, Study, taken_columns

LARGEST_VERSION = 2**63 - 1
_VERSION = "it takes a whole number of at least 1"
_KINDS = ("float", "int")


def why_no_study(study: object, name: str) -> str:
    """Return why an object is no study of that name; empty where it is one."""
    if not isinstance(study, Study):
        return "it is not an instance of a class that inherits from Study"
    return next(_problems(study, name), "")


def version_problem(version: object) -> str:
    """Return why nothing can be of that numerical version; empty where it can."""
    if isinstance(version, int) and not isinstance(version, bool):
        return "" if 1 <= version <= LARGEST_VERSION else _VERSION
    return _VERSION


def text_problem(text: object) -> str:
    """Return why nothing can be called so; empty where it can."""
    if not isinstance(text, str):
        return "it takes a text"
    return "" if text.strip() and text.isprintable() else "it takes a line that can be printed"


def threshold_problem(threshold: object) -> str:
    """Return why that is no threshold; empty where it is one, or None."""
    good = threshold is None or is_finite_number(threshold)
    return "" if good else "it takes a finite number"


def sides_problem(sides: object) -> str:
    """Return why these are no names of the two sides of a threshold; empty where they are."""
    if isinstance(sides, tuple) and [isinstance(one, str) for one in sides] == [True, True]:
        return ""
    return "it takes two texts: what is up to the threshold, and what is above"


def _problems(study: Study[StudyParameters], name: str) -> Iterator[str]:
    members: Mapping[str, str] = {
        "name": text_problem(study.name),
        "version": version_problem(study.version),
        "threshold": threshold_problem(study.threshold),
        "sides": sides_problem(study.sides),
    }
    yield from (
        f"its {member} is {getattr(study, member)!r}; {why}"
        for member, why in members.items()
        if why
    )
    model: object = study.parameters
    if not (isinstance(model, type) and issubclass(model, StudyParameters)):
        yield "its parameters must be a class that inherits from StudyParameters"
        return
    describe(model)
    taken = taken_columns(model)
    yield from _columns_problems("columns", study.columns, taken)
    yield from _columns_problems("trajectory_columns", study.trajectory_columns, taken | {"step"})
    if not study.columns:
        yield "its columns are none, so that nothing would be measured"
    known = {column.name for column in study.columns}
    if study.headline not in known:
        yield f"its headline is {study.headline!r}, which is none of its columns"
    if study.name != name:
        yield f"its name is {study.name!r}"


def _columns_problems(
    member: str, columns: Sequence[object], taken: frozenset[str]
) -> Iterator[str]:
    if not isinstance(columns, tuple):
        yield f"its {member} must be of type tuple"
        return
    names = set[str]()
    for column in columns:
        if not isinstance(column, Column):
            yield f"its {member} have {column!r}, which is no Column"
            return
        if why := text_problem(column.name):
            yield f"its {member} have one called {column.name!r}; {why}"
        if column.kind not in _KINDS:
            yield f"the kind of its column {column.name!r} is {column.kind!r}, not float or int"
        if column.name in taken:
            yield f"its column {column.name!r} is one that every row has already"
        if column.name in names:
            yield f"two of its {member} are called {column.name!r}"
        names.add(column.name)
