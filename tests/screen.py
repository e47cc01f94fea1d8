"""The screen of a terminal after a stream: text, line breaks, and the few controls that we use."""

from __future__ import annotations

import re

_PIECES = re.compile(r"\x1b\[([?\d;]*)([A-Za-z])|(\r)|(\n)|([^\x1b\r\n]+)")


def shown(stream: str) -> list[str]:
    """Return the lines of a screen (endlessly high and wide) after a stream was written to it."""
    lines, row, column, at = [""], 0, 0, 0
    while at < len(stream):
        piece = _PIECES.match(stream, at)
        assert piece is not None, stream[at : at + 20]
        at = piece.end()
        argument, control, back, down, text = piece.groups()
        if text:
            line = lines[row].ljust(column)
            lines[row] = line[:column] + text + line[column + len(text) :]
            column += len(text)
        elif back:
            column = 0
        elif down:
            row, column = row + 1, 0
            lines += [""] * (row == len(lines))
        elif control == "A":
            row = max(0, row - int(argument or 1))
        elif control == "K":
            lines[row] = ""
        else:
            assert control in "mhl", piece[0]  # colours, and the cursor's look
    return [line.rstrip() for line in lines]
