"""Lists of commands, options, studies and claims, and completion of them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest

from overfit_cli.cli.app import app
from overfit_cli.core.registry import claims_of, figures_of, find_study, installed_studies
from overfit_cli.sweeps.presets import all_presets
from tests.command import call, environment, python
from tests.screen import shown
from tests.terminal import on_a_terminal

ROOT = Path(__file__).parents[2]


def test_studies_are_one_screen_with_how_much_each_has(tmp_path: Path) -> None:
    code, stream = on_a_terminal("list", cwd=tmp_path)
    lines = shown(stream.rstrip())
    assert code == 0
    assert len(lines) <= 42
    assert max(map(len, lines)) <= 80
    assert "…" not in stream
    words = " ".join(" ".join(lines).split())
    assert all(study.title in words for study in installed_studies())
    [line] = [line for line in lines if line.startswith("  softmax-diffusion ")]
    study = find_study("softmax-diffusion")
    counts = (len(presets_of(study.name)), len(figures_of(study)), len(claims_of(study)))
    assert tuple(map(int, re.findall(r" (\d+) ", line))) == counts


def presets_of(study: str) -> list[str]:
    """The names of a study's presets."""
    return [preset.name for preset in all_presets() if preset.study == study]


def test_a_study_is_listed_with_its_presets_figures_and_claims(tmp_path: Path) -> None:
    said = call("list", "multihead-paths", cwd=tmp_path).stdout.splitlines()
    study = find_study("multihead-paths")
    names = [line.split()[0] for line in said if line.startswith(" ")]
    assert names[: len(presets_of(study.name))] == presets_of(study.name)
    assert {*figures_of(study)} <= {*names}
    for column in (*study.columns, *study.trajectory_columns):
        assert any(line.split()[:1] == [column.name] and column.meaning in line for line in said)
    parameter = r"\n +n +training samples, N +≥ 1, ≤ 100000 +20\b"
    assert re.search(parameter, call("list", "benign-vit", cwd=tmp_path).stdout)
    assert f"Claims ({len(claims_of(study))})" in said
    assert {claim.name for claim in claims_of(study)} <= {*names}


