"""Installed studies: found by entry points, checked when loaded, blamed for what they raise."""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING

from overfit_cli.core.cell import (
    Column,
    taken_columns,
)
from overfit_cli.core.claim import Claim
from overfit_cli.core.figure import Figure, any_grid
from overfit_cli.core.parameters import StudyParameters, describe, is_finite_number
from overfit_cli.core.study import AnyStudy, Study
from overfit_cli.core.text import UserError, nearest

if TYPE_CHECKING:
    pass


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


ENTRY_POINT_GROUP = "overfit.studies"


@functools.cache
def _entry_points() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}


_added: dict[str, AnyStudy] = {}


def add_study(study: AnyStudy) -> None:
    """Have a study be found in this process as if it were installed.

    Raises:
        UserError: if it is no whole study, or another one is installed under its name.
    """
    if reason := why_no_study(study, study.name):
        raise UserError(f"{type(study).__name__} is not a study: {reason}.")
    if study.name in _entry_points() and find_study(study.name) is not study:
        raise UserError(f"A study {study.name!r} is installed; give yours another name.")
    if study.name not in _entry_points():
        _added[study.name] = study


def study_names() -> list[str]:
    """Return the names of all studies that are installed, or were added in this process."""
    return sorted({*_entry_points(), *_added})


def find_study(name: str) -> AnyStudy:
    """Return the study `name`.

    Raises:
        UserError: if there is none of that name, or its package can't be loaded.
    """
    if name in _added:
        return _added[name]
    if name not in _entry_points():
        raise UserError(f"{name!r} is not a study; {nearest(name, study_names())}")
    found = _load(_entry_points()[name])
    if isinstance(found, str):
        source = _entry_points()[name].value
        raise UserError(f"The study {name!r} can't be loaded from {source}: {found}")
    return found


@functools.cache
def _load(point: EntryPoint) -> AnyStudy | str:
    """An installed study, or why it can't be loaded."""
    try:
        study: AnyStudy = point.load()
        return why_no_study(study, point.name) or study
    except BaseException as error:  # a package of somebody else's may even exit
        if isinstance(error, KeyboardInterrupt):
            raise
        return f"{type(error).__name__}: {error}"


def installed_studies() -> Iterator[AnyStudy]:
    """Give every study that can be found; warn of each that can't be loaded."""
    for name in study_names():
        try:
            yield find_study(name)
        except UserError as error:
            warnings.warn(str(error), UserWarning, stacklevel=2)


@contextlib.contextmanager
def blaming(study: AnyStudy, doing: str) -> Iterator[None]:
    """Have what a study raises in here name it, in a sentence.

    Raises:
        UserError: in place of every other exception; one of its own stays as it is.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        raise UserError(f"The study {study.name!r} fails at {doing}: {said}.") from error


def figures_of(study: AnyStudy) -> Mapping[str, Figure]:
    """Return a study's figures, and those that any grid can have where it has none of that name.

    A study that can't name its figures has the general ones alone, with a warning.
    """
    own: Mapping[str, Figure] = {}
    try:
        with blaming(study, "its figures"):
            own = study.figures()
    except UserError as error:
        warnings.warn(str(error), UserWarning, stacklevel=2)
    general = any_grid(study.threshold)
    return {**own, **{name: one for name, one in general.items() if name not in own}}


def claims_of(study: AnyStudy) -> Sequence[Claim]:
    """Return a study's claims; none, with a warning, where it can't name them."""
    try:
        with blaming(study, "its claims"):
            return study.claims()
    except UserError as error:
        warnings.warn(str(error), UserWarning, stacklevel=2)
        return ()
