"""Names are shown as they are, symbols are names too, and variables are defaults of options."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread

import overfit_cli
from overfit_cli import UserError
from overfit_cli.core.parameters import StudyParameters, parameter, parameter_named
from overfit_cli.core.registry import find_study
from overfit_cli.core.text import escape_markdown, visible
from overfit_cli.sweeps.presets import find_subject
from tests.command import call, environment, said

GRID = ("sweep", "toy", "--n=1:3", "--snr=1:2:2", "--seeds=1", "--jobs=1")
NAME = (
    "\x1b[31mred\x1b[0m [bold :smile: a[/]b [red]x[/red]\n# A heading <img src=x onerror=alert(1)>"
    " [click](javascript:alert(1)) a|b `c` **d** \\ &lt; \u202egnp.exe"
)


@pytest.mark.slow
def test_a_directory_may_have_any_name_that_is_text(tmp_path: Path) -> None:
    report, train = ("report", NAME, "--out", "report"), ("train", "toy", "--out", NAME)
    plot, sweep = ("plot", "heatmap", "--from", NAME), (*GRID, "--out", NAME)
    swept, drawn, *others = (call(*it, cwd=tmp_path) for it in (sweep, plot, sweep, report, train))
    assert f"(n 3 × snr 2 × seeds 1), {visible(NAME)}\n" in swept.stdout
    told = f"Drawn: {visible(NAME)}/figures/heatmap.png, and its caption in heatmap.txt\n"
    assert drawn.stdout == told
    missing = call("plot", "heatmap", "--from", f"{NAME}!", cwd=tmp_path, expect=2)
    assert visible(NAME)[:60] in missing.stderr and len(missing.stderr.splitlines()) == 1
    for done in (swept, drawn, *others, missing):
        assert not set(done.stdout + done.stderr) & {"\x1b", "\u202e"}
    page = (tmp_path / "report" / "report.md").read_text()
    assert escape_markdown(NAME) in page
    assert not re.search(r"^# A heading|<img|\]\(javascript", page, re.MULTILINE)


def test_a_function_or_a_preset_whose_path_is_no_text_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"\xff")
    folder.mkdir()
    (folder / "mine.py").write_text("def train(n: int = 1): return {'loss': n}")
    (folder / "mine.toml").write_text("title = 'a'\nstudy = 'toy'")
    for name in ("mine.py", "mine.toml"):
        with pytest.raises(UserError, match="the name isn't text; it takes a path in UTF-8"):
            find_subject(str(folder / name))


def test_what_a_terminal_would_obey_is_written_out() -> None:
    obeyed = "a\x1b[0m\r\n\t\x07\x9b\u2028\ud800z"
    assert visible(obeyed) == r"a\x1b[0m\r\n\t\x07\x9b\u2028\ud800z"
    plain = "N·SNR² = 1000 [0.79, 0.98] – ‖μ‖ ε"
    assert visible(plain) == escape_markdown(plain) == plain
    assert escape_markdown("<b>&|`*\\[a](b)") == r"&lt;b&gt;&amp;\|\`\*\\[a]\(b)"


@pytest.mark.slow
@pytest.mark.unix
def test_a_reader_who_leaves_is_no_fault(tmp_path: Path) -> None:
    for command in ("list claims", "sweep toy --n 1:3 --seeds 1 --jobs 1 --out out"):
        piped = ["sh", "-c", f'"{sys.executable}" -m overfit_cli {command} | true']
        done = subprocess.run(
            piped, cwd=tmp_path, env=environment(), capture_output=True, timeout=100, check=False
        )
        assert done.stderr == b""
    assert list((tmp_path / "out" / "cells").glob("*.parquet")), "the sweep goes on"


SMALL = ("--set=d=30", "--set=d_h=20", "--set=d_v=6", "--set=test_samples=9", "--set=epsilon=0.1")
BY_SYMBOL = ("--N=2:4", "--SNR", "4:12:3", "--set", "M=3,4", "--σ_p=1", "--seeds=1", "--jobs=1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep whose axes were all named by their symbols, in `out`."""
    folder = tmp_path_factory.mktemp("symbols")
    call("sweep", *BY_SYMBOL, *SMALL, "--out=out", cwd=folder)
    return folder


