"""The console, and the commands that it proposes."""

from __future__ import annotations

import shlex
import sys
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from overfit_cli.core.notebook import in_notebook
from overfit_cli.core.text import visible

if TYPE_CHECKING:
    from rich.console import Console


WIDEST = 10_000
"""The columns that a table may have where it isn't shown on a terminal."""


def console(*, quiet: bool = False) -> Console:
    """Return the console that all output goes through; it honours NO_COLOR and the width.

    On a terminal sentences are wrapped between words; elsewhere a sentence is a line, and so is a
    row of a table. Nothing in a text is markup.
    """
    from rich.console import Console
    from rich.table import Table

    class Plain(Console):
        def print(self, *objects: Any, **options: Any) -> None:
            printed = [visible(item) if isinstance(item, str) else item for item in objects]
            if not self.is_terminal:
                printed = [self._unwrapped(item) for item in printed]
            super().print(*printed, **options)

        def _unwrapped(self, item: Any) -> Any:
            if not isinstance(item, Table):
                return item
            lines = self.render_lines(item, self.options.update(width=WIDEST), pad=False)
            texts = ["".join(part.text for part in line).rstrip() for line in lines]
            return "\n".join(text for text in texts if text)

    result = Plain(
        highlight=False,
        markup=False,
        emoji=False,
        quiet=quiet,
        # A notebook's lines are one text in this way; its kernel sets FORCE_COLOR.
        force_terminal=False if in_notebook() else None,
        force_jupyter=False,
    )
    result.soft_wrap = not result.is_terminal
    return result


def print_folded(output: Console, text: str, first: str = "", further: str = "  ") -> None:
    """Print a text, on a terminal in lines that fit it, each after what it begins with."""
    shown = visible(text)
    if not output.is_terminal:
        output.print(f"{first}{shown}")
        return
    lines = textwrap.wrap(
        shown,
        output.width,
        initial_indent=first,
        subsequent_indent=further,
        break_on_hyphens=False,
    )
    for line in lines or [first]:
        output.print(line)


def typed_command() -> str:
    """Return the command line that was typed, as a shell takes it."""
    return shlex.join(["overfit", *sys.argv[1:]])


def proposed_command(command: Sequence[str]) -> list[str]:
    """Return the line that proposes a command; none where its words cannot be printed."""
    if not command:
        return []
    line = shlex.join(["overfit", *command])
    return [f"Next: {line}"] if visible(line) == line else []
