"""`overfit verify` on figures of `overfit compare`: both sides are here, unchanged, or not."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import overfit_cli
from overfit_cli.cli.verify import verify_figure
from overfit_cli.figures.record import read_record
from tests.command import call
from tests.report.toy_numbers import Numbers, write_run
from tests.spoilt_figures import edit, rewritten, verify, with_column

ROOT = Path(__file__).parents[2]
HERE = "  These cells are here, unchanged.\n"
FILE_HERE = "  This file is here, unchanged.\n"
SAME = "  Drawn again, the picture is the same.\n"
FIGURES = ("map.png", "map.pdf", "map.svg", "points.png", "between.svg", "own.pdf")


def numbers(slope: float) -> Numbers:
    """A test loss with a slope, and a draw."""
    return lambda n, snr, seed: {"test_loss": slope * n * snr + 0.1 * seed, "draw": 0.5}


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs `a` and `b`, published numbers, and figures of what changes between them."""
    folder = tmp_path_factory.mktemp("compared")
    for name, slope in (("a", 1.0), ("b", 1.5)):
        write_run(folder / name, numbers(slope), n=(1, 2, 4), snr=(1.0, 2.0))
    (folder / "given.csv").write_text("n,snr,test_loss\n1,1,1.5\n1,2,2\n2,1,2.5\n3,1,4\n")
    for kind in ("png", "pdf", "svg"):
        call("compare", "a", "b", f"--out=map.{kind}", cwd=folder)
    call("compare", "a", "given.csv", "--where-b=snr=1", "--out=points.png", cwd=folder)
    call("compare", "a", "given.csv", "--interpolate", "--out=between.svg", cwd=folder)
    own = ("--where=seed=0:1", "--where-a=snr=1", "--where-b=snr=2")
    call("compare", "a", "a", *own, "--value=test_loss", "--out=own.pdf", cwd=folder)
    return folder


@pytest.fixture
def folder(drawn: Path, tmp_path: Path) -> Path:
    """A copy of them, to be spoilt."""
    return shutil.copytree(drawn, tmp_path / "here")


def spoil(run: Path, where: int = 0) -> None:
    """Change the test loss of one cell."""

    def worse(losses: np.ndarray) -> np.ndarray:
        losses[where] += 3
        return losses

    rewritten(run / "cells", with_column("test_loss", worse))


# What holds


@pytest.mark.parametrize(
    "figure", ["map.png", *(pytest.param(one, marks=pytest.mark.slow) for one in FIGURES[1:])]
)
def test_a_figure_that_nothing_happened_to_is_verified(drawn: Path, figure: str) -> None:
    said = verify(figure, cwd=drawn)
    assert said.startswith(f"{figure}: verified.\n  Drawn by overfit ")
    assert f": overfit compare a {'given.csv' if figure[0] in 'pb' else ''}" in said
    assert said.endswith(SAME)
    of_file = "given.csv" in said
    assert (said.count(HERE), said.count(FILE_HERE)) == ((1, 1) if of_file else (2, 0))


def test_the_record_says_how_the_sides_were_compared(drawn: Path) -> None:
    record = read_record((drawn / "own.pdf").read_bytes())[1]
    assert record.where == ("seed=0:1",)
    assert [(run.path, run.name, run.cells) for run in record.runs] == [
        ("a", "a (snr=1)", 6),
        ("a", "a (snr=2)", 6),
    ]
    text = json.loads(record.text())
    how = {"columns": ["test_loss"], "where_a": ["snr=1"], "where_b": ["snr=2"]}
    assert text["compared"] == how
    content = (drawn / "given.csv").read_bytes()
    record = read_record((drawn / "between.svg").read_bytes())[1]
    assert json.loads(record.text())["compared"] == {
        "columns": ["test_loss"],
        "interpolate": True,
        "published": {
            "path": "given.csv",
            "beside": "given.csv",
            "name": "given.csv",
            "data": hashlib.sha256(content).hexdigest(),
        },
    }
    every = read_record((drawn / "map.png").read_bytes())[1].compared
    assert every is not None
    assert every.columns == ("test_loss", "draw", "steps")


def test_what_python_drew_is_verified(folder: Path) -> None:
    with contextlib.chdir(folder):
        overfit_cli.compare("a", Path("given.csv"), where="n=1", out="python.svg")
    said = verify("python.svg", cwd=folder)
    assert ", from Python.\n" in said
    assert said.endswith(SAME)


