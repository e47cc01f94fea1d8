"""`overfit verify`: a figure's data is here, unchanged, and gives the same picture; or not."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

import overfit_cli
from overfit_cli.core.figure import FigureOptions
from overfit_cli.figures.draw import Request, figure_and_data, record_of
from overfit_cli.figures.picture import image
from overfit_cli.figures.record import RunRecord, read_record
from overfit_cli.sweeps.store import RunDirectory
from tests.command import call
from tests.spoilt_figures import edit, rewritten, verify, with_column
from tests.toy_runs import parts_in

ROOT = Path(__file__).parents[2]
EXPERIMENT = """
def train(n: int = 10, snr: float = 1.0, seed: int = 0) -> dict[str, float]:
    for step in range(3):
        yield {"train_loss": 1 / (1 + step + seed)}
    return {"test_loss": (1 + seed) / (1 + n * snr**2)}
"""
SMALL = ("--size=3x2.4", "--dpi=60")
TOY = ("sweep", "toy", "--n=1:3", "--snr=1:2:2", "--jobs=1")
SAME = "  These cells are here, unchanged.\n  Drawn again, the picture is the same.\n"


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs `results/toy` and, of a function, `one` and `two`, with their figures."""
    folder = tmp_path_factory.mktemp("drawn")
    (folder / "mine.py").write_text(EXPERIMENT)
    call(*TOY, "--seeds=2", "--trajectories", "--out=results/toy", cwd=folder)
    for name, seeds in (("one", "0:1"), ("two", "1:3")):
        grid = ("--n=2:4", "--snr=0.5:2:4", f"--seeds={seeds}", "--jobs=1", "--trajectories")
        call("sweep", "mine.py", *grid, f"--out={name}", cwd=folder)
    (folder / "my.mplstyle").write_text("axes.prop_cycle: cycler('color', ['123456', '654321'])")
    for kind in ("png", "pdf", "svg"):
        toy = ("--from=results/toy", f"--out=heatmap.{kind}")
        call("plot", "heatmap", *toy, *SMALL, cwd=folder)
    call("plot", "heatmap", "--from=results/toy", *SMALL, cwd=folder)
    call("plot", "curves", "--from=results/toy", "--out=curves.png", *SMALL, cwd=folder)
    both = ("--from=one", "--from=two", "--where=n=2:3", "--style=my.mplstyle")
    call("plot", "lines", "--x=snr", *both, "--out=lines.svg", cwd=folder)
    call("plot", "heatmap", "--from=one", "--minus=two", "--out=less.pdf", cwd=folder)
    Image.new("RGB", (4, 4)).save(folder / "bare.png")
    (folder / "torn.png").write_bytes((folder / "heatmap.png").read_bytes()[:2000])
    return folder


@pytest.fixture
def folder(drawn: Path, tmp_path: Path) -> Path:
    """A copy of them, to be spoilt."""
    return shutil.copytree(drawn, tmp_path / "here")


# What holds


@pytest.mark.parametrize(
    "kind", ["png", *(pytest.param(one, marks=pytest.mark.slow) for one in ("pdf", "svg"))]
)
def test_a_figure_that_nothing_happened_to_is_verified(drawn: Path, kind: str) -> None:
    said = verify(f"heatmap.{kind}", cwd=drawn)
    assert said.startswith(f"heatmap.{kind}: verified.\n  Drawn by overfit ")
    assert f": overfit plot heatmap --from=results/toy --out=heatmap.{kind} --size=3x2.4" in said
    assert "\n  From results/toy: 12 cells of toy, version 1" in said
    assert said.endswith(SAME)


def test_the_record_names_the_commit_that_trained(drawn: Path) -> None:
    manifest = json.loads((drawn / "results/toy/manifest.json").read_text())
    [commit] = {run["git_commit"] for run in manifest["runs"]}
    record = read_record((drawn / "heatmap.png").read_bytes())[1]
    assert record.runs[0].commits == ((commit,) if commit else ())
    assert (record.runs[0].path, record.runs[0].beside) == ("results/toy", "results/toy")


@pytest.mark.slow
def test_nothing_is_written(folder: Path) -> None:
    def there() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}

    before = there()
    verify("heatmap.png", "less.pdf", "results/toy/figures/heatmap.png", cwd=folder)
    assert there() == before


