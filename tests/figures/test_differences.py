"""A map of the difference of two runs: what changed, and where it may be noise of the seeds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from matplotlib.figure import Figure

from overfit_cli.core.study import FigureData
from overfit_cli.figures.panels import difference
from tests.fake_study import OPTIONS, data_of, draw_heatmap, draw_lines, fail, fake_cells, words

NS, SNRS = [5, 10, 20, 40, 80, 160, 320], [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]  # no numbers are printed


def two_runs(seeds: int, effect: float = 0.0, **same: Any) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A run with noise of its seeds, higher by an effect at 8 samples per unit, and one without."""
    draws = np.random.default_rng(1)
    second = fake_cells(NS, SNRS, seeds=seeds)
    noise = draws.normal(0, 0.1, len(second)) + effect * (second["snr"] > 6)
    return second.assign(test_loss=second["test_loss"] + noise, **same), second


def subtracted(first: pd.DataFrame, second: pd.DataFrame) -> FigureData:
    return difference(data_of(first), data_of(second), "other", "test_loss")


def dots(figure: Figure) -> set[tuple[float, float]]:
    """Where the dots are, as SNR and n."""
    lines = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    return {(float(x), float(y)) for line in lines for x, y in np.asarray(line.get_xydata())}


def test_a_point_whose_own_interval_contains_0_has_a_dot() -> None:
    first, second = two_runs(seeds=8, effect=0.2)
    figure = draw_heatmap(subtracted(first, second), replace(OPTIONS, log=frozenset()))
    gaps = (first["test_loss"] - second["test_loss"]).groupby([first["snr"], first["n"]])
    chances = {key: scipy.stats.ttest_1samp(gap, 0).pvalue for key, gap in gaps}
    noise = sorted(float(np.asarray(key)[0]) for key, chance in chances.items() if chance > 0.05)
    assert 10 < len(noise) < 32
    drawn = sorted(x for x, _ in dots(figure))
    assert drawn == pytest.approx(noise)
    text = words(figure)
    assert f"\n95 % interval contains 0 ({len(noise)} points)\n" in text
    assert f"own 95 % interval over seeds contains 0, {len(noise)} of 42." in text


def test_a_map_that_is_no_difference_has_no_dots() -> None:
    first, _ = two_runs(seeds=8)
    figure = draw_heatmap(data_of(first.assign(test_loss=first["test_loss"] - 0.3)), OPTIONS)
    assert dots(figure) == set()
    assert "interval" not in words(figure)


@pytest.mark.parametrize(
    ("seeds", "shift", "why"),
    [(1, 0, "there are too few seeds for"), (3, 10, "the seeds are not paired for")],
)
def test_where_no_interval_is_known_the_caption_says_why(seeds: int, shift: int, why: str) -> None:
    first, second = two_runs(seeds=seeds)
    figure = draw_heatmap(subtracted(first, second.assign(seed=second["seed"] + shift)), OPTIONS)
    assert dots(figure) == set()
    assert f"is not marked: {why} intervals." in words(figure)


def test_a_seed_without_a_number_may_lie_on_either_side_of_0() -> None:
    """Of eight seeds the least and the greatest are the ends of the interval of the median."""
    first, second = two_runs(seeds=8)
    first = first.assign(test_loss=second["test_loss"] + 0.1 + 0.01 * first["seed"])
    at = (first["n"] == 320) & (first["snr"] == 12)
    for unknown, count in ((1, 1), (0, 0)):
        data = subtracted(fail(first, at & (first["seed"] < unknown)), second)
        figure = draw_heatmap(data, replace(OPTIONS, mean="median"))
        assert len(dots(figure)) == count


def test_a_dot_stands_below_a_printed_number() -> None:
    first, second = two_runs(seeds=3)
    small = [cells[cells["n"].isin([5, 10]) & (cells["snr"] < 7)] for cells in (first, second)]
    figure = draw_heatmap(subtracted(*small), OPTIONS)
    [axes] = figure.axes[:1]
    numbers = {round(float(text.get_position()[0]), 3): text for text in axes.texts}
    rows = sorted({float(text.get_position()[1]) for text in numbers.values()})
    assert dots(figure)
    assert all(y not in rows for _, y in dots(figure))
    assert min(y for _, y in dots(figure)) < rows[0]


@pytest.mark.slow
def test_the_one_setting_that_differs_names_the_difference() -> None:
    first, second = two_runs(seeds=3, kernel="gaussian")
    text = words(draw_heatmap(subtracted(first, second), OPTIONS))
    assert "\ntest loss: gaussian − softmax (kernel)\n" in text
    assert "Test loss: gaussian − softmax (kernel) over" in text
    wide = subtracted(first.assign(kernel="softmax", width=128), second)
    text = words(draw_lines(wide, OPTIONS))
    assert "Test loss: width 128, less that at 64, against" in text
    both = subtracted(first.assign(width=128), second)
    assert "test loss, less that of other" in words(draw_heatmap(both, OPTIONS))


@pytest.mark.parametrize("side", [0, 1])
def test_a_pair_has_the_reason_of_the_cell_that_failed(side: int) -> None:
    runs = list(two_runs(seeds=3))
    runs[side] = fail(runs[side], runs[side]["n"] == 5)
    runs[side]["reason"] = runs[side]["reason"].replace("diverged", "step limit")
    text = words(draw_heatmap(subtracted(*runs), OPTIONS))
    assert "target not reached: half the seeds or more (6)" in text
    assert "18 cells without a number (target not reached) left out" in text
