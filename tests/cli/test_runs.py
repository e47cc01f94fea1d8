"""`overfit runs`: run directories, what they hold and lack, and what failed."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

import overfit_cli
from overfit_cli.core.text import ago
from tests.command import call
from tests.screen import shown
from tests.terminal import on_a_terminal
from tests.test_startup import check_imports

MINE = """
import overfit_cli

@overfit_cli.experiment(claims=["small: loss < 100"])
def train(n: int = 10, rate: float = 0.1, kind: str = "a", seed: int = 0):
    if n == 3:
        raise ValueError(f"n {n} is no good for {seed}")
    return {"loss": float("nan") if n == 4 and seed == 1 else n * rate + seed}
"""
GRID = ("--n=1:5", "--rate=0.1,0.2", "--kind=b", "--seeds=3", "--jobs=1")
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `bad`, of whose 30 cells 8 failed, and `toy-10`, which is complete."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "mine.py").write_text(MINE)
    call("sweep", "mine.py", *GRID, "--out=results/bad", cwd=folder, expect=1)
    toy = ("--n=1:3", "--snr=1:2:2", "--seeds=1", "--jobs=1", "--out=results/toy-10")
    call("sweep", "toy", *toy, cwd=folder)
    return folder


@pytest.fixture
def folder(swept: Path, tmp_path: Path) -> Path:
    """A copy of it, to be changed."""
    return Path(shutil.copytree(swept, tmp_path / "copy"))


def lines_of(*words: str, cwd: Path) -> list[str]:
    return call(*words, cwd=cwd).stdout.splitlines()


def test_each_run_has_a_line(swept: Path) -> None:
    lines = lines_of("runs", cwd=swept)
    assert [line.split() for line in lines[:-1]] == [
        ["run", "directory", "study", "cells", "state", "age"],
        ["results/bad", "mine:train", "22/30", "8", "failed", "0", "min", "ago"],
        ["results/toy-10", "toy", "6", "complete", "0", "min", "ago"],
    ]
    assert lines[-1] == "2 run directories; `overfit runs RUN` shows one in full."
    [failed] = lines_of("runs", "--failed", cwd=swept)[1:-1]
    assert failed.split()[0] == "results/bad"


def test_where_cells_are_missing_the_command_trains_them(folder: Path) -> None:
    run = folder / "results" / "toy-10"
    for part in [*run.glob("*/*.parquet")]:
        part.unlink()
    line, empty, following = lines_of("runs", "results/toy-10", cwd=folder)
    assert line.startswith("results/toy-10: toy, cells: 0/6, 6 missing, ")
    assert empty.startswith("It holds no cells")
    words = shlex.split(following.removeprefix("Next: overfit "))
    assert words[-2:] == ["--out", "results/toy-10"]
    call(*words, cwd=folder)
    line, *_ = lines_of("runs", "results/toy-10", cwd=folder)
    assert line.startswith("results/toy-10: toy, cells: 6, complete, ")


def test_only_run_directories_are_listed_and_damage_is_counted(folder: Path) -> None:
    results = folder / "results"
    for name in ("report", "empty/cells", "foreign/cells", "other"):
        (results / name).mkdir(parents=True)
    (results / "foreign" / "cells" / "a.parquet").write_text("not ours")
    (results / "other" / "manifest.json").write_text("{}")
    for part in (results / "bad" / "cells").glob("*.parquet"):
        part.write_bytes(part.read_bytes()[:100])
    lines = lines_of("runs", cwd=folder)
    assert [line.split()[0] for line in lines[1:-1]] == ["results/bad", "results/toy-10"]
    assert re.search(r" 0/30 +30 missing, \d+ files? left out", lines[1])
    (results / "toy-10" / "manifest.json").unlink()
    line, *_ = lines_of("runs", "results/toy-10", cwd=folder)
    assert line == "results/toy-10: toy, cells: 6, planned cells unknown, 0 min ago"


def test_a_folder_without_runs_says_what_makes_them(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for words, folder in (((), "results"), (("empty",), "empty")):
        said = call("runs", *words, cwd=tmp_path).stdout
        assert said == f"{folder} holds no run directory; `overfit sweep` makes them.\n"


def test_programs_read_the_list_as_json_or_as_a_frame(swept: Path) -> None:
    bad, toy = json.loads(call("runs", "--json=-", cwd=swept).stdout)
    assert (bad["done"], bad["failed"], bad["missing"], toy["planned"]) == (22, 8, 0, 6)
    assert bad["axes"] == {"n": [1, 2, 3, 4, 5], "rate": [0.1, 0.2]}
    age = datetime.now(UTC) - datetime.fromisoformat(toy["written"])
    assert 0 <= age.total_seconds() < 600
    assert json.loads(call("runs", "results/toy-10", "--json=-", cwd=swept).stdout) == toy
    frame = overfit_cli.runs(swept / "results")
    assert frame["study"].tolist() == ["mine:train", "toy"]
    assert frame["failed"].tolist() == [8, 0]
    assert overfit_cli.runs(swept / "results" / "toy-10")["missing"].tolist() == [0]
    with pytest.raises(overfit_cli.UserError, match="No such file"):
        overfit_cli.runs(swept / "none")


@pytest.mark.slow
def test_the_list_of_the_kept_runs_fits_80_columns() -> None:
    code, stream = on_a_terminal("runs", cwd=ROOT)
    assert code == 0
    assert max(map(len, shown(stream))) <= 80
    kept = {str(path.parent.relative_to(ROOT)) for path in (ROOT / "results").glob("*/cells")}
    assert {line.split()[0] for line in lines_of("runs", cwd=ROOT)[1:-1]} == kept


def test_a_run_is_described_with_its_paper_settings_commands_and_next_commands() -> None:
    said = call("runs", "results/fig1-quick", cwd=ROOT).stdout
    assert said.startswith("results/fig1-quick: benign-vit, cells: 18240, complete, ")
    for words in (
        "Paper: Jiang et al. 2024: Unveil Benign Overfitting",
        "Cells: 18240 cells done; seeds 0 to 39. Axes: N (n) 19 values from 2 to 20; SNR (snr) 24",
        "Settings: benign-vit (Jiang et al. 2024), version ",
        "Command: overfit sweep fig1 ",
        "Figures in results/fig1-quick/figures: ",
        "Next: overfit plot heatmap --from results/fig1-quick",
        "Next: overfit report results/fig1-quick",
    ):
        assert f"\n{words}" in said


def test_a_run_of_a_function_is_described_and_judged_by_its_own_claims(swept: Path) -> None:
    said = call("runs", "results/bad", cwd=swept).stdout
    run, proposed = "results/bad", re.findall(r"^Next: overfit (.*)$", said, re.MULTILINE)
    assert proposed == [f"runs {run} --failed", f"plot heatmap --from {run}", f"judge {run}"]


def test_failed_cells_are_shown_by_kind_with_the_command_that_repeats_one(folder: Path) -> None:
    said = call("runs", "results/bad", "--failed", cwd=folder).stdout
    raised, diverged = re.findall(r"^(\d cells: .*)$", said, re.MULTILINE)
    assert re.fullmatch(r"6 cells: error: ValueError: n 3 is no good for \d, and similar", raised)
    assert diverged.startswith("2 cells: diverged")
    assert "  seeds 0 to 2; n = 3; rate = 0.1, 0.2\n" in said
    assert "  seed 1; n = 4; rate = 0.1, 0.2\n" in said
    assert "  mine.py:7 in train: raise ValueError" in said
    repeats = re.findall(r"^  Repeat one: overfit (.*)$", said, re.MULTILINE)
    assert "--set n=4" in repeats[1]
    for command in repeats:
        again = call(*shlex.split(command), cwd=folder, expect=1)
        assert "The cell failed: " in again.stderr
    [retry] = re.findall(r"^Next: overfit (.*)$", said, re.MULTILINE)
    assert "--retry-failed" in retry
    assert "8 to run" in call(*shlex.split(retry), cwd=folder, expect=1).stdout
    none = call("runs", "results/toy-10", "--failed", cwd=folder).stdout
    assert none.splitlines()[1:] == ["No cell failed."]


def test_an_age_has_one_unit() -> None:
    told = ["0 min ago", "1 min ago", "2 h ago", "24 h ago", "40 days ago"]
    assert [ago(seconds) for seconds in (20, 70, 7000, 86400, 40 * 86400)] == told


@pytest.mark.slow
def test_runs_are_listed_and_shown_without_torch(swept: Path) -> None:
    check_imports([["runs"]], ["torch", "scipy", "matplotlib"], swept)
    commands = [["runs", "results/toy-10"], ["runs", "results/toy-10", "--failed"]]
    check_imports(commands, ["torch"], swept)
