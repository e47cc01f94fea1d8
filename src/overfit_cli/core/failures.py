"""Failures of cells: an exception in one line, with the place in the user's files that raised it.

A reason reads `error: KeyError: 'x' at ridge.py:12 in train: x = data["x"]`. Files of overfit, of
Python and of installed packages are not the user's.
"""

from __future__ import annotations

import re
import sysconfig
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from overfit_cli.core.text import visible

LONGEST_REASON = 200
MOST_PLACES = 3
_LONGEST_LINE = 80
_OVERFIT = str(Path(__file__).resolve().parents[1])
_STANDARD_LIBRARY = sysconfig.get_path("stdlib")
_COMPILED = {".pyx", ".pxi", ".pxd"}
_INSTALLED = {"site-packages", "dist-packages"}

_ERROR = re.compile(
    r"error: (?P<type>\w+)(?P<words>: .*?)??"
    r"(?: at (?P<place>(?:(?! at )[^:])*(?:\.py|>):\d+(?: in [^:;]+)?)(?P<line>[:;] .*)?)?$"
)
"""The parts of the reason of a cell that raised."""


def user_frames(error: BaseException) -> list[traceback.FrameSummary]:
    """Return the frames of an exception that lie in the user's files, the outermost first."""
    frames = traceback.extract_tb(error.__traceback__)
    return [frame for frame in frames if _is_users(frame.filename)]


def _is_users(file: str) -> bool:
    if file.startswith("<"):
        return file.startswith("<ipython")
    path = Path(file)
    if path.suffix in _COMPILED:
        return False
    if path.is_relative_to(_OVERFIT) or not _INSTALLED.isdisjoint(path.parts):
        return False
    return not path.is_relative_to(_STANDARD_LIBRARY)


def error_in_words(error: BaseException) -> str:
    """Return an exception in one line: its type, its words, and where the user's code raised it.

    Line breaks become `|`. Of the callers `MOST_PLACES - 1` are named.
    """
    try:
        lines = [" ".join(line.split()) for line in str(error).splitlines()]
        words = visible(" | ".join(filter(None, lines)))[:LONGEST_REASON]
    except Exception:  # an exception may fail to give its words
        words = ""
    said = f"{type(error).__name__}: {words}" if words else type(error).__name__
    frames = user_frames(error)[::-1][:MOST_PLACES]
    if not frames:
        return said
    line = visible((frames[0].line or "").strip())[:_LONGEST_LINE]
    callers = "".join(f"; from {_place(frame)}" for frame in frames[1:])
    return f"{said} at {_place(frames[0])}{f': {line}' if line else ''}{callers}"


def _place(frame: traceback.FrameSummary) -> str:
    inside = "" if frame.name == "<module>" else f" in {frame.name}"
    return visible(f"{Path(frame.filename).name}:{frame.lineno}{inside}")


def traceback_lines(error: BaseException) -> list[str]:
    """Return the user's part of a traceback, as Python prints it, and the exception itself."""
    frames = traceback.format_list(user_frames(error))
    if not frames:
        return []
    text = "".join([*frames, *traceback.format_exception_only(error)])
    return text.rstrip().splitlines()


def kind_of(reason: str) -> tuple[str, str]:
    """Return what alike failures share: the exception's type and place; else the reason itself."""
    parts = _ERROR.match(reason)
    return (parts["type"], parts["place"] or "") if parts else (reason, "")


def is_exception(reason: str) -> bool:
    """Whether a cell failed because its function raised."""
    return _ERROR.match(reason) is not None


@dataclass
class Alike:
    """Failures of one kind.

    Attributes:
        count: how many cells.
        example: the reason of one of them.
        varied: whether their reasons differ in words.
    """

    count: int
    example: str
    varied: bool = False

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


def count_alike(reasons: Mapping[str, int]) -> list[Alike]:
    """Return the kinds of failures, the most frequent first."""
    kinds = dict[tuple[str, str], Alike]()
    for reason, count in reasons.items():
        kind = kinds.setdefault(kind_of(reason), Alike(0, reason))
        kind.count += count
        kind.varied |= reason != kind.example
    return sorted(kinds.values(), key=lambda kind: -kind.count)
