"""The console, and the folder of results."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from overfit_cli.core.text import visible

if TYPE_CHECKING:
    from rich.console import Console


def console(*, quiet: bool = False) -> Console:
    """Return the console that all output goes through; it honours NO_COLOR and the width.

    On a terminal sentences are wrapped between words; elsewhere a sentence is a line. Names are
    shown as they are: nothing in a text is markup, and a text is one line.
    """
    from rich.console import Console

    class Plain(Console):
        def print(self, *objects: Any, **options: Any) -> None:
            shown = [visible(one) if isinstance(one, str) else one for one in objects]
            super().print(*shown, **options)

    plain = Plain(highlight=False, markup=False, emoji=False, quiet=quiet)
    plain.soft_wrap = not plain.is_terminal
    return plain


def typed_command() -> str:
    """Return the command line that was typed, as a shell takes it."""
    return shlex.join(["overfit", *sys.argv[1:]])


def next_lines(command: Sequence[str]) -> list[str]:
    """Return the line that proposes a command; none where its words can't be shown."""
    if not command:
        return []
    line = shlex.join(["overfit", *command])
    return [f"Next: {line}"] if visible(line) == line else []
