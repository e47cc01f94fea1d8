"""Lines: a column against a parameter, and logged columns against the step."""

from __future__ import annotations

import itertools
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
from overfit_cli.core.cells import Cells
from overfit_cli.core.options import Band, Mean
from overfit_cli.core.registry import find_study
from overfit_cli.figures.lines import draw_best_curves
from overfit_cli.figures.lines import draw_lines as plain_lines
from tests import fake_study as fake
from tests.command import call

OF_LOG = {"log": frozenset({"value"})}


def kernels(ns: Sequence[int], snrs: Sequence[float]) -> pd.DataFrame:
    return pd.concat([fake.fake_cells(ns, snrs, kernel=k) for k in ("softmax", "gaussian")])


FIVE = fake.fake_cells([5], [1.0, 2.0, 4.0, 8.0], seeds=5)
FIVE["test_loss"] = 0.1 + 0.1 * FIVE["seed"]
PAIR = kernels([5], [1.0, 2.0])
REFINED = fake.fake_cells([10], fake.SNRS).query("seed == 0 or snr > 10")
ENDLESS = fake.fake_cells([10, 20], [1.0, 2.0], seeds=4)
ENDLESS["test_loss"] = np.where(ENDLESS["n"] == 10, 0.1, 1e-4)
ENDLESS = fake.fail(ENDLESS, "snr == 2 and seed == 0 and n == 10")


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
    cells = fake.fake_cells([5, 10], [1.0, 2.0, 4.0], seeds=6, noise=0.1)
    options = {"mean": mean, "band": band}
    figure = fake.draw("lines", cells, threshold=0.3, **options)
    [axes] = figure.axes
    for n, line, shade in zip((5, 10), fake.line_heights(axes), axes.collections, strict=False):
        by_snr = cells[cells["n"] == n].groupby("snr")["test_loss"]
        low, middle, high = np.array([of(seeds) for _, seeds in by_snr]).T
        assert line == pytest.approx(middle)
        edge = fake.corners(shade)[:, 1]
        ends = pytest.approx((low.min(), high.max()))
        assert (edge.min(), edge.max()) == ends or mean == "geometric"
    called, _, shaded = label.partition(",")
    facts = f"signal-to-noise ratio SNR: {called} of 6 seeds, band:{shaded}."
    names = f"\nN = 5\n … \nN = 10\n … \nthreshold 0.3\n … \ntest loss ({label})\n"
    assert not fake.untold(figure, f"{names} … {facts}")


@pytest.mark.parametrize(
    ("seeds", "band", "each", "told"),
    [
        (2, None, 2, "a thin line for each seed"),
        (3, None, 0, "band: the middle half"),
        (3, "seeds", 3, "a thin line for each seed"),
        (2, "quartiles", 0, "band: the middle half"),
    ],
)
def test_few_seeds_have_a_line_each(seeds: int, band: Band | None, each: int, told: str) -> None:
    """And those that are asked for."""
    cells = fake.fake_cells([5], [1.0, 2.0, 4.0], seeds=seeds, noise=1.0)
    figure = fake.draw("lines", cells, band=band)
    losses = cells.pivot(index="seed", columns="snr", values="test_loss").to_numpy()
    drawn = [np.median(losses, axis=0), *losses[:each].tolist()]
    assert fake.line_heights(figure.axes[0]) == [pytest.approx(line) for line in drawn]
    assert len(figure.axes[0].collections) == (0 if each else 1)
    assert not fake.untold(figure, f"median of {seeds} seeds, {told}.")


def test_a_band_ends_at_0_and_1_for_shares_and_at_the_frame_where_it_has_no_upper_end() -> None:
    """And the axis still has room for the lines that come after it."""
    shares = fake.fake_cells([5], [1.0, 2.0]).assign(test_loss=[0.0, 1.0, 0.1, 0.9, 1.0, 0.95])
    edge = fake.corners(fake.draw("lines", shares, mean="arithmetic").axes[0].collections[0])[:, 1]
    assert (edge.min(), edge.max()) == (0, 1)
    [axes] = fake.draw("lines", ENDLESS, **OF_LOG).axes
    assert fake.corners(axes.collections[0])[:, 1].max() == pytest.approx(axes.get_ylim()[1])
    assert axes.get_ylim()[0] < 1e-4


# What a picture says

