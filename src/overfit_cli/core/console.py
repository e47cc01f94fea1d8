"""The console, and the commands that it proposes."""

from __future__ import annotations

import os
import shlex
import sys
import textwrap
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from overfit_cli.core.text import visible

if TYPE_CHECKING:
    from rich.box import Box
    from rich.console import Console
    from rich.table import Table


WIDEST = 10_000
"""The columns that a table may have where it isn't shown on a terminal."""


def in_notebook() -> bool:
    """Return whether this process is a notebook's kernel."""
    ipython = sys.modules.get("IPython")  # used only where it runs already
    shell = None if ipython is None else ipython.get_ipython()
    return hasattr(shell, "kernel")


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

        def on_broken_pipe(self) -> None:
            """Let what runs go on when its reader has left, as `head` does."""
            self.quiet = True
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

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


def text_table(
    rows: Sequence[Mapping[str, Any]],
    *,
    box: Box | None = None,
    whole: Collection[str] = (),
    right: Collection[str] = (),
    styles: Mapping[str, str] | None = None,
) -> Table:
    """Return rows of texts as a table for the console, each text under its heading.

    Args:
        whole: the columns whose texts are not folded.
        right: the columns at whose right their texts stand.
    """
    from rich.table import Table

    table = Table(box=box, header_style="")
    for heading in rows[0] if rows else ():
        side: Any = "right" if heading in right else "left"
        style = (styles or {}).get(heading)
        no_wrap = heading in whole
        table.add_column(heading, justify=side, style=style, no_wrap=no_wrap, overflow="fold")
    for row in rows:
        table.add_row(*(visible(text) if isinstance(text, str) else text for text in row.values()))
    return table


def print_folded(
    output: Console, text: str, first: str = "", further: str = "  ", width: int | None = None
) -> None:
    """Print a text in lines that fit a terminal, or this width, each after what it begins with."""
    shown = visible(text)
    if not output.is_terminal and width is None:
        output.print(f"{first}{shown}")
        return
    lines = textwrap.wrap(
        shown,
        min(output.width, width or output.width),
        initial_indent=first,
        subsequent_indent=further,
        break_on_hyphens=False,
    )
    for line in lines or [first]:
        output.print(line)


def spelled(name: str) -> str:
    """Return the option of an argument: `--retry-failed` of `retry_failed`, `--from` of `from_`."""
    return f"--{name.rstrip('_').replace('_', '-')}"


def command_words(command: str, *arguments: object, **options: Any) -> list[str]:
    """Return the words of a command of overfit; its options are arguments by name.

    An option that is True has no value, a list or a tuple one for each time; None and False are
    left out.
    """
    words = [command, *map(str, arguments)]
    for name, given in options.items():
        for value in given if isinstance(given, list | tuple) else [given]:
            if value is not None and value is not False:
                words += [spelled(name)] if value is True else [spelled(name), str(value)]
    return words


def shell_line(words: Sequence[str]) -> str:
    """Return the words of a command of overfit as a shell takes them."""
    return shlex.join(["overfit", *words])


def typed_command() -> str:
    """Return the command line that was typed, as a shell takes it."""
    return shell_line(sys.argv[1:])


def proposed_command(command: Sequence[str]) -> list[str]:
    """Return the line that proposes a command; none where its words cannot be printed."""
    if not command:
        return []
    line = shell_line(command)
    return [f"Next: {line}"] if visible(line) == line else []


def print_next(output: Console, command: Sequence[str]) -> None:
    """Print the line that proposes a command, if there is one."""
    for line in proposed_command(command):
        output.print(line)
