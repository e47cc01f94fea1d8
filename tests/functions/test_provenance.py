"""Cells of other code, data and settings are told; code that a run directory brings isn't run."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import overfit_cli
from overfit_cli.figures.draw import read_record
from overfit_cli.sweeps.manifest import Run, read_manifest
from tests.command import call, run
from tests.functions.mine import edit, written

OLD = "def train(n: int = 2, lam: float = 1.0, sigma: float = 0.5, seed: int = 0):\n"
OLD += "    return {'loss': n * lam + seed * sigma}\n"
NEW = OLD.replace("n * lam", "n * lam**2")
MIXED = "Cells of 2 sources: 12 of "
GRID = ("--n", "1:4", "--lam", "1,2", "--jobs=1", "--seeds=2")
RIDGE = ("sweep", "ridge.py", *GRID)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the run `a`, 12 cells of the old code and 4 of the new, and `b` of the new."""
    folder = tmp_path_factory.mktemp("mixed")
    written(folder, OLD, "ridge.py")
    run("sweep", "ridge.py", "--n", "1:3", *GRID[2:], "--out=a", cwd=folder)
    written(folder, NEW, "ridge.py")
    for out in ("a", "b"):
        run(*RIDGE, f"--out={out}", cwd=folder)
    return folder


def test_a_figure_its_caption_and_verify_say_that_cells_are_of_two_codes(mixed: Path) -> None:
    """And nothing where those that are chosen are of one."""
    assert MIXED in call("plot", "lines", "--x=n", "--from=a", "--out=l.png", cwd=mixed).stderr
    assert MIXED in " ".join((mixed / "l.txt").read_text().split())
    assert MIXED in call("verify", "l.png", cwd=mixed).stdout
    [record] = read_record((mixed / "l.png").read_bytes())[1].runs
    first, second = read_manifest(mixed / "a").runs
    assert record.sources == {first.source: 12, second.source: 4}
    chosen = ("--from=a", "--where=n=1:3", "--out=c.csv")
    assert not call("plot", "lines", "--x=n", *chosen, cwd=mixed).stderr
    assert "sources" not in (mixed / "c.txt").read_text()
    assert len(overfit_cli.load(mixed / "a", where="n=1:3")) == 12


@pytest.mark.slow
def test_export_load_report_and_compare_say_it_too(mixed: Path) -> None:
    assert MIXED in call("export", "a", cwd=mixed).stderr
    with pytest.warns(UserWarning, match=MIXED):
        overfit_cli.load(mixed / "a")
    assert MIXED in call("report", "a", "--out=r", cwd=mixed).stderr
    assert all(MIXED in (mixed / "r" / name).read_text() for name in ("report.md", "index.html"))
    said = call("compare", "a", "b", "--json=c.json", cwd=mixed).stdout
    assert "12 of" in said
    assert json.loads((mixed / "c.json").read_text())["notes"][0] in said


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    done = subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, check=True)
    return done.stdout.decode().strip()


@pytest.mark.slow
def test_a_run_keeps_its_functions_files_and_their_commit(folder: Path) -> None:
    def last_run() -> Run:
        run("sweep", "ridge.py", "--n=1,2", "--jobs=1", "--out=a", "--fresh", cwd=folder)
        return read_manifest(folder / "a").runs[-1]

    written(folder, "from near import two\n\n" + OLD, "ridge.py")
    near = written(folder, "two = 2\n", "near.py")
    assert last_run().commit == "", "it lies in no repository"
    git(folder, "init", "-q")
    git(folder, "add", "ridge.py", "near.py")
    git(folder, "commit", "-qm", "first")
    commit = git(folder, "rev-parse", "HEAD")
    assert last_run().commit == commit
    near.write_text("two = 2.0\n")
    last = last_run()
    assert last.commit == f"{commit}-dirty"
    call("plot", "lines", "--x=n", "--from=a", "--out=l.png", cwd=folder)
    assert f"at commit {commit[:12]}-dirty;" in call("verify", "l.png", cwd=folder).stdout
    call("merge", "a", "--out=m", cwd=folder)
    for kept in (folder / "a" / "source" / last.source, folder / "m" / "source" / last.source):
        assert (kept / "near.py").read_text() == "two = 2.0\n"
        assert (kept / "ridge.py").read_text().endswith(OLD)


def test_a_notebooks_function_keeps_its_text(tmp_path: Path) -> None:
    def train(n: int = 1) -> dict[str, float]:
        return {"loss": float(n)}

    overfit_cli.sweep(train, n=[1, 2], out=tmp_path / "a", jobs=1, quiet=True)
    assert any("def train" in path.read_text() for path in (tmp_path / "a/source").rglob("*.py"))


READER = """from pathlib import Path
from overfit_cli import experiment


@experiment(data=["points.csv"])
def train(n: int = 1):
    return {"loss": n * float((Path(__file__).parent / "points.csv").read_text())}
"""


def test_a_run_is_held_to_the_files_that_a_function_names(folder: Path) -> None:
    (folder / "in").mkdir()
    written(folder / "in", READER, "reader.py")
    sweep = ("sweep", "in/reader.py", "--n=1,2", "--jobs=1")
    assert "points.csv" in call(*sweep, "--out=a", cwd=folder, expect=2).stderr
    points = written(folder / "in", "1", "points.csv")
    call(*sweep, "--out=a", cwd=folder)
    call(*sweep, "--out=a", cwd=folder)
    points.write_text("2")
    refused = call(*sweep, "--out=a", cwd=folder, expect=2).stderr
    assert "trained on other data (points.csv had other content then)" in refused
    call(*sweep, "--out=b", cwd=folder)
    said = call("plot", "lines", "--from=a", "--from=b", "--out=l.csv", cwd=folder).stderr
    assert "Data that differs: points.csv" in said
    assert "Data that differs: points.csv" in call("compare", "a", "b", cwd=folder).stdout
    refused = call("merge", "a", "b", "--out=c", cwd=folder, expect=2).stderr
    assert "its data points.csv is another than that of a" in refused


def test_runs_that_were_refined_at_two_thresholds_are_named(mixed: Path, tmp_path: Path) -> None:
    for name, threshold in (("low", 2.0), ("high", 3.0)):
        shutil.copytree(mixed / "b", tmp_path / name)
        refined = f'"refine": 2, "value": "loss", "threshold": {threshold}'
        edit(tmp_path / name / "manifest.json", '"settings": {', f'"settings": {{{refined}, ')
    words = "Refined at different thresholds: loss 2 ({}), loss 3 ({})."
    both = ("--from=low", "--from=high", "--threshold=2", "--out=h.csv")
    assert words.format("low", "high") in call("plot", "heatmap", *both, cwd=tmp_path).stderr
    said = call("compare", "low", "high", cwd=tmp_path).stdout
    assert words.format("A", "B") in " ".join(said.split())
