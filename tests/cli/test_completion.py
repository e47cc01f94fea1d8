"""Completion of command lines, asked as shells ask: by the environment of a process."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from unittest import mock

import pytest

from overfit_cli.core.registry import find_study
from tests.command import call, environment

FUNCTION = """
from typing import Literal

raise RuntimeError("completing runs no code of the user's")

def helper(x): ...

def train(width: int = 8, *, depth: int = 1, seed: int = 0): ...
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with runs in `results/` and elsewhere, and a file that can't be run."""
    folder = tmp_path_factory.mktemp("completion")
    one = ("--seeds=2", "--jobs=1", "--snr=1:2:2")
    call("sweep", "toy", *one, "--n=1:3", "--out=results/grid", cwd=folder)
    call("train", "toy", "--n=2", "--out=other/my run", cwd=folder)
    (folder / "small.py").write_text(
        "def train(a: int = 1, b: bool = True):\n    return {'c': a}\n"
    )
    call("sweep", "small.py", "--a=1:2", "--jobs=1", "--out=results/small", cwd=folder)
    later = time.time() + 9
    os.utime(folder / "results" / "grid" / "cells", (later, later))  # the one written last
    (folder / "mine.py").write_text(FUNCTION)
    (folder / "results" / "report").mkdir()
    return folder


def in_bash(*words: str, cwd: Path) -> list[str]:
    """What bash is told when the cursor stands behind the last of these words."""
    asked = {"COMP_WORDS": "\n".join(["overfit", *words]), "COMP_CWORD": str(len(words))}
    with mock.patch.dict(os.environ, {"_OVERFIT_COMPLETE": "complete_bash", **asked}):
        done = call(cwd=cwd)
    assert done.stderr == ""
    return done.stdout.splitlines()


