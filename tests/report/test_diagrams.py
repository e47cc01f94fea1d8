"""Phase diagrams as numbers: what is known at each place, and from how many seeds."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from overfit_cli.core.figure import Figure
from overfit_cli.core.registry import figures_of
from overfit_cli.core.study import FigureData
from overfit_cli.report.diagrams import Diagram, make_diagram
from overfit_cli.sweeps.load import load_figure_data
from tests.toy_runs import TOY, sweep_toy

LOSSES = [0.1, 0.2, 0.4, 0.8]
HEATMAP = figures_of(TOY)["heatmap"]


def of_four_seeds(directory: Path) -> FigureData:
    """Toy cells of N 1 to 3 and two SNR; each has these losses times N at four seeds."""
    data = load_figure_data(sweep_toy(directory))
    copies = [
        data.cells.assign(
            seed=seed, test_loss=loss * data.cells["n"], key=data.cells["key"] + str(seed)
        )
        for seed, loss in enumerate(LOSSES)
    ]
    return replace(data, cells=pd.concat(copies, ignore_index=True))


def diagram_of(data: FigureData, cells: pd.DataFrame, figure: Figure = HEATMAP) -> Diagram:
    """The diagram of other cells, which there is."""
    diagram = make_diagram(replace(data, cells=cells), figure)
    assert diagram is not None
    return diagram


def test_missed_seeds_count_as_beyond_the_others_and_are_told_from_no_cells(
    tmp_path: Path,
) -> None:
    data = of_four_seeds(tmp_path / "run")
    cells = data.cells
    low, n, seed = cells["snr"] == 1.0, cells["n"], cells["seed"]
    cells.loc[low & (n == 1) & (seed == 0), ["status", "reason"]] = "failed", "diverged"
    cells.loc[low & (n == 2) & (seed <= 1), ["status", "reason"]] = "failed", "diverged"
    cells = cells[~(low & (n == 3))]
    diagram = diagram_of(data, cells)
    assert (diagram["mean"], diagram["why"]) == ("median", "diverged")
    by_place = np.array(diagram["panels"][0]["places"], dtype=object).reshape(3, 2)
    some, whole = by_place[0]
    assert (some["seeds"], some["lost"]) == (3, 1)
    assert some["middle"] == pytest.approx((0.4 + 0.8) / 2), "not 0.4, the survivors' median"
    assert whole["seeds"] == 4
    assert "lost" not in whole
    half, none = by_place[1][0], by_place[2][0]
    assert (half["seeds"], half["lost"]) == (2, 2)
    assert "middle" not in half, "half of the seeds missed"
    assert none is None


def test_intervals_of_a_positive_column_stay_positive(tmp_path: Path) -> None:
    data = of_four_seeds(tmp_path / "run")
    wide = np.where(data.cells["seed"] == 3, 0.8, 0.0) + data.cells["n"] / 100
    diagram = diagram_of(data, data.cells.assign(test_loss=wide))
    assert [place["from"] for place in diagram["panels"][0]["places"]] == [0.0] * 6


def test_the_threshold_and_the_equation_are_drawn_in_cells(tmp_path: Path) -> None:
    data = of_four_seeds(tmp_path / "run")
    loss = 0.1 * data.cells["n"]
    options = replace(HEATMAP.options, threshold=0.2, law=("n = 2",))
    figure = replace(HEATMAP, options=options)
    diagram = diagram_of(data, data.cells.assign(test_loss=loss), figure)
    assert [line["style"] for line in diagram["lines"]] == ["contour", "law"]
    for path in diagram["panels"][0]["lines"]:
        heights = [float(point.split()[1]) for point in path.removeprefix("M").split("L")]
        assert heights == pytest.approx([1.5] * len(heights)), "the middle of the second row"


def test_ticks_differ_where_values_do(tmp_path: Path) -> None:
    data = of_four_seeds(tmp_path / "run")
    close = data.cells["snr"].map({1.0: 11.31, 2.0: 11.34}).fillna(11.34)
    cells = data.cells.assign(snr=close)
    diagram = diagram_of(replace(data, planned=cells), cells)
    assert diagram["x"]["ticks"] == ["11.31", "11.34"]


def test_a_diagram_that_says_nothing_is_not_made(tmp_path: Path) -> None:
    data = of_four_seeds(tmp_path / "run")
    assert make_diagram(replace(data, cells=data.cells.assign(test_loss=0.5)), HEATMAP) is None
    four = data.cells[data.cells["n"] < 3]
    assert make_diagram(replace(data, cells=four, planned=four), HEATMAP) is None, "2 by 2 points"
    odd = (data.cells["n"] + 2 * data.cells["snr"]) % 4 == 1
    half = data.cells.assign(status=np.where(odd | (data.cells["n"] == 2), "failed", "done"))
    assert make_diagram(replace(data, cells=half), HEATMAP) is None


def test_the_middle_of_the_colours_is_that_of_their_scale(tmp_path: Path) -> None:
    data = of_four_seeds(tmp_path / "run")
    linear = diagram_of(data, data.cells)
    cells = data.cells.assign(test_loss=np.where(data.cells["n"] == 1, 1e-3, 10.0))
    by_ratio = diagram_of(data, cells)
    assert linear["middle"] == pytest.approx((linear["low"] + linear["high"]) / 2)
    assert by_ratio["middle"] == pytest.approx(math.sqrt(1e-3 * 10.0))