@pytest.mark.parametrize("words", [("presets",), ("figures",), ("claims",), ("kernel-regression",)])
def test_on_a_terminal_no_line_is_longer_than_it_is_wide_and_no_word_is_lost(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = call("list", *words, cwd=ROOT).stdout
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes the stream for a terminal
    folded = call("list", *words, cwd=ROOT).stdout
    assert sorted(folded.split()) == sorted(whole.split()), "columns of a table fold each by itself"
    assert max(len(line.rstrip()) for line in folded.splitlines()) <= 80


def test_claims_of_one_study_are_listed_in_full(tmp_path: Path) -> None:
    shown = call("list", "claims", "kernel-landscape", cwd=tmp_path).stdout
    assert max(map(len, shown.splitlines())) <= 80
    words = " ".join(shown.split())
    claims = claims_of(find_study("kernel-landscape"))
    assert len(claims) == 4
    for claim in claims:
        assert f"{claim.name} {claim.statement}" in words
        assert f"holds where: {claim.holds_where}" in words
        assert f"preset: {claim.preset}" in words
    assert "fig1-contour" not in shown


def test_claims_of_a_function_are_listed_by_its_file_or_its_module(tmp_path: Path) -> None:
    text = "from overfit_cli import experiment\n@experiment(claims=['low: loss < 2 where n > 1'])\n"
    (tmp_path / "of_a_user.py").write_text(text + "def train(n: int = 1): return {'loss': n}\n")
    (tmp_path / "without.py").write_text("def train(n: int = 1): return {'loss': n}\n")
    for name in ("of_a_user.py", "of_a_user:train"):
        shown = call("list", "claims", name, cwd=tmp_path).stdout.splitlines()
        assert shown[:2] == ["low", "  loss < 2 where n > 1"]
    said = call("list", "claims", "without.py", cwd=tmp_path).stdout
    assert said == "without:train has no claims.\n"
    shown_all = call("list", "of_a_user.py", cwd=tmp_path).stdout.splitlines()
    assert shown_all[0] == "of_a_user:train"
    assert "Claims (1)" in shown_all
    assert " low  loss < 2 where n > 1" in shown_all


# Commands

OPTIONS = {
    "sweep": "set together only seeds profile out data jobs backend address shard device "
    "trajectories dry-run fresh retry-failed fail-fast time-limit refine threshold claim",
    "train": "set seed out data device",
    "plot": "from out x y value by where threshold law theory log mean band minus size style",
    "judge": "where strict json out",
    "report": "out where only strict expect details",
    "compare": "value where where-a where-b tolerance out json",
    "reproduce": "profile jobs backend address device data strict expect dry-run",
    "export": "to out means columns where trajectories",
    "runs": "json failed",
    "list": "",
    "merge": "out",
    "compact": "",
    "verify": "from redraw",
}


def test_there_are_these_commands_and_the_help_names_them(tmp_path: Path) -> None:
    commands = [each for each in app.registered_commands if each.callback]
    names = [each.name or each.callback.__name__ for each in commands if each.callback]
    assert sorted(names) == sorted(OPTIONS), "each further one is a decision"
    shown = call(cwd=tmp_path).stdout
    assert shown == call("-h", cwd=tmp_path).stdout == call("--help", cwd=tmp_path).stdout
    assert all(f"\n  {name} " in shown for name in names)


@pytest.mark.parametrize("command", OPTIONS)
def test_a_command_has_these_options(command: str, tmp_path: Path) -> None:
    shown = call(command, "--help", cwd=tmp_path).stdout
    assert shown == call(command, "-h", cwd=tmp_path).stdout
    listed = shown.split("Parameters of")[0]
    options = re.findall(r"^  (?:-\w, )?--([\w-]+)", listed, re.MULTILINE)
    assert sorted({*options} - {"help"}) == sorted(OPTIONS[command].split())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two runs in `results/`, of which `grid` was written last."""
    folder = tmp_path_factory.mktemp("completion")
    sweep = ("sweep", "toy", "--seeds=2", "--jobs=1", "--n=1:3")
    call(*sweep, "--snr=1:2:2", "--out=results/grid", cwd=folder)
    call(*sweep, "--mood=well,diverges", "--out=results/moods", cwd=folder, expect=1)
    later = time.time() + 9
    os.utime(folder / "results" / "grid" / "cells", (later, later))
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
    ("sweep nothing-like-it", []),
    # Parameters
    ("sweep kernel-text --le", ["--learning_rate"]),
    ("sweep --sn", ["--snr"]),
    ("sweep softmax-convergence --dat", ["--data"]),
    ("sweep toy --n 1:3 --p", ["--profile", "--pause"]),
    # Choices of overfit's own options
    ("sweep fig1 --profile ", ["quick", "paper"]),
    ("sweep toy --backend t", ["threading"]),
    ("export results/grid --to ", ["csv", "parquet", "latex"]),
    ("list pr", ["presets"]),
    ("runs ", ["results/grid", "results/moods"]),
    ("list claims to", ["toy"]),
    ("list claims toy ", []),
    # Figures, papers and runs
    ("plot learning", ["learning-rates"]),
    ("reproduce jiang2024/fig1-b", ["jiang2024/fig1-balanced"]),
    ("plot lines --from ", ["results/grid", "results/moods"]),
    ("plot lines --from results/grid --from results/m", ["results/moods"]),
    ("compact results/", ["results/grid", "results/moods"]),
    ("merge results/grid results/m", ["results/moods"]),
    # Where something is wrong, nothing is offered
    ("sweep nowhere.py --sn", []),
    ("sweep toy --nothing ", []),
    ("compact 'open", []),
]


@pytest.mark.parametrize(("line", "words"), COMPLETED)
def test_a_command_line_is_completed(line: str, words: list[str], folder: Path) -> None:
    assert in_bash(*line.split(" "), cwd=folder) == words


def test_behind_a_study_its_parameters_are_offered(folder: Path) -> None:
    parameters = {f"--{name}" for name in find_study("toy").parameters.model_fields}
    assert parameters <= set(in_bash("sweep", "toy", "--", cwd=folder))
    assert {"toy", "fig1", "kernel-text"} <= set(in_bash("sweep", "", cwd=folder))


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_an_option_that_prints_and_ends_is_not_run(option: str, folder: Path) -> None:
    assert "sweep" in in_bash(option, "", cwd=folder)


def test_a_study_that_cannot_be_loaded_or_that_prints_disturbs_nobody(
    install: Callable[..., None], tmp_path: Path
) -> None:
    install({"loud": "loud:study"}, loud="print('LOUD')\nraise SystemExit('no')\n")
    [info] = tmp_path.glob("*.dist-info")
    assert in_bash("sweep", "lo", cwd=info) == ["loud"]
    assert in_bash("sweep", "loud", "--n", cwd=info) == []
    figures = in_bash("plot", "", cwd=info)
    assert "heatmap" in figures
    assert "LOUD" not in figures


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    ["sweep kernel-text --le", "train multihead-sst2 --n", "reproduce ", "plot h", "plot --from "],
)
def test_completing_imports_nothing_heavy(line: str, folder: Path) -> None:
    timed = ("-X", "importtime", "-m", "overfit_cli")
    done = python(*timed, cwd=folder, env=asked_in_bash(*line.split(" ")))
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "typer" in imported
    assert not imported & {"torch", "pandas", "matplotlib", "scipy"}


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
@pytest.mark.parametrize(
    ("shell", "line", "told"),
    [
        ("zsh", "--pau", """_arguments '*: :(("--pause":"time a cell takes"))'\n"""),
        ("zsh", "zzz", "_files\n"),
        ("fish", "--pau", "--pause\ttime a cell takes\n"),
    ],
)
def test_zsh_and_fish_are_told_words_with_their_meanings(
    shell: str, line: str, told: str, folder: Path
) -> None:
    asked = {"_OVERFIT_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    asked["_TYPER_COMPLETE_ARGS"] = f"overfit sweep toy {line}"
    done = python("-m", "overfit_cli", cwd=folder, env=asked)
    assert (done.stdout, done.stderr) == (told, "")
