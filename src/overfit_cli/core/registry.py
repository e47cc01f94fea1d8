"""Installed studies: their entry points, checks when they are loaded, and their errors."""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points, version
from importlib.util import find_spec
from typing import TypeVar

from overfit_cli.core.cell import taken_columns
from overfit_cli.core.claim import Claim
from overfit_cli.core.errors import UserError
from overfit_cli.core.figure import Figure, grid_figures
from overfit_cli.core.parameters import StudyParameters, describe
from overfit_cli.core.study import AnyStudy, Study
from overfit_cli.core.text import suggestion

STUDIES, DEFAULT_STUDY = "overfit.studies", "overfit.default_study"
"""The groups of entry points: of every study, and of the one that runs where none is named."""

Made = TypeVar("Made")

package_version = functools.cache(version)
"""Return the version of an installed package; kept, since a sweep asks for eight of them."""


def why_no_study(study: object, name: str) -> str:
    """Return the reason why an object is no study of this name; empty for a study."""
    return next(_problems(study, name), "")


def _problems(study: object, name: str) -> Iterator[str]:
    if not isinstance(study, Study):
        yield "it is not an instance of a class that inherits from Study"
        return
    model: object = study.parameters
    if not (isinstance(model, type) and issubclass(model, StudyParameters)):
        yield "its parameters must be a class that inherits from StudyParameters"
        return
    describe(model)
    for member, own in (("columns", set[str]()), ("trajectory_columns", {"step"})):
        for column, count in Counter(each.name for each in getattr(study, member)).items():
            if column in taken_columns(model) | own:
                yield f"its column {column!r} is one that every row has already"
            if count > 1:
                yield f"two of its {member} are called {column!r}"
    if not study.columns:
        yield "it has no columns, so nothing would be measured"
    if study.headline not in [column.name for column in study.columns]:
        yield f"its headline is {study.headline!r}, which is none of its columns"
    if study.name != name:
        yield f"its name is {study.name!r}"
    if type(study).train is Study.train:
        where, package = study.trained_in, type(study).__module__.rpartition(".")[0]
        if (where.startswith(".") and not package) or find_spec(where, package) is None:
            yield f"it has no function `train`, and there is no module {where}"


@functools.cache
def _entry_points(group: str = STUDIES) -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=group)}


_added: dict[str, AnyStudy] = {}


def add_study(study: AnyStudy) -> None:
    """Register a study in this process, as if it were installed."""
    if reason := why_no_study(study, study.name):
        raise UserError(f"{type(study).__name__} is not a study: {reason}.")
    if study.name not in _entry_points():
        _added[study.name] = study
    elif find_study(study.name) is not study:
        raise UserError(f"A study {study.name!r} is installed; give yours another name.")


def study_names() -> list[str]:
    """Return the names of all studies that are installed or were added in this process."""
    return sorted({*_entry_points(), *_added})


def default_study() -> str:
    """Return the name of the study that runs where none is named; it is not loaded."""
    for name in _entry_points(DEFAULT_STUDY):
        return name
    raise UserError("Name a study or a preset; `overfit list` names those that are installed.")


def find_study(name: str) -> AnyStudy:
    """Return the study `name`."""
    if name in _added:
        return _added[name]
    if name not in _entry_points():
        raise UserError(f"{name!r} is not a study; {suggestion(name, study_names())}")
    return _load(_entry_points()[name])


@functools.cache
def _load(point: EntryPoint) -> AnyStudy:
    try:
        study: AnyStudy = point.load()
        problem = why_no_study(study, point.name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a third party's package may even exit
        problem = f"{type(error).__name__}: {error}"
    if problem:
        raise UserError(f"The study {point.name!r} can't be loaded from {point.value}: {problem}")
    return study


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
    nothing: Mapping[str, Figure] = {}
    own = _or_nothing(study, "its figures", study.figures, nothing)
    return {**own, **grid_figures(study.threshold), **own}  # its own come first


def claims_of(study: AnyStudy) -> Sequence[Claim]:
    """Return a study's claims; where they raise an error, a warning and no claims."""
    return _or_nothing(study, "its claims", study.claims, ())


def _or_nothing(study: AnyStudy, doing: str, make: Callable[[], Made], nothing: Made) -> Made:
    try:
        with blaming(study, doing):
            return make()
    except UserError as error:
        warnings.warn(str(error), UserWarning, stacklevel=3)
        return nothing
