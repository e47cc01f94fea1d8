"""The record in a figure's file: written, read back, and refused where it is spoilt."""

from __future__ import annotations

import io
import json
import struct
import xml.etree.ElementTree as ET
import zlib
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from pypdf import PdfWriter

from overfit_cli.core.text import UserError
from overfit_cli.figures.look import look_of_record, read_look, record_of_look
from overfit_cli.figures.picture import image
from overfit_cli.figures.record import (
    FigureRecord,
    LookRecord,
    difference_of,
    parse_record,
    read_record,
)
from tests.recorded_picture import COMPARED, RECORD, RUN, picture

KINDS = ("png", "pdf", "svg")


@pytest.mark.parametrize("record", [RECORD, COMPARED], ids=["plotted", "compared"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_record_is_read_as_it_was_written(kind: str, record: FigureRecord) -> None:
    assert read_record(image(picture(record), kind)) == (kind, record)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_figure_with_the_same_record_is_the_same_file(kind: str) -> None:
    first, second = (image(picture(), kind) for _ in range(2))
    assert first == second
    assert difference_of(kind, first, second) == ""


def test_a_record_of_the_same_request_is_the_same_text() -> None:
    """In every process: the order of a set of texts is another one in each."""
    assert '"log": ["value", "x", "y"]' in RECORD.text()
    assert RECORD.text().isascii()
    assert parse_record(RECORD.text()).text() == RECORD.text()
    assert "minus" not in RECORD.model_copy(update={"minus": None}).text()


def test_other_programs_find_title_maker_and_record() -> None:
    title = 'A \\(ö) "<&> in two lines \\x1b'
    text = Image.open(io.BytesIO(image(picture(), "png"))).info
    assert (text["Title"], text["Software"]) == (title, "overfit 0.1.0, matplotlib 3.10.0")
    assert json.loads(text["overfit"])["runs"][0]["commits"] == ["c0ffee", "decade"]
    names = {"dc": "http://purl.org/dc/elements/1.1/"}
    drawing = ET.fromstring(image(picture(), "svg"))
    assert [one.text for one in drawing.iterfind(".//dc:title", names)] == [title, "overfit 0.1.0"]
    described = drawing.findtext(".//dc:description", namespaces=names)
    assert described == RECORD.text()
    pdf = image(picture(), "pdf")
    assert b"/Creator (overfit 0.1.0)" in pdf
    assert b"/Producer (matplotlib 3.10.0)" in pdf
    assert ("\ufeff" + title).encode("utf-16-be").replace(b"\\", rb"\\").replace(b"(", rb"\(") in (
        pdf.replace(rb"\)", b")")
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_figure_saved_by_matplotlibs_own_call_has_its_record_and_style(
    kind: str, tmp_path: Path
) -> None:
    picture().savefig(tmp_path / f"mine.{kind.upper()}")
    assert (tmp_path / f"mine.{kind.upper()}").read_bytes() == image(picture(), kind)
    file = io.BytesIO()
    picture().savefig(file, format=kind, metadata={"Title": "Mine"}, dpi=60)
    assert read_record(file.getvalue()) == (kind, RECORD)
    assert b"Mine" in file.getvalue()


def test_a_figure_saved_in_another_format_is_left_alone(tmp_path: Path) -> None:
    picture().savefig(tmp_path / "mine.jpg")
    picture(None).savefig(tmp_path / "mine.png")
    for name, why in (("mine.jpg", "it is no PNG, PDF or SVG file"), ("mine.png", "no record")):
        with pytest.raises(UserError, match=why):
            read_record((tmp_path / name).read_bytes())


# What other programs make of a file


def test_a_record_moved_behind_the_pixels_or_compressed_is_read() -> None:
    drawn = image(picture(), "png")
    pixels = Image.open(io.BytesIO(drawn))
    packed, file = PngInfo(), io.BytesIO()
    packed.add_text("overfit", RECORD.text(), zip=True)
    pixels.save(file, "PNG", pnginfo=packed)
    assert read_record(file.getvalue())[1] == RECORD
    text = b"overfit\0" + RECORD.text().encode()
    chunk = struct.pack(">I", len(text)) + b"tEXt" + text
    chunk += struct.pack(">I", zlib.crc32(b"tEXt" + text))
    bare = image(picture(None), "png")
    at = bare.rindex(b"IEND") - 4
    assert read_record(bare[:at] + chunk + bare[at:])[1] == RECORD


def test_a_pdf_that_another_program_wrote_anew_has_its_record() -> None:
    writer, file = PdfWriter(io.BytesIO(image(picture(), "pdf"))), io.BytesIO()
    writer.add_metadata({"/Keywords": RECORD.text(), "/Author": "another"})
    writer.write(file)
    assert read_record(file.getvalue()) == ("pdf", RECORD)


# Records and files that overfit didn't write


def with_text(text: str) -> bytes:
    """A PNG file with this as its record."""
    held, file = PngInfo(), io.BytesIO()
    held.add_text("overfit", text)
    Image.new("RGB", (2, 2)).save(file, "PNG", pnginfo=held)
    return file.getvalue()


def edited(**changes: Any) -> str:
    """The record with other values."""
    return json.dumps({**json.loads(RECORD.text()), **changes})


def of_sides(**changes: Any) -> str:
    """The record of a comparison with other values."""
    return json.dumps({**json.loads(COMPARED.text()), **changes})


def compared(**changes: Any) -> str:
    """The record of a comparison whose sides were compared in another way."""
    how = json.loads(COMPARED.text())["compared"]
    return of_sides(compared={**how, **changes})


def published(**changes: Any) -> str:
    """The record of a comparison with another file."""
    return compared(published={**json.loads(COMPARED.text())["compared"]["published"], **changes})


TWO_SIDES = "a comparison has two sides, and no options of a plot"
PLAIN = json.loads(RUN.model_dump_json())
SPOILT = [
    ("no JSON", "it holds no record of overfit's: something else drew it"),
    ("{", "its record can't be read (Invalid JSON: "),
    ('{"a":' * 5000, "its record can't be read (Invalid JSON: recursion limit exceeded"),
    ("{}", "its record can't be read (schema: Field required)."),
    (edited(schema=2), "its record can't be read (schema: Input should be 1)."),
    (edited(runs=[]), "its record can't be read (runs: Tuple should have at least 1 item"),
    (edited(runs=[{**PLAIN, "path": "\0"}]), "(runs.0.path: it holds a NUL character)."),
    (edited(runs=[{**PLAIN, "cells": "12"}]), "(runs.0.cells: Input should be a valid integer)."),
    (edited(runs=[{**PLAIN, "key": "../.."}]), "(runs.0.key: String should match pattern"),
    (edited(options={"x": ["n"]}), "(options.x: Input should be a valid string)."),
    (edited(options={"colour": "n"}), "(options.colour: Unexpected keyword argument)."),
    (edited(other=1), "(other: Extra inputs are not permitted)."),
    (edited(**{"k" * 5000: 1}), f"({'k' * 60}...: Extra inputs are not permitted)."),
    (RECORD.text().replace("A ", r"\ud800"), "(Invalid JSON: "),
    (compared(columns=[]), "(compared.columns: Tuple should have at least 1 item"),
    (compared(where_b="n=1"), "(compared.where_b: Input should be a valid array)."),
    (compared(interpolate=1), "(compared.interpolate: Input should be a valid boolean)."),
    (compared(where=["n=1"]), "(compared.where: Extra inputs are not permitted)."),
    (compared(published=None), f"({TWO_SIDES})."),
    (published(path="/etc/passwd"), "(compared.published.path: String should match pattern"),
    (published(path="\0.csv"), "(compared.published.path: it holds a NUL character)."),
    (published(data="cd"), "(compared.published.data: String should match pattern"),
    (of_sides(runs=[PLAIN, PLAIN]), f"({TWO_SIDES})."),
    (of_sides(minus=PLAIN), f"({TWO_SIDES})."),
    (of_sides(options={"cmap": "RdBu"}), f"({TWO_SIDES})."),
    (of_sides(look={"dpi": 60}), f"({TWO_SIDES})."),
]


@pytest.mark.parametrize(("text", "why"), SPOILT, ids=range(len(SPOILT)))
def test_a_spoilt_record_is_refused_in_a_sentence(text: str, why: str) -> None:
    with pytest.raises(UserError) as refused:
        read_record(with_text(text))
    assert why in str(refused.value)
    assert str(refused.value).endswith(".")


HEADER = struct.pack(">IIBBBBB", 60000, 60000, 8, 2, 0, 0, 0)
HUGE = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR" + HEADER
HUGE += struct.pack(">I", zlib.crc32(b"IHDR" + HEADER)) + b"\0\0\0\0IDAT" + b"\0" * 20
FILES = [
    (b"", "it is no PNG, PDF or SVG file"),
    (b"GIF89a", "it is no PNG, PDF or SVG file"),
    (b"<svg>", "it isn't a whole SVG file (no element found"),
    (b"<svg/>", "it holds no record of overfit's"),
    (b"<svg>\xff</svg>", "it isn't a whole SVG file (not well-formed"),
    (HUGE, "too many"),
    (b"\x89PNG\r\n\x1a\n", "it isn't a whole PNG file"),
    (b"\x89PNG\r\n\x1a\n" + b"\xff" * 50, "it isn't a whole PNG file"),
    (with_text(RECORD.text())[:-30], "it isn't a whole PNG file"),
    (b"%PDF-1.4", "it isn't a whole PDF file ("),
    (b"%PDF-1.4 1 0 obj << /Keywords (unended " + b"\\" * 999, "it isn't a whole PDF file ("),
    (image(picture(None), "pdf"), "it holds no record of overfit's"),
]


@pytest.mark.parametrize(("content", "why"), FILES, ids=range(len(FILES)))
def test_a_file_that_holds_none_is_refused_in_a_sentence(content: bytes, why: str) -> None:
    with pytest.raises(UserError) as refused:
        read_record(content)
    assert why in str(refused.value)
    assert str(refused.value).endswith(".")


# Styles


SHIPPED = sorted((Path(mpl.get_data_path()) / "stylelib").glob("*.mplstyle"))


@pytest.mark.parametrize("style", SHIPPED, ids=lambda path: path.stem)
def test_a_style_is_recorded_whole(style: Path) -> None:
    look = read_look(None, None, None, style)
    record = LookRecord.model_validate_json(record_of_look(look).model_dump_json())
    settings, again = look.settings, look_of_record(record).settings
    assert again.keys() == settings.keys()
    for name, value in settings.items():
        assert again[name] == value, name


BAD_STYLES: list[tuple[dict[str, Any], str]] = [
    ({"axes.prop_cycle": "cycler('color', 'r')"}, "axes.prop_cycle as a text, which some"),
    ({"axes.prop_cycle": {"color": 3}}, "its style is none of matplotlib's"),
    ({"axes.prop_cycle": {}}, "its style is none of matplotlib's"),
    ({"font.size": "big"}, "its style is none of matplotlib's"),
    ({"nonsense": 1}, "its style is none of matplotlib's"),
    ({"text.usetex": True}, "its style has LaTeX set the text, which isn't run for a file's sake"),
    ({"image.cmap": "virids"}, "its style"),
    ({"font.family": ["No Such Font"]}, "its style: no font of font.family is installed"),
]


@pytest.mark.parametrize(("style", "why"), BAD_STYLES, ids=range(len(BAD_STYLES)))
def test_an_edited_style_is_read_with_care(style: dict[str, Any], why: str) -> None:
    with pytest.raises(UserError) as refused:
        look_of_record(LookRecord(settings=style))
    assert why in str(refused.value)


@pytest.mark.parametrize(
    "look", [LookRecord(width=1e9), LookRecord(width=3, height=-1), LookRecord(dpi=10**9)]
)
def test_a_size_that_no_figure_has_is_refused(look: LookRecord) -> None:
    with pytest.raises(UserError, match=r"sides of|dpi=1000000000"):
        look_of_record(look)


def test_a_title_that_is_no_mathtext_is_refused() -> None:
    with pytest.raises(UserError, match="mathtext"):
        look_of_record(LookRecord(title=r"$\foo$"))
