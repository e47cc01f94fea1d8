from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from overfit_cli.errors import UserError
from overfit_cli.figures.boundary import draw_boundary
from tests.fake_study import (
    LAW,
    NS,
    SIDES,
    SNRS,
    data_of,
    fake_cells,
    words,
)


def test_a_boundary_recovers_the_law_on_logarithmic_axes(tmp_path: Path) -> None:
    noisy = fake_cells(NS, SNRS, seeds=5, noise=0.1)
    figure = draw_boundary(data_of(noisy), replace(SIDES, law=(LAW,)))
    axes = figure.axes[0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    points = axes.containers[0].lines[0]  # type: ignore[attr-defined]
    snr = np.asarray(points.get_xdata(), dtype=np.float64)
    n = np.asarray(points.get_ydata(), dtype=np.float64)
    np.testing.assert_allclose(n * snr**2, 1000, rtol=0.1)
    text = words(figure, tmp_path)
    assert "where test loss crosses 0.2" in text
    assert "median of 5 seeds, least to greatest" in text
    assert LAW in text
    assert "the grid" not in text
    assert "no fit" not in text


def test_values_of_y_that_never_cross_are_counted_with_their_side(tmp_path: Path) -> None:
    figure = draw_boundary(data_of(fake_cells([1, 2, 8, 10, 12, 900], SNRS[2:21])), SIDES)
    text = words(figure, tmp_path)
    assert "off the grid at 3 of 6 values of n (2 above, 1 below)" in text


def test_values_of_y_at_which_some_seeds_never_cross_are_drawn_open(tmp_path: Path) -> None:
    cells = fake_cells(NS, SNRS, seeds=3)
    never = (cells["n"] == 10) & (cells["seed"] == 0)
    cells.loc[never, "test_loss"] = 0.6
    figure = draw_boundary(data_of(cells), SIDES)
    assert "some seeds cross beyond the grid" in words(figure, tmp_path)
    open_points = figure.axes[0].containers[1].lines[0]  # type: ignore[attr-defined]
    assert np.asarray(open_points.get_ydata()).tolist() == [10]


def test_few_rows_and_one_seed_are_drawn_without_a_fit(tmp_path: Path) -> None:
    figure = draw_boundary(data_of(fake_cells([5, 10], SNRS, seeds=1)), SIDES)
    text = words(figure, tmp_path)
    assert "one seed" in text
    assert "fewer than three points" in text


def test_a_boundary_where_nothing_crosses_is_drawn_and_says_so(tmp_path: Path) -> None:
    figure = draw_boundary(data_of(fake_cells([1, 2], [1.0, 2.0, 3.0])), SIDES)
    assert "off the grid at 2 of 2 values of n (2 above)" in words(figure, tmp_path)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"x": "snr", "y": "kernel"}, "--y kernel: a boundary needs an axis of positive numbers."),
    ],
)
def test_what_a_boundary_cannot_show_is_refused(change: dict[str, object], sentence: str) -> None:
    cells = pd.concat([fake_cells([5], SNRS), fake_cells([5], SNRS, kernel="gaussian")])
    with pytest.raises(UserError) as refused:
        draw_boundary(data_of(cells), replace(SIDES, **change))  # type: ignore[arg-type]
    assert sentence in str(refused.value)
