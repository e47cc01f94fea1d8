"""Defaults of the user: an option, then a variable, then what is built in."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import overfit_cli
from overfit_cli import UserError
from tests.command import call, said

pytestmark = pytest.mark.usefixtures("no_variables")
SWEEP = "sweep toy --n=2 --snr=1 --seeds=1"


@pytest.fixture
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment in which the user sets nothing."""
    for name in ("BACKEND", "DATA", "JOBS", "RESULTS", "STYLE"):
        monkeypatch.delenv(f"OVERFIT_{name}", raising=False)


def test_an_option_comes_before_a_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OVERFIT_JOBS", "2")
    monkeypatch.setenv("OVERFIT_BACKEND", "threading")
    for option, jobs in (("", 2), ("--jobs=1", 1)):
        said(f"{SWEEP} --fresh --out=here {option}", tmp_path)
        runs = json.loads((tmp_path / "here" / "manifest.json").read_text())["runs"]
        settings = runs[-1]["settings"]
        assert (settings["jobs"], settings["backend"]) == (jobs, "threading")
    monkeypatch.setenv("OVERFIT_JOBS", "")  # counts as none
    said("sweep toy --n=2 --dry-run", tmp_path)


def test_runs_lie_in_the_results_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OVERFIT_RESULTS", "runs")
    said("train toy --n=2", tmp_path)
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["toy-n2"]
    assert "toy-n2" in said("runs", tmp_path)
    told = "From runs/toy-n2, the newest run directory that fits."
    assert told in said("plot curves", tmp_path)
    monkeypatch.chdir(tmp_path)
    overfit_cli.sweep("toy", n=3, seeds=1, jobs=1, quiet=True)
    assert len(overfit_cli.runs()) == 2


def test_help_names_the_variables_and_a_wrong_number_in_one_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OVERFIT_JOBS", "7")
    shown = " ".join(said("sweep toy --help", tmp_path).split())
    for name in ("OVERFIT_JOBS; default: ", "OVERFIT_BACKEND; default: ", "OVERFIT_DATA]"):
        assert f"[env var: {name}" in shown
    for wrong in ("two", "0"):
        monkeypatch.setenv("OVERFIT_JOBS", wrong)
        refused = call(*SWEEP.split(), cwd=tmp_path, expect=2).stderr
        assert re.fullmatch(r"overfit: .*--jobs.*\n", refused)


NO_DATA = "there is no such folder, or archive .tar.gz."
NO_FOLDER = "that is no folder; a directory is needed."
WRONG = [
    ("DATA", "gone", NO_DATA),
    ("DATA", "a.txt", NO_DATA),
    ("RESULTS", "a.txt", NO_FOLDER),
    ("RESULTS", "a.txt/mine", NO_FOLDER),
]


@pytest.mark.parametrize(("name", "text", "problem"), WRONG)
def test_a_folder_that_a_variable_has_wrong_is_refused_by_its_name_before_anything_runs(
    name: str, text: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a stand-in would take the place of the data."""
    (tmp_path / "a.txt").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(f"OVERFIT_{name}", text)
    assert problem in call(*SWEEP.split(), cwd=tmp_path, expect=2).stderr
    for function in (overfit_cli.sweep, overfit_cli.train):
        with pytest.raises(UserError, match=rf"OVERFIT_{name}='?{re.escape(text)}'?: {problem}"):
            function("toy", n=2, quiet=True)
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
