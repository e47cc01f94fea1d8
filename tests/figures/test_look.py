"""Looks and files of figures: styles, sizes, captions, numbers, and the record in them."""

from __future__ import annotations

import errno
import io
import itertools
import json
import logging
import math
import os
import re
import struct
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal
from unittest import mock

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from pydantic import TypeAdapter
from pypdf import PdfWriter

import overfit_cli
from overfit_cli import Column, UserError, __version__
from overfit_cli.core.figure import HEATMAP, Figure, FigureOptions, defaults_but
from overfit_cli.core.parameters import (
    ParameterInfo,
    StudyParameters,
    describe,
    parameter,
    short_label,
)
from overfit_cli.core.parameters import symbol_text as unicode_of
from overfit_cli.core.registry import installed_studies
from overfit_cli.core.study import AnyStudy
from overfit_cli.figures.draw import FigureRecord, drawn, read_record, same_picture
from overfit_cli.figures.labels import tick_number
from overfit_cli.figures.picture import Picture, file_content, looking, new_panels, save
from overfit_cli.figures.style import LineLook, Look, line_looks, look_of_record, read_look
from tests import fake_study as fake
from tests.command import call
from tests.recorded_picture import COMPARED, RECORD, RUN, picture, with_text
from tests.toy_runs import sweep_toy

FEW = fake.fake_cells([5, 10], [1.0, 2.0, 4.0])
KERNELS = pd.concat([fake.fake_cells([5], [1.0, 2.0], kernel=k) for k in ("softmax", "gaussian")])
COLOURS = ["123456", "654321"]


def look(*, size: str | None = None, style: Path | None = None) -> Any:
    """Every picture that is made inside looks so."""
    return looking(read_look(size, style))


def sheet(folder: Path, text: str) -> Path:
    path = folder / "mine.mplstyle"
    path.write_text(text, errors="surrogateescape")
    return path


def lines() -> Picture:
    return fake.draw("lines", FEW)


SIZES = {
    "column": (3.4, None),
    "page": (7.0, None),
    "3.4x2.6": (3.4, 2.6),
    "5 × 4": (5, 4),
    "4x3in": (4, 3),
    "127x76.2mm": (5, 3),
    "12.7x7.62cm": (5, 3),
}


def test_a_size_is_a_papers_or_inches_or_millimetres() -> None:
    for text, sides in SIZES.items():
        read = read_look(text, None)
        assert [read.width, read.height] == pytest.approx([*sides])
    for text, inches in (("page", (7.0, 2.6)), ("5 × 4", (5, 4))):
        with look(size=text):
            assert fake.draw("heatmap", FEW).get_size_inches() == pytest.approx(inches)


@pytest.mark.parametrize(
    ("text", "logarithmic"),
    [("none", ""), ("x", "x"), ("y", "y"), ("value", "v"), ("x, y,value", "xyv"), (None, "")],
)
def test_axes_are_logarithmic_as_asked(text: str | None, logarithmic: str) -> None:
    narrow = fake.fake_cells([6, 8, 10], [6.0, 8.0, 10.0])
    figure = fake.draw("heatmap", narrow, log=FigureOptions.read(log=text).log)
    axes, bar = figure.axes
    assert isinstance(axes.collections[0].norm, mpl.colors.LogNorm) == ("v" in logarithmic)
    scales = {"x": axes.get_xscale(), "y": axes.get_yscale(), "v": bar.get_yscale()}
    assert "".join(one for one, scale in scales.items() if scale == "log") == logarithmic


@pytest.mark.parametrize(
    ("text", "pixels"),
    [("", (680, 520)), ("savefig.dpi: 100", (340, 260)), ("savefig.dpi: figure", (340, 260))],
)
def test_a_style_sheet_sets_the_dots_and_the_colour_map(
    tmp_path: Path, text: str, pixels: tuple[int, int]
) -> None:
    with look(style=sheet(tmp_path, f"image.cmap: magma\n{text}\n")):
        figure = fake.draw("heatmap", FEW)
    assert figure.axes[0].collections[0].get_cmap().name == "magma"
    assert struct.unpack(">II", file_content(figure, "png")[16:24]) == pixels


