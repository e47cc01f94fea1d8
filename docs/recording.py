"""A recording of a sweep in a terminal, `sweep.svg`: an animated picture that needs no script.

    python -m docs.recording

runs a real sweep on a pseudo-terminal, and draws its screen as time goes by, faster than it was.
Each frame paints the lines that have changed over those before it. The frames appear by keyframes
of a style sheet, so that the picture moves in an <img> too; where motion isn't wanted it is the
last screen.
"""

from __future__ import annotations

import codecs
import contextlib
import itertools
import os
import re
import select
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

from rich.color import Color

COMMAND = "overfit sweep --n 2:20 --snr 0.5:16:32 --seeds 2"
COLUMNS, LINES = 76, 30
PICTURE = Path(__file__).parent / "sweep.svg"

LASTS, HOLDS = 12.0, 6.0
"""Seconds that the recording takes, and that its last screen stays."""

LONGEST_WAIT = 1.0
"""Seconds without a change that are shown of the sweep's own time."""

LEAST_BETWEEN = 0.25
"""Seconds between two frames."""

WIDTH, HEIGHT, MARGIN = 8, 17, 12
"""Pixels of a character, and around all of them."""

FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
BACKGROUND, BORDER, TEXT = "#161b22", "#484f58", "#e6edf3"
HALF = "▀"
COLOURS = ("#484f58", "#ff7b72", "#7ee787", "#e3b341", "#79c0ff", "#d2a8ff", "#76e3ea", "#e6edf3")


# The screen


class Character(NamedTuple):
    """A character of the screen with its colours; None is the terminal's own."""

    glyph: str = " "
    colour: str | None = None
    background: str | None = None
    bold: bool = False
    dim: bool = False


PLAIN = Character()

_PIECES = re.compile(r"\x1b\[([?\d;]*)([A-Za-z])|(\r)|(\n)|([^\x1b\r\n]+)")


@dataclass
class Screen:
    """An endlessly high and wide screen: text, colours, line breaks and what rich sends besides."""

    lines: list[list[Character]] = field(default_factory=lambda: [[]])
    row: int = 0
    column: int = 0
    pen: Character = PLAIN

    def write(self, stream: str) -> None:
        """Take in a piece of a stream that ends between controls.

        Raises:
            ValueError: at a control that it doesn't know.
        """
        at = 0
        while at < len(stream):
            piece = _PIECES.match(stream, at)
            if piece is None:
                raise ValueError(f"unknown control: {stream[at : at + 20]!r}")
            at = piece.end()
            argument, control, back, down, text = piece.groups()
            if text:
                self._put(text)
            elif back:
                self.column = 0
            elif down:
                self.row += 1
                self.lines += [[] for _ in range(self.row - len(self.lines) + 1)]
            elif control == "m":
                self.pen = _pen(self.pen, argument)
            elif control == "A":
                self.row = max(0, self.row - int(argument or 1))
            elif control == "K":
                self.lines[self.row] = []
            elif control not in "hl":  # the cursor's look
                raise ValueError(f"unknown control: {piece[0]!r}")

    def _put(self, text: str) -> None:
        line = self.lines[self.row]
        line += [Character()] * (self.column - len(line))
        line[self.column : self.column + len(text)] = [self.pen._replace(glyph=g) for g in text]
        self.column += len(text)

    def view(self, height: int) -> list[list[Character]]:
        """Return the last lines, as many as fit."""
        return [list(line) for line in self.lines[-height:]]


def _pen(pen: Character, argument: str) -> Character:
    """The pen after a control for colours."""
    codes = [int(code or 0) for code in argument.split(";")]
    while codes:
        code = codes.pop(0)
        if code == 0:
            pen = PLAIN
        elif code == 1:
            pen = pen._replace(bold=True)
        elif code == 2:
            pen = pen._replace(dim=True)
        elif code == 38:
            pen, codes = pen._replace(colour=_mixed(codes)), codes[2 if codes[0] == 5 else 4 :]
        elif code == 48:
            pen, codes = pen._replace(background=_mixed(codes)), codes[2 if codes[0] == 5 else 4 :]
        elif 30 <= code <= 37:
            pen = pen._replace(colour=COLOURS[code - 30])
    return pen


def _mixed(codes: Sequence[int]) -> str:
    """The colour that starts with these codes: `2;red;green;blue`, or `5` and a number to 255."""
    if codes[0] == 5:
        return Color.from_ansi(codes[1]).get_truecolor().hex
    return "#{:02x}{:02x}{:02x}".format(*codes[1:4])


# The picture


class Frame(NamedTuple):
    """What the screen shows from a time on, in seconds."""

    start: float
    lines: Sequence[Sequence[Character]]


def animated_svg(frames: Sequence[Frame], columns: int, height: int, lasts: float) -> str:
    """Return a picture that shows frames one after another, again and again.

    Args:
        frames: ascending in time, the first at 0.
        columns, height: of the screen, in characters.
        lasts: seconds of a round; the last frame stays until its end.
    """
    size = columns * WIDTH + 2 * MARGIN, height * HEIGHT + 2 * MARGIN
    shown: list[list[Character]] = [[]] * height
    parts, styles = list[str](), list[str]()
    for number, frame in enumerate(frames):
        lines = [list(line) for line in frame.lines] + [[]] * (height - len(frame.lines))
        changed = [index for index in range(height) if lines[index] != shown[index]]
        shown = lines
        if not changed:
            continue
        drawn = _areas(lines, changed, columns) + _texts(lines, changed)
        parts.append(f'<g class="f{number}">{drawn}</g>')
        if frame.start > 0:
            percent = f"{100 * frame.start / lasts:.2f}%"
            styles.append(
                f"@keyframes f{number}{{0%{{visibility:hidden}}{percent}{{visibility:visible}}}}"
                f".f{number}{{animation:f{number} {lasts:g}s step-end infinite}}"
            )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size[0]} {size[1]}" '
        f'width="{size[0]}" height="{size[1]}" role="img">'
        f"<title>{escape(COMMAND)}</title><style>"
        f"text{{font:13px {FONT};fill:{TEXT};white-space:pre}}"
        + "".join(styles)
        + "@media(prefers-reduced-motion:reduce){g{animation:none!important}}</style>"
        f'<rect x=".5" y=".5" width="{size[0] - 1}" height="{size[1] - 1}" rx="8" '
        f'fill="{BACKGROUND}" stroke="{BORDER}"/>'
        f'<g transform="translate({MARGIN} {MARGIN})">{"".join(parts)}</g></svg>\n'
    )


