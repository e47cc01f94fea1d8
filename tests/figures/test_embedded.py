"""Numbers in a figure's file: put in by `--embed`, and taken out by `overfit extract`."""

from __future__ import annotations

import io
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from pypdf import PdfReader

import overfit_cli
from overfit_cli.core.spreadsheet import without_formulas
from overfit_cli.figures import embedded
from overfit_cli.figures.embedded import ATTACHMENT, SVG_CELLS
from tests.command import call

KINDS = ("png", "pdf", "svg")
FUNCTION = """
def train(n: int = 2, snr: float = 1.0, name: str = "plain", seed: int = 0):
    for step in range(3):
        yield {"train_loss": 1 / (1 + step + seed)}
    return {"test_loss": n + 0.1 * seed, "test_error": 1 / n}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sweeps of a function, two of them with steps, and a figure of each kind of file."""
    folder = tmp_path_factory.mktemp("embedded")
    (folder / "mine.py").write_text(FUNCTION)
    grid = ("--n=2,3", "--snr=1,2", "--seeds=2", "--jobs=1", "--trajectories")
    for name, further in (("one", ()), ("two", ("--name=a <&> b,\x1b σ",))):
        call("sweep", "mine.py", *grid, *further, f"--out={name}", cwd=folder)
    fewer = ("--n=2,3", "--snr=1,2", "--seeds=1:2", "--jobs=1", "--out=less")
    call("sweep", "mine.py", *fewer, cwd=folder)
    for kind in KINDS:
        call("plot", "heatmap", "--from=one", "--embed", f"--out=map.{kind}", cwd=folder)
    return folder


def numbers_in(folder: Path, *arguments: str) -> pd.DataFrame:
    """The numbers of a figure that is drawn with these arguments."""
    call("plot", *arguments, "--embed", "--out=drawn.svg", cwd=folder)
    return pd.read_csv(io.StringIO(call("extract", "drawn.svg", cwd=folder).stdout))


@pytest.mark.parametrize("kind", KINDS)
def test_the_numbers_of_a_figure_are_the_cells_to_the_last_digit(kind: str, folder: Path) -> None:
    said = call("extract", f"map.{kind}", "--out", f"{kind}.csv", cwd=folder).stdout
    assert said == f"Written: {kind}.csv\n"
    rows = pd.read_csv(folder / f"{kind}.csv")
    assert list(rows.columns) == ["n", "snr", "seed", "status", "test_loss"]
    cells = overfit_cli.load(folder / "one").sort_values(["n", "snr", "seed"], ignore_index=True)
    assert rows.equals(cells[list(rows.columns)])


def test_other_programs_find_the_numbers(folder: Path) -> None:
    shown = call("extract", "map.png", cwd=folder).stdout
    with Image.open(folder / "map.png") as image:
        assert image.info["overfit-cells"] == shown
    [attached] = PdfReader(folder / "map.pdf").attachments[ATTACHMENT]
    assert attached.decode() == shown
    drawing = ET.parse(folder / "map.svg").getroot()
    assert drawing.findtext(f".//{{{SVG_CELLS}}}cells") == shown


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.one_in(3)
def test_the_picture_and_its_record_are_those_without_numbers(kind: str, folder: Path) -> None:
    said = call("verify", f"map.{kind}", "--redraw", cwd=folder).stdout
    assert "In the file: 8 rows of numbers, as they were drawn." in said
    assert "Drawn again, the picture is the same." in said
    if kind == "png":
        call("plot", "heatmap", "--from=one", "--out=plain.png", cwd=folder)
        with Image.open(folder / "plain.png") as plain, Image.open(folder / "map.png") as image:
            assert np.array_equal(np.asarray(plain), np.asarray(image))


def test_python_puts_in_the_same_numbers(folder: Path) -> None:
    overfit_cli.draw("heatmap", folder / "one", embed=True, out=folder / "python.png")
    ours = call("extract", "python.png", cwd=folder).stdout
    assert ours == call("extract", "map.png", cwd=folder).stdout
    with pytest.raises(overfit_cli.UserError, match="numbers go into a file; name it with out"):
        overfit_cli.draw("heatmap", folder / "one", embed=True)


def test_expressions_differences_and_several_runs_are_drawn_numbers(folder: Path) -> None:
    ratio = numbers_in(folder, "lines", "--from=one", "--x=n/snr", "--value=test_loss - test_error")
    assert np.allclose(ratio["n/snr"], ratio["n"] / ratio["snr"])
    losses = ratio["n"] + 0.1 * ratio["seed"] - 1 / ratio["n"]
    assert np.allclose(ratio["test_loss - test_error"], losses)
    less = numbers_in(folder, "heatmap", "--from=one", "--minus=less", "--where=seed=1")
    assert len(less) == 4
    assert (less["test_loss"] == 0).all()


def test_logged_steps_are_the_numbers_of_curves_of_several_runs(folder: Path) -> None:
    rows = numbers_in(folder, "curves", "--from=one", "--from=two", "--where=n=2", "--where=snr=1")
    steps = [
        overfit_cli.load(folder / name, trajectories=True, where=["n=2", "snr=1"])
        for name in ("one", "two")
    ]
    assert rows["run directory"].value_counts().to_dict() == {
        "one": len(steps[0]),
        "two": len(steps[1]),
    }
    assert np.allclose(rows["train_loss"], 1 / (1 + rows["step"] + rows["seed"]))


