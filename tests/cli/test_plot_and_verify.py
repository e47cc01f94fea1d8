"""`overfit plot` without a run, and `overfit verify`: the data of figures, and their pictures."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

import overfit_cli
from overfit_cli.core.text import plural
from overfit_cli.figures.draw import SourceRecord, read_record
from overfit_cli.figures.picture import file_content
from tests.command import call
from tests.toy_runs import parts_in, put, sweep_toy

ROOT = Path(__file__).parents[2]
EXPERIMENT = """
def train(n: int = 10, snr: float = 1.0, seed: int = 0) -> dict[str, float]:
    for step in range(3):
        yield {"train_loss": 1 / (1 + step + seed)}
    return {"test_loss": (1 + seed) / (1 + n * snr**2)}
"""
SMALL = ("--size=3x2.4", "--style=small.mplstyle")
TOY = ("sweep", "toy", "--n=1:3", "--snr=1:2:2", "--jobs=1")
HERE = "  This data is here, unchanged.\n"
SAME = "  Drawn again, the picture is the same.\n"
OTHER = "the picture differs."
CHANGED = " has changed: "
FIGURES = {
    "heatmap.png": f"plot heatmap --from=results/toy {' '.join(SMALL)}",
    "heatmap.svg": "plot heatmap --from=results/toy",
    "curves.png": f"plot curves --from=results/toy {' '.join(SMALL)}",
    "lines.svg": "plot lines --x=snr --from=one --from=two --where=n=2:3 --style=my.mplstyle",
    "less.pdf": "plot heatmap --from=one --minus=two",
    "map.png": "compare one two",
    "own.pdf": "compare one one --where=seed=0 --where-a=n=2 --where-b=n=3 --value=test_loss",
    "points.png": "compare one given.csv --where-b=snr=1",
}


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs `results/toy` and, of a function, `one` and `two`, published numbers, and figures."""
    folder = tmp_path_factory.mktemp("drawn")
    (folder / "mine.py").write_text(EXPERIMENT)
    (folder / "small.mplstyle").write_text("savefig.dpi: 60")
    (folder / "my.mplstyle").write_text("axes.prop_cycle: cycler('color', ['123456', '654321'])")
    (folder / "given.csv").write_text("n,snr,test_loss\n2,1,0.5\n2,2,0.2\n3,1,0.3\n4,1,0.3\n")
    call(*TOY, "--seeds=2", "--trajectories", "--out=results/toy", cwd=folder)
    for name, seeds in (("one", "0:1"), ("two", "1:3")):
        grid = ("--n=2,3,4", "--snr=0.5,1,2", f"--seeds={seeds}", "--jobs=1", "--trajectories")
        call("sweep", "mine.py", *grid, f"--out={name}", cwd=folder)
    for name, command in FIGURES.items():
        call(*command.split(), f"--out={name}", cwd=folder)
    call("plot", "heatmap", "--from=results/toy", cwd=folder)
    (folder / "torn.png").write_bytes((folder / "heatmap.png").read_bytes()[:2000])
    (folder / "mine.py").write_text("raise RuntimeError('nobody imports this')")
    return folder


@pytest.fixture
def folder(drawn: Path, tmp_path: Path) -> Path:
    """A copy of them, to be spoilt."""
    return shutil.copytree(drawn, tmp_path / "here")


def verify(*words: str, cwd: Path, expect: int = 0) -> str:
    """What `overfit verify --redraw` says, held to an exit code."""
    return call("verify", "--redraw", *words, cwd=cwd, expect=expect).stdout


def rewrite(
    folder: Path, column: str, values: Callable[[np.ndarray], np.ndarray] = lambda old: old * 1.5
) -> None:
    """Write the parts of a folder anew, as a whole sweep would, with other numbers in a column."""
    for part in parts_in(folder):
        table = pq.read_table(part)
        part.unlink()
        index = table.schema.get_field_index(column)
        numbers = pa.array(values(table.column(column).to_numpy().copy()))
        put(folder, table.set_column(index, table.schema.field(index), numbers))


