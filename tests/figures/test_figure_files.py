"""Files of figures: the same bytes each time, their numbers, captions, and the record in them."""

from __future__ import annotations

import errno
import io
import json
import os
import struct
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from pydantic import TypeAdapter
from pypdf import PdfWriter

import overfit_cli
from overfit_cli import UserError, __version__
from overfit_cli.core.figure import HEATMAP, Figure, FigureOptions, defaults_but
from overfit_cli.figures.draw import FigureRecord, drawn, read_record, same_picture
from overfit_cli.figures.picture import (
    COLUMNS,
    Picture,
    drawn_numbers,
    file_content,
    new_panels,
    save,
)
from overfit_cli.figures.style import Look, look_of_record, read_look
from tests.command import call
from tests.fake_study import LAW, NS, OPTIONS, SNRS, data_of, fake_cells
from tests.recorded_picture import COMPARED, RECORD, RUN, picture, with_text
from tests.toy_runs import sweep_toy


def test_what_cannot_be_written_is_a_sentence_and_leaves_the_old_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(UserError, match=r"out='.*folder\.png': that is no file; name a file"):
        save(Picture(1, 1), tmp_path / "folder.png")
    old = tmp_path / "a.png"
    old.write_text("old")

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match=r"No space left on device"):
        save(Picture(1, 1), old)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.png", "folder.png"]
    assert old.read_text() == "old"


def test_a_heat_map_has_a_row_for_each_of_its_cells(tmp_path: Path) -> None:
    sweep_toy(tmp_path / "run")
    said = call("plot", "heatmap", "--from=run", "--out=numbers.csv", cwd=tmp_path).stdout
    assert said == "Drawn: numbers.csv, and its caption in numbers.txt\n"
    drawn = pd.read_csv(tmp_path / "numbers.csv").query("element == 'map'")
    assert list(drawn.columns) == list(COLUMNS)
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
    drawn = drawn_numbers(figure)
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
    (lambda width: Look(width=width), 1e9, "both sides are at least 0.5"),
]


@pytest.mark.parametrize(("read", "given", "why"), REFUSED, ids=range(len(REFUSED)))
def test_what_a_file_holds_is_read_with_care_or_refused_in_a_sentence(
    read: Callable[[Any], object], given: object, why: str
) -> None:
    with pytest.raises(UserError) as refused:
        read(given)
    assert why in str(refused.value) and str(refused.value).endswith(".")


def test_a_style_sheet_is_recorded_by_its_path_and_read_again() -> None:
    for style in (Path(mpl.get_data_path()) / "stylelib").glob("*.mplstyle"):
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


def test_a_caption_says_how_the_figure_was_made(folder: Path) -> None:
    law = ("--law", "snr = n / 2")
    done = call("plot", "heatmap", "--from", "out", *law, "--out", "pictures/a.png", cwd=folder)
    assert done.stdout == "Drawn: pictures/a.png, and its caption in a.txt\n"
    assert sorted(path.name for path in (folder / "pictures").iterdir()) == ["a.png", "a.txt"]
    assert (folder / "pictures" / "a.txt").read_text() == WHOLE


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


def test_python_has_the_caption_at_hand_and_types_no_command(folder: Path) -> None:
    figure = overfit_cli.draw("heatmap", folder / "out", out=folder / "b.svg")
    assert (folder / "b.txt").read_text() == figure.caption
    assert "overfit plot" not in figure.caption
    overfit_cli.sweep("toy", n=[1, 2], snr=[1, 2], out=folder / "python", jobs=1, quiet=True)
    assert "Commands" not in overfit_cli.draw("heatmap", folder / "python").caption


SMALL = fake_cells([1, 2], [1.0, 2.0])
HALF = SMALL.assign(status=np.where(SMALL["seed"] == 1, "failed", "done"))
AXES = "seeds 0 to 3. Axes: N (n) 10 values from 2 to 20; SNR (snr) 25 values from 1 to 25."
SETTINGS = "Settings: fake (Nobody 2024), version 1: width 64, kernel softmax."


def written(cells: pd.DataFrame, figure: Figure = HEATMAP, law: tuple[str, ...] = ()) -> str:
    """The caption of a heatmap of cells, on one line."""
    figure = replace(figure, options=OPTIONS)
    return " ".join(drawn(figure, data_of(cells), FigureOptions(law=law)).caption.split())


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        (fake_cells(NS, SNRS, seeds=4), f"{AXES} {SETTINGS}"),
        (fake_cells(NS, SNRS), "Line: N·SNR² = 1000. Dashed line: N = √(SNR + 1)."),
        (SMALL.assign(seed=2 * SMALL["seed"]), "seeds 0, 2, 4."),
        (SMALL[SMALL["seed"] == 0], "Cells: 4 cells done; seeds 0. Axes"),
        (SMALL[SMALL["seed"] == 0], "samples N: one seed."),
        (HALF, "Cells: 8 cells done, 4 failed; seeds 0 to 2."),
    ],
)
def test_seeds_axes_and_cells_that_failed_are_told_in_short(cells: pd.DataFrame, told: str) -> None:
    """In plain Unicode, as the equations are."""
    text = written(cells, law=(LAW, "n = sqrt(snr + 1)"))
    assert told in text
    assert not {"$", "\\"} & set(text)


def test_a_figure_of_a_paper_names_its_source_unless_it_has_other_settings() -> None:
    figure = replace(HEATMAP, source="figure 1 of Nobody 2024")
    assert "mean of 3 seeds. After figure 1 of Nobody 2024." in written(SMALL, figure)
    elsewhere, all_vary = (defaults_but(*names) for names in (["n"], ["n", "snr"]))
    assert "After" not in written(SMALL, replace(figure, reproduces=elsewhere))
    assert "of Nobody 2024." in written(SMALL, replace(figure, reproduces=all_vary))
