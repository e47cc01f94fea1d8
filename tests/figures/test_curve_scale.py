"""Scales of curves, and what is marked on them: early falls, the least shown, ends and bounds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.study import FigureData
from overfit_cli.figures.picture import Picture
from tests.fake_study import corners, data_of, draw_curves, fake_cells, line_heights, titles, words

LOSS = FigureOptions(value="train_loss")
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


@pytest.mark.parametrize(
    ("rate", "log", "scale"),
    [
        (1.0, None, "function"),
        (0.01, None, "linear"),
        (1.0, frozenset(), "linear"),
        (0.01, frozenset({"x"}), "function"),
    ],
)
def test_steps_are_logarithmic_where_all_happens_early_unless_the_user_says(
    rate: float, log: frozenset[str] | None, scale: str
) -> None:
    figure = drawn(lambda seed: 0.5 + np.exp(-rate * STEPS) / (9 + seed), log=log)
    assert figure.axes[0].get_xscale() == scale


def test_logarithmic_steps_begin_at_0_and_have_ticks_at_powers_of_ten() -> None:
    text = words(drawn(lambda seed: 0.5 + np.exp(-STEPS) / (9 + seed)))
    assert "\n0\n1\n10\n100\ngradient steps\n" in text


def test_a_steady_fall_of_many_decades_keeps_its_steps_linear() -> None:
    assert drawn(lambda _: 10.0 ** (-STEPS / 20)).axes[0].get_xscale() == "linear"


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
    def short(seed: int) -> np.ndarray:
        last = 100 + 10 * seed
        return np.where(last >= STEPS, 1.0 - STEPS / 400, np.nan)

    figure = drawn(short)
    [line] = figure.axes[0].lines
    assert (line.get_marker(), line.get_markevery()) == ("o", [-1])
    assert np.asarray(line.get_xdata())[-1] == 100
    assert "\nfirst seed ends\n" in words(figure)
    whole = drawn(lambda _: 1.0 - STEPS / 400)
    assert whole.axes[0].lines[0].get_marker() == "None"


def test_a_curve_that_comes_above_its_bound_is_marked_where_it_does() -> None:
    data = logged(lambda _: 1.0 - STEPS / 400)
    data.trajectories["test_loss"] = 1.25 - data.trajectories["step"] / 200
    figure = draw_curves(data, FigureOptions(value="train_loss", theory="test_loss"))
    mark = figure.axes[0].lines[-1]
    assert (mark.get_marker(), np.asarray(mark.get_xdata()).tolist()) == ("X", [101])
    assert "\nfirst step above test loss\n" in words(figure)
    data.trajectories["test_loss"] = 0.1
    figure = draw_curves(data, FigureOptions(value="train_loss", theory="test_loss"))
    assert len(figure.axes[0].lines) == 2, "it lies above this one from the start"


def test_settings_with_a_bound_each_have_a_panel_each_in_their_colour() -> None:
    data = logged(lambda seed: 1.0 - STEPS / (400 + seed), kernels=("softmax", "gaussian"))
    figure = draw_curves(data, FigureOptions(value="train_loss", theory="test_loss"))
    assert titles(figure) == ["(a) softmax", "(b) gaussian"]
    assert [axes.lines[0].get_color() for axes in figure.axes] == ["C0", "C1"]
    assert {axes.lines[1].get_color() for axes in figure.axes} == {"black"}


def test_a_band_reaches_neither_below_0_nor_beyond_the_quartiles() -> None:
    figure = drawn(lambda seed: (0.1 + seed) * (1.0 - STEPS / 400))
    heights = corners(figure.axes[0].collections[0])[:, 1]
    assert heights.max() == pytest.approx(1.6)
    assert heights.min() == pytest.approx(0.3)
