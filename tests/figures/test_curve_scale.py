"""Scales of curves, and what is marked on them: early falls, the least shown, ends and bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.study import FigureData
from overfit_cli.figures.curve_scale import ROUND_OFF
from overfit_cli.figures.curves import draw_panels
from overfit_cli.figures.panels import panels
from overfit_cli.figures.picture import Picture, styled
from tests.fake_study import corners, data_of, draw_curves, fake_cells, line_heights, titles, words

LOSS = FigureOptions(value="train_loss")
BOUNDED_STEPS = np.arange(101)
BOUNDED = FigureOptions(value="train_loss", theory="test_loss")
STEPS = np.arange(201)


def logged(
    loss: Callable[[int], np.ndarray], seeds: int = 3, kernels: tuple[str, ...] = ("softmax",)
) -> FigureData:
    """Cells whose loss is that of their seed, at 201 steps; the test loss is twice it."""
    cells = pd.concat([fake_cells([5], [1.0], seeds=seeds, kernel=k) for k in kernels])
    cells["key"] += cells["kernel"]
    pieces = [
        pd.DataFrame({"key": key, "step": STEPS, "train_loss": loss(seed)})
        for key, seed in zip(cells["key"], cells["seed"], strict=True)
    ]
    steps = pd.concat(pieces, ignore_index=True).dropna()
    return data_of(cells, None, steps.assign(test_loss=2 * steps["train_loss"]))


def drawn(loss: Callable[[int], np.ndarray], **options: object) -> Picture:
    return draw_curves(logged(loss), FigureOptions(**{"value": "train_loss", **options}))  # type: ignore[arg-type]


EARLY = 0.5 + np.exp(-STEPS) / 9


@pytest.mark.parametrize(
    ("loss", "log", "scale"),
    [
        (EARLY, None, "function"),
        (0.5 + np.exp(-0.01 * STEPS) / 9, None, "linear"),
        (10.0 ** (-STEPS / 20), None, "linear"),
        (EARLY, frozenset(), "linear"),
        (0.5 + np.exp(-0.01 * STEPS) / 9, frozenset({"x"}), "function"),
    ],
)
def test_steps_are_logarithmic_where_all_happens_early_unless_the_user_says(
    loss: np.ndarray, log: frozenset[str] | None, scale: str
) -> None:
    """They begin at 0, and have ticks at powers of ten."""
    figure = drawn(lambda seed: loss * (1 + 0.01 * seed), log=log)
    assert figure.axes[0].get_xscale() == scale
    assert ("\n0\n1\n10\n100\ngradient steps\n" in words(figure)) == (scale == "function")


def test_losses_end_at_a_share_of_the_start_and_what_is_below_is_shaded() -> None:
    figure = drawn(lambda _: 10.0 ** (-STEPS / 5))
    [axes] = figure.axes
    assert min(line_heights(axes)[0]) == pytest.approx(1e-16)
    assert axes.get_ylim()[0] == pytest.approx(1e-16 / 30)
    assert "\nbelow 10⁻¹⁶ of the start\n" in words(figure)


def test_the_axis_reaches_to_the_end_of_every_measured_column() -> None:
    data = logged(lambda _: 10.0 ** (-STEPS / 100))
    data.trajectories["test_loss"] = data.trajectories["train_loss"] ** 3
    figure = draw_curves(data, FigureOptions(value="train_loss,test_loss"))
    least = min(min(heights) for heights in line_heights(figure.axes[0]))
    assert least == pytest.approx(1e-6)
    assert figure.axes[0].get_ylim()[0] < least


def test_a_curve_that_ends_with_its_first_seed_has_a_dot_there() -> None:
    whole = 1.0 - STEPS / 400
    figure = drawn(lambda seed: np.where(100 + 10 * seed >= STEPS, whole, np.nan))
    [line] = figure.axes[0].lines
    assert (line.get_marker(), line.get_markevery()) == ("o", [-1])
    assert np.asarray(line.get_xdata())[-1] == 100
    assert "\nfirst seed ends\n" in words(figure)
    assert drawn(lambda _: whole).axes[0].lines[0].get_marker() == "None"


def test_a_curve_that_comes_above_its_bound_is_marked_where_it_does() -> None:
    data = logged(lambda _: 1.0 - STEPS / 400)
    data.trajectories["test_loss"] = 1.25 - data.trajectories["step"] / 200
    figure = draw_curves(data, BOUNDED)
    mark = figure.axes[0].lines[-1]
    assert (mark.get_marker(), np.asarray(mark.get_xdata()).tolist()) == ("X", [101])
    assert "\nfirst step above test loss\n" in words(figure)
    data.trajectories["test_loss"] = 0.1
    figure = draw_curves(data, BOUNDED)
    assert len(figure.axes[0].lines) == 2, "it lies above this one from the start"


def test_settings_with_a_bound_each_have_a_panel_each_in_their_colour() -> None:
    data = logged(lambda seed: 1.0 - STEPS / (400 + seed), kernels=("softmax", "gaussian"))
    figure = draw_curves(data, BOUNDED)
    assert titles(figure) == ["(a) softmax", "(b) gaussian"]
    assert [axes.lines[0].get_color() for axes in figure.axes] == ["C0", "C1"]
    assert {axes.lines[1].get_color() for axes in figure.axes} == {"black"}


def test_a_band_reaches_neither_below_0_nor_beyond_the_quartiles() -> None:
    figure = drawn(lambda seed: (0.1 + seed) * (1.0 - STEPS / 400))
    heights = corners(figure.axes[0].collections[0])[:, 1]
    assert heights.max() == pytest.approx(1.6)
    assert heights.min() == pytest.approx(0.3)


# Bounds and floors of a theory


def bounded(losses: dict[int, np.ndarray], bounds: dict[int, np.ndarray]) -> FigureData:
    """Three seeds at each n: their losses and bounds; a loss with a row for each seed differs."""
    cells = fake_cells(sorted(losses), [1.0])
    pieces = [
        pd.DataFrame(
            {
                "key": key,
                "step": BOUNDED_STEPS,
                "train_loss": np.broadcast_to(losses[n], (3, 101))[seed],
                "test_loss": bounds[n],
            }
        )
        for key, n, seed in zip(cells["key"], cells["n"], cells["seed"], strict=True)
    ]
    return data_of(cells, None, pd.concat(pieces, ignore_index=True))


FALL = 10.0 ** (-BOUNDED_STEPS / 50)


def test_seeds_above_a_bound_are_counted_though_their_median_stays_below() -> None:
    above = FALL / 2 + 0.002 * BOUNDED_STEPS
    some = bounded({4: np.stack([FALL / 2, FALL / 3, above])}, {4: FALL})
    text = words(draw_curves(some, BOUNDED))
    assert "\nThese lines are medians too.\n" in text
    assert "\nSeeds above the test loss at some logged step: 1 of 3.\n" in text
    assert "first step above" not in text, "the median has no cross"
    text = words(draw_curves(bounded({4: FALL / 2, 6: above}, {4: FALL, 6: FALL}), BOUNDED))
    assert "\nThese lines are medians too, and crosses where medians cross.\n" in text
    assert "\nSeeds above the test loss at some logged step: 3 in (b), of 3 each.\n" in text


@pytest.mark.slow
def test_a_floor_of_0_is_said_where_a_logarithmic_axis_shows_none() -> None:
    far, by_panel = FALL**4, replace(BOUNDED, by="n")
    data = bounded({4: far, 6: far}, {4: 0.001 + 0 * far, 6: 0 * far})
    text = words(draw_curves(data, BOUNDED))
    assert "\nDashed: test loss of N = 4.\n" in text, "one panel, in which N = 6 has none"
    assert "\nDashed: test loss (0 in (b)).\n" in words(draw_curves(data, by_panel))
    data.trajectories.loc[data.trajectories["key"].str.contains("-6-"), "test_loss"] = np.nan
    assert "\nDashed: test loss (none in (b)).\n" in words(draw_curves(data, by_panel))
    text = words(draw_curves(bounded({4: far}, {4: 0 * far}), BOUNDED))
    assert "test loss" not in text, "what is drawn nowhere is not named"


@pytest.mark.slow
def test_two_bounds_that_cannot_be_told_apart_are_said_to_lie_together() -> None:
    data = bounded({4: FALL / 2, 6: FALL / 2}, {4: FALL, 6: FALL})
    factor = np.where(data.trajectories["key"].str.contains("-4-"), 1.001, 1.5)
    data.trajectories["attention"] = data.trajectories["test_loss"] * factor
    options = FigureOptions(value="train_loss", theory="test_loss,attention", by="n")
    text = words(draw_curves(data, options))
    assert "\nBoth lines lie together in (a).\n" in text


def test_seeds_that_stay_above_the_round_off_of_the_others_are_counted() -> None:
    fast, stays = 10.0 ** (-BOUNDED_STEPS / 5), np.full(101, 0.5)
    stays[0] = 1.0
    data = bounded({4: np.stack([fast, fast, stays])}, {4: fast})
    draw = styled(lambda part, given: draw_panels(panels(part, None), given, least_share=ROUND_OFF))
    text = words(draw(data, LOSS))
    assert "\nSeeds that end above the grey: 1 of 3; at most at 0.5 of their start.\n" in text
    assert "\nround-off, below 10⁻¹² of the start\n" in text


def test_steps_at_which_all_curves_are_in_round_off_are_cut_off() -> None:
    data = bounded({4: 10.0 ** (-BOUNDED_STEPS / 2)}, {4: FALL})
    linear = FigureOptions(value="train_loss", log=frozenset({"value"}))
    figure = draw_curves(data, linear)
    assert figure.axes[0].get_xlim()[1] == 40
    assert "\nSteps after 40 are cut off: all bands are grey there.\n" in words(figure)


def test_a_logarithmic_axis_reaches_down_to_the_lower_end_of_a_band() -> None:
    losses = np.stack([FALL, FALL, 10.0 ** (-BOUNDED_STEPS / 10)])
    [axes] = draw_curves(bounded({4: losses}, {4: FALL}), LOSS).axes
    low = np.quantile(losses, 0.25, axis=0).min()
    assert axes.get_ylim()[0] < low < 0.6 * FALL.min()
