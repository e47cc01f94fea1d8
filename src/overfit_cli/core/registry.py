"""Installed studies: their entry points, checks when they are loaded, and their errors."""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points

from overfit_cli.core.cell import (
    Column,
    taken_columns,
)
from overfit_cli.core.claim import Claim
from overfit_cli.core.errors import UserError
from overfit_cli.core.figure import Figure, grid_figures
from overfit_cli.core.parameters import StudyParameters, describe, is_finite_number
from overfit_cli.core.study import AnyStudy, Study
from overfit_cli.core.text import suggestion

LARGEST_VERSION = 2**63 - 1
ENTRY_POINT_GROUP = "overfit.studies"
_VERSION = "it takes a whole number of at least 1"
_KINDS = ("float", "int")


def why_no_study(study: object, name: str) -> str:
    """Return the reason why an object is no study of this name; empty for a study."""
    if not isinstance(study, Study):
        return "it is not an instance of a class that inherits from Study"
    return next(_problems(study, name), "")


def version_problem(version: object) -> str:
    """Return the reason why a value is no numerical version; empty for a version."""
    if isinstance(version, int) and not isinstance(version, bool):
        return "" if 1 <= version <= LARGEST_VERSION else _VERSION
    return _VERSION


def text_problem(text: object) -> str:
    """Return the reason why a value is no name; empty for a name."""
    if not isinstance(text, str):
        return "it takes a text"
    return "" if text.strip() and text.isprintable() else "it takes a line that can be printed"


def threshold_problem(threshold: object) -> str:
    """Return the reason why a value is no threshold; empty for a threshold or None."""
    is_valid = threshold is None or is_finite_number(threshold)
    return "" if is_valid else "it takes a finite number"


def sides_problem(sides: object) -> str:
    """Return the reason why a value does not name the sides of a threshold; empty where it does."""
    if isinstance(sides, tuple) and [isinstance(side, str) for side in sides] == [True, True]:
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
        f"its {member} is {getattr(study, member)!r}; {problem}"
        for member, problem in members.items()
        if problem
    )
    model: object = study.parameters
    if not (isinstance(model, type) and issubclass(model, StudyParameters)):
        yield "its parameters must be a class that inherits from StudyParameters"
        return
    describe(model)
    reserved = taken_columns(model)
    yield from _columns_problems("columns", study.columns, reserved)
    yield from _columns_problems(
        "trajectory_columns", study.trajectory_columns, reserved | {"step"}
    )
    if not study.columns:
        yield "it has no columns, so nothing would be measured"
    columns = {column.name for column in study.columns}
    if study.headline not in columns:
        yield f"its headline is {study.headline!r}, which is none of its columns"
    if study.name != name:
        yield f"its name is {study.name!r}"


def _columns_problems(
    member: str, columns: Sequence[object], reserved: frozenset[str]
) -> Iterator[str]:
    if not isinstance(columns, tuple):
        yield f"its {member} must be of type tuple"
        return
    names = set[str]()
    for column in columns:
        if not isinstance(column, Column):
            yield f"its {member} have {column!r}, which is no Column"
            return
        if problem := text_problem(column.name):
            yield f"its {member} have one called {column.name!r}; {problem}"
        if column.kind not in _KINDS:
            yield f"the kind of its column {column.name!r} is {column.kind!r}, not float or int"
        if column.name in reserved:
            yield f"its column {column.name!r} is one that every row has already"
        if column.name in names:
            yield f"two of its {member} are called {column.name!r}"
        names.add(column.name)


@functools.cache
def _entry_points() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}


_added: dict[str, AnyStudy] = {}


def add_study(study: AnyStudy) -> None:
    """Register a study in this process, as if it were installed."""
    if reason := why_no_study(study, study.name):
        raise UserError(f"{type(study).__name__} is not a study: {reason}.")
    if study.name in _entry_points() and find_study(study.name) is not study:
        raise UserError(f"A study {study.name!r} is installed; give yours another name.")
    if study.name not in _entry_points():
        _added[study.name] = study


def study_names() -> list[str]:
    """Return the names of all studies that are installed or were added in this process."""
    return sorted({*_entry_points(), *_added})


def find_study(name: str) -> AnyStudy:
    """Return the study `name`."""
    if name in _added:
        return _added[name]
    if name not in _entry_points():
        raise UserError(f"{name!r} is not a study; {suggestion(name, study_names())}")
    study = _load(_entry_points()[name])
    if isinstance(study, str):
        source = _entry_points()[name].value
        raise UserError(f"The study {name!r} can't be loaded from {source}: {study}")
    return study


@functools.cache
def _load(point: EntryPoint) -> AnyStudy | str:
    try:
        study: AnyStudy = point.load()
        return why_no_study(study, point.name) or study
    except BaseException as error:  # a third party's package may even exit
        if isinstance(error, KeyboardInterrupt):
            raise
        return f"{type(error).__name__}: {error}"


def installed_studies() -> Iterator[AnyStudy]:
    """Yield every registered study; warn of each that cannot be loaded."""
    for name in study_names():
        try:
            yield find_study(name)
        except UserError as error:
            warnings.warn(str(error), UserWarning, stacklevel=2)


@contextlib.contextmanager
def blaming(study: AnyStudy, doing: str) -> Iterator[None]:
    """Turn an exception of a study's code inside into a sentence with the study's name."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        cause = f"{type(error).__name__}: {error}"
        raise UserError(f"The study {study.name!r} fails at {doing}: {cause}.") from error


def figures_of(study: AnyStudy) -> Mapping[str, Figure]:
    """Return a study's figures, and the general figures whose names it does not use."""
    study_figures: Mapping[str, Figure] = {}
    try:
        with blaming(study, "its figures"):
            study_figures = study.figures()
    except UserError as error:
        warnings.warn(str(error), UserWarning, stacklevel=2)
    general = grid_figures(study.threshold)
    return {
        **study_figures,
        **{name: figure for name, figure in general.items() if name not in study_figures},
    }


def claims_of(study: AnyStudy) -> Sequence[Claim]:
    """Return a study's claims; where they raise an error, a warning and no claims."""
    try:
        with blaming(study, "its claims"):
            return study.claims()
    except UserError as error:
        warnings.warn(str(error), UserWarning, stacklevel=2)
        return ()
