"""`overfit plot` without a run, and `overfit verify`: the data of figures, and their pictures."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
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
from tests.command import call, said
from tests.toy_runs import parts_in, put, sweep_toy

ROOT = Path(__file__).parents[2]
EXPERIMENT = """
def train(n: int = 10, snr: float = 1.0, seed: int = 0) -> dict[str, float]:
    for step in range(3):
        yield {"train_loss": 1 / (1 + step + seed)}
    return {"test_loss": (1 + seed) / (1 + n * snr**2)}
"""
SMALL = "--size=3x2.4 --style=small.mplstyle"
TOY = "sweep toy --n=1:3 --snr=1:2:2 --jobs=1 --out=results/toy"
HERE = "  This data is here, unchanged.\n"
SAME = "  Drawn again, the picture is the same.\n"
OTHER = "the picture differs."
CHANGED = " has changed: "
FIGURES = {
    "heatmap.png": f"plot heatmap --from=results/toy {SMALL}",
    "heatmap.svg": "plot heatmap --from=results/toy",
    "curves.png": f"plot curves --from=results/toy {SMALL}",
    "lines.svg": "plot lines --x=snr --from=one --from=two --where=n=2:3 --style=my.mplstyle",
    "less.pdf": "plot heatmap --from=one --minus=two",
    "map.png": "compare one two",
    "own.pdf": "compare one one --where=seed=0 --where-a=n=2 --where-b=n=3 --value=test_loss",
    "points.png": "compare one given.csv --where-b=snr=1",
    "claims.svg": "judge one 'test_loss < 9'",
}


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs `results/toy` and, of a function, `one` and `two`, published numbers, and figures."""
    folder = tmp_path_factory.mktemp("drawn")
    (folder / "mine.py").write_text(EXPERIMENT)
    (folder / "small.mplstyle").write_text("savefig.dpi: 60")
    (folder / "my.mplstyle").write_text("axes.prop_cycle: cycler('color', ['123456', '654321'])")
    (folder / "given.csv").write_text("n,snr,test_loss\n2,1,0.5\n2,2,0.2\n3,1,0.3\n4,1,0.3\n")
    said(f"{TOY} --seeds=2 --trajectories", folder)
    grid = "--n=2,3,4 --snr=0.5,1,2 --jobs=1 --trajectories"
    for out in ("--seeds=0:1 --out=one", "--seeds=1:3 --out=two"):
        said(f"sweep mine.py {grid} {out}", folder)
    for name, command in FIGURES.items():
        said(f"{command} --out={name}", folder)
    said("plot heatmap --from=results/toy", folder)
    (folder / "torn.png").write_bytes((folder / "heatmap.png").read_bytes()[:2000])
    (folder / "mine.py").write_text("raise RuntimeError('nobody imports this')")
    return folder


@pytest.fixture
def folder(drawn: Path, tmp_path: Path) -> Path:
    """A copy of them, to be spoilt."""
    return shutil.copytree(drawn, tmp_path / "here")


@pytest.mark.slow
def test_the_data_of_kept_pictures_is_here() -> None:
    figures = sorted(map(str, ROOT.glob("results/*/figures/heatmap.png")))
    words = call("verify", *figures, cwd=ROOT).stdout
    assert words.count(": verified.\n") == len(figures) > 4


def verify(words: str, cwd: Path, expect: int = 0) -> str:
    """What `overfit verify --redraw` says, held to an exit code."""
    return said(f"verify --redraw {words}", cwd, expect)


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
    words = verify(name, drawn)
    assert words.startswith(f"{name}: verified.\n  Drawn by overfit ") and words.endswith(SAME)
    assert f": overfit {FIGURES[name]} --out={name}\n" in words
    assert words.count("unchanged.") == (2 if re.search("two|compare", FIGURES[name]) else 1)
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
    told = [*lines, f"{total}; --redraw compares the pictures too."]
    assert said("verify results/toy", drawn).splitlines() == told
    again = verify("results", drawn).splitlines()
    assert again == [*lines, f"{total}."], "a folder of run directories has those of all"


