"""The screen of a terminal after a stream: text, line breaks, and the few controls that we use."""

from __future__ import annotations

import re

_PIECES = re.compile(r"\x1b\[([?\d;]*)([A-Za-z])|(\r|\n|[^\x1b\r\n]+)")


def shown(stream: str) -> list[str]:
    """Return the lines of a screen (endlessly high and wide) after a stream was written to it."""
    lines, row, column = [""], 0, 0
    assert not _PIECES.sub("", stream)
    for argument, control, text in _PIECES.findall(stream):
        if text == "\r":
            column = 0
        elif text == "\n":
            row, column = row + 1, 0
            lines += [""] * (row == len(lines))
        elif text:
            line = lines[row].ljust(column)
            lines[row] = line[:column] + text + line[column + len(text) :]
            column += len(text)
        elif control == "A":
            row = max(0, row - int(argument or 1))
        elif control == "K":
            lines[row] = ""
        else:
            assert control in "mhl"  # colours, and the cursor's look
    return [line.rstrip() for line in lines]