MISSED, ONE = fake.fail(FIVE, "seed == 0"), fake.fail(FIVE, "seed == 1 and snr == 2")
KILLED = fake.fail(FIVE, "seed < 3", "worker killed")
LIMIT = fake.fail(PAIR, "kernel == 'softmax'", "step limit")
HALF = fake.fail(FIVE, "snr == 4 and seed < 3 or snr == 8").query("seed < 4")
UNEVEN = pd.concat([fake.fake_cells([1, 2], [float(seeds)], seeds=seeds) for seeds in (1, 3)])
BY_SNR = {**OF_LOG, "x": "n", "band": "interval"}
BEYOND, HALF_MISS = "(diverged) taken as beyond the others", "half or more: diverged"
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
        (LIMIT, {"x": "kernel"}, "half or more: target not reached", None),
        (fake.fake_cells([10**6, 10**15], [1.0, 2.0]), {}, "N = 10⁶ … N = 10¹⁵", None),
        (REFINED, {}, "median of 1 to 3 seeds", None),
        (UNEVEN, BY_SNR, "SNR = 1 … SNR = 3", None),
    ],
)
def test_a_picture_says_what_its_lines_are_of_and_what_they_lack(
    cells: pd.DataFrame, options: dict[str, Any], said: str, height: float | None
) -> None:
    """A seed that misses is beyond the others: the median of those that arrive flatters them."""
    figure = fake.draw("lines", cells, **options)
    assert height is None or fake.line_heights(figure.axes[0])[0] == pytest.approx([height] * 4)
    assert not fake.untold(figure, said)


def test_where_half_of_the_seeds_miss_a_cross_stands_for_the_median() -> None:
    line, cross = fake.draw("lines", HALF).axes[0].lines
    assert np.isfinite(fake.heights(line)).tolist() == [True, True, False, False]
    assert cross.get_marker() == "x"
    assert np.asarray(cross.get_xdata()).tolist() == [4.0, 8.0]


# Axes


def test_decades_below_the_last_digit_of_the_largest_or_of_the_start_are_shaded() -> None:
    cells = fake.fake_cells([10], [1.0, 2.0, 4.0])
    falling = fake.data_of(cells.assign(test_loss=10.0 ** (2 - 10 * cells["snr"])))
    for floor, drawn, said in (
        (0.0, [1e-8, 1e-18, 1e-24], "below 10⁻¹⁶ of the largest"),
        (1e-12, [1e-8, 1e-12, 1e-12], "round-off, below 10⁻¹² of the start"),
    ):
        figure = plain_lines(falling, fake.ASKED["lines"], floor=floor)
        assert fake.line_heights(figure.axes[0]) == [pytest.approx(drawn)]
        assert figure.axes[0].get_ylim()[0] == pytest.approx(drawn[-1] / 30)
        assert not fake.untold(figure, f"\n{said}\n")


def test_a_line_of_zeros_leaves_the_others_a_logarithmic_axis_that_ends_at_them() -> None:
    cells = kernels([10], [1.0, 2.0, 4.0])
    cells["test_loss"] = np.where(cells["kernel"] == "softmax", 10 / cells["snr"] ** 3, 0.0)
    figure = fake.draw("lines", cells, x="snr")
    [axes] = figure.axes
    assert axes.get_yscale() == "log"
    assert axes.get_ylim()[0] > 0.01
    assert not fake.untold(figure, "gaussian (0)", "softmax (0)")


def test_where_x_is_no_number_points_stand_beside_each_other_with_bars() -> None:
    gaussian = fake.fake_cells([5, 10], [1.0], noise=1.0, kernel="gaussian")
    cells = pd.concat([gaussian, fake.fake_cells([5], [1.0], kernel="softmax")])
    [axes] = fake.draw("lines", cells, x="kernel").axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["softmax", "gaussian"]
    bars: list[Any] = list(axes.containers)
    five, ten = [np.asarray(bar.lines[0].get_xdata()) for bar in bars]
    assert (five.round().tolist(), ten.round().tolist()) == ([0, 1], [1])
    assert 0 < ten[0] - five[1] < 0.2
    median = cells.groupby(["n", "kernel"])["test_loss"].median()
    drawn = bars[0].lines[0].get_ydata()
    assert drawn == pytest.approx([median[5, "softmax"], median[5, "gaussian"]])


@pytest.mark.slow
def test_a_parameter_that_goes_with_an_axis_leaves_a_map_two_axes(tmp_path: Path) -> None:
    grid = ("--n=1,2,3", "--snr=2*n", "--set=pause=0,0.0001", "--jobs=1", "--out=a")
    command = call("sweep", "toy", *grid, cwd=tmp_path)
    call(*shlex.split(command.stdout.rpartition("Next: overfit ")[2]), cwd=tmp_path)
    for x, y in ((None, None), ("pause", "n"), ("snr", "pause")):
        axes = overfit_cli.draw("heatmap", tmp_path / "a", x=x, y=y).axes[0]
        assert "time a cell takes" in axes.get_xlabel() + axes.get_ylabel()


