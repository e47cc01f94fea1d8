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
from pydantic import TypeAdapter
from pypdf import PdfReader, PdfWriter

from overfit_cli import UserError
from overfit_cli.figures.look import as_recorded, look_of_record, read_look
from overfit_cli.figures.picture import Look, file_content
from overfit_cli.figures.record import FigureRecord, read_record, same_picture
from tests.recorded_picture import COMPARED, RECORD, RUN, picture, with_text

ROOT = Path(__file__).parents[2]
KINDS = ("png", "pdf", "svg")


@pytest.mark.parametrize("record", [RECORD, COMPARED], ids=["plotted", "compared"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.one_in(6)
def test_a_record_is_read_as_it_was_written(kind: str, record: FigureRecord) -> None:
    first, second = (file_content(picture(record), kind) for _ in range(2))
    assert read_record(first) == (kind, record)
    assert first == second
    assert same_picture(kind, first, second)


def test_the_text_is_ascii_and_the_same_in_every_process() -> None:
    assert '"log": ["value", "x", "y"]' in RECORD.text()  # a set, whose order changes
    assert RECORD.text().isascii()
    assert RUN.model_validate({**RUN.model_dump(), "path": "\udcff"}).path == r"\udcff"


@pytest.mark.slow
def test_the_record_of_every_kept_figure_is_read_and_written_as_it_is() -> None:
    for path in sorted(ROOT.glob("results/*/figures/*.png")):
        content = path.read_bytes()
        text = Image.open(io.BytesIO(content)).info["overfit"]
        assert read_record(content)[1].text() == text


@pytest.mark.slow
def test_other_programs_find_title_maker_and_record() -> None:
    title, maker = 'A \\(ö) "<&> in two lines \\x1b', "overfit 0.1.0"
    image = Image.open(io.BytesIO(file_content(picture(), "png")))
    assert (image.mode, image.info["dpi"][0]) == ("P", pytest.approx(50, abs=0.1))
    assert image.info["Title"] == title
    assert image.info["Software"] == f"{maker}, matplotlib 3.10.0"
    assert json.loads(image.info["overfit"])["runs"][0]["commits"] == ["c0ffee", "decade"]
    names = {"dc": "http://purl.org/dc/elements/1.1/"}
    drawing = ET.fromstring(file_content(picture(), "svg"))
    assert [tag.text for tag in drawing.iterfind(".//dc:title", names)] == [title, maker]
    assert drawing.findtext(".//dc:description", namespaces=names) == RECORD.text()
    facts = PdfReader(io.BytesIO(file_content(picture(), "pdf"))).metadata
    assert facts is not None
    assert (facts.title, facts.creator) == (title, maker)
    assert (facts.producer, facts.keywords) == ("matplotlib 3.10.0", RECORD.text())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.one_in(3)
def test_a_figure_saved_by_matplotlibs_own_call_has_its_record_and_style(
    kind: str, tmp_path: Path
) -> None:
    picture().savefig(tmp_path / f"mine.{kind.upper()}")
    saved = (tmp_path / f"mine.{kind.upper()}").read_bytes()
    assert read_record(saved) == (kind, RECORD)
    assert same_picture(kind, file_content(picture(), kind), saved)
    file = io.BytesIO()
    picture().savefig(file, format=kind, metadata={"Title": "Mine"}, dpi=60)
    assert read_record(file.getvalue()) == (kind, RECORD)
    assert b"Mine" in file.getvalue()


def test_a_record_that_another_program_wrote_anew_is_read() -> None:
    """Behind the pixels of a PNG file, compressed, or in a PDF file of pypdf's."""
    text = b"overfit\0" + RECORD.text().encode()
    for name, content in ((b"tEXt", text), (b"zTXt", text[:8] + b"\0" + zlib.compress(text[8:]))):
        chunk = struct.pack(">I", len(content)) + name + content
        chunk += struct.pack(">I", zlib.crc32(name + content))
        bare = file_content(picture(None), "png")
        end = bare.rindex(b"IEND") - 4
        assert read_record(bare[:end] + chunk + bare[end:])[1] == RECORD
    writer, file = PdfWriter(io.BytesIO(file_content(picture(), "pdf"))), io.BytesIO()
    writer.add_metadata({"/Keywords": RECORD.text(), "/Author": "another"})
    writer.write(file)
    assert read_record(file.getvalue()) == ("pdf", RECORD)


def edited(**changes: Any) -> str:
    """The record with other values."""
    return json.dumps({**json.loads(RECORD.text()), **changes})


def compared(**changes: Any) -> str:
    """The record of a comparison whose sides were compared in another way."""
    record = json.loads(COMPARED.text())
    return json.dumps({**record, "compared": {**record["compared"], **changes}})


PLAIN = json.loads(RUN.model_dump_json())
SPOILT = [
    ("no JSON", "it holds no record; it takes a PNG, PDF or SVG file that overfit drew."),
    ('{"a":' * 5000, "its record can't be read (Invalid JSON: recursion limit exceeded"),
    ("{}", "its record can't be read (schema: Field required)."),
    (edited(schema=2), "its record can't be read (schema: Input should be 1)."),
    (edited(runs=[{**PLAIN, "cells": "12"}]), "(runs.0.cells: Input should be a valid integer)."),
    (edited(options={"x": ["n"]}), "(options.x: Input should be a valid string)."),
    (edited(options={"colour": "n"}), "(options.colour: Unexpected keyword argument)."),
    (edited(other=1), "(other: Extra inputs are not permitted)."),
    (edited(**{"k" * 5000: 1}), f"({'k' * 60}...: Extra inputs are not permitted)."),
    (RECORD.text().replace("A ", r"\ud800"), "(Invalid JSON: "),
    (compared(where_b="n=1"), "(compared.where_b: Input should be a valid array)."),
    (compared(where=["n=1"]), "(compared.where: Extra inputs are not permitted)."),
    (compared(published={"path": "a.csv"}), "(compared.published.data: Field required)."),
]
FILES = [
    (b"GIF89a", "it holds no record; it takes a PNG, PDF or SVG file"),
    (b"<svg>", "it isn't a whole figure (no element found"),
    (b"<svg>\xff</svg>", "it isn't a whole figure (not well-formed"),
    (b"\x89PNG\r\n\x1a\n" + b"\xff" * 50, "it isn't a whole figure ("),
    (with_text(RECORD.text())[:-30], "it isn't a whole figure ("),
    (b"%PDF-1.4", "it isn't a whole figure ("),
    (b"%PDF-1.4 1 0 obj << /Keywords (unended " + b"\\" * 999, "it isn't a whole figure ("),
    *((file_content(picture(None), kind), "it holds no record") for kind in KINDS),
]
CASES = [*((with_text(text), why) for text, why in SPOILT), *FILES]


@pytest.mark.parametrize(("content", "why"), CASES, ids=range(len(CASES)))
def test_a_file_that_holds_none_is_refused_in_a_sentence(content: bytes, why: str) -> None:
    with pytest.raises(UserError) as refused:
        read_record(content)
    assert why in str(refused.value)
    assert str(refused.value).endswith(".")


def test_a_style_is_recorded_whole() -> None:
    for style in (Path(mpl.get_data_path()) / "stylelib").glob("*.mplstyle"):
        look, form = read_look(None, style), TypeAdapter(Look)
        recorded = form.validate_json(form.dump_json(as_recorded(look)))
        assert look_of_record(recorded) == look, style.stem


BAD_LOOKS = [
    (Look(settings={"axes.prop_cycle": "cycler('color', 'r')"}), "as a text, which some matplotl"),
    (Look(settings={"axes.prop_cycle": {"color": 3}}), "its style isn't matplotlib's"),
    (Look(settings={"nonsense": 1}), "its style isn't matplotlib's"),
    (Look(settings={"text.usetex": True}), "has LaTeX set the text, which isn't run for a file's"),
    (Look(settings={"image.cmap": "virids"}), "its style"),
    (Look(settings={"font.family": ["No Such Font"]}), "no font of font.family is installed"),
    (Look(width=1e9), "sides of"),
    (Look(width=3, height=-1), "sides of"),
    (Look(settings={"savefig.dpi": 1e9}), "savefig.dpi, are 1e+09; it takes 20 to 2400"),
]


@pytest.mark.parametrize(("look", "why"), BAD_LOOKS, ids=range(len(BAD_LOOKS)))
def test_an_edited_look_is_read_with_care(look: Look, why: str) -> None:
    with pytest.raises(UserError) as refused:
        look_of_record(look)
    assert why in str(refused.value)