@pytest.mark.parametrize(
    ("cells", "cycle", "is_taken"),
    [(KERNELS, COLOURS, True), (FEW, COLOURS, True), (FEW, COLOURS[:1], False)],
)
def test_a_style_sheet_changes_sizes_and_as_many_colours_as_there_are_lines(
    tmp_path: Path, cells: pd.DataFrame, cycle: list[str], *, is_taken: bool
) -> None:
    text = f"axes.prop_cycle: cycler('color', {cycle})\nfont.size: 12"
    with look(style=sheet(tmp_path, text)):
        figure = fake.draw("lines", cells)
    content = file_content(figure, "svg").decode()
    assert [f"#{colour}" in content for colour in cycle] == [is_taken] * len(cycle)
    assert "#0072b2" not in content
    assert len({to_hex(line.get_color()) for line in figure.axes[0].lines[:2]}) == 2
    assert figure.axes[0].xaxis.label.get_fontsize() == 12
    assert figure.axes[0].get_xticklabels()[0].get_fontsize() == pytest.approx(7 * 12 / 8)


@pytest.mark.slow
def test_a_style_sheet_leaves_no_trace_and_always_makes_room_for_legends(tmp_path: Path) -> None:
    """Nor is matplotlib's own style, as a notebook has set it, used or changed."""
    before, settings = file_content(lines(), "png"), dict(mpl.rcParams)
    style = sheet(tmp_path, "axes.prop_cycle: cycler('color', ['r'])\nfont.size: 12")
    with look(style=style, size="page"):
        styled, now = lines(), file_content(lines(), "png")
    assert file_content(lines(), "png") == before, "a later figure is as it was"
    assert file_content(styled, "png") == now != before, "and the styled one keeps its own style"
    with pytest.raises(UserError), look(style=style):
        fake.draw("lines", FEW, x="nothing")
    assert file_content(lines(), "png") == before, "nor does a failure leave one"
    assert dict(mpl.rcParams) == settings
    layout = "figure.autolayout: True\nfigure.constrained_layout.use: False"
    with look(style=sheet(tmp_path, layout)):
        assert file_content(lines(), "png") == before
    with mpl.rc_context({"font.size": 30, "axes.facecolor": "black"}):
        own = dict(mpl.rcParams)
        assert file_content(lines(), "png") == before
        assert dict(mpl.rcParams) == own


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("nonsense", "Missing colon, line 1 ('nonsense')"),
        ("savefig.dpi: 9999", "its savefig.dpi is 9999; it takes 20 to 2400 dots per inch"),
        ("image.cmap: magmaa", "matplotlib has no colour map magmaa, its image.cmap"),
        ("axes.prop_cycle: cycler('color', [])", "axes.prop_cycle is empty"),
        ("\udcff\udc80", "can't decode"),
        ("text.usetex: True", "text.usetex needs LaTeX, which isn't installed here"),
    ],
)
def test_a_style_sheet_is_refused_in_a_sentence(
    text: str, why: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """And matplotlib says nothing of its own beside."""
    style = sheet(tmp_path, text)
    nowhere = mock.patch.dict(os.environ, PATH=str(tmp_path))  # where no LaTeX is
    with nowhere, pytest.raises(UserError) as refused:
        read_look(None, style)
    said = str(refused.value)
    assert said.startswith(f"style={str(style)!r}: ") and why in said and "\n" not in said
    assert capfd.readouterr() == ("", "")


class LooksParameters(StudyParameters):
    kernel: Literal["softmax", "gaussian", "uniform"] = parameter("softmax", "kernel")
    heads: int = parameter(1, "heads", symbol="H", shades=(1, 512))
    width: int = parameter(1, "width", symbol="m")


class LooksStudy(fake.FakeStudy):
    parameters = LooksParameters  # type: ignore[assignment]


def looks_of(**values: list[object]) -> list[LineLook]:
    """The looks of lines, of which each has one of the values of each parameter."""
    settings = [dict(zip(values, each, strict=True)) for each in zip(*values.values(), strict=True)]
    return line_looks(LooksStudy(), settings)


def test_of_two_parameters_the_word_has_colours_and_the_number_dashes_and_markers() -> None:
    both = looks_of(kernel=["softmax", "softmax", "gaussian", "gaussian"], width=[16, 64, 16, 64])
    found = [(look.colour, look.dash, look.marker) for look in both]
    assert found == [("C0", "-", "o"), ("C0", "--", "s"), ("C1", "-", "o"), ("C1", "--", "s")]
    together = looks_of(kernel=["softmax", "gaussian"], width=[16, 64])
    assert [look.dash for look in together] == ["-", "-"], "one that goes with another has no dash"
    numbers = [{"n": n, "snr": snr} for n in (5, 10) for snr in (1.0, 2.0)]
    assert len({look.colour for look in line_looks(fake.FakeStudy(), numbers)}) == 4


def test_a_word_and_a_number_with_declared_shades_look_the_same_in_every_figure() -> None:
    """And such a number has a dash where shades are nearly alike."""
    [alone] = looks_of(kernel=["gaussian"])
    among, last = looks_of(kernel=["softmax", "gaussian"]), looks_of(kernel=["uniform", "gaussian"])
    assert alone == among[1] == last[1] and alone.colour == "C1"
    assert len({look.marker for look in [*among, *last]}) == 3
    few, many = looks_of(heads=[1, 50]), looks_of(heads=[2, 5, 20, 50])
    assert few[1].colour == many[-1].colour != few[0].colour
    assert {look.dash for look in few} == {"-"}
    assert len({look.dash for look in looks_of(heads=[1, 2, 4, 8])}) == 4


LONGEST = 28
STUDIES = [one for one in installed_studies() if type(one).__module__.startswith("overfit_cli.")]


def _tables(study: AnyStudy) -> list[list[ParameterInfo | Column]]:
    """Its parameters, the columns of its cells, and those of its trajectories."""
    return [[*describe(study.parameters).values()], [*study.columns], [*study.trajectory_columns]]


def _label(one: ParameterInfo | Column) -> str:
    return short_label(one.name, one.meaning, one.label)


def _text(one: ParameterInfo | Column) -> str:
    label = _label(one)
    return f"{label} ${one.symbol}$" if one.symbol else label


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_labels_are_a_few_words_that_tell_a_thing_from_its_neighbours(study: AnyStudy) -> None:
    """They explain nothing, and repeat neither the symbol nor the unit.

    Letters side by side in a symbol are a product in italics: λ_min is `\\lambda_{\\mathrm{min}}`.
    """
    for table in _tables(study):
        assert [text for text, count in Counter(map(_text, table)).items() if count > 1] == []
        for one in table:
            label = _label(one)
            assert 0 < len(label) <= LONGEST, one
            assert label == " ".join(label.split()), one
            assert not re.search(r"[,:;$\\]|\bor\b", label), one
            said = re.findall(r"[^\s()]+", label)
            assert not {unicode_of(one.symbol), one.unit} & set(said), one
            letters = re.sub(r"\\mathrm\{\w+\}|\\[A-Za-z]+", " ", one.symbol)
            assert not re.search(r"[A-Za-z]{2,}", letters), one


@pytest.mark.slow
def test_labels_and_their_symbols_can_be_drawn(caplog: pytest.LogCaptureFixture) -> None:
    """What a font lacks is a warning, or a line that matplotlib logs."""
    figure = Picture(3, 3)
    for study in STUDIES:
        for one in itertools.chain(*_tables(study)):
            figure.text(0, 0, _text(one))
    with caplog.at_level(logging.WARNING, "matplotlib"):
        file_content(figure, "png")
    assert caplog.messages == []


def test_every_number_can_stand_at_a_tick() -> None:
    """The interval of a fitted law may have no end."""
    numbers = (0.05, -2.0, 3e-7, math.inf, -math.inf, math.nan)
    texts = ["0.05", "−2", r"$3 \cdot 10^{-7}$", r"$\infty$", r"$-\infty$", "nan"]
    assert list(map(tick_number, numbers)) == texts


def test_what_cannot_be_written_is_a_sentence_and_leaves_the_old_figure(tmp_path: Path) -> None:
    old, full = tmp_path / "a.png", OSError(errno.ENOSPC, "No space left on device")
    old.write_text("old")
    refused = pytest.raises(UserError, match="No space left on device")
    with mock.patch.object(os, "fsync", side_effect=full), refused:
        save(Picture(1, 1), old)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


def test_a_heat_map_has_a_row_for_each_of_its_cells(tmp_path: Path) -> None:
    sweep_toy(tmp_path / "run")
    said = call("plot", "heatmap", "--from=run", "--out=numbers.csv", cwd=tmp_path).stdout
    assert said == "Drawn: numbers.csv, and its caption in numbers.txt\n"
    drawn = pd.read_csv(tmp_path / "numbers.csv").query("element == 'map'")
    assert list(drawn.columns) == ["panel", "element", "label", "x", "y", "value"]
    shown = drawn.set_index(["y", "x"])["value"].sort_index()
    middle = overfit_cli.load(tmp_path / "run").groupby(["n", "snr"])["test_loss"].median()
    found, known = (table.reset_index().to_numpy() for table in (shown, middle))
    np.testing.assert_allclose(found, known, rtol=1e-12)


def test_lines_have_their_labels_and_points() -> None:
    figure, [axes] = new_panels(1)
    axes.plot([1, 2], [3, 4], label="a line\nin two")
    axes.fill_between([1, 2], [0, 0], [1, 1])
    axes.scatter([5], [6], c=[7])
    axes.bar([1], [2], width=1.0)
    axes.set_title("(a)  map")
    drawn = pd.read_csv(io.BytesIO(file_content(figure, "csv")))
    assert set(drawn["panel"]) == {"1: (a) map"}
    assert drawn[drawn["label"] == "a line in two"][["x", "y"]].values.tolist() == [[1, 3], [2, 4]]
    elements = dict(tuple(drawn.groupby("element")))
    assert elements["points"][["x", "y", "value"]].values.tolist() == [[5, 6, 7]]
    assert elements["bar"][["x", "y"]].values.tolist() == [[0.5, 0], [1.5, 2]]
    assert elements["band"]["y"].max() == 1


@pytest.mark.parametrize("record", [RECORD, COMPARED], ids=["plotted", "compared"])
@pytest.mark.parametrize("kind", ["png", "pdf", "svg"])
@pytest.mark.one_in(5)
def test_a_file_is_the_same_each_time_and_holds_its_record(
    kind: str, record: FigureRecord, tmp_path: Path
) -> None:
    """Also where matplotlib's own call wrote it, with a title and dots of its own."""
    first, second = (file_content(picture(record), kind) for _ in range(2))
    assert first == second
    ours, own = (tmp_path / f"{name}.{kind.upper()}" for name in ("ours", "own"))
    save(picture(record), ours)
    picture(record).savefig(own)
    for content in (first, ours.read_bytes(), own.read_bytes()):
        assert read_record(content) == (kind, record)
        assert same_picture(kind, first, content)
    picture(record).savefig(own, metadata={"Title": "Mine"}, dpi=60)
    assert read_record(own.read_bytes()) == (kind, record)
    assert b"Mine" in own.read_bytes()


def test_the_text_is_ascii_and_the_same_in_every_process() -> None:
    assert '"log": ["value", "x", "y"]' in RECORD.text()  # a set, whose order changes
    assert RECORD.text().isascii()
    assert RUN.model_validate({**RUN.model_dump(), "path": "\udcff"}).path == r"\udcff"


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


NO_DATA = edited(compared={"columns": ["a"], "published": {"path": "a.csv"}})
SPOILT = {
    "no JSON": "it holds no record; it takes a PNG, PDF or SVG file that overfit drew.",
    '{"a":' * 5000: "its record can't be read (Invalid JSON: recursion limit exceeded",
    RECORD.text().replace("A ", r"\ud800"): "(Invalid JSON: ",
    "{}": "its record can't be read (schema: Field required).",
    edited(schema=2): "its record can't be read (schema: Input should be 1).",
    edited(where="n=1"): "(where: Input should be a valid array).",
    edited(options={"colour": "n"}): "(options.colour: Unexpected keyword argument).",
    edited(**{"k" * 5000: 1}): f"({'k' * 60}...: Extra inputs are not permitted).",
    NO_DATA: "(compared.published.data: Field required).",
}
UNENDED = b"%PDF-1.4 1 0 obj << /Keywords (unended " + b"\\" * 999
REFUSED: list[tuple[Callable[[Any], object], object, str]] = [
    *((read_record, with_text(text), why) for text, why in SPOILT.items()),
    *((read_record, file_content(picture(None), kind), "it holds no") for kind in ("pdf", "svg")),
    (read_record, b"<svg>", "it isn't a whole figure (no element found"),
    (read_record, UNENDED, "it isn't a whole figure ("),
    (look_of_record, Look(width=1e9), "its record names sides of"),
]


@pytest.mark.parametrize(("read", "given", "why"), REFUSED, ids=range(len(REFUSED)))
def test_what_a_file_holds_is_read_with_care_or_refused_in_a_sentence(
    read: Callable[[Any], object], given: object, why: str
) -> None:
    with pytest.raises(UserError) as refused:
        read(given)
    assert why in str(refused.value) and str(refused.value).endswith(".")


def test_a_style_sheet_is_recorded_by_its_path_and_read_again() -> None:
    for style in (Path(mpl.get_data_path()) / "stylelib").glob("[!_]*.mplstyle"):
        look, form = read_look(None, style), TypeAdapter(Look)
        recorded = form.validate_json(form.dump_json(replace(look, settings={})))
        assert look_of_record(recorded) == look, style.stem


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep of which every other row fails, in `out`, and one more in `more`."""
    folder = tmp_path_factory.mktemp("captions")
    grid = ("--n=1:4", "--snr=1:3:3", "--set=mood=diverges", "--seeds=2", "--jobs=1")
    call("sweep", "toy", *grid, "--out=out", cwd=folder, expect=1)
    call("sweep", "toy", "--n=1:4", "--snr=1:3:3", "--jobs=1", "--out=more", cwd=folder)
    return folder


WHOLE = f"""\
Test loss over signal-to-noise ratio and samples N: median of 2 seeds. 12 cells (diverged) taken
as beyond the others. Line: snr = N / 2.

Cells: 12 cells done, 12 diverged; seeds 0, 1. Axes: N (n) 1, 2, 3, 4; snr 1, 2, 3.

Settings: toy (Nobody 2024), version 1: pause 0, mood diverges.

Commands:
  overfit sweep toy --n=1:4 --snr=1:3:3 --set=mood=diverges --seeds=2 --jobs=1 --out=out
  overfit plot heatmap --from out --law 'snr = n / 2' --out pictures/a.png

overfit {__version__}
"""


@pytest.mark.slow
def test_a_caption_says_how_the_figure_was_made(folder: Path) -> None:
    law = ("--law", "snr = n / 2")
    done = call("plot", "heatmap", "--from", "out", *law, "--out", "pictures/a.png", cwd=folder)
    assert done.stdout == "Drawn: pictures/a.png, and its caption in a.txt\n"
    assert sorted(path.name for path in (folder / "pictures").iterdir()) == ["a.png", "a.txt"]
    assert (folder / "pictures" / "a.txt").read_text() == WHOLE
    figure = overfit_cli.draw("heatmap", folder / "out", out=folder / "b.svg")
    assert (folder / "b.txt").read_text() == figure.caption
    assert "overfit plot" not in figure.caption, "Python types no command"
    overfit_cli.sweep("toy", n=[1, 2], snr=[1, 2], out=folder / "python", jobs=1, quiet=True)
    assert "Commands" not in overfit_cli.draw("heatmap", folder / "python").caption


@pytest.mark.slow
def test_a_figure_of_several_runs_names_all_commands_and_is_named_after_both(folder: Path) -> None:
    def caption(name: str, *options: str) -> str:
        said = call("plot", "heatmap", *options, cwd=folder).stdout
        assert f"Drawn: {name}.png" in said
        return (folder / f"{name}.txt").read_text()

    text = caption("out/figures/heatmap-with-more", "--from=out", "--from=more")
    commands = text[text.index("Commands:") :].splitlines()[1:4]
    assert [line.split()[-1] for line in commands] == ["--out=out", "--out=more", "--from=more"]
    assert "run directory out, more" in text
    text = caption("more/figures/heatmap-minus-out", "--from=more", "--minus=out")
    assert text.startswith("Test loss: well − diverges (what goes wrong) over")
    assert "--out=more" in text and "--out=out" in text


def caption_of(figure: Figure) -> str:
    """The caption of a heatmap of few cells, on one line."""
    small = fake.data_of(fake.fake_cells([1, 2], [1.0, 2.0]))
    made = drawn(replace(figure, options=fake.OPTIONS), small, FigureOptions())
    return " ".join(made.caption.split())


def test_a_figure_of_a_paper_names_its_source_unless_it_has_other_settings() -> None:
    figure = replace(HEATMAP, source="figure 1 of Nobody 2024")
    assert "median of 3 seeds. After figure 1 of Nobody 2024." in caption_of(figure)
    elsewhere, all_vary = (defaults_but(*names) for names in (["n"], ["n", "snr"]))
    assert "After" not in caption_of(replace(figure, reproduces=elsewhere))
    assert "of Nobody 2024." in caption_of(replace(figure, reproduces=all_vary))