def in_another_shell(shell: str, line: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """What zsh or fish is told of a line, by a process of its own, which says nothing else."""
    asked = {"_OVERFIT_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_ARGS": line}
    done = subprocess.run(
        [sys.executable, "-m", "overfit_cli"],
        env=environment(_TYPER_COMPLETE_FISH_ACTION="get-args", **asked),
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return done


# What is run


def test_commands_studies_presets_and_files_are_completed(folder: Path) -> None:
    assert in_bash("swe", cwd=folder) == ["sweep"]
    assert in_bash("sweep", "kernel-t", cwd=folder) == [
        "kernel-text",
        "kernel-theorem1",
        "kernel-theorem2",
        "kernel-theorem3",
    ]
    assert in_bash("train", "mi", cwd=folder) == ["mine.py"]
    assert {"toy", "fig1", "mine.py"} <= set(in_bash("sweep", "", cwd=folder))
    assert in_bash("sweep", "nothing-like-it", cwd=folder) == []


def test_the_parameters_of_a_study_or_a_preset_are_options(folder: Path) -> None:
    assert in_bash("sweep", "kernel-text", "--le", cwd=folder) == ["--learning_rate"]
    assert in_bash("sweep", "kernel-text", "--learning-", cwd=folder) == ["--learning-rate"]
    assert in_bash("train", "kernel-fig3", "--contour", cwd=folder) == ["--contour_length"]
    assert in_bash("sweep", "--sn", cwd=folder) == ["--snr"]  # benign-vit is meant
    assert in_bash("sweep", "toy", "--n", "1:3", "--", cwd=folder)[-3:] == [
        "--snr",
        "--pause",
        "--mood",
    ]
    parameters = find_study("toy").parameters.model_fields
    assert in_bash("sweep", "toy", "", cwd=folder) == [f"--{name}" for name in parameters]


def test_parameters_that_an_option_hides_are_settings_alone(folder: Path) -> None:
    assert in_bash("sweep", "softmax-convergence", "--dat", cwd=folder) == ["--data"]
    assert in_bash("sweep", "softmax-convergence", "--set", "dat", cwd=folder)[:2] == [
        "data=",
        "data=sphere",
    ]


def test_a_functions_arguments_are_read_and_its_file_is_not_run(folder: Path) -> None:
    assert in_bash("sweep", "mine.py", "--", cwd=folder)[-2:] == ["--width", "--depth"]
    assert in_bash("sweep", "mine.py", ":", "helper", "--x", cwd=folder) == ["--x"]


def test_values_that_are_words_are_completed(folder: Path) -> None:
    assert in_bash("sweep", "toy", "--mood", "di", cwd=folder) == ["diverges"]
    assert in_bash("sweep", "toy", "--mood", "=", "di", cwd=folder) == ["diverges"]
    assert in_bash("sweep", "toy", "--mood", "=", cwd=folder)[:2] == ["well", "raises"]
    assert in_bash("sweep", "toy", "--mood", "well,di", cwd=folder) == ["well,diverges"]
    assert in_bash("sweep", "toy", "--n", "2", ":", "", cwd=folder) == []
    assert in_bash("sweep", "fig1", "--profile", "", cwd=folder) == ["quick", "paper"]
    assert in_bash("sweep", "toy", "--backend", "=", "th", cwd=folder) == ["threading"]
    assert in_bash("train", "toy", "--device", "c", cwd=folder) == ["cpu", "cuda"]


def test_settings_are_completed_as_names_and_values(folder: Path) -> None:
    assert in_bash("sweep", "toy", "--set", "", cwd=folder) == ["n=", "snr=", "pause=", "mood="]
    assert in_bash("sweep", "toy", "--set", "sn", cwd=folder) == ["snr=", "snr=1.0"]
    # bash has `mood`, `=` and `kills` for words, and puts in place of the last
    assert in_bash("sweep", "toy", "--set", "mood", "=", "kills", cwd=folder) == [
        "kills",
        "kills-once",
    ]


def test_a_parameter_that_is_called_by_its_symbol_is_completed_as_by_its_name(folder: Path) -> None:
    assert in_bash("sweep", "toy", "--N", "2", "--", cwd=folder)[-3:] == [
        "--snr",
        "--pause",
        "--mood",
    ]
    assert in_bash("sweep", "toy", "--set", "N", cwd=folder) == ["N=", "N=4"]
    assert in_bash("sweep", "toy", "--set", "N", "=", cwd=folder) == ["4"]
    assert in_bash("sweep", "benign-vit", "--set", "SNR", "=", "1", cwd=folder) == ["10.0"]
    where = ("export", "results/grid", "--where", "N")
    assert in_bash(*where, cwd=folder) == ["N=", "N=1", "N=2", "N=3"]
    assert in_bash(*where, "=", "1,", cwd=folder) == ["1,2", "1,3"]
    assert in_bash("sweep", "toy", "--N", "", cwd=folder) == []
    assert in_bash("sweep", "toy", "--set", "Q", "=", cwd=folder) == []


# What is drawn and read


def test_figures_are_those_of_all_studies_or_of_the_run_that_is_named(folder: Path) -> None:
    assert in_bash("plot", "learning", cwd=folder) == ["learning-rates"]
    assert in_bash("plot", "--from", "results/grid", "", cwd=folder) == [
        "heatmap",
        "curves",
        "cutoff",
        "boundary",
        "lines",
    ]
    assert in_bash("plot", "--from", "results/grid", "learning", cwd=folder) == []


def test_run_directories_are_completed_in_results_and_where_one_types(folder: Path) -> None:
    runs = ["results/grid", "results/small"]
    for words in (
        ("plot", "lines", "--from"),
        ("plot", "lines", "--from", "results/grid", "--from"),
        ("plot", "lines", "--minus"),
        ("report", "--from"),
        ("compact",),
        ("export",),
    ):
        assert in_bash(*words, "", cwd=folder) == runs
        assert in_bash(*words, "results/g", cwd=folder) == ["results/grid"]
    assert in_bash("plot", "lines", "--from", "=", "res", cwd=folder) == runs
    assert in_bash("compact", "gr", cwd=folder / "results") == ["grid"]
    assert in_bash("compact", "../results/s", cwd=folder / "other") == ["../results/small"]
    assert in_bash("compact", "other/", cwd=folder) == [r"other/my\ run"]
    assert in_bash("compact", r"other/my\ r", cwd=folder) == [r"other/my\ run"]


def test_axes_and_columns_are_those_of_the_run(folder: Path) -> None:
    named = ("--from", "results/small")
    assert in_bash("plot", "lines", "--x", "", cwd=folder) == ["n", "snr"]  # of the newest
    assert in_bash("plot", "lines", *named, "--by", "", cwd=folder) == ["a"]
    assert in_bash("plot", "lines", "--value", "", cwd=folder) == [
        "test_loss",
        "draw",
        "steps",
        "seconds",
    ]
    assert in_bash("plot", "lines", *named, "--value", "", cwd=folder) == ["steps", "seconds", "c"]
    assert in_bash("plot", "curves", "--value", "t", cwd=folder) == ["train_loss"]
    assert in_bash("export", "results/grid", "--columns", "n,te", cwd=folder) == ["n,test_loss"]
    logged = ("export", "results/grid", "--trajectories", "--columns")
    assert in_bash(*logged, "t", cwd=folder) == ["train_loss"]


def test_conditions_are_completed_by_the_values_that_are_there(folder: Path) -> None:
    assert in_bash("plot", "lines", "--where", "", cwd=folder) == [
        *("n=", "snr=", "pause=", "mood=", "seed=")
    ]
    assert in_bash("plot", "lines", "--where", "snr", cwd=folder) == ["snr=", "snr=1.0", "snr=2.0"]
    where = ("export", "results/grid", "--where", "n", "=")
    assert in_bash(*where, cwd=folder) == ["1", "2", "3"]
    assert in_bash(*where, "1,", cwd=folder) == ["1,2", "1,3"]
    assert in_bash("report", "--where", "seed", "=", cwd=folder) == ["0", "1"]
    of_function = ("plot", "lines", "--from", "results/small", "--where", "b", "=")
    assert in_bash(*of_function, cwd=folder) == ["true", "false"]  # it wasn't set


def test_lists_are_completed(folder: Path) -> None:
    assert in_bash("list", "", cwd=folder) == ["studies", "presets", "figures", "claims"]
    assert in_bash("list", "claims", "to", cwd=folder) == ["toy"]


# Whatever happens


@pytest.mark.parametrize(
    "words",
    [
        ("sweep", "broken.toml", "--"),
        ("sweep", "broken.py", "--"),
        ("sweep", "nowhere.py", "--"),
        ("sweep", "toy", "--nothing", ""),
        ("sweep", "toy", "--seeds", "1", "--seeds", ""),
        ("plot", "--from", "results/damaged", ""),
        ("plot", "lines", "--from", "results/damaged", "--x", ""),
        ("plot", "lines", "--from", "results/foreign", "--where", ""),
        ("plot", "lines", "--from", "nowhere", "--value", ""),
        ("export", "results/foreign", "--columns", ""),
        ("compact", "\udcff"),
        ("compact", "x" * 5000 + "/"),
        ("compact", "'open"),
        ("list", "claims", "toy", ""),
    ],
)
def test_where_nothing_is_found_nothing_is_said(words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "broken.toml").write_text("title = [")
    (tmp_path / "broken.py").write_text("def train(:")
    for name, manifest in (("damaged", "{"), ("foreign", '{"study": "nobody\'s", "runs": []}')):
        (tmp_path / "results" / name / "cells").mkdir(parents=True)
        (tmp_path / "results" / name / "manifest.json").write_text(manifest)
    own = ("--set", "--seeds", "--profile", "--out", "--data", "--jobs")
    assert [one for one in in_bash(*words, cwd=tmp_path) if not one.startswith("--")] == []
    assert in_bash("sweep", "broken.toml", "--", cwd=tmp_path)[: len(own)] == list(own)


def test_a_file_called_results_is_no_folder_of_runs(tmp_path: Path) -> None:
    (tmp_path / "results").touch()
    assert in_bash("compact", "", cwd=tmp_path) == []
    assert in_bash("plot", "lines", "--x", "", cwd=tmp_path) == []


def test_a_study_that_cannot_be_loaded_or_that_prints_disturbs_nobody(installed_here: Path) -> None:
    info = installed_here / "loud-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: loud\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text("[overfit.studies]\nloud = loud:study\n")
    (installed_here / "loud.py").write_text("print('LOUD')\nraise SystemExit('no')\n")
    assert in_bash("sweep", "lo", cwd=info) == ["loud"]
    assert in_bash("sweep", "loud", "--n", cwd=info) == []
    assert "heatmap" in in_bash("plot", "", cwd=info)
    assert "LOUD" not in in_bash("plot", "", cwd=info)


def test_an_option_that_prints_and_ends_is_not_run(folder: Path) -> None:
    assert "sweep" in in_bash("--version", "", cwd=folder)
    assert "sweep" in in_bash("--help", "", cwd=folder)


def test_completing_imports_no_torch(folder: Path) -> None:
    script = """
import os, sys
from overfit_cli.cli.app import main
for words in {lines!r}:
    os.environ.update(COMP_WORDS="\\n".join(["overfit", *words]), COMP_CWORD=str(len(words)))
    try:
        main()
    except SystemExit as ended:
        assert not ended.code, words
heavy = [name for name in ("torch", "pandas", "matplotlib", "scipy") if name in sys.modules]
assert not heavy, heavy
"""
    lines = [
        ["sweep", "kernel-text", "--le"],
        ["train", "multihead-sst2", "--set", "n"],
        ["plot", "h"],
        ["plot", "lines", "--value", ""],
        ["plot", "lines", "--where", ""],
        ["export", "results/small", "--columns", ""],
    ]
    done = subprocess.run(
        [sys.executable, "-c", script.format(lines=lines)],
        env=environment(_OVERFIT_COMPLETE="complete_bash"),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


# The shells themselves


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder with a command `overfit`."""
    command = tmp_path / "overfit"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m overfit_cli "$@"\n')
    command.chmod(0o755)
    return tmp_path


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_bash_itself_completes_with_what_the_command_shows(folder: Path, installed: Path) -> None:
    script = """
source <(overfit --show-completion)
ask() {
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    _overfit_completion overfit
    printf '<%s>' "${COMPREPLY[@]}"
}
ask overfit sweep kernel-text --le
ask overfit plot heatmap --from = results/g
ask overfit compact other/
ask overfit export results/grid --where snr = ''
"""
    path = f"{installed}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script],
        env=environment(PATH=path),
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == r"<--learning_rate><results/grid><other/my\ run><1.0><2.0>"
    assert done.stderr == ""


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_completion_is_installed_for_the_shell_that_one_uses(installed: Path) -> None:
    path = f"{installed}{os.pathsep}{os.environ['PATH']}"
    install = ["bash", "-c", "overfit --install-completion; exit $?"]
    for home in (installed, installed / "overfit"):
        done = subprocess.run(
            install,
            env=environment(PATH=path, HOME=str(home)),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == int(home != installed)
    assert done.stderr.startswith(f"overfit: --install-completion: {installed}/overfit")
    assert done.stderr.endswith("can't be written (File exists).\n")
    assert "complete_bash" in (installed / ".bash_completions" / "overfit.sh").read_text()
    assert ".bash_completions/overfit.sh" in (installed / ".bashrc").read_text()


def test_zsh_is_told_words_with_their_meanings(folder: Path) -> None:
    done = in_another_shell("zsh", "overfit sweep toy --pa", folder)
    assert done.stdout == """_arguments '*: :(("--pause":"time a cell takes"))'\n"""
    joined = in_another_shell("zsh", "overfit sweep toy --mood=di", folder)
    assert joined.stdout == """_arguments '*: :(("--mood=diverges"))'\n"""
    assert in_another_shell("zsh", "overfit sweep zzz", folder).stdout == "_files\n"


def test_fish_is_told_words_with_their_meanings(folder: Path) -> None:
    done = in_another_shell("fish", "overfit sweep toy --pa", folder)
    assert done.stdout == "--pause\ttime a cell takes\n"
    joined = in_another_shell("fish", "overfit plot lines --from=results/g", folder)
    assert joined.stdout == "--from=results/grid\n"
    assert in_another_shell("fish", "overfit sweep zzz", folder).stdout == ""


def test_a_shell_that_is_unknown_is_told_nothing(folder: Path) -> None:
    done = in_another_shell("tcsh", "overfit sw", folder)
    assert (done.returncode, done.stdout) == (1, "")


def test_what_is_completed_can_be_typed(folder: Path) -> None:
    """A word of each kind that is offered is one that the command takes."""
    [value] = in_bash("plot", "lines", "--value", "dr", cwd=folder)
    [place] = in_bash("compact", "results/g", cwd=folder)
    *_, where = in_bash("plot", "lines", "--where", "sn", cwd=folder)
    words = ("plot", "lines", "--from", place, "--value", value, "--where", where, "--x", "n")
    assert "Drawn" in call(*words, "--out", "drawn.png", cwd=folder).stdout
    manifest = json.loads((folder / "results" / "grid" / "manifest.json").read_text())
    assert where == f"snr={manifest['runs'][0]['values']['snr'][-1]}"