def edit(file: Path, *, to: Path | None = None, pixels: bool = False, **values: Any) -> None:
    """Change a PNG file's pixels, or values of its record, and leave the rest as it is."""
    image: Image.Image = Image.open(io.BytesIO(file.read_bytes()))
    record = json.loads(str(image.info["overfit"]))
    for name, value in values.items():
        (record["runs"][0] if name in SourceRecord.model_fields else record)[name] = value
    metadata = PngInfo()
    metadata.add_text("overfit", json.dumps(record))
    if pixels:
        image = image.convert("RGB")
        image.paste((255, 0, 0), (40, 40, 64, 60))
    image.save(to or file, pnginfo=metadata)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_that_nothing_happened_to_is_verified(drawn: Path, name: str) -> None:
    before = {path: path.stat().st_mtime_ns for path in drawn.rglob("*")}
    said = verify(name, cwd=drawn)
    assert said.startswith(f"{name}: verified.\n  Drawn by overfit ")
    assert f": overfit {FIGURES[name]} --out={name}\n" in said
    assert said.endswith(SAME)
    assert said.count("unchanged.") == (1 if "toy" in FIGURES[name] else 2)
    assert {path: path.stat().st_mtime_ns for path in drawn.rglob("*")} == before


def test_the_record_says_what_was_drawn_and_who_trained_it(drawn: Path) -> None:
    manifest = json.loads((drawn / "results/toy/manifest.json").read_text())
    [run] = read_record((drawn / "heatmap.png").read_bytes())[1].runs
    assert list(run.commits) == [now["git_commit"] for now in manifest["runs"] if now["git_commit"]]
    assert (run.path, run.beside, run.cells) == ("results/toy", "results/toy", 12)
    record = read_record((drawn / "own.pdf").read_bytes())[1]
    assert [run.name for run in record.runs] == ["one (n=2)", "one (n=3)"]
    how = {"columns": ["test_loss"], "where_a": ["n=2"], "where_b": ["n=3"]}
    assert json.loads(record.text())["compared"] == how


@pytest.mark.slow
def test_the_figures_of_a_run_directory_are_verified_together(drawn: Path) -> None:
    every = [f"results/toy/figures/{path.name}" for path in drawn.glob("results/toy/figures/*.png")]
    lines = [f"{name}: verified." for name in sorted(every)]
    total = f"{len(every)} of {plural(len(every), 'figure')} verified"
    assert call("verify", "results/toy", cwd=drawn).stdout.splitlines() == [
        *lines,
        f"{total}; --redraw compares the pictures too.",
    ]
    again = verify("results", cwd=drawn).splitlines()
    assert again == [*lines, f"{total}."], "a folder of run directories has those of all"


@pytest.mark.slow
def test_what_python_drew_is_verified(folder: Path) -> None:
    """Also a figure that a notebook showed before it was saved, which is laid out anew then."""
    out, toy = folder / "python.png", folder / "results/toy"
    overfit_cli.draw("heatmap", toy, law="n = snr", log="x,y", out=out)
    with contextlib.chdir(folder):
        overfit_cli.compare("one", Path("given.csv"), where="n=2", out="compared.svg")
        figure = overfit_cli.draw("heatmap", "one", size="column")
        assert file_content(figure, "png").startswith(b"\x89PNG")
        figure.savefig("shown.png")
    said = verify("python.png", "compared.svg", "shown.png", cwd=folder)
    assert said.count(", from Python.\n") == said.count(SAME) == 3


