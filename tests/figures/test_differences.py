"""The difference of two runs: what changed, and where it may be noise of the seeds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from matplotlib.figure import Figure

from overfit_cli import UserError
from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.study import FigureData
from overfit_cli.figures.panels import difference
from tests.fake_study import (
    OPTIONS,
    data_of,
    draw_heatmap,
    draw_lines,
    fail,
    fake_cells,
    heights,
    words,
)

LINES = FigureOptions(x="snr", value="test_loss")
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


def test_a_map_that_is_no_difference_has_no_dots_and_one_of_nothing_is_0() -> None:
    first, second = two_runs(seeds=8)
    figure = draw_heatmap(data_of(first.assign(test_loss=first["test_loss"] - 0.3)), OPTIONS)
    assert dots(figure) == set()
    assert "interval" not in words(figure)
    assert (shown(subtracted(second, second)) == 0).all()


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


# How cells are paired


def plain_difference(first: pd.DataFrame, second: pd.DataFrame) -> pd.Series:
    """The difference at each place, with pandas alone, over the seeds that both have."""
    pair = first.merge(second, on=["n", "snr", "seed"], suffixes=("", "_other"))
    return (pair["test_loss"] - pair["test_loss_other"]).groupby([pair["n"], pair["snr"]]).mean()


def noisy(seeds: int, shift: int = 0, noise: float = 0.5) -> pd.DataFrame:
    cells = fake_cells([5, 10, 20], [4.0, 8.0, 12.0], seeds=seeds, noise=noise)
    return cells.assign(seed=cells["seed"] + shift)


def shown(data: FigureData) -> np.ndarray:
    figure = draw_heatmap(data, OPTIONS)
    return np.asarray(figure.axes[0].collections[0].get_array())


def test_a_difference_is_paired_by_seed() -> None:
    first, second = noisy(5), noisy(4, shift=2, noise=0.8)  # seeds 2 to 4 are in both
    data = subtracted(first, second)
    assert sorted(set(data.cells["seed"])) == [2, 3, 4]
    expected = plain_difference(first, second)
    np.testing.assert_allclose(shown(data), expected.unstack())
    lines = draw_lines(data, replace(LINES, mean="arithmetic")).axes[0].lines
    for line, n in zip(lines, (5, 10, 20), strict=True):
        assert heights(line) == pytest.approx(expected[n].to_numpy())


def test_without_a_seed_in_common_means_are_subtracted_and_no_seed_is_named() -> None:
    first, second = noisy(3), noisy(4, shift=3, noise=0.8)
    data = subtracted(first, second)
    means = [part.groupby(["n", "snr"])["test_loss"].mean().unstack() for part in (first, second)]
    np.testing.assert_allclose(shown(data), means[0] - means[1])
    at_one_n = replace(data, cells=data.cells[data.cells["n"] == 20])
    for figure in (draw_heatmap(data, OPTIONS), draw_lines(at_one_n, LINES)):
        text = words(figure)
        assert "mean of 3 seeds less mean of 4 seeds" in text
        assert "one seed" not in text


def test_what_has_no_counterpart_is_left_out_and_counted() -> None:
    """Values that agree to twelve digits are one place; a failed cell fails its pair."""
    first = noisy(2)
    second = first.assign(snr=first["snr"] * (1 + 1e-14), test_loss=first["test_loss"] - 0.25)
    whole = subtracted(first, second)
    assert whole.unpaired == ""
    assert len(whole.cells) == len(first)
    assert whole.cells["test_loss"].to_numpy() == pytest.approx(0.25)
    data = subtracted(first, fail(second[second["n"] > 5], second["snr"] > 11))
    count = int((second["n"] > 5).sum())
    sentence = f"{count} of {len(first)} cells here and of {count} there have a counterpart"
    assert data.unpaired == sentence
    assert set(data.cells["n"]) == {10, 20}
    assert (data.cells["status"].eq("failed") == (data.cells["snr"] == 12)).all()
    assert data.cells.query("snr < 12")["test_loss"].notna().all()


@pytest.mark.parametrize("column", ["test_loss", "snr"])
def test_runs_that_share_no_column_or_axis_have_no_difference(column: str) -> None:
    with pytest.raises(UserError) as refused:
        subtracted(noisy(2), noisy(2).drop(columns=column))
    assert str(refused.value) == f"minus='other': its cells and the others don't share {column}."
