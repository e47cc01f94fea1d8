"""Numbers between the cells of a grid are those of the plane through them, and none beyond."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest

from overfit_cli.stats.pairs import interpolate, is_log_spaced

X, Y = (0.0, 1.0, 3.0), (2.0, 4.0)
Points = Sequence[tuple[float, float]]


def cells(values: np.ndarray) -> pd.DataFrame:
    """One seed's cells over x and y; nan where a cell failed."""
    rows = pd.DataFrame(itertools.product(X, Y), columns=["x", "y"])
    numbers = np.ravel(values)
    status = np.where(np.isnan(numbers), "failed", "done")
    return rows.assign(seed=0, status=status, loss=numbers)


def between(values: np.ndarray, points: Points) -> pd.DataFrame:
    """The interpolated cells at some points."""
    wanted = pd.DataFrame(points, columns=["x", "y"])
    return interpolate(cells(values), wanted, {"x": False, "y": False}, [], ["loss"])


def test_on_a_plane_it_is_exact() -> None:
    values = 3 * np.array(X)[:, None] - 2 * np.array(Y)[None, :] + 1
    points = [(0.0, 2.0), (0.25, 3.5), (2.9, 2.1), (3.0, 4.0), (1.0, 3.0)]
    rows_between = between(values, points)
    np.testing.assert_allclose(rows_between["loss"], [-3.0, -5.25, 5.5, 2.0, -2.0])
    assert rows_between["status"].tolist() == ["done"] * 5


def test_the_middle_of_a_box_is_the_mean_of_its_corners() -> None:
    values = np.array([[1.0, 10.0], [2.0, 40.0], [0.0, 0.0]])
    [middle] = between(values, [(0.5, 3.0)])["loss"]
    assert middle == pytest.approx((1 + 10 + 2 + 40) / 4)


def test_beyond_the_grid_nothing_is_known() -> None:
    points = [(-0.1, 3.0), (3.1, 3.0), (1.0, 1.9), (1.0, 4.1)]
    assert between(np.ones((3, 2)), points).empty


def test_beside_a_cell_that_failed_nothing_is_known() -> None:
    values = np.array([[1.0, 2.0], [3.0, np.nan], [5.0, 6.0]])
    assert between(values, [(0.5, 3.0), (2.0, 3.0)]).empty
    assert between(values, [(0.0, 3.0)]).empty, "a point of its box"


def test_a_value_of_another_setting_and_a_single_cell_give_nothing() -> None:
    wanted = pd.DataFrame({"x": [0.5], "y": [4.0]})
    grid = cells(np.ones((3, 2)))
    assert interpolate(grid[grid["y"] == 4], wanted, {"x": False}, ["y"], ["loss"])["x"].size == 1
    assert interpolate(grid[grid["y"] == 2], wanted, {"x": False}, ["y"], ["loss"]).empty
    assert interpolate(grid[grid["x"] == 0], wanted, {"x": False}, ["y"], ["loss"]).empty


def test_values_by_ratio_are_told_from_values_by_steps() -> None:
    assert is_log_spaced([1, 10, 100])
    assert is_log_spaced([0.1, 0.3, 1, 3])
    assert not is_log_spaced([2, 3, 4, 5])
    assert not is_log_spaced([0, 1, 10, 100]), "nothing has no logarithm"
    assert not is_log_spaced([1, 10]), "two are spaced both ways"
