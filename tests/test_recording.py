"""The recording of a sweep moves without a script, and fetches nothing."""

from __future__ import annotations

import itertools
import re
from xml.etree import ElementTree

import pytest

from docs.recording import (
    BACKGROUND,
    LASTS,
    LEAST_BETWEEN,
    Character,
    Frame,
    Screen,
    animated_svg,
    frames_of,
)

SVG = "{http://www.w3.org/2000/svg}"
YELLOW = "\x1b[38;2;253;231;37"


def line(text: str, **look: str) -> list[Character]:
    return [Character(glyph, **look) for glyph in text]  # type: ignore[arg-type]


def test_each_frame_paints_what_has_changed_from_its_time_on() -> None:
    known = line("███", colour="#fde725", background="#fde725")
    frames = [
        Frame(0.0, [line("title"), line("▒▒▒", colour="#fde725")]),
        Frame(2.0, [line("title"), [*known[:1], *line("o", background="#fde725"), *known[2:]]]),
        Frame(3.0, [line("title"), known]),
    ]
    root = ElementTree.fromstring(animated_svg(frames, 10, 2, lasts=8.0))
    groups = [group for group in root.iter(f"{SVG}g") if group.get("class")]
    first, *_ = (next(group.iter(f"{SVG}text"), None) for group in groups)
    assert first is not None
    assert (first.text, first.get("textLength")) == ("title", "40"), "as wide in any font"
    half, full, plain = ([path.attrib for path in group.iter(f"{SVG}path")] for group in groups)
    assert half[1]["opacity"] == ".5"
    assert [path["fill"] for path in full] == [BACKGROUND, "#fde725"]
    assert [path["d"] for path in plain] == ["M0 1h10v1h-10z", "M0 1h3v1h-3z"]
    style = next(root.iter(f"{SVG}style")).text or ""
    appear = re.findall(r"@keyframes (f\d)\{0%\{[^}]*\}([\d.]+)%", style)
    assert appear == [("f1", "25.00"), ("f2", "37.50")]
    assert "prefers-reduced-motion" in style


def test_the_screen_has_colours_and_takes_lines_back() -> None:
    screen = Screen()
    screen.write(
        f"one\r\n{YELLOW};48;5;16mtwo\x1b[0m!\r\nthree\r\x1b[2K\x1b[1A\x1b[2Kfo\x1b[2;31mur"
    )
    assert [len(row) for row in screen.view(9)] == [3, 4, 0]
    assert screen.view(9)[1][:2] == line("fo")
    assert screen.view(9)[1][3] == Character("r", "#ff7b72", dim=True)
    assert len(screen.view(2)) == 2, "the last lines"
    with pytest.raises(ValueError, match="unknown control"):
        screen.write("\x1b[5J")


def test_long_waits_are_cut_and_short_ones_pass_over_frames() -> None:
    pieces = [(60.0, "a"), *((60 + step / 100, ".") for step in range(1, 200)), (62.5, "end")]
    frames = frames_of(pieces, "overfit", 3)
    starts = [frame.start for frame in frames]
    assert starts[1] == pytest.approx(1.0)
    assert starts[-1] <= LASTS
    gaps = [after - before for before, after in itertools.pairwise(starts[:-1])]
    assert min(gaps) >= LEAST_BETWEEN
    assert "".join(c.glyph for c in frames[-1].lines[-1]).endswith(".end")