@pytest.mark.slow
def test_only_what_a_figure_draws_matters(folder: Path) -> None:
    """Not seconds, logged steps, how cells lie in files, or other cells; but the last bit."""
    call("plot", "heatmap", "--from=results/toy", "--value=seconds", "--out=timed.png", cwd=folder)
    some = ("--from=results/toy", "--where=seed=0:1", "--where=n=1:3", "--out=some.png", *SMALL)
    call("plot", "heatmap", *some, cwd=folder)
    rewrite(folder / "results/toy/cells", "seconds", lambda taken: taken + 1)
    verify("heatmap.png", "curves.png", cwd=folder)
    assert f"results/toy{CHANGED}" in verify("timed.png", cwd=folder, expect=1)
    rewrite(folder / "results/toy/trajectories", "train_loss")
    verify("heatmap.png", cwd=folder)
    assert f"results/toy{CHANGED}" in verify("curves.png", cwd=folder, expect=1)
    call("compact", "results/toy", cwd=folder)
    verify("heatmap.png", cwd=folder)
    rewrite(folder / "one/cells", "test_loss", lambda losses: np.nextafter(losses, 1))
    assert f"one{CHANGED}" in verify("less.pdf", cwd=folder, expect=1)
    call("sweep", "toy", "--n=1:5", *TOY[3:], "--seeds=3", "--out=results/toy", cwd=folder)
    said = verify("some.png", "heatmap.png", cwd=folder, expect=1)
    assert "some.png: verified." in said
    assert "heatmap.png: not verified." in said
    assert f"results/toy{CHANGED}30 cells of toy, version 1, key " in said


@pytest.mark.slow
def test_the_data_of_kept_pictures_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    figures = [str(path) for path in sorted(ROOT.glob("results/*/figures/heatmap.png"))]
    said = call("verify", "docs/pictures/flipped.png", *figures, cwd=ROOT).stdout
    assert said.count(": verified.\n") == 1 + len(figures) > 5
    # The sample images of a run on MNIST don't come with the package.
    monkeypatch.delenv("OVERFIT_DATA", raising=False)
    said = verify("results/fig2-paper/figures/images.png", cwd=ROOT, expect=1)
    assert HERE in said
    assert "The picture can't be drawn again here: --data: source=mnist needs data:" in said


@pytest.mark.slow
def test_a_renamed_run_is_seen_from_its_figure(folder: Path, tmp_path: Path) -> None:
    (folder / "results/toy").rename(folder / "results/renamed")
    figure = folder / "results/renamed/figures/heatmap.png"
    for cwd, path in ((folder, "results/renamed"), (folder / "one", "../results/renamed")):
        assert f"This data is in {path}, unchanged." in verify(str(figure), cwd=cwd)
    (tmp_path / "paper.png").symlink_to(figure)
    assert "This data is in here/results/renamed," in verify("paper.png", cwd=tmp_path)


@pytest.mark.parametrize(
    ("name", "lost", "named"),
    [
        ("heatmap.png", "results/toy", ["../away"]),
        ("less.pdf", "two", ["../away"]),
        ("less.pdf", "two", ["one", "../away"]),
        ("map.png", "two", ["../away", "one"]),
        ("own.pdf", "one", ["../away"]),
        ("points.png", "given.csv", ["../away.csv"]),
    ],
)
@pytest.mark.one_in(6)
def test_data_that_is_nowhere_is_missing_until_it_is_named(
    folder: Path, name: str, lost: str, named: list[str]
) -> None:
    """Runs that are named are told apart by their cells."""
    moved = f"../away{Path(lost).suffix}"
    shutil.move(folder / lost, folder / moved)
    said = call("verify", name, cwd=folder, expect=1).stdout
    assert said == verify(name, cwd=folder, expect=1)
    assert said.startswith(f"{name}: not verified.\n")
    assert f"  {lost} isn't here; name it with --from.\n" in said
    assert said.endswith("Without its data the picture can't be drawn again.\n")
    said = verify(name, *(f"--from={path}" for path in named), cwd=folder)
    assert f" in {moved}, unchanged." in said


@pytest.mark.slow
def test_another_run_that_is_named_is_told_from_the_figures_own(folder: Path) -> None:
    said = verify("heatmap.png", "--from=one", cwd=folder, expect=1)
    assert f"{HERE}  --from one: that isn't the figure's data.\n" in said
    shutil.copytree(folder / "one", folder / "later")  # the same cells, with other numbers
    rewrite(folder / "later/cells", "test_loss")
    call("plot", "heatmap", "--from=one", "--minus=later", "--out=more.png", cwd=folder)
    assert verify("more.png", "--from=later", "--from=one", cwd=folder).count(HERE) == 2


