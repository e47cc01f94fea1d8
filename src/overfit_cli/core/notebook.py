"""Output in a notebook: whether this process is one's kernel, and a picture that changes in place.

IPython is used only where it runs already.
"""

from __future__ import annotations

import io
import math
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import RenderableType

WIDTH = 100
"""The characters in a line of a notebook's output, at the usual width of its window."""

SECONDS_BETWEEN_PICTURES = 0.2
"""A picture that comes earlier after another one is passed over, unless it is the last."""

_HTML = (
    '<pre style="white-space: pre; overflow-x: auto; line-height: normal; '
    "font-family: ui-monospace, Menlo, 'DejaVu Sans Mono', Consolas, monospace\">{code}</pre>"
)


def in_notebook() -> bool:
    """Return whether this process is a notebook's kernel."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return hasattr(shell, "kernel")


class NotebookPicture:
    """A picture in the output of a notebook's cell; each one replaces the one before it."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._next = -math.inf

    def show(self, picture: RenderableType, *, is_last: bool = False) -> None:
        """Show what rich can render in the place of the last picture; the last one always."""
        if time.monotonic() < self._next and not is_last:
            return
        content = _content(picture)
        if self._handle is None:
            from IPython.display import display

            self._handle = display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)
        self._next = time.monotonic() + SECONDS_BETWEEN_PICTURES


def _content(picture: RenderableType) -> dict[str, str]:
    from rich.console import Console
    from rich.terminal_theme import SVG_EXPORT_THEME

    canvas = Console(
        file=io.StringIO(),
        record=True,
        width=WIDTH,
        force_terminal=True,
        force_jupyter=False,
        color_system="truecolor",
        legacy_windows=False,
    )
    canvas.print(picture)
    text = canvas.export_text(clear=False)
    html = canvas.export_html(theme=SVG_EXPORT_THEME, code_format=_HTML, inline_styles=True)
    return {"text/plain": text, "text/html": html}
