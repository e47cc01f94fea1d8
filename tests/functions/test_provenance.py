"""Cells of other code, data, settings and thresholds: who says so, and what a run keeps of them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import overfit_cli
from overfit_cli.figures.record import read_record
from overfit_cli.sweeps.manifest import Run, read_manifest
from tests.command import run

OLD = "def train(n: int = 2, lam: float = 1.0, sigma: float = 0.5, seed: int = 0):\n"
OLD += "    return {'loss': n * lam + seed * sigma}\n"
NEW = OLD.replace("n * lam", "n * lam**2")
OTHER = OLD.replace("sigma: float", "width: int = 3, sigma: float").replace("lam +", "lam -")
MIXED = "Cells of 2 sources: 12 of "
GRID = ("--n", "1:4", "--lam", "1,2", "--jobs=1", "--seeds=2")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """An empty folder; what is loaded from it is forgotten at the end."""
    path = list(sys.path)
    yield tmp_path
    for name, module in list(sys.modules.items()):
        if str(tmp_path) in str(getattr(module, "__file__", "")):
            del sys.modules[name]
    sys.path[:] = path


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the run `a`, 12 cells of the old code and 4 of the new, and `b` of the new."""
    folder = tmp_path_factory.mktemp("mixed")
    (folder / "ridge.py").write_text(OLD)
    run("sweep", "ridge.py", "--n", "1:3", *GRID[2:], "--out=a", cwd=folder)
    (folder / "ridge.py").write_text(NEW)
    said = run("sweep", "ridge.py", *GRID, "--out=a", cwd=folder).stdout
    assert "12 cells were trained by an earlier version of the code" in said
    run("sweep", "ridge.py", *GRID, "--out=b", cwd=folder)
    return folder


def test_a_figure_its_caption_its_record_and_verify_say_that_cells_are_of_two_codes(
    mixed: Path,
) -> None:
    assert MIXED in run("plot", "lines", "--x=n", "--from=a", "--out=l.png", cwd=mixed).stderr
    assert MIXED in " ".join((mixed / "l.txt").read_text().split())
    assert MIXED in run("verify", "l.png", cwd=mixed).stdout
    [record] = read_record((mixed / "l.png").read_bytes())[1].runs
    manifest = read_manifest(mixed / "a")
    assert manifest
    assert record.sources == {manifest.runs[0].source: 12, manifest.runs[1].source: 4}


def test_where_cells_are_of_one_code_nothing_is_said(mixed: Path) -> None:
    chosen = ("--from=a", "--where=n=1:3", "--out=c.png")
    assert not run("plot", "lines", "--x=n", *chosen, cwd=mixed).stderr
    assert "sources" not in (mixed / "c.txt").read_text()
    assert not run("export", "a", "--where=n=4", cwd=mixed).stderr
    assert len(overfit_cli.load(mixed / "a", where="n=1:3")) == 12


@pytest.mark.slow
def test_export_load_report_and_compare_say_it_too(mixed: Path) -> None:
    assert MIXED in run("export", "a", cwd=mixed).stderr
    with pytest.warns(UserWarning, match=MIXED):
        overfit_cli.load(mixed / "a")
    assert MIXED in run("report", "a", "--out=r", cwd=mixed).stderr
    assert all(MIXED in (mixed / "r" / name).read_text() for name in ("report.md", "index.html"))
    said = run("compare", "a", "b", "--json=c.json", cwd=mixed).stdout
    assert "12 of" in said
    assert json.loads((mixed / "c.json").read_text())["notes"][0] in said


def test_two_runs_of_one_code_each_are_told_apart(mixed: Path) -> None:
    said = run("compare", "a", "b", "--where=n=1:3", cwd=mixed).stdout
    assert "Cells of 2 sources: 12 of" in said
    assert "(A), 12 of" in said


def test_a_sweep_that_trains_nothing_says_whose_numbers_are_there(mixed: Path) -> None:
    said = run("sweep", "ridge.py", *GRID, "--out=a", cwd=mixed).stdout
    assert said.count("12 cells were trained by an earlier version") == 1


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    done = subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, check=True)
    return done.stdout.decode().strip()


def last_run(directory: Path) -> Run:
    manifest = read_manifest(directory)
    assert manifest
    return manifest.runs[-1]


