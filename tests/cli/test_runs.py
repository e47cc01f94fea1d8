"""`overfit runs` and `overfit show`: run directories, what they hold and lack, and what failed."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

import overfit_cli
from overfit_cli.cli.runs import FEW
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


def add_copies(folder: Path) -> None:
    """Copy `toy-10` until there are more runs than are shown in full."""
    for number in range(11, 11 + FEW):
        shutil.copytree(folder / "results" / "toy-10", folder / "results" / f"toy-{number}")


def test_of_many_runs_each_has_a_line_under_its_study(folder: Path) -> None:
    add_copies(folder)
    lines = lines_of("runs", cwd=folder)
    assert lines[:7] == [
        "  run directory   cells  state     age",
        "",
        "mine:train",
        "  results/bad     22/30  8 failed  just now",
        "",
        "toy",
        "  results/toy-10      6  complete  just now",
    ]
    assert lines[-1] == (
        f"{FEW + 2} run directories; --details shows the axes and the command of each, and "
        "`overfit show DIR` describes one."
    )
    assert len(lines_of("runs", "--details", cwd=folder)) == 3 * (FEW + 2)


def test_a_few_runs_have_their_axes_and_commands(swept: Path) -> None:
    lines = lines_of("runs", cwd=swept)
    assert lines == [
        "results/bad  mine:train, 22 of 30 cells, 8 failed, just now",
        "  n 5 × rate 2 × seeds 3",
        "  overfit sweep mine.py " + " ".join((*GRID, "--out=results/bad")),
        "results/toy-10  toy, 6 cells, complete, just now",
        "  n 3 × snr 2 × seeds 1",
        "  overfit sweep toy --n=1:3 --snr=1:2:2 --seeds=1 --jobs=1 --out=results/toy-10",
    ]
    assert lines_of("runs", "results/toy-10", cwd=swept) == lines[3:]


@pytest.mark.slow
def test_a_wide_terminal_shows_axes_and_a_long_path_has_a_line(folder: Path) -> None:
    add_copies(folder)
    longer = folder / "results" / ("long-" * 12)
    (folder / "results" / "toy-10").rename(longer)
    for width, words in (
        ("80", "6 complete just now"),
        ("120", "6 complete just now n 3 × snr 2 "),
    ):
        lines = shown(on_a_terminal("runs", cwd=folder, env={"COLUMNS": width})[1])
        below = lines[lines.index(f"  results/{longer.name}") + 1]
        assert " ".join(below.split()).startswith(words)
        assert ("snr" in below) == (width == "120")


def test_where_cells_are_missing_the_command_trains_them(folder: Path) -> None:
    run = folder / "results" / "toy-10"
    for part in [*run.glob("*/*.parquet")]:
        part.unlink()
    line, _, following = lines_of("runs", "results/toy-10", "--details", cwd=folder)
    assert line.startswith("results/toy-10  toy, 0 of 6 cells, 6 missing, ")
    words = shlex.split(following.partition("next: overfit ")[2])
    assert words[-2:] == ["--out", "results/toy-10"]
    assert lines_of("show", "results/toy-10", cwd=folder)[1].startswith("It holds no cells")
    call(*words, cwd=folder)
    assert lines_of("runs", "results/toy-10", cwd=folder)[0].startswith(
        "results/toy-10  toy, 6 cells, complete, "
    )


@pytest.mark.slow
def test_a_sweep_from_python_is_continued_by_a_command(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    path = tmp_path / "results" / "own"
    overfit_cli.sweep("toy", n=[1, 2], seeds="3:4", out=path, jobs=1, quiet=True)
    assert lines_of("runs", "--details", cwd=tmp_path)[1:] == [
        "  n 2 × seeds 2",
        "  made from Python",
    ]
    next((path / "cells").glob("*.parquet")).unlink()
    following = lines_of("runs", "--details", cwd=tmp_path)[2].partition("next: overfit ")[2]
    call(*shlex.split(following), cwd=tmp_path)
    assert "4 cells, complete" in lines_of("runs", "--details", cwd=tmp_path)[0]


def test_only_run_directories_are_listed_and_damage_is_counted(folder: Path) -> None:
    results = folder / "results"
    (results / "report").mkdir()
    (results / "empty" / "cells").mkdir(parents=True)
    (results / "foreign" / "cells").mkdir(parents=True)
    (results / "foreign" / "cells" / "a.parquet").write_text("not ours")
    (results / "other").mkdir()
    (results / "other" / "manifest.json").write_text("{}")
    for part in (results / "bad" / "cells").glob("*.parquet"):
        part.write_bytes(part.read_bytes()[:100])
    lines = lines_of("runs", "--details", cwd=folder)
    assert [line.split()[0] for line in lines[::3]] == ["results/bad", "results/toy-10"]
    assert re.search(r"0 of 30 cells, 30 missing, \d+ files? left out", lines[0])
    (results / "toy-10" / "manifest.json").unlink()
    assert lines_of("runs", "results/toy-10", "--details", cwd=folder) == [
        "results/toy-10  toy, 6 cells, planned cells unknown, just now"
    ]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("runs",), 0, "results holds no run directory; `overfit sweep` makes them.\n"),
        (("runs", "gone"), 2, "overfit: DIR gone: there is no such folder.\n"),
        (("runs", "file"), 2, "overfit: DIR file: that is a file; name a folder.\n"),
        (("runs", "empty"), 0, "empty holds no run directory; `overfit sweep` makes them.\n"),
        (("show", "empty"), 2, "overfit: DIR empty: it holds no cells; name a directory that "),
        (("show", "nowhere"), 2, "overfit: DIR nowhere: there is no such directory; name one that"),
        (("show", "file", "--failed"), 2, "overfit: DIR file: that is a file; name a directory"),
    ],
)
def test_what_is_no_folder_of_runs_is_a_sentence(
    words: tuple[str, ...], code: int, said: str, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    done = call(*words, cwd=tmp_path, expect=code)
    text = done.stdout + done.stderr
    assert text.startswith(said)
    assert text.count("\n") == 1


def test_programs_read_the_list_as_json_or_as_a_frame(swept: Path) -> None:
    bad, toy = json.loads(call("runs", "--json=-", cwd=swept).stdout)
    assert (bad["done"], bad["failed"], bad["missing"], toy["planned"]) == (22, 8, 0, 6)
    assert bad["axes"] == {"n": [1, 2, 3, 4, 5], "rate": [0.1, 0.2]}
    age = datetime.now(UTC) - datetime.fromisoformat(toy["written"])
    assert 0 <= age.total_seconds() < 600
    frame = overfit_cli.runs(swept / "results")
    assert frame["study"].tolist() == ["mine:train", "toy"]
    assert frame["failed"].tolist() == [8, 0]
    assert overfit_cli.runs(swept / "results" / "toy-10")["missing"].tolist() == [0]
    with pytest.raises(overfit_cli.UserError, match="there is no such folder"):
        overfit_cli.runs(swept / "none")


@pytest.mark.slow
def test_the_list_of_the_kept_runs_has_a_line_for_each_at_80_columns() -> None:
    whole = lines_of("runs", cwd=ROOT)
    code, stream = on_a_terminal("runs", cwd=ROOT)
    lines = shown(stream)
    assert code == 0
    assert max(map(len, lines)) <= 80
    assert " ".join(" ".join(lines).split()) == " ".join(" ".join(whole).split())
    rows = [line.split() for line in lines if line.startswith("  results/")]
    kept = {str(path.parent.relative_to(ROOT)) for path in (ROOT / "results").glob("*/cells")}
    assert {row[0] for row in rows} == kept
    assert all(row[-1] == "ago" or row[-2:] == ["just", "now"] for row in rows)
    details = call("runs", "--details", cwd=ROOT).stdout
    assert "\n  overfit sweep fig1 --seeds 40" in details
    names = [line.split()[0] for line in details.splitlines() if not line.startswith(" ")]
    assert names == sorted(kept)


def test_a_run_is_described_with_its_paper_settings_commands_verdicts_and_next_commands() -> None:
    said = call("show", "results/fig1-quick", cwd=ROOT).stdout
    assert said.startswith("results/fig1-quick: benign-vit, 18240 cells, complete, ")
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
    assert re.search(r"^Claims judged on it in results/report: \d+ hold, \d+ fail, ", said, re.M)


def test_a_run_of_a_function_is_described_and_judged_by_its_own_claims(swept: Path) -> None:
    said = call("show", "results/bad", cwd=swept).stdout
    assert "Claims, not judged in results/report: small.\n" in said
    proposed = re.findall(r"^Next: overfit (.*)$", said, re.MULTILINE)
    assert proposed == [
        "show results/bad --failed",
        "plot heatmap --from results/bad",
        "judge results/bad",
    ]


def test_failed_cells_are_shown_by_kind_with_the_command_that_repeats_one(folder: Path) -> None:
    said = call("show", "results/bad", "--failed", cwd=folder).stdout
    raised, diverged = re.findall(r"^(\d cells: .*)$", said, re.MULTILINE)
    assert re.fullmatch(r"6 cells: error: ValueError: n 3 is no good for \d, and similar", raised)
    assert diverged.startswith("2 cells: diverged")
    assert "  2 settings, seeds 0 to 2; n = 3; rate = 0.1, 0.2\n" in said
    assert "  2 settings, seed 1; n = 4; rate = 0.1, 0.2\n" in said
    assert "  mine.py:7 in train: raise ValueError" in said
    repeats = re.findall(r"^  Repeat one: overfit (.*)$", said, re.MULTILINE)
    assert "--set n=4" in repeats[1]
    for command in repeats:
        again = call(*shlex.split(command), cwd=folder, expect=1)
        assert "The cell failed: " in again.stderr
    [retry] = re.findall(r"^Next: overfit (.*)$", said, re.MULTILINE)
    assert "--retry-failed" in retry
    assert "8 to run" in call(*shlex.split(retry), cwd=folder, expect=1).stdout
    none = call("show", "results/toy-10", "--failed", cwd=folder).stdout
    assert none.splitlines()[1:] == ["No cell failed."]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(20, "just now"), (70, "1 min ago"), (7000, "2 h ago"), (86400, "24 h ago")],
)
def test_an_age_has_one_unit(seconds: float, words: str) -> None:
    assert ago(seconds) == words
    assert ago(40 * 86400) == "40 days ago"


@pytest.mark.slow
def test_runs_are_listed_and_shown_without_torch(swept: Path) -> None:
    check_imports([["runs"]], ["torch", "pandas", "scipy", "matplotlib"], swept)
    commands = [["show", "results/toy-10"], ["show", "results/toy-10", "--failed"]]
    check_imports(commands, ["torch"], swept)
