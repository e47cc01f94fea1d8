"""Numbers of a figure: `plot --out FILE.csv` writes what the picture shows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import overfit_cli
from overfit_cli.figures.numbers import COLUMNS, drawn_numbers
from overfit_cli.figures.picture import new_figure
from tests.command import call
from tests.toy_runs import sweep_toy


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("numbers")
    sweep_toy(made / "run")
    return made


def _numbers(folder: Path, figure: str) -> pd.DataFrame:
    said = call("plot", figure, "--from", "run", "--out", "numbers.csv", cwd=folder).stdout
    assert said == "Drawn: numbers.csv, and its caption in numbers.txt\n"
    return pd.read_csv(folder / "numbers.csv", keep_default_na=False, na_values=[""])


def test_a_heat_map_has_a_row_for_each_of_its_cells(folder: Path) -> None:
    cells = overfit_cli.load(folder / "run")
    middle = cells.groupby(["n", "snr"])["test_loss"].median()
    drawn = _numbers(folder, "heatmap").query("element == 'map'")
    assert list(drawn.columns) == list(COLUMNS)
    np.testing.assert_allclose(sorted(drawn["value"]), sorted(middle), rtol=1e-12)


def test_lines_have_their_labels_and_points() -> None:
    figure, axes = new_figure()
    axes.plot([1, 2], [3, 4], label="a line\nin two")
    axes.fill_between([1, 2], [0, 0], [1, 1])
    axes.scatter([5], [6], c=[7])
    axes.bar([1], [2], width=1.0)
    axes.set_title("(a)  map")
    drawn = drawn_numbers(figure, {})
    assert set(drawn["panel"]) == {"1: (a) map"}
    line = drawn[drawn["label"] == "a line in two"]
    assert line[["x", "y"]].to_numpy().tolist() == [[1, 3], [2, 4]]
    elements = dict(tuple(drawn.groupby("element")))
    assert elements["points"][["x", "y", "value"]].to_numpy().tolist() == [[5, 6, 7]]
    assert elements["bar"][["x", "y"]].to_numpy().tolist() == [[0.5, 0], [1.5, 2]]
    assert elements["band"]["y"].max() == 1
