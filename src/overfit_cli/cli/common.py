"""The console, and numbers in words."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from overfit_cli.plain_text import visible

if TYPE_CHECKING:
    from rich.console import Console

RESULTS = Path("results")


def console() -> Console:
    """Return the console that all output goes through; it honours NO_COLOR and the width.

    On a terminal sentences are wrapped between words; elsewhere a sentence is a line. Names are
    shown as they are: nothing in a text is markup, and a text is one line.
    """
    from rich.console import Console

    class Plain(Console):
        def print(self, *objects: Any, **options: Any) -> None:
            shown = [visible(one) if isinstance(one, str) else one for one in objects]
            super().print(*shown, **options)

    plain = Plain(highlight=False, markup=False, emoji=False)
    plain.soft_wrap = not plain.is_terminal
    return plain


def next_lines(command: Sequence[str]) -> list[str]:
    """Return the line that proposes a command; none where its words can't be shown."""
    if not command:
        return []
    line = shlex.join(["overfit", *command])
    return [f"Next: {line}"] if visible(line) == line else []


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


def size(count: float) -> str:
    """Return a number of bytes in words: `12 kB`, `3.4 MB`."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < 1000 or unit == "TB":
            return f"{count:.3g} {unit}"
        count /= 1000
    raise AssertionError("the loop returns at TB")


def plural(count: int, noun: str) -> str:
    """Return a count with its noun: `1 cell`, `2 cells`, `3 batches`."""
    ending = "es" if noun.endswith(("ch", "s", "x")) else "s"
    return f"{count} {noun}" if count == 1 else f"{count} {noun}{ending}"