@pytest.mark.slow
def test_what_python_drew_is_verified_until_a_file_beside_it_changes(folder: Path) -> None:
    """Also a figure that a notebook showed before it was saved, which is laid out anew then."""
    out, toy = folder / "python.png", folder / "results/toy"
    overfit_cli.draw("heatmap", toy, law="n = snr", log="x,y", out=out)
    with contextlib.chdir(folder):
        overfit_cli.compare("one", Path("given.csv"), where="n=2", out="compared.svg")
        figure = overfit_cli.draw("heatmap", "one", size="column")
        assert file_content(figure, "png").startswith(b"\x89PNG")
        figure.savefig("shown.png")
    words = verify("python.png compared.svg shown.png", folder)
    assert words.count(", from Python.\n") == words.count(SAME) == 3
    (folder / "given.csv").write_text((folder / "given.csv").read_text().replace("0.5", "3.5"))
    words = verify("points.png compared.svg", folder, 1)
    assert words.count("  given.csv has changed: data ") == words.count(OTHER) == 2
    (folder / "given.csv").write_text("n;snr;test_loss\n1;1;1.5\n")
    assert "Commas separate columns." in verify("points.png", folder, 1)


@pytest.mark.slow
def test_only_what_a_figure_draws_matters(folder: Path) -> None:
    """Not seconds, logged steps, how cells lie in files, or other cells; but the last bit."""
    plot = "plot heatmap --from=results/toy"
    said(f"{plot} --value=seconds --out=timed.png", folder)
    said(f"{plot} --where=seed=0:1 --where=n=1:3 --out=some.png {SMALL}", folder)
    rewrite(folder / "results/toy/cells", "seconds", lambda taken: taken + 1)
    verify("heatmap.png curves.png", folder)
    assert f"results/toy{CHANGED}" in verify("timed.png", folder, 1)
    rewrite(folder / "results/toy/trajectories", "train_loss")
    verify("heatmap.png", folder)
    assert f"results/toy{CHANGED}" in verify("curves.png", folder, 1)
    said("compact results/toy", folder)
    verify("heatmap.png", folder)
    rewrite(folder / "one/cells", "test_loss", lambda losses: np.nextafter(losses, 1))
    assert f"one{CHANGED}" in verify("less.pdf", folder, 1)
    said(f"{TOY.replace('1:3', '1:5')} --seeds=3", folder)
    words = verify("some.png heatmap.png", folder, 1)
    assert "some.png: verified." in words and "heatmap.png: not verified." in words
    assert f"results/toy{CHANGED}30 cells of toy, version 1, key " in words


@pytest.mark.slow
def test_a_renamed_run_is_seen_from_its_figure(folder: Path, tmp_path: Path) -> None:
    (folder / "results/toy").rename(folder / "results/renamed")
    figure = folder / "results/renamed/figures/heatmap.png"
    for cwd, path in ((folder, "results/renamed"), (folder / "one", "../results/renamed")):
        assert f"This data is in {path}, unchanged." in verify(str(figure), cwd)
    (tmp_path / "paper.png").symlink_to(figure)
    assert "This data is in here/results/renamed," in verify("paper.png", tmp_path)


@pytest.mark.parametrize(
    ("name", "lost", "named"),
    [
        ("heatmap.png", "results/toy", "--from=../away"),
        ("less.pdf", "two", "--from=../away"),
        ("less.pdf", "two", "--from=one --from=../away"),
        ("map.png", "two", "--from=../away --from=one"),
        ("own.pdf", "one", "--from=../away"),
        ("points.png", "given.csv", "--from=../away.csv"),
    ],
)
@pytest.mark.one_in(6)
def test_data_that_is_nowhere_is_missing_until_it_is_named(
    folder: Path, name: str, lost: str, named: str
) -> None:
    """Runs that are named are told apart by their cells."""
    moved = f"../away{Path(lost).suffix}"
    shutil.move(folder / lost, folder / moved)
    words = verify(name, folder, 1)
    assert words == said(f"verify {name}", folder, 1)
    assert words.startswith(f"{name}: not verified.\n")
    assert f"  {lost} isn't here; name it with --from.\n" in words
    assert words.endswith("Without its data the picture can't be drawn again.\n")
    assert f" in {moved}, unchanged." in verify(f"{name} {named}", folder)


@pytest.mark.slow
def test_another_run_that_is_named_is_told_from_the_figures_own(folder: Path) -> None:
    told = f"{HERE}  --from one: that isn't the figure's data.\n"
    assert told in verify("heatmap.png --from=one", folder, 1)
    shutil.copytree(folder / "one", folder / "later")  # the same cells, with other numbers
    rewrite(folder / "later/cells", "test_loss")
    said("plot heatmap --from=one --minus=later --out=more.png", folder)
    assert verify("more.png --from=later --from=one", folder).count(HERE) == 2


