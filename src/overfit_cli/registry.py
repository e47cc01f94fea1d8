"""Installed studies, found by their entry points and loaded with care."""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points

from overfit_cli.claim import Claim
from overfit_cli.errors import UserError, nearest
from overfit_cli.figure import Figure
from overfit_cli.standard_figures import any_grid
from overfit_cli.study import AnyStudy
from overfit_cli.study_checks import why_no_study

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
