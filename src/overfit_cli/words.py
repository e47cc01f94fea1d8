"""Times, sizes and counts in words."""

from __future__ import annotations

import re


def duration(seconds: float) -> str:
    """Return a time in words: `0.4 s`, `37 s`, `4 min 05 s`, `2 h 10 min`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def about(seconds: float) -> str:
    """Return an estimated time in words: `a few seconds`, `about 37 s`, `about 2 h 10 min`."""
    return f"about {duration(seconds)}" if seconds >= 10 else "a few seconds"


def as_numbered(name: str) -> list[tuple[int, str]]:
    """Return what sorts names as people do: `fig2` before `fig10`, and both before `table1`."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def size(count: float) -> str:
    """Return a number of bytes in words: `12 kB`, `3.4 MB`."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < 1000 or unit == "TB":
            return f"{count:.3g} {unit}"
        count /= 1000
    raise AssertionError("the loop returns at TB")


def plural(count: int, noun: str) -> str:
    """Return a count with its noun: `1 cell`, `2 cells`, `3 batches`, `4 directories`."""
    if count == 1:
        return f"{count} {noun}"
    if noun.endswith("ory"):
        return f"{count} {noun[:-1]}ies"
    ending = "es" if noun.endswith(("ch", "s", "x")) else "s"
    return f"{count} {noun}{ending}"
