"""The recording of a sweep moves without a script: frames of what a terminal shows."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from docs.recording import (
    BACKGROUND,
    LEAST_BETWEEN,
    Character,
    Frame,
    Screen,
    animated_svg,
    frames_of,
)

SVG = "{http://www.w3.org/2000/svg}"
YELLOW = "\x1b[38;2;253;231;37m"


def line(text: str, **look: object) -> list[Character]:
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


def test_frames_are_what_a_terminal_shows_with_long_waits_cut() -> None:
    pieces = [(60.0, f"{YELLOW}one\r\ntwo\x1b[0m\r\x1b[2K"), (61.5, "\x1b[2;31mend")]
    pieces += [(62 + step / 100, ".") for step in range(100)]
    *frames, last = frames_of(pieces, "overfit", 3)
    starts = [frame.start for frame in frames]
    assert starts[1] == pytest.approx(1.0)
    assert min(np.diff(starts)) >= LEAST_BETWEEN
    assert last.lines[-1][:3] == line("end", colour="#ff7b72", dim=True)
    assert [c.glyph for c in last.lines[-2]] == ["o", "n", "e"]
    assert len(last.lines) == 3
    with pytest.raises(ValueError, match="unknown control"):
        Screen().write("\x1b[5J")