def _runs(line: Sequence[Character]) -> Iterator[tuple[int, str, str | None, str, Character]]:
    """Give the runs of a line: where each starts, its kind, area and text, and its style."""
    start = 0
    for (kind, colour, style), run in itertools.groupby(line, key=_kind):
        text = "".join(character.glyph for character in run)
        yield start, kind, colour, text, style
        start += len(text)


def _areas(lines: Sequence[Sequence[Character]], changed: Sequence[int], columns: int) -> str:
    """The areas of changed lines over what was there: a path for each colour, in characters."""
    areas = {BACKGROUND: [f"M0 {index}h{columns}v1h-{columns}z" for index in changed]}
    for index in changed:
        for start, kind, colour, text, style in _runs(lines[index]):
            height = 0.5 if kind == HALF else 1
            halves = [(index + 0.5, colour), (index, style.colour)]
            for top, own in halves if kind == HALF else [(index, colour)]:
                if own is not None:
                    area = f"M{start} {top}h{len(text)}v{height}h-{len(text)}z"
                    areas.setdefault(own, []).append(area)
    paths = "".join(
        f'<path fill="{colour}" d="{"".join(parts)}"/>' for colour, parts in areas.items()
    )
    return f'<g transform="scale({WIDTH} {HEIGHT})">{paths}</g>'


def _texts(lines: Sequence[Sequence[Character]], changed: Sequence[int]) -> str:
    """The texts of changed lines."""
    return "".join(
        _text(start, index * HEIGHT, text, style)
        for index in changed
        for start, kind, _, text, style in _runs(lines[index])
        if kind == "text" and text.strip()
    )


def _kind(character: Character) -> tuple[str, str | None, Character]:
    """What characters of a run share: `text` or `▀`; their background; their style."""
    glyph, background = character.glyph, character.background
    style = character._replace(glyph="")
    return HALF if glyph == HALF else "text", background, style


def _text(start: int, top: int, text: str, style: Character) -> str:
    """A text, as wide as its characters are on a terminal in whatever font."""
    lead = len(text) - len(text.lstrip())
    words = text.strip()
    x, y = (start + lead) * WIDTH, top + HEIGHT - 5
    looks = f' fill="{style.colour}"' if style.colour else ""
    looks += ' font-weight="bold"' if style.bold else ""
    looks += ' opacity=".6"' if style.dim else ""
    return f'<text x="{x}" y="{y}" textLength="{len(words) * WIDTH}"{looks}>{escape(words)}</text>'


# The recording


def recorded(command: str, columns: int, height: int, cwd: Path) -> Iterator[tuple[float, str]]:
    """Run a command on a terminal; give what it writes at a time, with the seconds since its start.

    Args:
        command: as it is typed; `overfit` is this one.
        columns, height: of the terminal, in characters.
        cwd: the folder that it runs in.
    """
    ours, theirs = os.openpty()
    termios.tcsetwinsize(theirs, (height, columns))
    looks = {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
    unset = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR")
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "overfit_cli", *command.split()[1:]],
        cwd=cwd,
        env=environment | looks,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    decoder, written = codecs.getincrementaldecoder("utf-8")(), ""
    with contextlib.suppress(OSError), process:  # how Linux says that all have left
        while piece := os.read(ours, 65536):
            written += decoder.decode(piece)
            if not select.select([ours], [], [], 0.1)[0]:  # no picture is half written
                yield time.monotonic() - began, written
                written = ""
    os.close(ours)


def frames_of(pieces: Sequence[tuple[float, str]], command: str, height: int) -> list[Frame]:
    """Return the frames of a recording, with waits cut short and all of it as long as it may be."""
    screen = Screen()
    screen.write(f"$ {command}\r\n")
    views, now, before = [(0.0, screen.view(height))], 0.0, 0.0
    for at, written in pieces:
        screen.write(written)
        now += min(at - before, LONGEST_WAIT)
        before = at
        views.append((now, screen.view(height)))
    scale = min(1.0, LASTS / now)
    frames = [Frame(0.0, views[0][1])]
    for at, view in views[1:-1]:
        if at * scale - frames[-1].start >= LEAST_BETWEEN:
            frames.append(Frame(at * scale, view))
    frames.append(Frame(now * scale, views[-1][1]))
    return frames


def main() -> None:
    """Record the sweep, and write the picture."""
    with tempfile.TemporaryDirectory() as folder:
        pieces = list(recorded(COMMAND, COLUMNS, LINES, Path(folder)))
    frames = frames_of(pieces, COMMAND, LINES)
    picture = animated_svg(frames, COLUMNS, LINES, frames[-1].start + HOLDS)
    PICTURE.write_text(picture)
    sys.stdout.write(f"{PICTURE}: {len(frames)} frames, {len(picture) / 1000:.0f} kB\n")


if __name__ == "__main__":
    main()