@pytest.mark.parametrize("name", ["heatmap.png", "less.pdf", "lines.svg", "map.png"])
@pytest.mark.one_in(4)
def test_an_edited_picture_is_caught(folder: Path, name: str) -> None:
    if name.endswith("png"):
        edit(folder / name, pixels=True)
    else:
        first = b"stream" if name.endswith("pdf") else b'd="M '
        before, mark, after = (folder / name).read_bytes().partition(first)
        (folder / name).write_bytes(before + mark + b"7" + after[1:])
    said = call("verify", name, cwd=folder).stdout
    assert said.endswith("The picture isn't compared; --redraw draws it again.\n")
    said = verify(name, cwd=folder, expect=1)
    assert said.startswith(f"{name}: not verified.\n")
    assert said.endswith(f"{OTHER}\n")


@pytest.mark.parametrize(
    ("name", "run"), [("heatmap.png", "results/toy"), ("map.png", "two"), ("points.png", "one")]
)
@pytest.mark.one_in(3)
def test_a_number_that_changed_is_caught(folder: Path, name: str, run: str) -> None:
    rewrite(folder / run / "cells", "test_loss")
    said = verify(name, cwd=folder, expect=1)
    assert f"  {run}{CHANGED}" in said
    assert said.endswith(f"{OTHER}\n")


@pytest.mark.slow
def test_a_file_with_other_content_is_caught(folder: Path) -> None:
    (folder / "given.csv").write_text((folder / "given.csv").read_text().replace("0.5", "3.5"))
    said = verify("points.png", cwd=folder, expect=1)
    assert said.count("  given.csv has changed: data ") == said.count(OTHER) == 1
    (folder / "given.csv").write_text("n;snr;test_loss\n1;1;1.5\n")
    assert "Commas separate columns." in verify("points.png", cwd=folder, expect=1)


def test_a_damaged_part_is_named(folder: Path) -> None:
    part = parts_in(folder / "results/toy/cells")[0]
    content = bytearray(part.read_bytes())
    content[100] ^= 1
    part.write_bytes(content)
    done = call("verify", "heatmap.png", cwd=folder, expect=1)
    assert "  results/toy " in done.stdout
    assert "unchanged" not in done.stdout
    assert f"{part.name} is left out: its checksum doesn't match its name" in done.stderr


def test_cells_of_another_version_are_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sides = ("results/toy", "results/toy", "--where-a=n=1", "--where-b=n=2")
    call("compare", *sides, "--out=own.svg", cwd=folder)
    monkeypatch.setattr("toy_study.Toy.version", 2)
    said = verify("heatmap.png", cwd=folder, expect=1)
    assert "results/toy can't be used: its cells are of version 1 of toy, and this overfit" in said
    assert "cells of toy, version 1" in verify("own.svg", cwd=folder)
    call(*TOY, "--seeds=2", "--out=results/toy", cwd=folder)
    said = verify("heatmap.png", cwd=folder, expect=1)
    assert f"results/toy{CHANGED}12 cells of toy, version 2, " in said


def test_one_bad_file_does_not_hide_the_others(drawn: Path) -> None:
    done = call("verify", "none.png", "torn.png", "curves.png", cwd=drawn, expect=2)
    assert "overfit: FILE none.png: " in done.stderr
    assert "overfit: FILE torn.png: it isn't a whole figure (" in done.stderr
    assert done.stdout.count(": verified.\n") == 1


def compared(**how: Any) -> dict[str, Any]:
    return {"compared": {"columns": ["test_loss"], **how}}


