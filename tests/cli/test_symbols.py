"""A parameter may be called by its symbol, as the paper does: SNR, N, M, σ_p."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread

import overfit_cli
from overfit_cli import UserError
from overfit_cli.core.parameters import StudyParameters, parameter, parameter_named
from overfit_cli.core.registry import find_study
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
    named = cells[["n", "snr", "tokens", "sigma_p"]].to_numpy().tolist()
    assert sorted(named) == [[*at, 1] for at in itertools.product((2, 3, 4), (4, 8, 12), (3, 4))]
    run = json.loads((folder / "out" / "manifest.json").read_text())["runs"][0]
    assert set(run["values"]) >= {"n", "snr", "tokens", "sigma_p"}


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


def test_python_takes_symbols_too(tmp_path: Path) -> None:
    given = {"M": 3, "d": 30, "d_h": 20, "d_v": 6, "test_samples": 9, "epsilon": 0.1}
    how: dict[str, Any] = {"seeds": 1, "jobs": 1, "quiet": True, "out": tmp_path / "a"}
    cells = overfit_cli.sweep("benign-vit", N=[2, 3], SNR=9, parameters=given, **how)
    assert sorted(cells[["n", "tokens"]].to_numpy().tolist()) == [[2, 3], [3, 3]]
    assert len(overfit_cli.load(tmp_path / "a", where="N=2")) == 1
    with pytest.raises(UserError, match="n is given twice; give it once"):
        overfit_cli.sweep("benign-vit", n=2, N=3, out=tmp_path / "b", quiet=True)


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