@pytest.mark.parametrize("name", ["heatmap.png", "less.pdf", "lines.svg", "map.png"])
@pytest.mark.one_in(4)
def test_an_edited_picture_is_caught(folder: Path, name: str) -> None:
    if name.endswith("png"):
        edit(folder / name, pixels=True)
    else:
        first = b"stream" if name.endswith("pdf") else b'd="M '
        before, mark, after = (folder / name).read_bytes().partition(first)
        (folder / name).write_bytes(before + mark + b"7" + after[1:])
    unseen = "The picture isn't compared; --redraw draws it again.\n"
    assert said(f"verify {name}", folder).endswith(unseen)
    words = verify(name, folder, 1)
    assert words.startswith(f"{name}: not verified.\n") and words.endswith(f"{OTHER}\n")


@pytest.mark.parametrize(
    ("name", "run"), [("heatmap.png", "results/toy"), ("map.png", "two"), ("points.png", "one")]
)
@pytest.mark.one_in(3)
def test_a_number_that_changed_is_caught(folder: Path, name: str, run: str) -> None:
    rewrite(folder / run / "cells", "test_loss")
    words = verify(name, folder, 1)
    assert f"  {run}{CHANGED}" in words and words.endswith(f"{OTHER}\n")


def test_a_damaged_part_is_named(folder: Path) -> None:
    part = parts_in(folder / "results/toy/cells")[0]
    content = bytearray(part.read_bytes())
    content[100] ^= 1
    part.write_bytes(content)
    done = call("verify", "heatmap.png", cwd=folder, expect=1)
    assert "  results/toy " in done.stdout and "unchanged" not in done.stdout
    assert f"{part.name} is left out: its checksum doesn't match its name" in done.stderr


@pytest.mark.slow
def test_cells_of_another_version_are_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sides = "results/toy results/toy --where-a=n=1 --where-b=n=2"
    said(f"compare {sides} --out=own.svg", folder)
    monkeypatch.setattr("toy_study.Toy.version", 2)
    words = verify("heatmap.png", folder, 1)
    assert "results/toy can't be used: its cells are of version 1 of toy, and this overfit" in words
    assert "cells of toy, version 1" in verify("own.svg", folder)
    said(f"{TOY} --seeds=2", folder)
    assert f"{CHANGED}12 cells of toy, version 2, " in said("verify heatmap.png", folder, 1)


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


@pytest.mark.parametrize(("name", "values", "words"), EDITED, ids=range(len(EDITED)))
@pytest.mark.one_in(4)
def test_whatever_a_record_asks_for_is_a_sentence(
    drawn: Path, tmp_path: Path, name: str, values: dict[str, Any], words: str
) -> None:
    edit(drawn / f"{name}.png", to=tmp_path / "hostile.png", **values)
    assert words in verify(str(tmp_path / "hostile.png"), drawn, 1)


@pytest.mark.unix
@pytest.mark.parametrize("path", ["x" * 5000, "/", "one", "pipe.csv", "/dev/zero", "~", "\0"])
def test_whatever_path_a_record_names_the_data_is_missing(
    drawn: Path, tmp_path: Path, path: str
) -> None:
    (tmp_path / "pipe.csv").mkdir()
    edit(drawn / "heatmap.png", to=tmp_path / "run.png", path=path, beside=path)
    published = {"path": path, "beside": path, "name": "given.csv", "data": "0" * 64}
    edit(drawn / "points.png", to=tmp_path / "file.png", **compared(published=published))
    words = verify("run.png", tmp_path, 1)
    words += verify(f"file.png --from {drawn / 'one'}", tmp_path, 1)
    assert words.count(" isn't here; name it with --from.\n") == 2
    assert f"This data is in {drawn / 'one'}, unchanged." in words


def test_the_newest_run_is_drawn_and_why_it_does_not_fit_is_said(tmp_path: Path) -> None:
    for name, n, time in (("older", "1:3", 1e9), ("newer", "1:4", 2e9)):
        sweep_toy(tmp_path / "results" / name, n)
        os.utime(tmp_path / "results" / name / "cells", (time, time))
    told = "From results/newer, the newest run directory that fits."
    assert told in said("plot heatmap", tmp_path)
    error = call("plot", "heatmap", "--where", "nn=2", cwd=tmp_path, expect=2).stderr
    assert "The newest, results/newer, doesn't: --where nn=2: 'nn' is no name here" in error


def test_a_figure_of_a_column_that_a_run_lacks_is_refused(tmp_path: Path) -> None:
    run = str(ROOT / "results" / "softmax-table1-quick")
    error = call("plot", "worst-drift", "--from", run, "--out=a.png", cwd=tmp_path, expect=2).stderr
    assert "worst_drift: none of the 2400 cells has a number there" in error