def test_more_settings_than_colours_get_panels_if_those_of_one_parameter_suffice() -> None:
    ns = (2, 4, 6, 8, 10)
    figure = fake.draw("lines", kernels(ns, [1.0, 2.0]))
    assert fake.titles(figure) == [f"({at}) $N$ = {n}" for at, n in zip("abcde", ns, strict=True)]
    assert not fake.untold(figure, "\nsoftmax\n … \ngaussian\n")


# Curves

NINE = fake.fake_cells([5, 10, 20], [1.0])
LOGS = fake.fake_trajectories(NINE)

SINGLE, TWO_CELLS = fake.fake_cells([5], [1.0], seeds=1), fake.fake_cells([5, 10], [1.0], seeds=1)
FOUR = fake.logged(fake.fake_cells([5, 20], [1.0], seeds=2))
ENDS = [0.5] * 11 + [np.inf] * 9 + [0.5] * 20
FAILS = fake.logged(fake.fail(TWO_CELLS, "n == 5"), train_loss=ENDS)
EMPTY = fake.logged(TWO_CELLS, attention=np.nan)
BOTH = "training loss … test loss … gradient steps"
MEDIAN = "median of 3 seeds, band: the middle half; each curve up to the last step that all its"


@pytest.mark.parametrize(
    ("data", "value", "lines", "scale", "said", "unsaid"),
    [
        (fake.logged(SINGLE), None, 2, "linear", BOTH, "nan"),
        (fake.logged(SINGLE), "attention", 1, "linear", "", "nan"),  # it has a sign
        (FOUR, "train_loss", 4, "log", "\nN = 20, seed 1\n", "SNR"),
        (FAILS, None, 4, "linear", "\nN = 5 (diverged)\n", "nan"),
        (fake.logged(NINE), "test_loss", 3, "linear", MEDIAN, "nan"),
        (EMPTY, "train_loss,attention", 2, "linear", "\ntraining loss\n", "attention"),
        (EMPTY, "train_loss,train_loss", 2, "linear", "\ntraining loss\n", "nan"),
    ],
)
def test_few_cells_are_a_curve_each_and_more_are_averaged_over_seeds(
    data: Cells, value: str | None, lines: int, scale: str, said: str, unsaid: str
) -> None:
    """A column without a number or named twice is left out; a small span has a linear axis."""
    figure = fake.draw("curves", data, value=value)
    assert (len(figure.axes[0].lines), figure.axes[0].get_yscale()) == (lines, scale)
    assert not fake.untold(figure, said, unsaid)


FIVE_NS, MANY_NS = (kernels(ns, [1.0, 2.0]) for ns in (range(2, 11, 2), range(2, 15)))
OF_REFINED = fake.as_refined(fake.data_of(REFINED))
LOG_X, THEORY = {"x": "kernel", "log": frozenset("x")}, "it takes up to 3 columns, beside"


