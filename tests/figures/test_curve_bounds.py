"""Bounds and floors of a theory beside curves: what is drawn of them, and what the caption says."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.study import FigureData
from overfit_cli.figures.curve_scale import ROUND_OFF
from overfit_cli.figures.curves import draw_panels
from overfit_cli.figures.panels import panels
from overfit_cli.figures.picture import styled
from tests.fake_study import data_of, draw_curves, fake_cells, words

BOUNDED = FigureOptions(value="train_loss", theory="test_loss")
STEPS = np.arange(101)


def bounded(losses: dict[int, np.ndarray], bounds: dict[int, np.ndarray]) -> FigureData:
    """Three seeds at each n: their losses and bounds; a loss with a row for each seed differs."""
    cells = fake_cells(sorted(losses), [1.0])
    pieces = [
        pd.DataFrame(
            {
                "key": key,
                "step": STEPS,
                "train_loss": np.broadcast_to(losses[n], (3, 101))[seed],
                "test_loss": bounds[n],
            }
        )
        for key, n, seed in zip(cells["key"], cells["n"], cells["seed"], strict=True)
    ]
    return data_of(cells, None, pd.concat(pieces, ignore_index=True))


FALL = 10.0 ** (-STEPS / 50)


def test_seeds_above_a_bound_are_counted_though_their_median_stays_below() -> None:
    losses = np.stack([FALL / 2, FALL / 3, FALL / 2 + 0.002 * STEPS])
    text = words(draw_curves(bounded({4: losses}, {4: FALL}), BOUNDED))
    assert "\nThese lines are medians too.\n" in text
    assert "\nSeeds above the test loss at some logged step: 1 of 3.\n" in text
    assert "first step above" not in text, "the median has no cross"


def test_seeds_above_a_bound_are_counted_by_panel() -> None:
    above = FALL / 2 + 0.002 * STEPS
    data = bounded({4: FALL / 2, 6: above}, {4: FALL, 6: FALL})
    text = words(draw_curves(data, BOUNDED))
    assert "\nThese lines are medians too, and crosses where medians cross.\n" in text
    assert "\nSeeds above the test loss at some logged step: 3 in (b), of 3 each.\n" in text


@pytest.mark.slow
def test_a_floor_of_0_is_said_where_a_logarithmic_axis_shows_none() -> None:
    far = FALL**4
    data = bounded({4: far, 6: far}, {4: 0.001 + 0 * far, 6: 0 * far})
    text = words(draw_curves(data, BOUNDED))
    assert "\nDashed: test loss of N = 4.\n" in text, "one panel, in which N = 6 has none"
    by_panel = FigureOptions(value="train_loss", theory="test_loss", by="n")
    assert "\nDashed: test loss (0 in (b)).\n" in words(draw_curves(data, by_panel))
    data.trajectories.loc[data.trajectories["key"].str.contains("-6-"), "test_loss"] = np.nan
    assert "\nDashed: test loss (none in (b)).\n" in words(draw_curves(data, by_panel))
    nowhere = bounded({4: far}, {4: 0 * far})
    text = words(draw_curves(nowhere, BOUNDED))
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
    fast, stays = 10.0 ** (-STEPS / 5), np.full(101, 0.5)
    stays[0] = 1.0
    data = bounded({4: np.stack([fast, fast, stays])}, {4: fast})
    draw = styled(lambda part, given: draw_panels(panels(part, None), given, least_share=ROUND_OFF))
    text = words(draw(data, FigureOptions(value="train_loss")))
    assert "\nSeeds that end above the grey: 1 of 3; at most at 0.5 of their start.\n" in text
    assert "\nround-off, below 10⁻¹² of the start\n" in text


def test_steps_at_which_all_curves_are_in_round_off_are_cut_off() -> None:
    data = bounded({4: 10.0 ** (-STEPS / 2)}, {4: FALL})
    linear = FigureOptions(value="train_loss", log=frozenset({"value"}))
    figure = draw_curves(data, linear)
    assert figure.axes[0].get_xlim()[1] == 40
    assert "\nSteps after 40 are cut off: all bands are grey there.\n" in words(figure)


def test_a_logarithmic_axis_reaches_down_to_the_lower_end_of_a_band() -> None:
    losses = np.stack([FALL, FALL, 10.0 ** (-STEPS / 10)])
    [axes] = draw_curves(bounded({4: losses}, {4: FALL}), FigureOptions(value="train_loss")).axes
    low = np.quantile(losses, 0.25, axis=0).min()
    assert axes.get_ylim()[0] < low < 0.6 * FALL.min()
