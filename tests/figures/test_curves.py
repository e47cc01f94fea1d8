"""Logged columns against the step: cells and settings, in panels, with what failed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from overfit_cli import UserError
from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.study import FigureData
from tests.fake_study import (
    data_of,
    draw_curves,
    fail,
    fake_cells,
    fake_trajectories,
    heights,
    line_heights,
    prose,
    titles,
    words,
)

LOSS = FigureOptions(value="train_loss")


def logged(cells: pd.DataFrame) -> FigureData:
    """The cells with their logged steps."""
    return data_of(cells, None, fake_trajectories(cells))


def test_a_single_cell_is_drawn_with_both_its_losses_on_a_linear_axis() -> None:
    """A small span keeps it linear, and so does a sign."""
    data = logged(fake_cells([5], [1.0], seeds=1))
    figure = draw_curves(data, FigureOptions())
    assert len(figure.axes[0].lines) == 2
    assert figure.axes[0].get_yscale() == "linear"
    text = words(figure)
    for word in ("training loss", "test loss", "gradient steps"):
        assert word in text
    attention = draw_curves(data, FigureOptions(value="attention"))
    assert attention.axes[0].get_yscale() == "linear"


def test_up_to_eight_cells_are_a_curve_each_named_by_what_varies() -> None:
    data = logged(fake_cells([5, 20], [1.0], seeds=2))
    figure = draw_curves(data, FigureOptions(value="train_loss", threshold=0.3))
    assert len(figure.axes[0].lines) == 4 + 1
    assert figure.axes[0].get_yscale() == "log"
    text = words(figure)
    assert "\nN = 20, seed 1\n" in text
    assert "SNR" not in text
    assert "threshold 0.3" in text
    many = draw_curves(logged(fake_cells(list(range(2, 21)), [1.0], seeds=2)), LOSS)
    assert len(many.axes[0].lines) == 19
    for name in ("N = 2", "N = 20"):
        assert f"\n{name}\n" in words(many)


def test_more_cells_are_averaged_over_seeds_where_all_of_them_ran() -> None:
    figure = draw_curves(logged(fake_cells([5, 10, 20], [1.0])), FigureOptions(value="test_loss"))
    lines = figure.axes[0].lines
    assert [len(np.asarray(line.get_xdata())) for line in lines] == [20] * 3
    assert len(figure.axes[0].collections) == 3
    told = "median of 3 seeds, band: the middle half; each curve up to the last step that all its"
    assert told in prose(figure)


def test_cells_logged_at_other_steps_are_averaged_between_them() -> None:
    cells = fake_cells([5, 10, 20], [1.0])
    steps = fake_trajectories(cells)
    steps["test_loss"] = 100.0 - steps["step"]
    uneven = steps[(steps["step"] % 3 == 0) | ~steps["key"].str.startswith("1-")]
    figure = draw_curves(data_of(cells, None, uneven), FigureOptions(value="test_loss"))
    for line in figure.axes[0].lines:
        step = np.asarray(line.get_xdata())
        assert step.tolist() == list(range(19)), "up to the last step that all were logged at"
        assert heights(line) == pytest.approx(100 - step)


def test_a_cell_that_diverged_is_beyond_the_others_from_its_end_on() -> None:
    """Its loss is no number any more; a median of the others alone would flatter them."""
    cells = fake_cells([5, 10, 20], [1.0])
    steps = fake_trajectories(cells)
    seeds = steps["key"].map(cells.set_index("key")["seed"])
    steps["train_loss"] = 1.0 + seeds
    steps = steps[(seeds > 0) | (steps["step"] < 5)]
    data = data_of(fail(cells, cells["seed"] == 0), None, steps)
    figure = draw_curves(data, LOSS)
    drawn = heights(figure.axes[0].lines[0]).tolist()
    assert drawn == [2.0] * 5 + [3.0] * 16, "of 1, 2, 3, and then of 2, 3, beyond"
    assert "3 diverged cells taken as beyond the others" in words(figure)
    mean = draw_curves(data, replace(LOSS, mean="arithmetic"))
    assert "3 diverged cells left out" in words(mean)


def test_a_cell_that_missed_its_target_is_a_curve_as_the_others_are() -> None:
    cells = fake_cells([5, 10, 20], [1.0])
    steps = fake_trajectories(cells)
    missed = fail(cells, cells["seed"] == 0).replace({"reason": {"diverged": "step limit"}})
    whole, some = (draw_curves(data_of(frame, None, steps), LOSS) for frame in (cells, missed))
    assert line_heights(some.axes[0]) == line_heights(whole.axes[0])
    assert "left out" not in words(some)


def test_a_failed_cell_on_its_own_is_named_so() -> None:
    cells = fake_cells([5, 10], [1.0], seeds=1)
    steps = fake_trajectories(cells)
    steps.loc[steps["step"] > 10, "train_loss"] = np.inf
    data = data_of(fail(cells, cells["n"] == 5), None, steps)
    assert "\nN = 5 (diverged)\n" in words(draw_curves(data, FigureOptions()))


# Panels and columns


def test_curves_are_drawn_in_panels_with_one_colour_and_one_axis() -> None:
    """Also of a setting that one panel alone has; one alone would have a linear axis."""
    cells = pd.concat([fake_cells([5, 400], [1.0], seeds=5), fake_cells([400], [2.0], seeds=5)])
    data = logged(cells)
    figure = draw_curves(data, replace(LOSS, by="snr", threshold=0.3))
    left, right = figure.axes
    assert titles(figure) == [r"(a) $\mathrm{SNR}$ = 1", r"(b) $\mathrm{SNR}$ = 2"]
    assert (len(left.lines), len(right.lines)) == (2 + 1, 1 + 1)
    assert left.lines[1].get_color() == right.lines[0].get_color() != left.lines[0].get_color()
    for name in ("N = 5", "N = 400", "threshold 0.3"):
        assert words(figure).count(f"\n{name}\n") == 1
    for axes in draw_curves(data, replace(LOSS, by="n")).axes:
        assert axes.get_xlabel() == "gradient steps"
        assert axes.get_yscale() == "log"
        assert axes.get_ylim() == left.get_ylim()


def test_several_columns_are_told_apart_by_dashes() -> None:
    data = logged(fake_cells([5, 10], [1.0], seeds=1))
    figure = draw_curves(data, FigureOptions(value="train_loss, attention"))
    lines = figure.axes[0].lines
    assert [line.get_linestyle() for line in lines] == ["-", "--", "-", "--"]
    assert lines[0].get_color() == lines[1].get_color() != lines[2].get_color()
    assert figure.axes[0].get_ylabel() == "training loss", "the first, where not all are losses"
    for word in ("training loss", "attention on the signal", "N = 5"):
        assert f"\n{word}\n" in words(figure)


def test_columns_without_a_number_or_named_twice_are_left_out() -> None:
    cells = fake_cells([5, 10], [1.0], seeds=1)
    data = data_of(cells, None, fake_trajectories(cells).assign(attention=np.nan))
    for value in ("train_loss,attention", "train_loss,train_loss"):
        figure = draw_curves(data, FigureOptions(value=value))
        assert len(figure.axes[0].lines) == 2
        assert figure.axes[0].get_ylabel() == "training loss"
    with pytest.raises(UserError, match="names of logged columns, separated by commas"):
        draw_curves(data, FigureOptions(value="train_loss,,attention"))


@pytest.mark.slow
def test_curves_are_averaged_geometrically_where_asked() -> None:
    cells = fake_cells([5], [1.0], seeds=9)
    step = np.arange(3)
    pieces = [
        pd.DataFrame({"key": key, "step": step, "train_loss": 10.0 ** (-4 * step - seed % 3)})
        for key, seed in zip(cells["key"], cells["seed"], strict=True)
    ]
    data = data_of(cells, None, pd.concat(pieces, ignore_index=True))
    for mean, drawn, told in (
        ("arithmetic", [0.37, 0.37e-4, 0.37e-8], "(mean, 95 % interval)"),
        ("geometric", [1e-1, 1e-5, 1e-9], "geometric mean of 9 seeds"),
    ):
        figure = draw_curves(data, replace(LOSS, mean=mean))
        assert line_heights(figure.axes[0]) == [pytest.approx(drawn)]
        assert told in prose(figure)
