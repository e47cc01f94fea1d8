"""The console, and the commands that it proposes."""

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
            printed = [visible(item) if isinstance(item, str) else item for item in objects]
            super().print(*printed, **options)

    result = Plain(highlight=False, markup=False, emoji=False, quiet=quiet)
    result.soft_wrap = not result.is_terminal
    return result


def typed_command() -> str:
    """Return the command line that was typed, as a shell takes it."""
    return shlex.join(["overfit", *sys.argv[1:]])


def proposed_command(command: Sequence[str]) -> list[str]:
    """Return the line that proposes a command; none where its words cannot be printed."""
    if not command:
        return []
    line = shlex.join(["overfit", *command])
    return [f"Next: {line}"] if visible(line) == line else []