@pytest.mark.slow
def test_several_runs_are_drawn_again_without_their_function_or_style(folder: Path) -> None:
    (folder / "mine.py").write_text("raise RuntimeError('nobody imports this')")
    (folder / "my.mplstyle").unlink()
    said = verify("lines.svg", "less.pdf", cwd=folder)
    assert said.count("verified.") == 2
    assert said.count("These cells are here, unchanged.") == 4
    assert "From one: 16 cells of mine:train" in said


def test_what_python_drew_is_verified(folder: Path) -> None:
    out, toy = folder / "python.png", folder / "results" / "toy"
    overfit_cli.draw("heatmap", toy, law="n = snr", log="x,y", cmap="cividis", dpi=60, out=out)
    said = verify("python.png", cwd=folder)
    assert ", from Python.\n" in said
    assert said.endswith("the picture is the same.\n")


def test_a_figure_that_was_shown_before_it_was_saved_is_verified(folder: Path) -> None:
    """As in a notebook; it is laid out anew each time that it is drawn, at first."""
    with contextlib.chdir(folder):
        figure = overfit_cli.draw("heatmap", "one", title="Shown", size="column", dpi=60)
        assert image(figure, "png") != image(figure, "png")
        figure.savefig("shown.png")
    verify("shown.png", cwd=folder)


@pytest.mark.slow
def test_the_time_that_cells_took_matters_where_it_is_drawn_alone(folder: Path) -> None:
    timed = ("--from=results/toy", "--value=seconds", "--out=timed.png")
    call("plot", "heatmap", *timed, cwd=folder)
    rewritten(folder / "results/toy/cells", with_column("seconds", lambda taken: taken + 1))
    verify("heatmap.png", cwd=folder)
    assert "the same cells have other numbers" in verify("timed.png", cwd=folder, expect=1)


def test_logged_steps_matter_where_they_are_drawn(folder: Path) -> None:
    steps = folder / "results/toy/trajectories"
    rewritten(steps, with_column("train_loss", lambda losses: losses * 1.5))
    verify("heatmap.png", cwd=folder)
    assert "the same cells have other numbers" in verify("curves.png", cwd=folder, expect=1)


def test_the_same_numbers_of_another_commit_are_the_same_data(folder: Path) -> None:
    edit(folder / "heatmap.png", commits=["f" * 40])
    said = verify("heatmap.png", cwd=folder)
    assert "here, unchanged. The manifest there doesn't name commit ffffffffffff.\n" in said


def test_joined_files_and_a_run_that_was_resumed_are_the_same_data(folder: Path) -> None:
    call("compact", "results/toy", cwd=folder)
    call(*TOY, "--seeds=2", "--trajectories", "--out=results/toy", cwd=folder)
    verify("curves.png", cwd=folder)


def test_cells_that_a_figure_was_not_drawn_from_may_come(folder: Path) -> None:
    some = ("--from=results/toy", "--where=seed=0:1", "--where=n=1:3", "--out=some.png", *SMALL)
    call("plot", "heatmap", *some, cwd=folder)
    call("sweep", "toy", "--n=1:5", *TOY[3:], "--seeds=3", "--out=results/toy", cwd=folder)
    said = verify("some.png", "heatmap.png", cwd=folder, expect=1)
    assert "some.png: verified." in said
    assert "heatmap.png: not verified." in said
    assert "results/toy has changed: the figure would be drawn from 30 cells." in said


def test_the_picture_is_compared_only_where_that_is_asked_for(folder: Path) -> None:
    edit(folder / "heatmap.png", pixels=True)
    said = call("verify", "heatmap.png", cwd=folder).stdout
    assert said.startswith("heatmap.png: verified.\n")
    assert said.endswith("The picture isn't compared; --redraw draws it again.\n")
    rewritten(folder / "results/toy/cells", with_column("test_loss", lambda losses: losses / 2))
    said = call("verify", "heatmap.png", cwd=folder, expect=1).stdout
    assert "results/toy has changed: the same cells have other numbers." in said


# Where the data is


def test_a_renamed_run_is_found_beside_its_figure(folder: Path) -> None:
    (folder / "results/toy").rename(folder / "results/renamed")
    inside = verify("results/renamed/figures/heatmap.png", cwd=folder)
    assert "These cells are in results/renamed, unchanged." in inside
    elsewhere = verify(str(folder / "results/renamed/figures/heatmap.png"), cwd=folder / "one")
    assert f"These cells are in {folder / 'results/renamed'}, unchanged." in elsewhere


