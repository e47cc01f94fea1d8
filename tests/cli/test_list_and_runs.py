"""`overfit list` and `runs`: what there is, and what runs hold; completion of a command line."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from unittest import mock

import pytest

import overfit_cli
from overfit_cli.cli.app import app
from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.registry import claims_of, figures_of, find_study, installed_studies
from overfit_cli.core.text import ago
from overfit_cli.sweeps.presets import all_presets
from tests.command import call, environment, python, said
from tests.test_startup import check_imports

ROOT = Path(__file__).parents[2]


def presets_of(study: str) -> list[str]:
    """The names of a study's presets."""
    return [preset.name for preset in all_presets() if preset.study == study]


LISTS = ("list", "list presets", "list figures", "list claims", "list kernel-regression")


@pytest.fixture(scope="module")
def in_a_pipe() -> Mapping[str, str]:
    """What lists print; the first of a process loads every study."""
    return {line: said(line, ROOT) for line in LISTS}


@pytest.mark.parametrize("line", [*LISTS, pytest.param("runs", marks=pytest.mark.slow)])
def test_on_a_terminal_lists_are_folded_to_its_width_and_nothing_is_lost(
    line: str, in_a_pipe: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = in_a_pipe.get(line) or said(line, ROOT)
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes the stream for a terminal
    folded = said(line, ROOT)
    assert sorted("".join(folded.split())) == sorted("".join(whole.split()))
    assert max(len(one.rstrip()) for one in folded.splitlines()) <= 80
    assert line != "list" or len(folded.splitlines()) <= 42, "studies are one screen"


def test_studies_are_listed_with_how_much_each_has(in_a_pipe: Mapping[str, str]) -> None:
    listed = in_a_pipe["list"]
    words = " ".join(listed.split())
    assert all(study.title in words for study in installed_studies()) and "…" not in words
    [line] = [line for line in listed.splitlines() if line.startswith("  softmax-diffusion ")]
    study = find_study("softmax-diffusion")
    counts = (len(presets_of(study.name)), len(figures_of(study)), len(claims_of(study)))
    assert tuple(map(int, re.findall(r" (\d+) ", line))) == counts


def test_a_study_is_listed_with_its_presets_figures_and_claims(tmp_path: Path) -> None:
    lines = said("list multihead-paths", tmp_path).splitlines()
    study = find_study("multihead-paths")
    names = [line.split()[0] for line in lines if line.startswith(" ")]
    assert names[: len(presets_of(study.name))] == presets_of(study.name)
    assert {*figures_of(study), *(claim.name for claim in claims_of(study))} <= {*names}
    for column in (*study.columns, *study.trajectory_columns):
        assert any(line.split()[:1] == [column.name] and column.meaning in line for line in lines)
    assert f"Claims ({len(claims_of(study))})" in lines
    parameter = r"\n +n +training samples, N +≥ 1, ≤ 100000 +20\b"
    assert re.search(parameter, said("list benign-vit", tmp_path))
    words = " ".join(said("list claims multihead-paths", tmp_path).split())
    for claim in claims_of(study):
        assert f"{claim.name} {claim.statement}" in words
        assert f"holds where: {claim.holds_where}" in words
        assert f"preset: {claim.preset}" in words
    assert "fig1-contour" not in words


def test_claims_of_a_function_are_listed_by_its_file_or_its_module(tmp_path: Path) -> None:
    text = "from overfit_cli import experiment\n@experiment(claims=['low: loss < 2 where n > 1'])\n"
    (tmp_path / "of_a_user.py").write_text(text + "def train(n: int = 1): return {'loss': n}\n")
    (tmp_path / "without.py").write_text("def train(n: int = 1): return {'loss': n}\n")
    for name in ("of_a_user.py", "of_a_user:train"):
        assert said(f"list claims {name}", tmp_path).startswith("low\n  loss < 2 where n > 1\n")
    assert said("list claims without.py", tmp_path) == "without:train has no claims.\n"
    lines = said("list of_a_user.py", tmp_path).splitlines()
    assert lines[0] == "of_a_user:train"
    assert {"Claims (1)", " low  loss < 2 where n > 1"} <= {*lines}


# Commands

OPTIONS = {
    "sweep": "set together only seeds profile read out data jobs backend address shard device "
    "trajectories dry-run fresh retry-failed adopt fail-fast time-limit check refine threshold "
    "claim",
    "train": "set seed out read data device",
    "plot": " ".join(["from out where minus size style", *vars(FigureOptions())]),
    "judge": "where study strict json latex out",
    "report": "out where only study strict expect details",
    "compare": "value where where-a where-b tolerance out json",
    "reproduce": "profile jobs backend address device data strict expect dry-run",
    "export": "to out means columns where trajectories",
    "runs": "json failed",
    "list": "",
    "merge": "out",
    "compact": "",
    "verify": "from redraw",
}


def test_there_are_these_commands_and_options_and_the_help_names_them(tmp_path: Path) -> None:
    commands = [each for each in app.registered_commands if each.callback]
    names = [each.name or each.callback.__name__ for each in commands if each.callback]
    assert sorted(names) == sorted(OPTIONS), "each further one is a decision"
    helped = said("", tmp_path)
    assert helped == said("-h", tmp_path) == said("--help", tmp_path)
    assert all(f"\n  {name} " in helped for name in names)
    for command, options in OPTIONS.items():
        own = said(f"{command} --help", tmp_path).split("Parameters of")[0]
        listed = re.findall(r"^  (?:-\w, )?--([\w-]+)", own, re.MULTILINE)
        assert sorted({*listed} - {"help"}) == sorted(options.split()), command
    assert said("runs --help", tmp_path) == said("runs -h", tmp_path)


MINE = """
import overfit_cli

@overfit_cli.experiment(claims=["small: loss < 100"])
def train(n: int = 10, rate: float = 0.1, kind: str = "a", seed: int = 0):
    if n == 3:
        raise ValueError(f"n {n} is no good for {seed}")
    return {"loss": float("nan") if n == 4 and seed == 1 else n * rate + seed}
"""


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with runs `bad`, of whose 30 cells 8 failed, and `toy-10`, which is complete."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "mine.py").write_text(MINE)
    grid = "--n=1:5 --rate=0.1,0.2 --kind=b --seeds=3 --jobs=1"
    said(f"sweep mine.py {grid} --out=results/bad", folder, 1)
    said("sweep toy --n=1:3 --snr=1:2:2 --seeds=1 --jobs=1 --out=results/toy-10", folder)
    (folder / "results" / "report").mkdir()
    return folder


def asked_in_bash(*words: str) -> dict[str, str]:
    """The variables that bash sets when the cursor stands behind the last of these words."""
    asked = {"COMP_WORDS": "\n".join(["overfit", *words]), "COMP_CWORD": str(len(words))}
    return {"_OVERFIT_COMPLETE": "complete_bash", **asked}


def in_bash(*words: str, cwd: Path) -> list[str]:
    """What bash is told of these words."""
    with mock.patch.dict(os.environ, asked_in_bash(*words)):
        done = call(cwd=cwd)
    assert done.stderr == ""
    return done.stdout.split()


COMPLETED: list[tuple[str, list[str]]] = [
    ("swe", ["sweep"]),
    ("sweep kernel-te", ["kernel-text"]),
    ("--version swe", ["sweep"]),
    ("--help swe", ["sweep"]),
    ("sweep nothing-like-it", []),
    # Parameters
    ("sweep kernel-text --le", ["--learning_rate"]),
    ("sweep --sn", ["--snr"]),
    ("sweep softmax-convergence --dat", ["--data"]),
    ("sweep toy --n 1:3 --p", ["--profile", "--pause"]),
    # Choices of overfit's own options
    ("sweep fig1 --profile ", ["quick", "paper"]),
    ("sweep toy --backend t", ["threading"]),
    ("export results/bad --to ", ["csv", "parquet", "latex"]),
    ("list pr", ["presets"]),
    ("runs ", ["results/bad", "results/toy-10"]),
    ("list claims to", ["toy"]),
    ("list claims toy ", []),
    # Figures, papers and runs
    ("plot learning", ["learning-rates"]),
    ("reproduce jiang2024/fig1-b", ["jiang2024/fig1-balanced"]),
    ("plot lines --from ", ["results/bad", "results/toy-10"]),
    ("plot lines --from results/bad --from results/t", ["results/toy-10"]),
    ("compact results/", ["results/bad", "results/toy-10"]),
    ("merge results/bad results/t", ["results/toy-10"]),
    # Where something is wrong, nothing is offered
    ("sweep nowhere.py --sn", []),
    ("sweep toy --nothing ", []),
    ("compact 'open", []),
]


@pytest.mark.parametrize(("line", "words"), COMPLETED)
def test_a_command_line_is_completed(line: str, words: list[str], swept: Path) -> None:
    assert in_bash(*line.split(" "), cwd=swept) == words


def test_a_study_that_cannot_be_loaded_or_that_prints_disturbs_nobody(
    install: Callable[..., None], tmp_path: Path
) -> None:
    install({"loud": "loud:study"}, loud="print('LOUD')\nraise SystemExit('no')\n")
    [info] = tmp_path.glob("*.dist-info")
    assert in_bash("sweep", "lo", cwd=info) == ["loud"]
    assert in_bash("sweep", "loud", "--n", cwd=info) == []
    figures = in_bash("plot", "", cwd=info)
    assert "heatmap" in figures and "LOUD" not in figures


@pytest.mark.slow
@pytest.mark.parametrize("line", ["train multihead-sst2 --n", "reproduce ", "plot --from "])
def test_completing_imports_nothing_heavy(line: str, swept: Path) -> None:
    timed = ("-X", "importtime", "-m", "overfit_cli")
    done = python(*timed, cwd=swept, env=asked_in_bash(*line.split(" ")))
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "typer" in imported and not imported & {"torch", "pandas", "matplotlib", "scipy"}


@pytest.mark.unix
def test_completion_is_installed_for_the_shell_in_use(tmp_path: Path) -> None:
    command = tmp_path / "overfit"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m overfit_cli "$@"\n')
    command.chmod(0o755)
    script = ["bash", "-c", "overfit --install-completion; exit $?"]
    for home, code in ((tmp_path, 0), (command, 1)):
        env = environment(PATH=f"{tmp_path}{os.pathsep}{os.environ['PATH']}", HOME=str(home))
        done = subprocess.run(script, env=env, cwd=tmp_path, capture_output=True, check=False)
        assert done.returncode == code
    assert done.stderr.decode().endswith("overfit can't be read or written (File exists).\n")
    assert "complete_bash" in (tmp_path / ".bash_completions" / "overfit.sh").read_text()


@pytest.mark.slow
def test_zsh_and_fish_are_told_words_with_their_meanings(swept: Path) -> None:
    for shell, line, told in (
        ("zsh", "--pau", """_arguments '*: :(("--pause":"time a cell takes"))'\n"""),
        ("zsh", "zzz", "_files\n"),
        ("fish", "--pau", "--pause\ttime a cell takes\n"),
    ):
        how = {"_TYPER_COMPLETE_FISH_ACTION": "get-args"}
        asked = {"_OVERFIT_COMPLETE": f"complete_{shell}", **how}
        asked["_TYPER_COMPLETE_ARGS"] = f"overfit sweep toy {line}"
        done = python("-m", "overfit_cli", cwd=swept, env=asked)
        assert (done.stdout, done.stderr) == (told, "")


# Run directories


@pytest.fixture
def copied(swept: Path, tmp_path: Path) -> Path:
    """A copy of it, to be changed."""
    return Path(shutil.copytree(swept, tmp_path / "copy"))


def test_each_run_has_a_line(swept: Path) -> None:
    lines = said("runs", swept).splitlines()
    assert [" ".join(re.sub(r"\d+ min ago", "now", line).split()) for line in lines[:-1]] == [
        "run directory study cells state age",
        "results/bad mine:train 22/30 8 failed now",
        "results/toy-10 toy 6 complete now",
    ]
    assert lines[-1] == "2 run directories; `overfit runs RUN` shows one in full."
    [failed] = said("runs --failed", swept).splitlines()[1:-1]
    assert failed.split()[0] == "results/bad"
    proposed = re.findall(r"^Next: overfit (.*)$", said("runs results/bad", swept), re.MULTILINE)
    of_run = ("runs {} --failed", "plot heatmap --from {}", "judge {}")
    assert proposed == [each.format("results/bad") for each in of_run], "of its own claims"


def test_where_cells_are_missing_the_command_trains_them(copied: Path) -> None:
    run = copied / "results" / "toy-10"
    for part in [*run.glob("*/*.parquet")]:
        part.unlink()
    line, empty, following = said("runs results/toy-10", copied).splitlines()
    assert line.startswith("results/toy-10: toy, cells: 0/6, 6 missing, ")
    assert empty.startswith("It holds no cells")
    words = shlex.split(following.removeprefix("Next: overfit "))
    assert words[-2:] == ["--out", "results/toy-10"]
    call(*words, cwd=copied)
    again = said("runs results/toy-10", copied)
    assert again.startswith("results/toy-10: toy, cells: 6, complete, ")


def test_only_run_directories_are_listed_and_damage_is_counted(copied: Path) -> None:
    results = copied / "results"
    for name in ("empty/cells", "foreign/cells", "other"):
        (results / name).mkdir(parents=True)
    (results / "foreign" / "cells" / "a.parquet").write_text("not ours")
    (results / "other" / "manifest.json").write_text("{}")
    for part in (results / "bad" / "cells").glob("*.parquet"):
        part.write_bytes(part.read_bytes()[:100])
    lines = said("runs", copied).splitlines()
    assert [line.split()[0] for line in lines[1:-1]] == ["results/bad", "results/toy-10"]
    assert re.search(r" 0/30 +30 missing, \d+ files? left out", lines[1])
    (results / "toy-10" / "manifest.json").unlink()
    unknown = r"results/toy-10: toy, cells: 6, planned cells unknown, \d+ min ago\n"
    assert re.match(unknown, said("runs results/toy-10", copied))


def test_a_folder_without_runs_says_what_makes_them(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for command, where in (("runs", "results"), ("runs empty", "empty")):
        none = f"{where} holds no run directory; `overfit sweep` makes them.\n"
        assert said(command, tmp_path) == none


def test_programs_read_the_list_as_json_or_as_a_frame(swept: Path) -> None:
    bad, toy = json.loads(said("runs --json=-", swept))
    assert (bad["done"], bad["failed"], bad["missing"], toy["planned"]) == (22, 8, 0, 6)
    assert bad["axes"] == {"n": [1, 2, 3, 4, 5], "rate": [0.1, 0.2]}
    age = datetime.now(UTC) - datetime.fromisoformat(toy["written"])
    assert 0 <= age.total_seconds() < 600
    assert json.loads(said("runs results/toy-10 --json=-", swept)) == toy
    frame = overfit_cli.runs(swept / "results")
    assert [*zip(frame["study"], frame["failed"], strict=True)] == [("mine:train", 8), ("toy", 0)]
    assert overfit_cli.runs(swept / "results" / "toy-10")["missing"].tolist() == [0]
    with pytest.raises(overfit_cli.UserError, match="No such file"):
        overfit_cli.runs(swept / "none")


def test_a_run_is_described_with_its_paper_settings_commands_and_next_commands() -> None:
    described = said("runs results/fig1-quick", ROOT)
    assert described.startswith("results/fig1-quick: benign-vit, cells: 18240, complete, ")
    for words in (
        "Paper: Jiang et al. 2024: Unveil Benign Overfitting",
        "Cells: 18240 cells done; seeds 1000 to 1039. Axes: N (n) 19 values from 2 to 20; ",
        "Settings: benign-vit (Jiang et al. 2024), version ",
        "Command: overfit sweep fig1",
        "Figures in results/fig1-quick/figures: ",
        "Next: overfit plot heatmap --from results/fig1-quick",
        "Next: overfit report results/fig1-quick",
    ):
        assert f"\n{words}" in described


def test_failed_cells_are_shown_by_kind_with_the_command_that_repeats_one(copied: Path) -> None:
    words = said("runs results/bad --failed", copied)
    raised, diverged = re.findall(r"^(\d cells: .*)$", words, re.MULTILINE)
    assert re.fullmatch(r"6 cells: error: ValueError: n 3 is no good for \d, and similar", raised)
    assert diverged.startswith("2 cells: diverged")
    assert "  seeds 0 to 2; n = 3; rate = 0.1, 0.2\n" in words
    assert "  seed 1; n = 4; rate = 0.1, 0.2\n" in words
    assert "  mine.py:7 in train: raise ValueError" in words
    repeats = re.findall(r"^  Repeat one: overfit (.*)$", words, re.MULTILINE)
    assert "--set n=4" in repeats[1]
    for command in repeats:
        again = call(*shlex.split(command), cwd=copied, expect=1)
        assert "The cell failed: " in again.stderr
    [retry] = re.findall(r"^Next: overfit (.*)$", words, re.MULTILINE)
    assert "--retry-failed" in retry and "8 to run" in said(retry, copied, 1)
    none = said("runs results/toy-10 --failed", copied)
    assert none.splitlines()[1:] == ["No cell failed."]


def test_an_age_has_one_unit() -> None:
    told = ["0 min ago", "1 min ago", "2 h ago", "24 h ago", "40 days ago"]
    assert [ago(seconds) for seconds in (20, 70, 7000, 86400, 40 * 86400)] == told


@pytest.mark.slow
def test_runs_are_listed_and_shown_without_torch(swept: Path) -> None:
    check_imports(["runs"], ["torch", "scipy", "matplotlib"], swept)
    check_imports(["runs results/toy-10", "runs results/toy-10 --failed"], ["torch"], swept)
