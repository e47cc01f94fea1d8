"""A parameter may be called by its symbol, as the paper does: SNR, N, M, σ_p."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

import overfit_cli
from overfit_cli import UserError
from overfit_cli.core.parameters import StudyParameters, parameter, parameter_named
from overfit_cli.core.registry import find_study
from overfit_cli.studies.benign_vit.vit.parameters import BenignVitParameters
from tests.command import call

SMALL = ("--set=d=30", "--set=d_h=20", "--set=d_v=6", "--set=test_samples=9", "--set=epsilon=0.1")
GRID = ("--N=2:4", "--SNR", "4:12:3", "--set", "M=3,4", "--σ_p=1", "--seeds=1", "--jobs=1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep whose axes were all named by their symbols, in `out`."""
    folder = tmp_path_factory.mktemp("symbols")
    call("sweep", *GRID, *SMALL, "--out=out", cwd=folder)
    return folder


def test_a_sweep_takes_symbols_as_options_and_settings(folder: Path) -> None:
    cells = overfit_cli.load(folder / "out")
    assert len(cells) == 3 * 3 * 2
    assert sorted(set(cells["n"])) == [2, 3, 4]
    assert sorted(set(cells["snr"])) == [4, 8, 12]
    assert sorted(set(cells["tokens"])) == [3, 4]
    assert set(cells["sigma_p"]) == {1.0}
    run = json.loads((folder / "out" / "manifest.json").read_text())["runs"][0]
    assert set(run["values"]) >= {"n", "snr", "tokens", "sigma_p"}


def test_a_run_directory_is_named_after_the_parameters_however_they_were_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("overfit_cli.sweeps.run.LONGEST_DRY_RUN", 0.0)
    one = call("sweep", "--N=2:4", "--SNR=5", "--dry-run", cwd=tmp_path).stdout
    other = call("sweep", "--n=2:4", "--snr=5", "--dry-run", cwd=tmp_path).stdout
    assert "results/benign-vit-n-snr5" in one
    assert one.splitlines()[0] == other.splitlines()[0]


def test_a_training_takes_symbols(tmp_path: Path) -> None:
    call("train", "--N=3", "--SNR=9", "--set=M=3", *SMALL, "--out=one", cwd=tmp_path)
    [cell] = overfit_cli.load(tmp_path / "one").to_dict("records")
    assert (cell["n"], cell["snr"], cell["tokens"]) == (3, 9.0, 3)


@pytest.mark.slow
def test_a_figure_takes_symbols_for_its_axes_panels_cells_and_equations(folder: Path) -> None:
    by_symbol = ("--x=N", "--y=SNR", "--by=M", "--law=SNR = 2 * N", "--where=SNR=8:12")
    call("plot", "heatmap", "--from=out", *by_symbol, "--out=a.png", cwd=folder)
    by_name = ("--x=n", "--y=snr", "--by=tokens", "--law=snr = 2*n", "--where=snr=8:12")
    call("plot", "heatmap", "--from=out", *by_name, "--out=b.png", cwd=folder)
    first, second = (imread(folder / name) for name in ("a.png", "b.png"))
    assert np.array_equal(first, second)  # their records have what was typed
    captions = [
        (folder / name).read_text().partition("Commands:")[0] for name in ("a.txt", "b.txt")
    ]
    assert captions[0] == captions[1]
    assert "Line: SNR = 2·N." in " ".join(captions[0].split())
    assert "12 cells done" in captions[0]


def test_python_takes_symbols_too(tmp_path: Path) -> None:
    given = {"d": 30, "d_h": 20, "d_v": 6, "test_samples": 9, "epsilon": 0.1}
    cells = overfit_cli.sweep(
        "benign-vit",
        N=[2, 3],
        SNR=9,
        parameters={"M": 3, **given},
        seeds=1,
        jobs=1,
        quiet=True,
        out=tmp_path / "a",
    )
    assert sorted(cells["n"]) == [2, 3]
    assert set(cells["tokens"]) == {3}
    assert len(overfit_cli.load(tmp_path / "a", where="N=2")) == 1
    with pytest.raises(UserError, match="n and N: n is given twice; give it once"):
        overfit_cli.sweep("benign-vit", n=2, N=3, out=tmp_path / "b", quiet=True)


class Ambiguous(StudyParameters):
    n: int = parameter(1, "samples", symbol="N")
    N: int = parameter(2, "not samples", symbol="n")
    one: float = parameter(1.0, "one width", symbol=r"\sigma")
    other: float = parameter(1.0, "another width", symbol=r"\sigma")
    bare: float = parameter(1.0, "without a symbol")


@pytest.mark.parametrize(
    ("text", "name"), [("n", "n"), ("N", "N"), ("σ", "σ"), ("", ""), (r"\sigma", r"\sigma")]
)
def test_a_name_comes_before_a_symbol_and_a_symbol_of_two_is_none(text: str, name: str) -> None:
    assert parameter_named(Ambiguous, text) == name


def test_accents_are_typed_as_they_are_shown() -> None:
    assert parameter_named(find_study("benign-vit").parameters, "σ̃_p") == "sigma_p_tilde"


def test_a_greek_letter_may_be_spelled_out() -> None:
    for spelled in ("η", "eta"):
        assert parameter_named(BenignVitParameters, spelled) == "learning_rate"
    assert parameter_named(BenignVitParameters, "epsilon") == "epsilon"
    assert parameter_named(BenignVitParameters, "theta") == "theta"
