"""Defaults of the user: an option, then a variable, then pyproject.toml, then what is built in."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import overfit_cli
from overfit_cli import UserError
from overfit_cli.cli.settings import VARIABLES
from overfit_cli.core.text import shorten
from tests.command import call, run

pytestmark = pytest.mark.usefixtures("no_variables")
SWEEP = ("sweep", "toy", "--n=2", "--snr=1", "--seeds=1")


@pytest.fixture
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment in which the user sets nothing."""
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder below one with a pyproject.toml, to work in."""
    (tmp_path / "pyproject.toml").write_text(
        '[tool.overfit]\njobs = 1\nbackend = "threading"\nresults = "runs"\ndata = "data"\n'
    )
    (tmp_path / "data").mkdir()
    (tmp_path / "below").mkdir()
    return tmp_path / "below"


def settings_of(run_directory: Path) -> dict[str, object]:
    """The settings of the last run into a directory, as its manifest has them."""
    recorded: dict[str, object] = json.loads((run_directory / "manifest.json").read_text())["runs"][
        -1
    ]["settings"]
    return recorded


def test_a_sweep_takes_the_nearest_pyproject_of_a_parent(project: Path) -> None:
    said = call(*SWEEP, "--out=here", cwd=project)
    assert said.stderr == ""
    settings = settings_of(project / "here")
    assert (settings["jobs"], settings["backend"]) == (1, "threading")


def test_a_variable_comes_before_the_file_and_an_option_before_both(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OVERFIT_JOBS", "2")
    call(*SWEEP, "--out=here", cwd=project)
    assert settings_of(project / "here")["jobs"] == 2
    call(*SWEEP, "--out=there", "--jobs=1", cwd=project)
    assert settings_of(project / "there")["jobs"] == 1


def test_an_empty_variable_counts_as_none(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OVERFIT_JOBS", "")
    call(*SWEEP, "--out=here", cwd=project)
    assert settings_of(project / "here")["jobs"] == 1


def test_runs_lie_in_the_results_folder_seen_from_the_file(project: Path) -> None:
    call("train", "toy", "--n=2", cwd=project)
    assert [path.name for path in (project.parent / "runs").iterdir()] == ["toy-n2"]
    assert "toy-n2" in call("runs", cwd=project).stdout
    drawn = call("plot", "curves", cwd=project).stdout
    assert "From ../runs/toy-n2, the newest run directory that fits." in drawn


def test_python_reads_the_variable_of_the_results_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OVERFIT_RESULTS", str(tmp_path / "mine"))
    overfit_cli.sweep("toy", n=2, snr=1.0, seeds=1, jobs=1, quiet=True)
    assert len(overfit_cli.runs()) == 1


def test_the_data_folder_of_the_file_is_that_of_studies(project: Path) -> None:
    cell = ("train", "kernel-text", "--set", "source=imdb")
    said = call(*cell, cwd=project, expect=2).stderr
    folder = shorten(str(project.parent / "data"))
    assert said.startswith(f"overfit: --data {folder}: IMDb isn't there")


def test_a_style_sheet_of_the_file_colours_the_figures(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.overfit]\nstyle = "my.mplstyle"\n')
    (tmp_path / "my.mplstyle").write_text("figure.facecolor: 102030\n")
    call("train", "toy", "--n=2", "--out=here", cwd=tmp_path)
    call("plot", "curves", "--from=here", "--out=styled.svg", cwd=tmp_path)
    assert "#102030" in (tmp_path / "styled.svg").read_text()


def test_help_shows_the_default_in_force_and_where_it_is_set(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OVERFIT_JOBS", "7")
    shown = " ".join(call("sweep", "toy", "--help", cwd=project).stdout.split())
    assert "one per core, or all workers. [default: 7]" in shown
    assert "or a cluster. [default: threading]" in shown
    assert "Run directory. [default: ../runs/NAME]" in shown
    assert "Folder of real data. [default: ../data]" in shown
    assert (
        "Your defaults: backend threading (../pyproject.toml), data ../data (../pyproject.toml), "
        "jobs 7 (OVERFIT_JOBS), results ../runs (../pyproject.toml)."
    ) in shown


def test_help_is_as_ever_without_defaults_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "other"\n')
    shown = call("runs", "--help", cwd=tmp_path).stdout
    assert "[default: results]" in shown
    assert "Your defaults" not in shown


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ("job = 2", "[tool.overfit] has no key 'job'; did you mean 'jobs'?"),
        (
            'jobs = "two"',
            "[tool.overfit] jobs = 'two': it takes a whole number of at least 1, or -1 for one "
            "per core.",
        ),
        ("jobs = true", "[tool.overfit] jobs = true: it takes a whole number of at least 1"),
        (
            'backend = "slurm"',
            "[tool.overfit] backend = 'slurm': it takes loky, threading, dask or ray.",
        ),
        ('results = " "', "[tool.overfit] results = ' ': give a path."),
        ("data = 3", "[tool.overfit] data = 3: it takes a path."),
        ('data = "gone"', "[tool.overfit] data = 'gone': there is no such folder or file."),
        ('results = "pyproject.toml"', "pyproject.toml is a file; a directory is needed."),
        ('style = "gone.mplstyle"', "style = 'gone.mplstyle': there is no such file"),
        ("jobs =", "it can't be read as TOML: "),
    ],
)
def test_what_the_file_has_wrong_is_a_sentence_that_names_it(
    table: str, sentence: str, tmp_path: Path
) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[tool.overfit]\n{table}\n")
    said = call("runs", cwd=tmp_path, expect=2).stderr
    assert said.startswith("overfit: pyproject.toml: ")
    assert sentence in said
    assert said.count("\n") == 1


def test_a_setting_that_is_no_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool]\noverfit = "fast"\n')
    said = call("runs", cwd=tmp_path, expect=2).stderr
    assert said == (
        "overfit: pyproject.toml: overfit's settings are a table; write [tool.overfit], and keys "
        "below it.\n"
    )


@pytest.mark.slow
def test_what_a_variable_has_wrong_is_a_sentence_that_names_it(tmp_path: Path) -> None:
    for text in ("two", "1_0", "0", "1.5"):
        said = run("runs", cwd=tmp_path, expect=2, env={"OVERFIT_JOBS": text}).stderr
        assert said == (
            f"overfit: OVERFIT_JOBS={text}: it takes a whole number of at least 1, or -1 for one "
            "per core.\n"
        )


@pytest.mark.parametrize(
    ("variable", "name", "problem"),
    [
        ("OVERFIT_DATA", "gone", "there is no such folder or file."),
        ("OVERFIT_DATA", "a.txt", "it is a file; name a folder, or an archive .tar.gz."),
        ("OVERFIT_RESULTS", "a.txt", "a.txt is a file; a directory is needed."),
        ("OVERFIT_RESULTS", "a.txt/mine", "a.txt is a file; a directory is needed."),
    ],
)
@pytest.mark.one_in(2)
def test_a_folder_that_cannot_be_used_is_refused_before_anything_runs(
    variable: str, name: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").write_text("")
    monkeypatch.chdir(tmp_path)
    sentence = f"{variable}={name}: {problem}"
    said = run(*SWEEP, cwd=tmp_path, expect=2, env={variable: name}).stderr
    assert said == f"overfit: {sentence}\n"
    monkeypatch.setenv(variable, name)
    for function in (overfit_cli.sweep, overfit_cli.train):
        with pytest.raises(UserError, match=re.escape(sentence)):
            function("toy", n=2, quiet=True)
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.slow
def test_a_variable_that_nothing_reads_is_noted(tmp_path: Path) -> None:
    noted = run("list", cwd=tmp_path, env={"OVERFIT_JOB": "2"}).stderr
    assert noted == "note: OVERFIT_JOB: no such variable is read; did you mean 'OVERFIT_JOBS'?\n"


def test_a_broken_file_does_not_stop_the_version(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.overfit\n")
    assert call("--version", cwd=tmp_path).stdout.startswith("overfit ")
    assert "Usage: overfit" in call("--help", cwd=tmp_path).stdout
