"""Logged columns in panels, and side by side."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from overfit_cli import UserError
from overfit_cli.core.figure import FigureOptions
from tests.fake_study import (
    data_of,
    draw_curves,
    fake_cells,
    fake_trajectories,
    line_heights,
    titles,
    words,
)


def test_curves_are_drawn_in_panels_with_one_colour_a_setting() -> None:
    cells = pd.concat([fake_cells([5, 10], [snr], seeds=5) for snr in (1.0, 2.0)])
    data = data_of(cells, None, fake_trajectories(cells))
    figure = draw_curves(data, FigureOptions(value="train_loss", by="snr", threshold=0.3))
    left, right = figure.axes
    assert titles(figure) == [r"(a) $\mathrm{SNR}$ = 1", r"(b) $\mathrm{SNR}$ = 2"]
    for axes in (left, right):
        assert len(axes.lines) == 2 + 1
        assert axes.get_xlabel() == "gradient steps"
    assert left.lines[0].get_color() == right.lines[0].get_color()
    text = words(figure)
    assert text.count("\nN = 5\n") == 1
    assert text.count("\nthreshold 0.3\n") == 1
    with pytest.raises(UserError, match=r"by='kernal': .* did you mean 'kernel'"):
        draw_curves(data, FigureOptions(by="kernal"))


def test_a_setting_has_its_name_and_colour_in_a_panel_that_has_no_other() -> None:
    cells = pd.concat([fake_cells([5, 10], [1.0], seeds=9), fake_cells([10], [2.0], seeds=9)])
    data = data_of(cells, None, fake_trajectories(cells))
    figure = draw_curves(data, FigureOptions(value="train_loss", by="snr"))
    left, right = figure.axes
    assert left.lines[1].get_color() == right.lines[0].get_color() != left.lines[0].get_color()
    assert words(figure).count("\nN = 10\n") == 1


def test_several_columns_are_told_apart_by_dashes() -> None:
    cells = fake_cells([5, 10], [1.0], seeds=1)
    data = data_of(cells, None, fake_trajectories(cells))
    figure = draw_curves(data, FigureOptions(value="train_loss, attention"))
    lines = figure.axes[0].lines
    assert [line.get_linestyle() for line in lines] == ["-", "--", "-", "--"]
    assert lines[0].get_color() == lines[1].get_color() != lines[2].get_color()
    assert figure.axes[0].get_ylabel() == "training loss", "the first, where not all are losses"
    text = words(figure)
    for word in ("training loss", "attention on the signal", "N = 5"):
        assert f"\n{word}\n" in text


def test_columns_without_a_number_or_named_twice_are_left_out() -> None:
    cells = fake_cells([5, 10], [1.0], seeds=1)
    logged = fake_trajectories(cells).assign(attention=np.nan)
    data = data_of(cells, None, logged)
    figure = draw_curves(data, FigureOptions(value="train_loss,attention"))
    assert len(figure.axes[0].lines) == 2
    assert figure.axes[0].get_ylabel() == "training loss"
    twice = draw_curves(data, FigureOptions(value="train_loss,train_loss"))
    assert len(twice.axes[0].lines) == 2
    with pytest.raises(UserError, match="names of logged columns, separated by commas"):
        draw_curves(data, FigureOptions(value="train_loss,,attention"))
    with pytest.raises(UserError, match=r"value='atention': .* did you mean 'attention'"):
        draw_curves(data, FigureOptions(value="train_loss,atention"))


@pytest.mark.slow
def test_curves_are_averaged_geometrically_where_asked() -> None:
    cells = fake_cells([5], [1.0], seeds=9)
    step = np.arange(3)
    pieces = [
        pd.DataFrame({"key": key, "step": step, "train_loss": 10.0 ** (-4 * step - seed % 3)})
        for key, seed in zip(cells["key"], cells["seed"], strict=True)
    ]
    data = data_of(cells, None, pd.concat(pieces, ignore_index=True))
    figure = draw_curves(data, FigureOptions(value="train_loss", mean="arithmetic"))
    assert line_heights(figure.axes[0]) == [pytest.approx([0.37, 0.37e-4, 0.37e-8])]
    assert "(mean, 95 % interval)" in words(figure).replace("\n", " ")
    figure = draw_curves(data, FigureOptions(value="train_loss", mean="geometric"))
    assert line_heights(figure.axes[0]) == [pytest.approx([1e-1, 1e-5, 1e-9])]
    assert "geometric mean of 9 seeds" in words(figure)


def test_panels_of_one_column_share_its_axis() -> None:
    """One panel alone would be linear, and the other logarithmic."""
    cells = fake_cells([1, 400], [1.0])
    data = data_of(cells, trajectories=fake_trajectories(cells))
    figure = draw_curves(data, FigureOptions(value="train_loss", by="n"))
    assert {axes.get_yscale() for axes in figure.axes} == {"log"}
    assert len({axes.get_ylim() for axes in figure.axes}) == 1
