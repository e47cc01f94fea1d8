"""Completion of command lines, asked as shells ask: by the environment of a process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest

from overfit_cli.core.registry import find_study
from tests.command import call, environment, python


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
    ("train kernel-fig4", ["kernel-fig4", "kernel-fig4-pathfinder"]),
    ("sweep nothing-like-it", []),
    # Parameters
    ("sweep kernel-text --le", ["--learning_rate"]),
    ("train kernel-fig3 --contour", ["--contour_length"]),
    ("sweep --sn", ["--snr"]),
    ("sweep --n 5 --sn", ["--snr"]),
    ("sweep softmax-convergence --dat", ["--data"]),
    ("sweep toy --n 1:3 --p", ["--profile", "--pause"]),
    # Choices of overfit's own options
    ("sweep fig1 --profile ", ["quick", "paper"]),
    ("sweep toy --backend t", ["threading"]),
    ("train toy --device c", ["cpu", "cuda"]),
    ("export results/grid --to ", ["csv", "parquet", "latex"]),
    ("list pr", ["presets"]),
    ("list to", ["toy"]),
    ("runs ", ["results/grid", "results/moods"]),
    ("list claims to", ["toy"]),
    ("list claims toy ", []),
    # Figures, papers and runs
    ("plot learning", ["learning-rates"]),
    ("reproduce jiang2024/fig1-b", ["jiang2024/fig1-balanced"]),
    ("plot lines --from ", ["results/grid", "results/moods"]),
    ("plot lines --from results/grid --from results/m", ["results/moods"]),
    ("plot lines --minus results/g", ["results/grid"]),
    ("report results/g", ["results/grid"]),
    ("compact results/", ["results/grid", "results/moods"]),
    ("merge results/grid results/m", ["results/moods"]),
    ("compact nowhere/", []),
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


def test_runs_are_offered_from_the_users_results_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OVERFIT_RESULTS", "runs")
    (tmp_path / "runs" / "mine" / "cells").mkdir(parents=True)
    assert in_bash("plot", "lines", "--from", "", cwd=tmp_path) == ["runs/mine"]


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


@pytest.fixture
def bash(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a script in bash, with a folder first in its path that has the command `overfit`."""
    if shutil.which("bash") is None:
        pytest.skip("there is no bash here")
    command = tmp_path / "overfit"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m overfit_cli "$@"\n')
    command.chmod(0o755)

    def run(script: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
        env = environment(PATH=f"{tmp_path}{os.pathsep}{os.environ['PATH']}", **variables)
        words = ["bash", "-c", script]
        return subprocess.run(words, env=env, cwd=cwd, capture_output=True, text=True, check=False)

    return run


@pytest.mark.unix
def test_bash_itself_completes_with_what_the_command_shows(
    folder: Path, bash: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    script = """
source <(overfit --show-completion)
ask() {
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    _overfit_completion overfit
    printf '<%s>' "${COMPREPLY[@]}"
}
ask overfit sweep kernel-text --le
ask overfit plot heatmap --from results/g
"""
    done = bash(script, folder)
    assert (done.stdout, done.stderr) == ("<--learning_rate><results/grid>", "")


@pytest.mark.unix
def test_completion_is_installed_for_the_shell_in_use(
    tmp_path: Path, bash: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    install = "overfit --install-completion; exit $?"
    assert bash(install, tmp_path, HOME=str(tmp_path)).returncode == 0
    assert "complete_bash" in (tmp_path / ".bash_completions" / "overfit.sh").read_text()
    assert ".bash_completions/overfit.sh" in (tmp_path / ".bashrc").read_text()
    refused = bash(install, tmp_path, HOME=str(tmp_path / "overfit"))
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"overfit: {tmp_path}/overfit")
    assert refused.stderr.endswith("can't be read or written (File exists).\n")


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
