"""Files of figures: the same bytes each time, their numbers, and the record in them."""

from __future__ import annotations

import errno
import io
import json
import os
import struct
import xml.etree.ElementTree as ET
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from PIL import Image
from pydantic import TypeAdapter
from pypdf import PdfReader, PdfWriter

import overfit_cli
from overfit_cli import UserError
from overfit_cli.figures.look import as_recorded, look_of_record, read_look
from overfit_cli.figures.numbers import COLUMNS, drawn_numbers
from overfit_cli.figures.picture import Look, file_content, new_figure, save
from overfit_cli.figures.record import FigureRecord, read_record, same_picture
from tests.command import call
from tests.fake_study import LAW, OPTIONS, SIDES, data_of, draw_heatmap, fail
from tests.recorded_picture import COMPARED, RECORD, RUN, picture, with_text
from tests.toy_runs import sweep_toy


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("a.png", b"\x89PNG"),
        pytest.param("a.PDF", b"%PDF", marks=pytest.mark.slow),
        pytest.param("a.svg", b"<?xml", marks=pytest.mark.slow),
    ],
)
def test_a_second_drawing_gives_the_same_bytes(
    cells: pd.DataFrame, tmp_path: Path, name: str, start: bytes
) -> None:
    some, written = fail(cells, cells["n"] == 2), []
    for folder in ("one", "two"):
        save(draw_heatmap(data_of(some), replace(SIDES, law=(LAW,))), tmp_path / folder / name)
        written.append((tmp_path / folder / name).read_bytes())
        assert [path.name for path in (tmp_path / folder).iterdir()] == [name]
    assert written[0].startswith(start)
    assert written[0] == written[1]


def test_what_cannot_be_written_is_a_sentence_and_leaves_the_old_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(UserError, match=r"out='.*folder\.png': that is no file; name a file"):
        save(Figure(), tmp_path / "folder.png")
    old = tmp_path / "a.png"
    old.write_text("old")

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match=r"No space left on device"):
        save(Figure(), old)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.png", "folder.png"]
    assert old.read_text() == "old"


def test_a_users_own_style_is_neither_used_nor_changed(cells: pd.DataFrame, tmp_path: Path) -> None:
    data = data_of(cells)
    save(draw_heatmap(data, OPTIONS), tmp_path / "plain.png")
    with mpl.rc_context({"font.size": 30, "axes.facecolor": "black"}):
        before = dict(mpl.rcParams)
        save(draw_heatmap(data, OPTIONS), tmp_path / "styled.png")
        assert dict(mpl.rcParams) == before
    assert (tmp_path / "plain.png").read_bytes() == (tmp_path / "styled.png").read_bytes()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("numbers")
    sweep_toy(made / "run")
    return made


def _numbers(folder: Path, figure: str) -> pd.DataFrame:
    said = call("plot", figure, "--from", "run", "--out", "numbers.csv", cwd=folder).stdout
    assert said == "Drawn: numbers.csv, and its caption in numbers.txt\n"
    return pd.read_csv(folder / "numbers.csv", keep_default_na=False, na_values=[""])


def test_a_heat_map_has_a_row_for_each_of_its_cells(folder: Path) -> None:
    cells = overfit_cli.load(folder / "run")
    middle = cells.groupby(["n", "snr"])["test_loss"].median()
    drawn = _numbers(folder, "heatmap").query("element == 'map'")
    assert list(drawn.columns) == list(COLUMNS)
    shown = drawn.set_index(["y", "x"])["value"].sort_index()
    np.testing.assert_allclose([*shown.index], [*middle.index], rtol=1e-12)
    np.testing.assert_allclose(shown, middle, rtol=1e-12)


def test_lines_have_their_labels_and_points() -> None:
    figure, axes = new_figure()
    axes.plot([1, 2], [3, 4], label="a line\nin two")
    axes.fill_between([1, 2], [0, 0], [1, 1])
    axes.scatter([5], [6], c=[7])
    axes.bar([1], [2], width=1.0)
    axes.set_title("(a)  map")
    drawn = drawn_numbers(figure, {})
    assert set(drawn["panel"]) == {"1: (a) map"}
    line = drawn[drawn["label"] == "a line in two"]
    assert line[["x", "y"]].to_numpy().tolist() == [[1, 3], [2, 4]]
    elements = dict(tuple(drawn.groupby("element")))
    assert elements["points"][["x", "y", "value"]].to_numpy().tolist() == [[5, 6, 7]]
    assert elements["bar"][["x", "y"]].to_numpy().tolist() == [[0.5, 0], [1.5, 2]]
    assert elements["band"]["y"].max() == 1


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
