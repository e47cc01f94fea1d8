from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from overfit_cli import UserError
from overfit_cli.core.figure import FigureOptions
from tests.fake_study import (
    data_of,
    draw_curves,
    fail,
    fake_cells,
    fake_trajectories,
    line_heights,
    prose,
    words,
)


def test_a_single_cell_is_drawn_with_both_its_losses() -> None:
    cells = fake_cells([5], [1.0], seeds=1)
    figure = draw_curves(data_of(cells, None, fake_trajectories(cells)), FigureOptions())
    assert len(figure.axes[0].lines) == 2
    text = words(figure)
    assert "training loss" in text
    assert "test loss" in text
    assert "gradient steps" in text


def test_up_to_eight_cells_are_a_curve_each_named_by_what_varies() -> None:
    cells = fake_cells([5, 20], [1.0], seeds=2)
    data = data_of(cells, None, fake_trajectories(cells))
    figure = draw_curves(data, FigureOptions(value="train_loss", threshold=0.3))
    assert len(figure.axes[0].lines) == 4 + 1
    assert figure.axes[0].get_yscale() == "log"
    text = words(figure)
    assert "\nN = 20, seed 1\n" in text
    assert "SNR" not in text
    assert "threshold 0.3" in text


def test_more_cells_are_averaged_over_seeds_where_all_of_them_ran() -> None:
    cells = fake_cells([5, 10, 20], [1.0], seeds=3)
    data = data_of(cells, None, fake_trajectories(cells))
    figure = draw_curves(data, FigureOptions(value="test_loss"))
    lines = figure.axes[0].lines
    assert [len(np.asarray(line.get_xdata())) for line in lines] == [20] * 3
    assert len(figure.axes[0].collections) == 3
    sentence = (
        "median of 3 seeds, band: the middle half; each curve up to the last step that all its"
    )
    assert sentence in prose(figure)


def test_cells_logged_at_other_steps_are_averaged_between_them() -> None:
    cells = fake_cells([5, 10, 20], [1.0], seeds=3)
    logged = fake_trajectories(cells)
    logged["test_loss"] = 100.0 - logged["step"]
    uneven = logged[(logged["step"] % 3 == 0) | ~logged["key"].str.startswith("1-")]
    figure = draw_curves(data_of(cells, None, uneven), FigureOptions(value="test_loss"))
    for line in figure.axes[0].lines:
        step, loss = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
        assert step.tolist() == list(range(19)), "up to the last step that all were logged at"
        assert loss == pytest.approx(100 - step)


def test_a_cell_that_diverged_is_beyond_the_others_from_its_end_on() -> None:
    """Its loss is no number any more; a median of the others alone would flatter them."""
    cells = fake_cells([5, 10, 20], [1.0], seeds=3)
    logged = fake_trajectories(cells)
    seeds = logged["key"].map(cells.set_index("key")["seed"])
    logged["train_loss"] = 1.0 + seeds
    logged = logged[(seeds > 0) | (logged["step"] < 5)]
    data = data_of(fail(cells, cells["seed"] == 0), None, logged)
    figure = draw_curves(data, FigureOptions(value="train_loss"))
    heights = np.asarray(figure.axes[0].lines[0].get_ydata(), dtype=np.float64)
    assert heights.tolist() == [2.0] * 5 + [3.0] * 16, "of 1, 2, 3, and then of 2, 3, beyond"
    assert "3 diverged cells taken as beyond the others" in words(figure)
    mean = draw_curves(data, FigureOptions(value="train_loss", mean="arithmetic"))
    assert "3 diverged cells left out" in words(mean)


def test_a_cell_that_missed_its_target_is_a_curve_as_the_others_are() -> None:
    cells = fake_cells([5, 10, 20], [1.0], seeds=3)
    logged = fake_trajectories(cells)
    missed = fail(cells, cells["seed"] == 0).replace({"reason": {"diverged": "step limit"}})
    whole, some = (
        draw_curves(data_of(frame, None, logged), FigureOptions(value="train_loss"))
        for frame in (cells, missed)
    )
    assert line_heights(some.axes[0]) == line_heights(whole.axes[0])
    assert "left out" not in words(some)


def test_a_failed_cell_on_its_own_is_named_so() -> None:
    cells = fake_cells([5, 10], [1.0], seeds=1)
    logged = fake_trajectories(cells)
    logged.loc[logged["step"] > 10, "train_loss"] = np.inf
    data = data_of(fail(cells, cells["n"] == 5), None, logged)
    assert "\nN = 5 (diverged)\n" in words(draw_curves(data, FigureOptions()))


def test_many_settings_are_coloured_in_order_and_some_are_named() -> None:
    cells = fake_cells(list(range(2, 21)), [1.0], seeds=2)
    data = data_of(cells, None, fake_trajectories(cells))
    figure = draw_curves(data, FigureOptions(value="train_loss"))
    assert len(figure.axes[0].lines) == 19
    text = words(figure)
    assert "\nN = 2\n" in text
    assert "\nN = 20\n" in text


def test_a_small_span_or_a_sign_keeps_the_axis_linear() -> None:
    cells = fake_cells([5], [1.0], seeds=1)
    data = data_of(cells, None, fake_trajectories(cells))
    assert draw_curves(data, FigureOptions()).axes[0].get_yscale() == "linear"
    attention = draw_curves(data, FigureOptions(value="attention"))
    assert attention.axes[0].get_yscale() == "linear"


def test_curves_without_steps_or_of_an_unknown_column_are_refused(cells: pd.DataFrame) -> None:
    with pytest.raises(UserError, match="No steps were logged here"):
        draw_curves(data_of(cells), FigureOptions())
    logged = data_of(cells, None, fake_trajectories(cells.iloc[:2]))
    with pytest.raises(UserError, match="value='atention': fake logs no 'atention'; did you mean"):
        draw_curves(logged, FigureOptions(value="atention"))