def test_a_run_keeps_its_functions_files_and_their_commit(folder: Path) -> None:
    (folder / "ridge.py").write_text("from near import two\n\n" + OLD)
    (folder / "near.py").write_text("two = 2\n")
    run("sweep", "ridge.py", *GRID, "--out=a", cwd=folder)
    assert last_run(folder / "a").commit == "", "it lies in no repository"
    git(folder, "init", "-q")
    git(folder, "add", "ridge.py", "near.py")
    git(folder, "commit", "-qm", "first")
    commit = git(folder, "rev-parse", "HEAD")
    run("sweep", "ridge.py", *GRID, "--out=a", "--fresh", cwd=folder)
    assert last_run(folder / "a").commit == commit
    (folder / "near.py").write_text("two = 2.0\n")
    run("sweep", "ridge.py", *GRID, "--out=a", "--fresh", cwd=folder)
    assert last_run(folder / "a").commit == f"{commit}-dirty"
    run("plot", "lines", "--x=n", "--from=a", "--out=l.png", cwd=folder)
    assert f"at commit {commit[:12]}-dirty;" in run("verify", "l.png", cwd=folder).stdout
    kept = folder / "a" / "source" / last_run(folder / "a").source
    assert (kept / "near.py").read_text() == "two = 2.0\n"
    assert (kept / "ridge.py").read_text().endswith(OLD)
    run("merge", "a", "--out=m", cwd=folder)
    assert (folder / "m" / "source" / kept.name / "near.py").exists()


def test_a_function_that_was_swept_before_has_no_commit_of_ours() -> None:
    earlier = Run(values={}, seeds=(0,), git_commit="a" * 40, source="0" * 16)
    assert earlier.commit == ""
    assert earlier.model_copy(update={"source": ""}).commit == "a" * 40, "an installed study"


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
    (folder / "in" / "reader.py").write_text(READER)
    sweep = ("sweep", "in/reader.py", "--n=1:3", "--jobs=1")
    assert "points.csv" in run(*sweep, "--out=a", cwd=folder, expect=2).stderr
    (folder / "in" / "points.csv").write_text("1")
    run(*sweep, "--out=a", cwd=folder)
    run(*sweep, "--out=a", cwd=folder)
    (folder / "in" / "points.csv").write_text("2")
    refused = run(*sweep, "--out=a", cwd=folder, expect=2).stderr
    assert "trained on other data (points.csv had other content then)" in refused
    run(*sweep, "--out=b", cwd=folder)
    said = run("plot", "lines", "--from=a", "--from=b", "--out=l.png", cwd=folder).stderr
    assert "Data that differs: points.csv" in said
    assert "Data that differs: points.csv" in run("compare", "a", "b", cwd=folder).stdout
    assert (
        "points.csv had other content"
        in run("merge", "a", "b", "--out=c", cwd=folder, expect=2).stderr
    )


def test_a_data_folder_is_refused_for_a_function(folder: Path) -> None:
    (folder / "ridge.py").write_text(OLD)
    for command in ("sweep", "train"):
        refused = run(command, "ridge.py", "--data=.", cwd=folder, expect=2).stderr
        assert "--data .: ridge:train opens its files by itself" in refused


@pytest.mark.slow
def test_a_figure_of_two_studies_names_both_or_is_refused(folder: Path) -> None:
    columns = {"ridge": OLD, "other": OTHER, "third": OLD.replace("'loss'", "'risk'")}
    for name, text in columns.items():
        (folder / f"{name}.py").write_text(text)
        run("sweep", f"{name}.py", *GRID, f"--out={name}", cwd=folder)
    both = ("--from=ridge", "--from=other")
    assert not run("plot", "heatmap", *both, "--out=h.png", cwd=folder).stderr
    caption = " ".join((folder / "h.txt").read_text().split())
    assert "Settings: ridge, ridge:train, version 1: sigma 0.5." in caption
    assert "other, other:train, version 1: width 3, sigma 0.5." in caption
    words = ("plot", "heatmap", "--from=ridge", "--from=third", "--out=h.png")
    assert "third: its cells are of third:train and have no loss" in (
        run(*words, cwd=folder, expect=2).stderr
    )


def test_runs_that_were_refined_at_two_thresholds_are_named(mixed: Path, tmp_path: Path) -> None:
    for name, threshold in (("low", 2.0), ("high", 3.0)):
        shutil.copytree(mixed / "b", tmp_path / name)
        file = tmp_path / name / "manifest.json"
        content = json.loads(file.read_text())
        settings = {"refine": 2, "value": "loss", "threshold": threshold}
        content["runs"][0]["settings"] |= settings
        file.write_text(json.dumps(content))
    words = "Refined at different thresholds: loss 2 ({}), loss 3 ({})."
    both = ("--from=low", "--from=high", "--threshold=2", "--out=h.png")
    assert words.format("low", "high") in run("plot", "heatmap", *both, cwd=tmp_path).stderr
    said = run("compare", "low", "high", cwd=tmp_path).stdout
    assert words.format("A", "B") in " ".join(said.split())


def test_where_every_parameter_varies_there_is_no_list_of_settings(mixed: Path) -> None:
    run("sweep", "ridge.py", *GRID, "--sigma=1,2", "--out=s", cwd=mixed)
    run("plot", "lines", "--x=n", "--from=s", "--out=s.png", cwd=mixed)
    assert "Settings: ridge:train, version 1.\n" in (mixed / "s.txt").read_text()