def test_a_sweep_takes_symbols_as_options_and_settings(folder: Path) -> None:
    cells = overfit_cli.load(folder / "out")
    named = cells[["n", "snr", "tokens", "sigma_p"]].to_numpy().tolist()
    assert sorted(named) == [[*at, 1] for at in itertools.product((2, 3, 4), (4, 8, 12), (3, 4))]
    run = json.loads((folder / "out" / "manifest.json").read_text())["runs"][0]
    assert set(run["values"]) >= {"n", "snr", "tokens", "sigma_p"}
    assert len(overfit_cli.load(folder / "out", where="N=2")) == 3 * 2
    plan: Any = overfit_cli.sweep("benign-vit", N=[2, 3], parameters={"M": 3}, dry_run=True)
    assert {(cell.parameters.n, cell.parameters.tokens) for [cell] in plan.batches} == {
        (2, 3),
        (3, 3),
    }
    with pytest.raises(UserError, match="n is given twice; give it once"):
        overfit_cli.sweep("benign-vit", n=2, N=3, quiet=True)


@pytest.mark.slow
def test_a_figure_takes_symbols_for_its_axes_panels_cells_and_equations(folder: Path) -> None:
    by_symbol = ("--x=N", "--y=SNR", "--by=M", "--law=SNR = 2 * N", "--where=SNR=8:12")
    by_name = ("--x=n", "--y=snr", "--by=tokens", "--law=snr = 2*n", "--where=snr=8:12")
    pictures, captions = list[Any](), list[str]()
    for named in (by_symbol, by_name):
        call("plot", "heatmap", "--from=out", *named, "--out=a.png", cwd=folder)
        pictures.append(imread(folder / "a.png"))  # their records have what was typed
        captions.append((folder / "a.txt").read_text().partition("Commands:")[0])
    assert np.array_equal(*pictures)
    assert captions[0] == captions[1]
    assert "Line: SNR = 2·N." in " ".join(captions[0].split())
    assert "12 cells done" in captions[0]


class Ambiguous(StudyParameters):
    n: int = parameter(1, "samples", symbol="N")
    N: int = parameter(2, "not samples", symbol="n")
    one: float = parameter(1.0, "one width", symbol=r"\sigma")
    other: float = parameter(1.0, "another width", symbol=r"\sigma")
    bare: float = parameter(1.0, "without a symbol")


BENIGN_VIT = find_study("benign-vit").parameters


@pytest.mark.parametrize(
    ("model", "text", "name"),
    [
        *((Ambiguous, text, text) for text in ("n", "N", "σ", "", r"\sigma")),
        (BENIGN_VIT, "σ̃_p", "sigma_p_tilde"),
        *((BENIGN_VIT, spelled, "learning_rate") for spelled in ("η", "eta")),
        *((BENIGN_VIT, text, text) for text in ("epsilon", "theta")),
    ],
)
def test_a_name_comes_before_a_symbol_which_may_be_spelled_out_and_of_two_is_none(
    model: type[StudyParameters], text: str, name: str
) -> None:
    assert parameter_named(model, text) == name


# Defaults of the user: an option, then a variable, then what is built in

NO_VARIABLES = pytest.mark.usefixtures("no_variables")
SWEEP = "sweep toy --n=2 --snr=1 --seeds=1"


@pytest.fixture
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment in which the user sets nothing."""
    for name in ("BACKEND", "DATA", "JOBS", "RESULTS", "STYLE"):
        monkeypatch.delenv(f"OVERFIT_{name}", raising=False)


@NO_VARIABLES
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


@NO_VARIABLES
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


@NO_VARIABLES
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


@NO_VARIABLES
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
