"""A measured column against a parameter, a line for each setting, and lines that hide others."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import gmean, t

import overfit_cli
from overfit_cli import UserError
from overfit_cli.core.options import Band, Mean
from overfit_cli.figures.lines import draw_lines as plain_lines
from tests.command import call
from tests.fake_study import (
    ASKED,
    SNRS,
    as_refined,
    corners,
    data_of,
    draw,
    fail,
    fake_cells,
    heights,
    line_heights,
    untold,
)

OF_LOG = {"log": frozenset({"value"})}


def kernels(ns: Sequence[int], snrs: Sequence[float]) -> pd.DataFrame:
    return pd.concat([fake_cells(ns, snrs, kernel=k) for k in ("softmax", "gaussian")])


FIVE = fake_cells([5], [1.0, 2.0, 4.0, 8.0], seeds=5)
FIVE["test_loss"] = 0.1 + 0.1 * FIVE["seed"]
PAIR = kernels([5], [1.0, 2.0])
REFINED = fake_cells([10], SNRS).query("seed == 0 or snr > 10")
ENDLESS = fake_cells([10, 20], [1.0, 2.0], seeds=4)
ENDLESS["test_loss"] = np.where(ENDLESS["n"] == 10, 0.1, 1e-4)
ENDLESS = fail(ENDLESS, "snr == 2 and seed == 0 and n == 10")


# Statistics over seeds


def around(half: float) -> Callable[[pd.Series], list[float]]:
    """A mean, and so many standard deviations on both sides."""
    return lambda losses: [losses.mean() + sign * half * losses.std() for sign in (-1, 0, 1)]


T_OF_SIX = t.ppf(0.975, 5) / np.sqrt(6)


@pytest.mark.parametrize(
    ("mean", "band", "of", "label"),
    [
        (None, "interval", around(T_OF_SIX), "mean, 95 % interval"),
        (None, "sd", around(1), "mean, one standard deviation"),
        ("geometric", None, lambda one: [gmean(one)] * 3, "geometric mean, 95 % interval"),
        ("median", None, lambda one: one.quantile([0.25, 0.5, 0.75]), "median, the middle half"),
    ],
)
def test_a_line_is_a_statistic_over_seeds_with_a_band(
    mean: Mean | None, band: Band | None, of: Callable[[pd.Series], Any], label: str
) -> None:
    """Neither a logarithmic axis nor a choice of cells changes it."""
    cells = fake_cells([5, 10], [1.0, 2.0, 4.0], seeds=6, noise=0.1)
    options = {"mean": mean, "band": band}
    figure = draw("lines", cells, threshold=0.3, **options)
    [axes] = figure.axes
    for n, line, shade in zip((5, 10), line_heights(axes), axes.collections, strict=False):
        by_snr = cells[cells["n"] == n].groupby("snr")["test_loss"]
        low, middle, high = np.array([of(seeds) for _, seeds in by_snr]).T
        assert line == pytest.approx(middle)
        edge = corners(shade)[:, 1]
        ends = pytest.approx((low.min(), high.max()))
        assert (edge.min(), edge.max()) == ends or mean == "geometric"
    called, _, shaded = label.partition(",")
    facts = f"signal-to-noise ratio SNR: {called} of 6 seeds, band:{shaded}."
    names = f"\nN = 5\n … \nN = 10\n … \nthreshold 0.3\n … \ntest loss ({label})\n"
    assert not untold(figure, f"{names} … {facts}")
    for log in (None, frozenset[str]()):
        alone = draw("lines", cells[cells["n"] == 10], log=log, **options)
        assert line_heights(alone.axes[0])[0] == pytest.approx(line_heights(axes)[1])


@pytest.mark.parametrize(
    ("seeds", "band", "each", "told"),
    [
        (2, None, 2, "a thin line for each seed"),
        (3, None, 0, "band: the middle half"),
        (3, "seeds", 3, "a thin line for each seed"),
        (2, "quartiles", 0, "band: the middle half"),
    ],
)
def test_each_seed_has_a_thin_line_where_they_are_few_or_it_is_asked_for(
    seeds: int, band: Band | None, each: int, told: str
) -> None:
    cells = fake_cells([5], [1.0, 2.0, 4.0], seeds=seeds, noise=1.0)
    figure = draw("lines", cells, band=band)
    losses = cells.pivot(index="seed", columns="snr", values="test_loss").to_numpy()
    drawn = [np.median(losses, axis=0), *losses[:each].tolist()]
    assert line_heights(figure.axes[0]) == [pytest.approx(line) for line in drawn]
    assert len(figure.axes[0].collections) == (0 if each else 1)
    assert not untold(figure, f"median of {seeds} seeds, {told}.")


def test_a_band_ends_at_0_and_1_for_shares_and_at_the_frame_where_it_has_no_upper_end() -> None:
    """And the axis still has room for the lines that come after it."""
    shares = fake_cells([5], [1.0, 2.0]).assign(test_loss=[0.0, 1.0, 0.1, 0.9, 1.0, 0.95])
    edge = corners(draw("lines", shares, mean="arithmetic").axes[0].collections[0])[:, 1]
    assert (edge.min(), edge.max()) == (0, 1)
    [axes] = draw("lines", ENDLESS, **OF_LOG).axes
    assert corners(axes.collections[0])[:, 1].max() == pytest.approx(axes.get_ylim()[1])
    assert axes.get_ylim()[0] < 1e-4


# What a picture says

MISSED, ONE = fail(FIVE, "seed == 0"), fail(FIVE, "seed == 1 and snr == 2")
KILLED = fail(FIVE, "seed < 3", "worker killed")
LIMIT = fail(PAIR, "kernel == 'softmax'", "step limit")
HALF = fail(FIVE, "snr == 4 and seed < 3 or snr == 8").query("seed < 4")
UNEVEN = pd.concat([fake_cells([1, 2], [float(seeds)], seeds=seeds) for seeds in (1, 3)])
BY_SNR = {**OF_LOG, "x": "n", "band": "interval"}
BEYOND, HALF_MISS = "(diverged) taken as beyond the others", "half of the seeds or more: diverged"
SEEDS = "median of 5 seeds, band: the middle half; 4 cells"


@pytest.mark.parametrize(
    ("cells", "options", "said", "height"),
    [
        (MISSED, {}, f"{SEEDS} {BEYOND}", 0.4),
        (MISSED, {"mean": "arithmetic"}, "4 cells (diverged) left out", 0.35),
        (KILLED, {}, "12 cells (failed) left out", 0.45),
        (ONE, {}, f"1 cell {BEYOND}", None),
        (HALF, {}, HALF_MISS, None),
        (LIMIT, {}, "softmax (target not reached) … gaussian", None),
        (LIMIT, {"x": "kernel"}, "half of the seeds or more: target not reached", None),
        (fake_cells([10**6, 10**15], [1.0, 2.0]), {}, "N = 10⁶ … N = 10¹⁵", None),
        (REFINED, {}, "median of 1 to 3 seeds", None),
        (UNEVEN, BY_SNR, "SNR = 1 … SNR = 3", None),
    ],
)
def test_a_picture_says_what_its_lines_are_of_and_what_they_lack(
    cells: pd.DataFrame, options: dict[str, Any], said: str, height: float | None
) -> None:
    """A seed that misses is beyond the others: the median of those that arrive flatters them."""
    figure = draw("lines", cells, **options)
    assert height is None or line_heights(figure.axes[0])[0] == pytest.approx([height] * 4)
    assert not untold(figure, said)


FIVE_NS, MANY_NS = (kernels(ns, [1.0, 2.0]) for ns in (range(2, 11, 2), range(2, 15)))


@pytest.mark.parametrize(
    ("cells", "options", "sentence"),
    [
        (fail(PAIR, "snr == 2"), {}, "x='snr': no line of test_loss has two points here"),
        (FIVE_NS, {"by": "width"}, "x='snr': .* 10 settings here, .* 8 lines; make panels of one"),
        (MANY_NS, {}, "26 settings here, .* 8 lines; make panels of one"),
        (PAIR.assign(test_loss=0), {"mean": "geometric"}, "geometric': 6 .* not positive"),
        (as_refined(data_of(REFINED)), {}, "where: points of a refined sweep have different seeds"),
    ],
)
def test_lines_that_cannot_be_drawn_are_refused(
    cells: Any, options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(UserError, match=sentence):
        draw("lines", cells, **options)


# Seeds that miss


def test_where_half_of_the_seeds_miss_a_cross_stands_for_the_median() -> None:
    line, cross = draw("lines", HALF).axes[0].lines
    assert np.isfinite(heights(line)).tolist() == [True, True, False, False]
    assert cross.get_marker() == "x"
    assert np.asarray(cross.get_xdata()).tolist() == [4.0, 8.0]


# Axes


SHORT = fake_cells([5], [1.0, 2.0, 4.0], seeds=1).assign(test_loss=[1.05, 0.6, 0.22])


@pytest.mark.parametrize(
    ("cells", "options", "side", "ticks"),
    [
        (fake_cells([62, 250, 1000], [1.0, 2.0]), {"x": "n"}, "x", "62 250 1000"),
        (fake_cells([1, 2, 4, 8], [1.0, 2.0]), {"x": "n"}, "x", "1 2 4 8"),
        (fake_cells([5], SNRS), {}, "x", "5 10 15 20 25"),
        (SHORT, OF_LOG, "y", "0.5 1"),
    ],
)
def test_few_values_have_a_tick_each_and_a_short_logarithmic_axis_has_two_or_more(
    cells: pd.DataFrame, options: dict[str, Any], side: str, ticks: str
) -> None:
    [axes] = draw("lines", cells, **options).axes
    low, high = getattr(axes, f"get_{side}lim")()
    axis = getattr(axes, f"{side}axis")
    labels = zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True)
    assert " ".join(label.get_text() for at, label in labels if low <= at <= high) == ticks


@pytest.mark.parametrize(
    ("options", "drawn", "said"),
    [
        ({}, [1e-8, 1e-18, 1e-24], "below 10⁻¹⁶ of the largest"),
        ({"floor": 1e-12}, [1e-8, 1e-12, 1e-12], "round-off, below 10⁻¹² of the start"),
    ],
)
def test_decades_below_the_last_digit_of_the_largest_or_of_the_start_are_shaded(
    options: dict[str, float], drawn: list[float], said: str
) -> None:
    cells = fake_cells([10], [1.0, 2.0, 4.0])
    falling = cells.assign(test_loss=10.0 ** (2 - 10 * cells["snr"]))
    figure = plain_lines(data_of(falling), ASKED["lines"], **options)
    assert line_heights(figure.axes[0]) == [pytest.approx(drawn)]
    assert figure.axes[0].get_ylim()[0] == pytest.approx(drawn[-1] / 30)
    assert not untold(figure, f"\n{said}\n")


def test_where_x_is_no_number_points_stand_beside_each_other_with_bars() -> None:
    gaussian = fake_cells([5, 10], [1.0], noise=1.0, kernel="gaussian")
    cells = pd.concat([gaussian, fake_cells([5], [1.0], kernel="softmax")])
    [axes] = draw("lines", cells, x="kernel").axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["softmax", "gaussian"]
    bars: list[Any] = list(axes.containers)
    five, ten = [np.asarray(bar.lines[0].get_xdata()) for bar in bars]
    assert (five.round().tolist(), ten.round().tolist()) == ([0, 1], [1])
    assert 0 < ten[0] - five[1] < 0.2
    median = cells.groupby(["n", "kernel"])["test_loss"].median()
    drawn = bars[0].lines[0].get_ydata()
    assert drawn == pytest.approx([median[5, "softmax"], median[5, "gaussian"]])


# Panels, and what varies together


@pytest.mark.slow
def test_a_parameter_that_goes_with_an_axis_leaves_a_map_two_axes(tmp_path: Path) -> None:
    grid = ("--n=1,2,3", "--snr=2*n", "--set=pause=0,0.0001", "--jobs=1", "--out=a")
    command = call("sweep", "toy", *grid, cwd=tmp_path)
    call(*shlex.split(command.stdout.rpartition("Next: overfit ")[2]), cwd=tmp_path)
    for x, y in ((None, None), ("pause", "n"), ("snr", "pause")):
        axes = overfit_cli.draw("heatmap", tmp_path / "a", x=x, y=y).axes[0]
        assert "time a cell takes" in axes.get_xlabel() + axes.get_ylabel()