@pytest.mark.slow
def test_awkward_words_stay_whole_in_every_kind_of_file(folder: Path) -> None:
    texts = set()
    for kind in KINDS:
        out = f"--out=awkward.{kind}"
        call("plot", "lines", "--from=two", "--x=n", "--embed", out, cwd=folder)
        texts.add(call("extract", f"awkward.{kind}", cwd=folder).stdout)
    [text] = texts
    assert {*pd.read_csv(io.StringIO(text))["name"]} == {"a <&> b", r"\x1b σ"}


def test_formulas_are_texts_and_numbers_of_others_are_made_such(folder: Path) -> None:
    call("sweep", "mine.py", "--n=2,3", "--name==1+1,@x", "--jobs=1", "--out=odd", cwd=folder)
    rows = numbers_in(folder, "lines", "--from=odd", "--x=n", "--value=-test_loss")
    assert {*rows["name"]} == {"'=1+1", "'@x"}
    assert (rows["'-test_loss"] < 0).all()
    sent = b'n,"a ""b"""\n=1+1,-2\n\'=x,plain\n'
    assert without_formulas(sent) == sent.replace(b"\n=1", b"\n'=1")
    assert without_formulas(b"a;b\r\n-1\r\n") == b"a;b\r\n-1\r\n"
    assert without_formulas(b"\xef\xbb\xbf=1,2\n") == b"'=1,2\n", "after a mark of byte order"


def test_a_long_table_is_split_into_chunks_that_others_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = call("extract", "map.png", cwd=folder).stdout
    monkeypatch.setattr(embedded, "_PIECE", len(whole) // 3 + 1)
    call("plot", "heatmap", "--from=one", "--embed", "--out=split.png", cwd=folder)
    with Image.open(folder / "split.png") as image:
        names = [name for name in map(str, image.info) if name.startswith("overfit-cells")]
    assert names == ["overfit-cells", "overfit-cells-2", "overfit-cells-3"]
    assert call("extract", "split.png", cwd=folder).stdout == whole


def test_too_many_numbers_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "MOST_BYTES", 100)
    out = ("--embed", "--out=large.png")
    said = call("plot", "heatmap", "--from=one", *out, cwd=folder, expect=2).stderr
    assert said.startswith("overfit: --embed: the numbers have ")
    assert said.endswith(" B, and a figure takes up to 100 B; choose fewer cells.\n")
    assert not (folder / "large.png").exists()


def test_changed_numbers_are_refused_and_not_verified(folder: Path) -> None:
    text = (folder / "map.svg").read_text()
    (folder / "changed.svg").write_text(text.replace("\n2,1.0,0,done,2.0", "\n2,1.0,0,done,1.0"))
    said = call("extract", "changed.svg", cwd=folder, expect=2)
    assert said.stdout == ""
    assert said.stderr == (
        "overfit: FIGURE changed.svg: its numbers aren't those that were drawn: the file was "
        "changed since.\n"
    )
    verified = call("verify", "changed.svg", cwd=folder, expect=1).stdout
    assert "In the file: its numbers aren't those that were drawn" in verified


def test_files_without_numbers_are_refused_in_a_sentence(folder: Path) -> None:
    call("plot", "heatmap", "--from=one", "--out=bare.png", cwd=folder)
    Image.new("RGB", (4, 4)).save(folder / "foreign.png")
    for name, said in (
        ("bare.png", "it holds no numbers: it was drawn without them."),
        ("foreign.png", "it holds no record; it takes a PNG, PDF or SVG file that overfit drew."),
        ("mine.py", "it holds no record; it takes a PNG, PDF or SVG file that overfit drew."),
        ("gone.png", "it can't be read (No such file or directory); name a figure that overfit"),
    ):
        error = call("extract", name, cwd=folder, expect=2).stderr
        assert error.startswith(f"overfit: FIGURE {name}: {said}")


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_file_gives_its_numbers_or_a_sentence(kind: str, folder: Path) -> None:
    whole = (folder / f"map.{kind}").read_bytes()
    shown = call("extract", f"map.{kind}", cwd=folder).stdout
    for share in (0.2, 0.5, 0.9):
        torn = whole[: int(share * len(whole))]
        middle = int(share * len(whole))
        flipped = whole[:middle] + bytes([whole[middle] ^ 0xFF]) + whole[middle + 1 :]
        for content in (torn, flipped):
            (folder / f"damaged.{kind}").write_bytes(content)
            done = call("extract", f"damaged.{kind}", cwd=folder, expect={0, 2})
            assert done.stdout in ("", shown)
            assert done.stdout or done.stderr.startswith(f"overfit: FIGURE damaged.{kind}: it")


def test_numbers_are_written_under_the_name_of_a_csv_file_alone(folder: Path) -> None:
    said = call("extract", "map.png", "--out=map.xlsx", cwd=folder, expect=2).stderr
    assert said == (
        "overfit: --out map.xlsx: the numbers are written as CSV; end the name in .csv.\n"
    )
    assert not (folder / "map.xlsx").exists()