@pytest.mark.parametrize(
    ("figure", "cells", "options", "sentence"),
    [
        ("lines", fake.fail(PAIR, "snr == 2"), {}, "x='snr': no line of test_loss has two points"),
        ("lines", FIVE_NS, {"by": "width"}, "x='snr': .* 10 settings here, .* 8 lines; make p"),
        ("lines", MANY_NS, {}, "26 settings here, .* 8 lines; make panels of one"),
        ("lines", PAIR.assign(test_loss=0), {"mean": "geometric"}, "geometric': 6 .* not positive"),
        ("lines", PAIR, LOG_X, "the values of kernel aren't all positive"),
        ("lines", OF_REFINED, {}, "where: points of a refined sweep have different seeds"),
        ("curves", FOUR, {"value": "train_loss,,attention"}, "fake logs no ''; known:"),
        ("curves", FOUR, {"theory": "train_loss"}, f"^theory='train_loss': {THEORY}"),
        ("curves", FOUR, {"value": "test_loss,train_loss", "theory": "attention"}, THEORY),
    ],
)
def test_lines_and_curves_that_cannot_be_drawn_are_refused(
    figure: str, cells: Any, options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(UserError, match=sentence):
        fake.draw(figure, cells, **options)


@pytest.mark.slow
def test_the_legend_of_a_rows_columns_stands_beside_its_last_panel() -> None:
    columns = "train_loss,test_loss; attention"
    figure = fake.draw("curves", fake.logged(NINE.query("n < 20")), value=columns, by="n")
    first, last = figure.axes[:2]
    legend, panel = last.get_legend(), last.get_window_extent()
    assert first.get_legend() is None
    assert legend is not None
    figure.draw_without_rendering()
    assert legend.get_window_extent().x0 >= panel.x0 + 0.9 * panel.width
    assert [text.get_text() for text in legend.get_texts()] == ["training loss", "test loss"]


def test_steps_up_to_billions_are_logarithmic() -> None:
    cells = fake.fake_cells([5], [1.0], seeds=1)
    far = fake.fake_trajectories(cells).assign(step=lambda steps: steps["step"] * 10**7)
    for steps, scale in ((fake.fake_trajectories(cells), "linear"), (far, "function")):
        figure = fake.draw("curves", fake.data_of(cells, None, steps), value="train_loss")
        assert figure.axes[0].get_xscale() == scale


def test_cells_logged_at_other_steps_are_averaged_between_them() -> None:
    steps = LOGS.assign(test_loss=100.0 - LOGS["step"])
    uneven = steps[(steps["step"] % 3 == 0) | ~steps["key"].str.startswith("1-")]
    figure = fake.draw("curves", fake.data_of(NINE, None, uneven), value="test_loss")
    for line in figure.axes[0].lines:
        step = np.asarray(line.get_xdata())
        assert step.tolist() == list(range(19)), "up to the last step that all were logged at"
        assert fake.heights(line) == pytest.approx(100 - step)


@pytest.mark.slow
def test_a_cell_that_diverged_is_beyond_the_others_from_its_end_on() -> None:
    """A median of the others alone would flatter them; one that missed its target is a curve."""
    seeds = LOGS["key"].map(NINE.set_index("key")["seed"])
    steps = LOGS.assign(train_loss=1.0 + seeds)[(seeds > 0) | (LOGS["step"] < 5)]
    data = fake.data_of(fake.fail(NINE, "seed == 0"), None, steps)
    figure = fake.draw("curves", data)
    drawn = fake.heights(figure.axes[0].lines[0]).tolist()
    assert drawn == [2.0] * 5 + [3.0] * 16, "of 1, 2, 3, and then of 2, 3, beyond"
    assert not fake.untold(figure, "3 cells (diverged) taken as beyond the others")
    mean = fake.draw("curves", data, mean="arithmetic")
    assert not fake.untold(mean, "3 cells (diverged) left out")
    missed = fake.fail(NINE, "seed == 0", "step limit")
    whole, some = (fake.draw("curves", fake.data_of(frame, None, LOGS)) for frame in (NINE, missed))
    assert fake.line_heights(some.axes[0]) == fake.line_heights(whole.axes[0])
    assert not fake.untold(some, "", "left out")


# The best step size


Curves = dict[tuple[str, float], list[float]]


def run_of(curves: Curves) -> Cells:
    """Three seeds of each kernel and step size, logged at steps 0, 1, ... up to the last loss."""
    rows, logs = [], []
    for ((kernel, rate), losses), seed in itertools.product(curves.items(), range(3)):
        row = {"key": f"{kernel}-{rate}-{seed}", "seed": seed, "study": "any", "kernel": kernel}
        row |= {"status": "done", "reason": "", "learning_rate": rate, "steps": len(losses)}
        rows.append({**row, "relative_loss": losses[-1]})
        logs.append(pd.DataFrame({"key": row["key"], "train_loss": losses}))
    steps = pd.concat(logs).reset_index(names="step")
    return Cells.of(find_study("kernel-regression"), pd.DataFrame(rows), pd.DataFrame(), steps)


SLOW, FAST = [1, 1e-3, 1e-5, 1e-15], [1, 1e-8, 1e-13, 3e-13]  # the slow one ends lowest, in noise
TWO = {("softmax", 0.1): [1, 0.9], ("softmax", 1.0): [1, 0.5]}
EACH = TWO | {("gaussian", 0.1): [1, 0.2], ("gaussian", 1.0): [1, 0.3]}


@pytest.mark.parametrize(
    ("curves", "said"),
    [
        (EACH, "Best of 2 step sizes: 1 for softmax; 0.1 for Gaussian."),
        (TWO | {("softmax", 3.0): [1, 0.1]}, "Best of 3 step sizes: 3 (the largest tried)."),
        ({("softmax", 0.1): SLOW, ("softmax", 1.0): FAST}, "Best of 2 step sizes: 1."),
        ({("softmax", 0.1): [1, 1], ("softmax", 1.0): [1, 1]}, "Best of 2 step sizes: any."),
    ],
)
def test_a_caption_says_which_step_sizes_are_best(curves: Curves, said: str) -> None:
    """In round-off it is the one that comes there first."""
    assert not fake.untold(draw_best_curves(run_of(curves), fake.ASKED["curves"]), said)