def test_a_figure_behind_a_link_is_found_its_data(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "paper.png").symlink_to(folder / "results/toy/figures/heatmap.png")
    assert "These cells are in here/results/toy," in verify("paper.png", cwd=tmp_path)


def test_a_run_that_is_nowhere_is_missing_until_it_is_named(folder: Path, tmp_path: Path) -> None:
    shutil.move(folder / "results/toy", tmp_path / "away")
    said = verify("heatmap.png", cwd=folder, expect=1)
    assert said.startswith("heatmap.png: not verified.\n")
    assert "No run directory here holds these cells: results/toy isn't one; name it" in said
    assert "Without its data the picture isn't drawn." in said
    named = verify("heatmap.png", "--from=../away", cwd=folder)
    assert "These cells are in ../away, unchanged." in named


@pytest.mark.parametrize(
    "named",
    [
        ["one", "moved"],
        pytest.param(["moved", "one"], marks=pytest.mark.slow),
        pytest.param(["moved"], marks=pytest.mark.slow),
    ],
)
def test_named_runs_are_told_apart_by_their_cells(folder: Path, named: list[str]) -> None:
    (folder / "two").rename(folder / "moved")
    words = [f"--from={name}" for name in named]
    for figure in ("lines.svg", "less.pdf"):  # the first is told apart by their names too
        said = verify(figure, *words, cwd=folder)
        assert "These cells are here, unchanged." in said
        assert "These cells are in moved, unchanged." in said


def test_the_same_cells_with_other_numbers_are_told_apart(folder: Path) -> None:
    shutil.copytree(folder / "one", folder / "later")
    rewritten(folder / "later/cells", with_column("test_loss", lambda losses: losses / 2))
    call("plot", "heatmap", "--from=one", "--minus=later", "--out=halved.png", cwd=folder)
    said = verify("halved.png", "--from=later", "--from=one", cwd=folder)
    assert said.count("unchanged.") == 2


def test_another_run_that_is_named_is_told_from_the_figures_own(folder: Path) -> None:
    call("sweep", "toy", "--n=7:8", *TOY[3:], "--out=results/other", cwd=folder)
    key, data = dict[str, str](), dict[str, str]()
    for name in ("toy", "other"):
        [run] = record_of_heatmap(folder / "results" / name)
        key[name], data[name] = run.key, run.data[:12]
    said = verify("heatmap.png", "--from=results/other", cwd=folder, expect=1).splitlines()
    assert said[0] == "heatmap.png: not verified."
    assert said[4:] == [
        "  --from results/other isn't the figure's data, with 12 cells of toy, "
        f"key {key['other']}, data {data['other']}; "
        f"the figure is of results/toy, key {key['toy']}, data {data['toy']}.",
        "  Without its data the picture isn't drawn.",
    ]
    call("sweep", *TOY[1:2], "--n=9", *TOY[3:], "--out=results/toy", cwd=folder)
    grown = verify("heatmap.png", "--from=results/toy", cwd=folder, expect=1)
    assert "results/toy has changed: the figure would be drawn from" in grown


def record_of_heatmap(run: Path) -> Sequence[RunRecord]:
    """What the record of a heatmap says of its run."""
    call("plot", "heatmap", f"--from={run}", f"--out={run}.png", *SMALL, cwd=run.parent)
    return read_record(run.with_suffix(".png").read_bytes())[1].runs


def test_one_of_two_runs_that_is_missing_is_named(folder: Path) -> None:
    shutil.rmtree(folder / "two")
    said = verify("less.pdf", cwd=folder, expect=1)
    assert "These cells are here, unchanged." in said
    assert "No run directory here holds these cells: two isn't one" in said


# What doesn't hold


def test_edited_pixels_are_caught(folder: Path) -> None:
    edit(folder / "heatmap.png", pixels=True)
    said = verify("heatmap.png", cwd=folder, expect=1)
    assert "These cells are here, unchanged." in said
    width, height = 180, 144  # 3 × 2.4 inches at 60 dots
    share = f"{100 * 24 * 20 / (width * height):.2g}"
    assert f"it is another picture: {share}% of its pixels differ. The file was edited, or" in said


