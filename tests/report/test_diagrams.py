"""Phase diagrams as numbers: what is known at each place, and from how many seeds."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from overfit_cli.core.registry import figures_of
from overfit_cli.core.study import FigureData
from overfit_cli.report.diagrams import make_diagram
from overfit_cli.sweeps.load import load_figure_data
from tests.toy_runs import TOY, sweep_toy

LOSSES = [0.1, 0.2, 0.4, 0.8]


def of_four_seeds(directory: Path) -> FigureData:
    """Toy cells of N 1 to 3 and two SNR; each has these losses at four seeds."""
    data = load_figure_data(sweep_toy(directory))
    copies = [
        data.cells.assign(seed=seed, test_loss=loss, key=data.cells["key"] + str(seed))
        for seed, loss in enumerate(LOSSES)
    ]
    return replace(data, cells=pd.concat(copies, ignore_index=True))


def test_seeds_without_a_value_are_told_from_failed_ones_and_from_no_cells(
    tmp_path: Path,
) -> None:
    data = of_four_seeds(tmp_path / "run")
    cells = data.cells
    low, n, seed = cells["snr"] == 1.0, cells["n"], cells["seed"]
    cells.loc[low & (n == 1) & (seed == 0), "test_loss"] = math.nan
    cells.loc[low & (n == 1) & (seed == 1), "status"] = "failed"
    cells.loc[low & (n == 2), "test_loss"] = math.nan
    cells.loc[low & (n == 2) & (seed == 3), "status"] = "failed"
    cells = cells[~(low & (n == 3))]
    found = make_diagram(replace(data, cells=cells), figures_of(TOY)["heatmap"])
    assert found is not None
    by_place = np.array(found["panels"][0]["places"], dtype=object).reshape(3, 2)
    some, whole = by_place[0]
    assert (some["seeds"], some["valueless"], some["failed"]) == (2, 1, 1)
    assert some["mean"] == pytest.approx((0.4 + 0.8) / 2)
    assert whole["seeds"] == 4
    assert not {"valueless", "failed"} & whole.keys()
    assert by_place[1][0] == {"valueless": 3, "failed": 1}
    assert by_place[2][0] is None


def test_the_middle_of_the_colours_is_that_of_their_scale(tmp_path: Path) -> None:
    data = of_four_seeds(tmp_path / "run")
    linear = make_diagram(data, figures_of(TOY)["heatmap"])
    cells = data.cells.assign(test_loss=np.where(data.cells["n"] == 1, 1e-3, 10.0))
    by_ratio = make_diagram(replace(data, cells=cells), figures_of(TOY)["heatmap"])
    assert linear is not None
    assert by_ratio is not None
    assert linear["middle"] == pytest.approx((linear["low"] + linear["high"]) / 2)
    assert by_ratio["middle"] == pytest.approx(math.sqrt(1e-3 * 10.0))
