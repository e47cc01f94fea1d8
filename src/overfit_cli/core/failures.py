"""Failures of cells: an exception in one line, and the lines of the user's files that led to it.

A reason reads `error: KeyError: 'x' at ridge.py:12 in train: x = data["x"]`, and the traceback that
is kept beside it has a line for each of the last frames, and the exception's whole words. Files of
overfit, of Python and of installed packages are not the user's; the library that raised is named.
"""

from __future__ import annotations

import itertools
import re
import sysconfig
import traceback
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TypeAlias

from overfit_cli.core.text import visible

LONGEST_REASON = 200
MOST_FRAMES = 8
MOST_CAUSES = 3
_LONGEST_LINE = 80
_LONGEST_WORDS = 2000
_LED_TO = "which led to"
_OVERFIT = str(Path(__file__).resolve().parents[1])
_STANDARD_LIBRARY = sysconfig.get_path("stdlib")
_COMPILED = {".pyx", ".pxi", ".pxd"}
_INSTALLED = {"site-packages", "dist-packages"}

_ERROR = re.compile(
    r"error: (?P<type>\w+)(?P<words>: .*?)??"
    r"(?: at (?P<place>(?:(?! at )[^:])*(?:\.py|>):\d+(?: in [^:;(]+)?(?: \(raised in \w+\))?)"
    r"(?P<line>[:;] .*)?)?$"
)
"""The parts of the reason of a cell that raised."""


# Frames


def user_frames(error: BaseException) -> list[traceback.FrameSummary]:
    """Return the frames of an exception that lie in the user's files, the outermost first."""
    frames = traceback.extract_tb(error.__traceback__)
    return [frame for frame in frames if _is_users(frame.filename)]


def _links(error: BaseException) -> Iterator[TracebackType]:
    link = error.__traceback__
    while link is not None:
        yield link
        link = link.tb_next


def _file_of(link: TracebackType) -> str:
    return link.tb_frame.f_code.co_filename


def _is_users(file: str) -> bool:
    if file.startswith("<"):
        return file.startswith("<ipython")
    path = Path(file)
    if path.suffix in _COMPILED:
        return False
    if path.is_relative_to(_OVERFIT) or not _INSTALLED.isdisjoint(path.parts):
        return False
    return not path.is_relative_to(_STANDARD_LIBRARY)


def _library(error: BaseException) -> str:
    name = ""
    for link in _links(error):
        if _is_users(_file_of(link)):
            name = ""
        elif not _file_of(link).startswith("<"):
            name = str(link.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
    return name


def _causes(error: BaseException) -> list[BaseException]:
    chain = [error]
    while len(chain) < MOST_CAUSES:
        last = chain[-1]
        before = last.__cause__ or (None if last.__suppress_context__ else last.__context__)
        if before is None or any(before is link for link in chain):
            break
        chain.append(before)
    return [link for link in reversed(chain) if link is error or user_frames(link)]


# Texts


def error_in_words(error: BaseException) -> str:
    """Return an exception in one line: its type, its words, and the place in the user's code."""
    try:
        lines = [" ".join(line.split()) for line in str(error).splitlines()]
        words = visible(" | ".join(filter(None, lines)))[:LONGEST_REASON]
    except Exception:  # an exception may fail to give its words
        words = ""
    said = f"{type(error).__name__}: {words}" if words else type(error).__name__
    places = _places(error)
    return f"{said} at {places[-1]}" if places else said


def _places(error: BaseException) -> list[str]:
    """The user's frames as `ridge.py:12 in train: x = data["x"]`, the outermost first."""
    frames = user_frames(error)
    library = _library(error)
    return [
        _place(frame, library if frame is frames[-1] else "")  # it was called from the last one
        for frame in frames
    ]


def _place(frame: traceback.FrameSummary, library: str) -> str:
    inside = "" if frame.name == "<module>" else f" in {frame.name}"
    raised = f" (raised in {library})" if library else ""
    line = (frame.line or "").strip()[:_LONGEST_LINE]
    place = f"{Path(frame.filename).name}:{frame.lineno}{inside}{raised}"
    return visible(f"{place}: {line}" if line else place)


def kept_traceback(error: BaseException) -> str:
    """Return the traceback that a row keeps: the user's last frames and the exception's words.

    A repeated frame is counted. An exception that led to this one stands above it. Files have no
    folder, so that a cell has the same traceback on another machine. It is empty where no frame is
    the user's.
    """
    blocks = list[str]()
    for link in _causes(error):
        counted = [(place, len([*same])) for place, same in itertools.groupby(_places(link))]
        lines = [
            f"{place} ({times} times)" if times > 1 else place
            for place, times in counted[-MOST_FRAMES:]
        ]
        words = "".join(traceback.format_exception_only(link))[:_LONGEST_WORDS].rstrip()
        blocks.append("\n".join([*lines, *map(visible, words.splitlines())]))
    return f"\n{_LED_TO}\n".join(blocks) if any(map(user_frames, _causes(error))) else ""


def traceback_lines(error: BaseException) -> list[str]:
    """Return the user's part of a traceback, as Python prints it, and the exception itself."""
    lines = list[str]()
    for link in _causes(error):
        frames, library = user_frames(link), _library(link)
        if frames:
            lines += [_LED_TO] if lines else []
            text = "".join(traceback.format_list(frames))
            text += f"  Raised in {library}.\n" if library else ""
            text += "".join(traceback.format_exception_only(link))
            lines += text.rstrip().splitlines()
    return lines


# Kinds of failures

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
    tracebacks = dict[FailureKind, str]()
    for reason, text in rows:
        if text:
            tracebacks.setdefault(kind_of(reason), text)
    return tracebacks


@dataclass
class Alike:
    """Failures of one kind: how many cells, and whether their reasons differ in words."""

    count: int
    example: str
    varied: bool = False
    traceback: str = ""

    @property
    def words(self) -> str:
        """The example's reason without its place."""
        parts = _ERROR.match(self.example)
        words = f"error: {parts['type']}{parts['words'] or ''}" if parts else self.example
        return f"{words}, and similar" if self.varied else words

    @property
    def place(self) -> str:
        """The exception's type and place with its line; empty where no place is known."""
        parts = _ERROR.match(self.example)
        if parts is None or not parts["place"]:
            return ""
        return f"{parts['type']} at {parts['place']}{parts['line'] or ''}"


def count_alike(
    reasons: Mapping[str, int], tracebacks: Mapping[FailureKind, str] | None = None
) -> list[Alike]:
    """Return the kinds of failures, the most frequent first."""
    kinds = dict[FailureKind, Alike]()
    for reason, count in reasons.items():
        kind = kinds.setdefault(kind_of(reason), Alike(0, reason))
        kind.count += count
        kind.varied |= reason != kind.example
    for key, kind in kinds.items():
        kind.traceback = (tracebacks or {}).get(key, "")
    return sorted(kinds.values(), key=lambda kind: -kind.count)