def test_a_resized_picture_is_caught(folder: Path) -> None:
    file = folder / "heatmap.png"
    image = Image.open(io.BytesIO(file.read_bytes()))
    held = PngInfo()
    held.add_text("overfit", str(image.info["overfit"]))
    image.resize((90, 72)).save(file, pnginfo=held)
    assert "it has 180 × 144 pixels and the file 90 × 72." in verify(
        "heatmap.png", cwd=folder, expect=1
    )


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"data": "0" * 64}, "results/toy has changed: the same cells have other numbers."),
        ({"key": "0" * 20}, "results/toy has changed: it has other cells, as many."),
        ({"cells": 9000}, "results/toy has changed: the figure would be drawn from 12 cells."),
        ({"version": 2}, "results/toy has changed: its cells are of version 1."),
        ({"study": "benign-vit"}, "results/toy has changed: its cells are of toy."),
    ],
)
def test_an_edited_record_is_caught(folder: Path, values: dict[str, Any], said: str) -> None:
    edit(folder / "heatmap.png", **values)
    told = verify("heatmap.png", cwd=folder, expect=1)
    assert said in told
    assert "Drawn again, the picture is the same." in told


def test_an_edited_request_gives_another_picture(folder: Path) -> None:
    edit(folder / "heatmap.png", look={"width": 3.0, "height": 2.4, "dpi": 60, "title": "Better"})
    assert "it is another picture: " in verify("heatmap.png", cwd=folder, expect=1)


@pytest.mark.parametrize("name", ["less.pdf", "lines.svg"])
def test_an_edited_drawing_is_caught(folder: Path, name: str) -> None:
    before = (folder / name).read_bytes()
    mark = b"stream" if name == "less.pdf" else b'd="M '
    at = before.index(mark) + len(mark)
    (folder / name).write_bytes(before[:at] + b"7" + before[at + 1 :])
    said = verify(name, cwd=folder, expect=1)
    assert "it is another picture: it differs byte for byte. The file was edited, or" in said


def test_another_version_is_named_as_what_may_be_why(folder: Path) -> None:
    edit(folder / "heatmap.png", pixels=True, packages={"matplotlib": "3.0.0", "numpy": "1.0"})
    said = verify("heatmap.png", cwd=folder, expect=1)
    assert "Drawn by overfit" in said
    assert " Here it is drawn with matplotlib " in said
    assert said.endswith(", which may be why.\n")


def test_a_part_with_another_number_is_caught(folder: Path) -> None:
    def worse(losses: np.ndarray) -> np.ndarray:
        losses[0] *= 2
        return losses

    rewritten(folder / "results/toy/cells", with_column("test_loss", worse))
    said = verify("heatmap.png", cwd=folder, expect=1)
    assert "results/toy has changed: the same cells have other numbers." in said
    assert "it is another picture: " in said
    assert "The file was edited" not in said


def test_the_last_bit_of_one_number_is_caught(folder: Path) -> None:
    shift = with_column("test_loss", lambda losses: np.nextafter(losses, 1))
    rewritten(folder / "results/toy/cells", shift)
    said = verify("heatmap.png", cwd=folder, expect=1)
    assert "the same cells have other numbers.\n  Drawn again, the picture is the same." in said


def test_a_damaged_part_is_named(folder: Path) -> None:
    part = parts_in(folder / "results/toy/cells")[0]
    content = bytearray(part.read_bytes())
    content[100] ^= 1
    part.write_bytes(content)
    done = call("verify", "heatmap.png", cwd=folder, expect=1)
    cells = 12 - pq.read_table(drawn_part(folder, part)).num_rows
    left = "it holds no cells" if not cells else f"the figure would be drawn from {cells} cells"
    assert left in done.stdout
    assert f"{part.name} is left out: its content isn't what its name says" in done.stderr
    shutil.rmtree(folder / "results/toy/cells")
    assert "No run directory here holds these" in verify("heatmap.png", cwd=folder, expect=1)


def drawn_part(folder: Path, part: Path) -> Path:
    """The same part before it was damaged, under a name of the test's."""
    content = bytearray(part.read_bytes())
    content[100] ^= 1
    whole = folder / "whole.parquet"
    whole.write_bytes(content)
    return whole


def test_cells_of_another_version_are_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toy_study.Toy.version", 2)
    said = verify("heatmap.png", cwd=folder, expect=1)
    assert "results/toy can't be used: its cells are of version 1 of toy, and this overfit" in said
    call(*TOY, "--seeds=2", "--out=results/toy", cwd=folder)
    said = verify("heatmap.png", cwd=folder, expect=1)
    assert "results/toy has changed: its cells are of version 2." in said