@pytest.mark.slow
def test_nothing_is_written(folder: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    verify("between.svg", "own.pdf", cwd=folder)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


@pytest.mark.slow
def test_a_cell_that_is_on_neither_side_may_change(folder: Path) -> None:
    write_run(folder / "a", numbers(9.0), n=(7,), snr=(1.0,), seeds=(5,))
    said = verify("own.pdf", "map.svg", cwd=folder, expect=1)
    assert "own.pdf: verified." in said
    assert "a has changed: the figure would be drawn from 19 cells." in said


@pytest.mark.slow
def test_the_time_that_cells_took_matters_where_it_is_drawn_alone(folder: Path) -> None:
    longer = with_column("seconds", lambda taken: np.arange(1.0, 1 + len(taken)))
    rewritten(folder / "b/cells", longer)
    call("compare", "a", "b", "--value=seconds", "--out=timed.svg", cwd=folder)
    rewritten(folder / "b/cells", with_column("seconds", lambda taken: taken + 1))
    said = verify("map.svg", "timed.svg", cwd=folder, expect=1)
    assert "map.svg: verified." in said
    assert "b has changed: the same cells have other numbers." in said


def test_cells_of_another_version_of_the_study_are_compared_still(
    drawn: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toy_study.Toy.version", 2)
    assert "18 cells of toy, version 1; key" in verify("map.pdf", cwd=drawn)


# Where the data is


@pytest.mark.parametrize("lost", ["a", "b"])
def test_a_run_that_is_missing_is_named_until_it_is_found(folder: Path, lost: str) -> None:
    shutil.move(folder / lost, folder / "away")
    said = verify("map.png", cwd=folder, expect=1)
    assert said.count(HERE) == 1
    assert f"No run directory here holds these cells: {lost} isn't one" in said
    assert said.endswith("Without its data the picture isn't drawn.\n")
    assert "are in away, unchanged." in verify("map.png", "--from=away", cwd=folder)


@pytest.mark.parametrize("named", [["a", "b"], ["b", "a"]])
def test_named_runs_are_told_apart_by_their_numbers(
    drawn: Path, tmp_path: Path, named: list[str]
) -> None:
    """Both sides have the same cells."""
    words = [f"--from={drawn / name}" for name in named]
    said = verify(str(drawn / "map.pdf"), *words, cwd=tmp_path)
    first, second = said.index(f"in {drawn}/a, unchanged"), said.index(f"in {drawn}/b, unchanged")
    assert first < second


def test_one_directory_may_be_both_sides(folder: Path, tmp_path: Path) -> None:
    (folder / "a").rename(tmp_path / "away")
    said = verify("own.pdf", "--from=../away", cwd=folder)
    assert said.count("These cells are in ../away, unchanged.") == 2


def test_a_file_is_looked_for_where_it_was_beside_the_figure_and_where_it_is_named(
    folder: Path, tmp_path: Path
) -> None:
    (folder / "deep").mkdir()
    (folder / "given.csv").rename(folder / "deep/published.csv")
    lost = verify("points.png", cwd=folder, expect=1)
    assert "No such file is here: given.csv isn't there; name it" in lost
    assert lost.endswith("Without its data the picture isn't drawn.\n")
    said = verify("points.png", "--from=deep/published.csv", cwd=folder)
    assert "This file is at deep/published.csv, unchanged." in said
    (folder / "deep/published.csv").rename(folder / "deep/given.csv")
    for words in (["--from=deep"], ["--from=a", "--from=deep/given.csv"]):
        said = verify("points.png", *words, cwd=folder)
        assert HERE + "  From given.csv (B): published numbers; data " in said
        assert "This file is at deep/given.csv, unchanged." in said
    (folder / "points.png").rename(folder / "deep/moved.png")
    assert "at deep/given.csv, unchanged." in verify("deep/moved.png", cwd=folder)


# What doesn't hold


@pytest.mark.parametrize("side", ["a", "b"])
def test_a_number_that_changed_in_a_run_is_caught(folder: Path, side: str) -> None:
    spoil(folder / side)
    said = verify("map.png", cwd=folder, expect=1)
    assert said.startswith("map.png: not verified.\n")
    assert f"  {side} has changed: the same cells have other numbers.\n" in said
    assert said.count(HERE) == 1
    assert "Drawn again, it is another picture: " in said
    assert "The file was edited" not in said


def test_a_number_that_changed_beside_published_ones_is_caught(folder: Path) -> None:
    spoil(folder / "a")
    said = verify("between.svg", cwd=folder, expect=1)
    assert "  a has changed: the same cells have other numbers.\n" in said
    assert FILE_HERE in said
    assert "Drawn again, it is another picture: " in said


def test_a_number_that_changed_in_the_file_is_caught(folder: Path) -> None:
    text = (folder / "given.csv").read_text()
    (folder / "given.csv").write_text(text.replace("2,1,2.5\n", "2,1,3.5\n"))
    said = verify("points.png", "between.svg", cwd=folder, expect=1)
    assert said.count("  given.csv has changed: it has other content.\n") == 2
    assert said.count("Drawn again, it is another picture: ") == 2
    assert said.count(HERE) == 2


def test_a_file_that_can_not_be_read_any_more_is_a_sentence(folder: Path) -> None:
    (folder / "given.csv").write_text("n;snr;test_loss\n1;1;1.5\n")
    said = verify("points.png", cwd=folder, expect=1)
    assert "given.csv has changed: it has other content." in said
    assert "can't be drawn again here: given.csv: toy has no parameter" in said


def test_an_edited_picture_is_caught(folder: Path) -> None:
    edit(folder / "map.png", pixels=True)
    said = verify("map.png", cwd=folder, expect=1)
    assert said.count(HERE) == 2
    assert "of its pixels differ. The file was edited, or" in said


@pytest.mark.parametrize(("name", "mark"), [("map.pdf", b"stream"), ("between.svg", b'd="M ')])
def test_an_edited_drawing_is_caught(folder: Path, name: str, mark: bytes) -> None:
    before = (folder / name).read_bytes()
    at = before.index(mark) + len(mark)
    (folder / name).write_bytes(before[:at] + b"7" + before[at + 1 :])
    assert "it differs byte for byte. The file was edited, or" in verify(name, cwd=folder, expect=1)


HOW: list[tuple[dict[str, Any], str]] = [
    ({"columns": ["draw"]}, "it is another picture: "),
    (
        {"columns": ["loss\x1b"]},
        "drawn again here: --value loss\\x1b: A a has no number of it",
    ),
    ({"where_a": ["n=1"]}, "a has changed: the figure would be drawn from 6 cells."),
    ({"where_a": ["n=9"]}, "a can't be used: --where-a n=9: no cell has that"),
    ({"where_b": ["\u202e"]}, "b can't be used: --where-b \\u202e: write NAME=VALUE"),
]


@pytest.mark.parametrize(("how", "said"), HOW, ids=range(len(HOW)))
def test_whatever_a_record_asks_for_is_a_sentence(
    drawn: Path, tmp_path: Path, how: dict[str, Any], said: str
) -> None:
    edit(drawn / "map.png", to=tmp_path / "odd.png", compared={"columns": ["test_loss"], **how})
    assert said in verify(str(tmp_path / "odd.png"), cwd=drawn, expect=1)


@pytest.mark.parametrize("path", ["x" * 5000 + ".csv", "/.csv", "a/../a/.csv", "pipe.csv"])
def test_whatever_path_a_record_names_the_file_is_missing(
    drawn: Path, tmp_path: Path, path: str
) -> None:
    (tmp_path / "pipe.csv").mkdir()
    published = {"path": path, "beside": path, "name": "given.csv", "data": "0" * 64}
    how = {"columns": ["test_loss"], "published": published}
    edit(drawn / "points.png", to=tmp_path / "odd.png", compared=how)
    said = verify("odd.png", "--from", str(drawn / "a"), cwd=tmp_path, expect=1)
    assert f"No such file is here: {path} isn't there" in said


# What is kept


def test_the_data_of_the_kept_picture_is_here() -> None:
    """Another matplotlib may draw other pixels; it is then named."""
    with contextlib.chdir(ROOT):
        holds, said = verify_figure(Path("docs/pictures/flipped.png"), redraw=True)
    assert said.count("These cells are here, unchanged.") == 2
    assert holds or "which may be why." in said[-1]
