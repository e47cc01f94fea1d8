"""Errors that a user reads, and the failures of cells in words.

A failed cell's reason reads `error: KeyError: 'x' at ridge.py:12 in train: x = data["x"]`, and the
traceback that is kept beside it has a line for each of the last frames, and the exception's whole
words. Files of overfit, of Python and of installed packages are not the user's; the library that
raised is named.
"""

from __future__ import annotations

import itertools
import re
import sysconfig
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from overfit_cli.core.text import shorten, visible

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
    place = shorten(".".join(map(str, first["loc"][:4])))
    return visible(": ".join(filter(None, [place, first["msg"]])))


class MissingError(UserError):
    """Data or an optional package that a study needs and that isn't here."""


class MissingValue(BadValue, MissingError):
    """A value that names data which isn't there."""


class Told(Exception):
    """A failure whose words are the reason of the cell; `lines` are what its row keeps of it."""

    def __init__(self, words: str, lines: str = "") -> None:
        super().__init__(words)
        self.lines = lines


LONGEST_REASON, MOST_FRAMES, MOST_CAUSES = 200, 8, 3
_LONGEST_LINE, _LONGEST_WORDS = 80, 2000
_NO_USERS = Path(__file__).resolve().parents[1], Path(sysconfig.get_path("stdlib"))

_ERROR = re.compile(
    r"^error: (?P<type>\w+)(?P<words>: .*?)??"
    r"(?: at (?P<place>(?:(?! at )[^:])*(?:\.py|>):\d+(?: in [^:;(]+)?(?: \(raised in \w+\))?)"
    r"(?:[:;] .*)?)?$"
)
"""The parts of the reason of a cell that raised."""


def _is_users(file: str) -> bool:
    path = Path(file)
    if file.startswith("<") or path.suffix in (".pyx", ".pxi", ".pxd") or is_installed(path):
        return file.startswith("<ipython")
    return not any(path.is_relative_to(folder) for folder in _NO_USERS)


def _causes(
    error: BaseException, after: tuple[BaseException, ...] = ()
) -> tuple[BaseException, ...]:
    """At most `MOST_CAUSES` exceptions, each once: what led to this one, it, and those after it."""
    chain = (error, *after)
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if before is None or len(chain) == MOST_CAUSES or any(before is link for link in chain):
        return chain
    return _causes(before, chain)


def is_installed(path: Path) -> bool:
    """Whether a file belongs to an installed package, which every process has."""
    return not {"site-packages", "dist-packages"}.isdisjoint(path.parts)


def error_in_words(error: BaseException) -> str:
    """Return an exception in one line: its type, its words, and the place in the user's code."""
    if isinstance(error, Told):
        return str(error)
    try:
        lines = [" ".join(line.split()) for line in str(error).splitlines()]
        words = visible(" | ".join(filter(None, lines)))[:LONGEST_REASON]
    except Exception:  # an exception may fail to give its words
        words = ""
    said = f"{type(error).__name__}: {words}" if words else type(error).__name__
    places = _places(error)
    return f"{said} at {places[-1]}" if places else said


def _places(error: BaseException) -> list[str]:
    """The user's frames as `ridge.py:12 in train: x = data["x"]`, the outermost first.

    The last one names the library that it called, if that raised.
    """
    places, library = list[tuple[str, str]](), ""
    walked = traceback.walk_tb(error.__traceback__)
    for (frame, _), summary in zip(walked, traceback.extract_tb(error.__traceback__), strict=True):
        if _is_users(summary.filename):
            within = "" if summary.name == "<module>" else f" in {summary.name}"
            place = f"{Path(summary.filename).name}:{summary.lineno}{within}"
            places.append((place, (summary.line or "").strip()[:_LONGEST_LINE]))
            library = ""
        elif not summary.filename.startswith("<"):
            library = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    if places and library not in ("", "contextlib"):  # by which imports are seen
        places[-1] = f"{places[-1][0]} (raised in {library})", places[-1][1]
    return [visible(f"{place}: {line}" if line else place) for place, line in places]


def kept_traceback(error: BaseException) -> str:
    """Return the traceback that a row keeps: the user's last frames and the exception's words.

    A repeated frame is counted. An exception that led to this one stands above it. Files have no
    folder, so that a cell has the same traceback on another machine. It is empty where no frame is
    the user's.
    """
    if isinstance(error, Told):
        return error.lines
    parts = list[str]()
    for link in _causes(error):
        counted = [(place, len([*same])) for place, same in itertools.groupby(_places(link))]
        frames = [
            f"{place} ({times} times)" if times > 1 else place
            for place, times in counted[-MOST_FRAMES:]
        ]
        words = "".join(traceback.format_exception_only(link))[:_LONGEST_WORDS].rstrip()
        if frames:
            parts.append("\n".join([*frames, *map(visible, words.splitlines())]))
    return "\nwhich led to\n".join(parts)


FailureKind: TypeAlias = tuple[str, str]


def kind_of(reason: str) -> FailureKind:
    """Return what alike failures share: the exception's type and place; else the reason itself."""
    parts = _ERROR.match(reason)
    return (parts["type"], parts["place"] or "") if parts else (reason, "")


def is_exception(reason: str) -> bool:
    """Whether a cell failed because its function raised."""
    return _ERROR.match(reason) is not None


def tracebacks_by_kind(rows: Iterable[tuple[str, str | None]]) -> dict[FailureKind, str]:
    """Return a traceback of each kind of failure, of the first row that has one."""
    return {kind_of(reason): text for reason, text in reversed([*rows]) if text}


@dataclass
class Alike:
    """Failures of one kind: how many cells, and whether their reasons differ in words.

    Attributes:
        words: the example's reason without its place.
    """

    example: str
    words: str
    traceback: str
    count: int = 0
    varied: bool = False


def count_alike(
    reasons: Mapping[str, int], tracebacks: Mapping[FailureKind, str] | None = None
) -> list[Alike]:
    """Return the kinds of failures, the most frequent first."""
    kinds = dict[FailureKind, Alike]()
    for reason, count in reasons.items():
        key, words = kind_of(reason), _ERROR.sub(r"error: \g<type>\g<words>", reason)
        kind = kinds.setdefault(key, Alike(reason, words, (tracebacks or {}).get(key, "")))
        kind.count += count
        if reason != kind.example and not kind.varied:
            kind.varied, kind.words = True, f"{kind.words}, and similar"
    return sorted(kinds.values(), key=lambda kind: -kind.count)