def test_data_beside_the_cells_that_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sample images of a run on MNIST, which doesn't come with the package."""
    monkeypatch.delenv("OVERFIT_DATA", raising=False)
    directory = RunDirectory(ROOT / "results/fig2-paper")
    figure, data = figure_and_data("images", directory, ())
    record = record_of(Request("images", [directory], FigureOptions()), figure, [data])
    held = PngInfo()
    held.add_text("overfit", record.text())
    Image.new("RGB", (4, 4)).save(tmp_path / "images.png", pnginfo=held)
    said = verify("images.png", cwd=tmp_path, expect=1)
    assert "These cells are here, unchanged." in said
    assert (
        "The picture can't be drawn again here: --data: source=mnist needs data: name its" in said
    )


# Bad input


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["none.png"], "FILE none.png: it can't be read (No such file or directory); name a figu"),
        (["one"], "FILE one: it can't be read ("),
        (["heatmap.txt"], "FILE heatmap.txt: it is no PNG, PDF or SVG file; it takes a figure th"),
        (["bare.png"], "FILE bare.png: it holds no record of overfit's: something else drew it"),
        (["torn.png"], "FILE torn.png: it isn't a whole PNG file ("),
        (["/dev/zero"], "FILE /dev/zero: it can't be read (it isn't a regular file)"),
        ([""], "FILE '': give a path."),
        (["heatmap.png", "--from=none"], "--from none: there is no such directory; name the fig"),
        (["heatmap.png", "--from=heatmap.txt"], "--from heatmap.txt: there is no such directory; "),
        (["heatmap.png", "--from=none.csv"], "--from none.csv: there is no such directory; "),
        (["heatmap.png", "--from="], "--from '': give a path."),
        (["heatmap.png", "--data=none"], "--data none: there is no such folder or file."),
        ([], "Missing argument 'FILE'."),
    ],
)
def test_bad_input_is_one_sentence(drawn: Path, words: list[str], sentence: str) -> None:
    done = call("verify", *words, cwd=drawn, expect=2)
    assert done.stderr.startswith(f"overfit: {sentence}")
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_one_bad_file_does_not_hide_the_others(folder: Path) -> None:
    edit(folder / "heatmap.png", pixels=True)
    done = call("verify", "--redraw", "none.png", "heatmap.png", "curves.png", cwd=folder, expect=2)
    assert "overfit: FILE none.png: " in done.stderr
    assert "heatmap.png: not verified." in done.stdout
    assert "curves.png: verified." in done.stdout


HOSTILE: list[tuple[dict[str, Any], str]] = [
    ({"figure": "nothing"}, "toy has no figure 'nothing'"),
    ({"where": ["n=9"]}, "results/toy can't be used: --where n=9: no cell has that"),
    ({"where": ["\u202e"]}, "results/toy can't be used: --where \\u202e: write NAME=VALUE"),
    ({"options": {"cmap": "\x1b[31m"}}, "can't be drawn again here: --cmap \\x1b[31m"),
    ({"options": {"law": ["n = __import__('os')"]}}, "can't be drawn again here: --law"),
    ({"options": {"x": "n", "y": "n"}}, "can't be drawn again here: --x n: y is n too"),
    ({"look": {"width": 60.0, "height": 60.0, "dpi": 2400}}, "144000 × 144000 pixels."),
    ({"look": {"settings": {"savefig.bbox": "tight", "savefig.pad_inches": 500}}}, " pixels."),
    ({"look": {"settings": {"axes.prop_cycle": "(lambda: 0)()"}}}, "as a text, which some mat"),
    ({"look": {"settings": {"font.size": 1e5}}}, "can't be drawn again here: RuntimeError: "),
]


@pytest.mark.parametrize(("values", "said"), HOSTILE, ids=range(len(HOSTILE)))
def test_whatever_a_record_asks_for_is_a_sentence(
    drawn: Path, tmp_path: Path, values: dict[str, Any], said: str
) -> None:
    edit(drawn / "heatmap.png", to=tmp_path / "hostile.png", **values)
    assert said in verify(str(tmp_path / "hostile.png"), cwd=drawn, expect=1)


@pytest.mark.parametrize("path", ["x" * 5000, "/", "results", "heatmap.png", "/dev/zero", "~"])
def test_whatever_path_a_record_names_the_run_is_missing(
    drawn: Path, tmp_path: Path, path: str
) -> None:
    edit(drawn / "heatmap.png", to=tmp_path / "hostile.png", path=path, beside=path)
    said = verify("hostile.png", cwd=tmp_path, expect=1)
    assert f"No run directory here holds these cells: {path} isn't one" in said