EDITED: list[tuple[str, dict[str, Any], str]] = [
    ("heatmap", {"data": "0" * 64}, f"results/toy{CHANGED}12 cells of toy, version 1, key "),
    ("heatmap", {"key": "0" * 20}, f"results/toy{CHANGED}12 cells of toy, version 1, key "),
    ("heatmap", {"study": "benign-vit"}, f"results/toy{CHANGED}12 cells of toy, version 1, key "),
    ("heatmap", {"look": {"width": 3.0, "height": 2.4}}, f"{HERE}  Drawn again with "),
    ("heatmap", {"figure": "nothing"}, "toy has no figure 'nothing'"),
    ("heatmap", {"where": ["n=9"]}, "results/toy can't be used: --where n=9: no cell has that"),
    ("heatmap", {"options": {"law": ["n = __import__('os')"]}}, "can't be drawn again here: --law"),
    ("heatmap", {"options": {"x": "n", "y": "n"}}, "can't be drawn again here: --x n: y is n too"),
    ("heatmap", {"look": {"style": "gone"}}, "drawn again here: --style gone: there is no such"),
    ("map", compared(columns=["a\x1b"]), "--value a\\x1b: 'a\\x1b' is no name here"),
    ("map", compared(where_a=["n=2"]), f"one{CHANGED}6 cells of mine:train"),
    ("heatmap", compared(), "can't be drawn again here: ValueError("),
]


@pytest.mark.parametrize(("name", "values", "said"), EDITED, ids=range(len(EDITED)))
@pytest.mark.one_in(4)
def test_whatever_a_record_asks_for_is_a_sentence(
    drawn: Path, tmp_path: Path, name: str, values: dict[str, Any], said: str
) -> None:
    edit(drawn / f"{name}.png", to=tmp_path / "hostile.png", **values)
    assert said in verify(str(tmp_path / "hostile.png"), cwd=drawn, expect=1)


@pytest.mark.unix
@pytest.mark.parametrize("path", ["x" * 5000, "/", "one", "pipe.csv", "/dev/zero", "~", "\0"])
def test_whatever_path_a_record_names_the_data_is_missing(
    drawn: Path, tmp_path: Path, path: str
) -> None:
    (tmp_path / "pipe.csv").mkdir()
    edit(drawn / "heatmap.png", to=tmp_path / "run.png", path=path, beside=path)
    published = {"path": path, "beside": path, "name": "given.csv", "data": "0" * 64}
    edit(drawn / "points.png", to=tmp_path / "file.png", **compared(published=published))
    said = verify("run.png", cwd=tmp_path, expect=1)
    said += verify("file.png", "--from", str(drawn / "one"), cwd=tmp_path, expect=1)
    assert said.count(" isn't here; name it with --from.\n") == 2
    assert f"This data is in {drawn / 'one'}, unchanged." in said


ROOT = Path(__file__).parents[2]


@pytest.fixture
def newer_and_older(tmp_path: Path) -> Path:
    """A folder whose results hold two sweeps of the toy, the newer of n alone."""
    for name, n in (("older", "1:3"), ("newer", "1:4")):
        sweep_toy(tmp_path / "results" / name, n)
    for name, time in (("older", 1e9), ("newer", 2e9)):
        os.utime(tmp_path / "results" / name / "cells", (time, time))
    return tmp_path


def test_why_the_newest_run_does_not_fit_is_said(newer_and_older: Path) -> None:
    said = call("plot", "heatmap", "--where", "nn=2", cwd=newer_and_older, expect=2).stderr
    assert "The newest, results/newer, doesn't: --where nn=2: 'nn' is no name here" in said


def test_the_newest_run_is_drawn(newer_and_older: Path) -> None:
    said = call("plot", "heatmap", cwd=newer_and_older).stdout
    assert "From results/newer, the newest run directory that fits." in said


def test_a_figure_of_a_column_that_a_run_lacks_is_refused(tmp_path: Path) -> None:
    run = str(ROOT / "results" / "softmax-table1-quick")
    said = call("plot", "worst-drift", "--from", run, "--out=a.png", cwd=tmp_path, expect=2).stderr
    assert "needs largest drifts, as in `overfit sweep softmax-perturbation`" in said
