"""The recording of a sweep moves without a script, and fetches nothing."""

from __future__ import annotations

import itertools
import re
from xml.etree import ElementTree

import pytest

from docs.recording import (
    BACKGROUND,
    COMMAND,
    HOLDS,
    LASTS,
    LEAST_BETWEEN,
    PICTURE,
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


def texts(element: ElementTree.Element) -> list[str]:
    return [str(text.text) for text in element.iter(f"{SVG}text")]


def test_each_frame_paints_what_has_changed_from_its_time_on() -> None:
    known = line("███", colour="#fde725", background="#fde725")
    frames = [
        Frame(0.0, [line("title"), line("▒▒▒", colour="#fde725")]),
        Frame(2.0, [line("title"), [*known[:1], *line("o", background="#fde725"), *known[2:]]]),
        Frame(3.0, [line("title"), known]),
    ]
    root = ElementTree.fromstring(animated_svg(frames, 10, 2, lasts=8.0))
    first, second, third = (group for group in root.iter(f"{SVG}g") if group.get("class"))
    assert (texts(first), texts(second), texts(third)) == (["title"], ["o"], [])
    half, full, plain = (
        [
            (path.get("fill"), path.get("opacity"), path.get("d"))
            for path in group.iter(f"{SVG}path")
        ]
        for group in (first, second, third)
    )
    assert half[1:] == [("#fde725", ".5", "M0 1h3v1h-3z")]
    assert [fill for fill, *_ in full] == [BACKGROUND, "#fde725"]
    assert plain == [(BACKGROUND, None, "M0 1h10v1h-10z"), ("#fde725", None, "M0 1h3v1h-3z")]
    style = next(root.iter(f"{SVG}style")).text or ""
    assert re.findall(r"@keyframes (f\d)\{0%\{[^}]*\}([\d.]+)%", style) == [
        ("f1", "25.00"),
        ("f2", "37.50"),
    ]
    assert style.count("8s step-end infinite") == 2
    assert "prefers-reduced-motion" in style


def test_a_text_is_as_wide_in_any_font_as_its_characters_are_on_the_terminal() -> None:
    root = ElementTree.fromstring(animated_svg([Frame(0.0, [line("  a < b")])], 10, 1, 1.0))
    [text] = root.iter(f"{SVG}text")
    assert (text.get("x"), text.get("textLength"), text.text) == ("16", "40", "a < b")


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


def test_the_kept_recording_is_small_plays_by_itself_and_ends_with_the_next_command() -> None:
    text = PICTURE.read_text()
    assert len(text.encode()) < 250_000
    assert not re.search(r"<script|<image|href|url\(|@import|@font-face", text)
    root = ElementTree.fromstring(text)
    *_, last = (group for group in root.iter(f"{SVG}g") if group.get("class"))
    said = " ".join(texts(last))
    assert "Next: overfit plot heatmap" in said
    assert texts(root)[0] == f"$ {COMMAND}"
    percent = max(map(float, re.findall(r"\}([\d.]+)%\{visibility:visible", text)))
    assert (1 - percent / 100) * (LASTS + HOLDS) > 4, "the last screen stays for seconds"
