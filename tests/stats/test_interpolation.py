"""Numbers multilinear the points of a grid are those of the plane through them, and none beyond."""

from __future__ import annotations

import numpy as np

from overfit_cli.stats.pairs import is_log_spaced, multilinear

X, Y = np.array([0.0, 1.0, 3.0]), np.array([2.0, 4.0])


def test_on_a_plane_it_is_exact() -> None:
    values = 3 * X[:, None] - 2 * Y[None, :] + 1
    points = np.array([[0.0, 2.0], [0.25, 3.5], [2.9, 2.1], [3.0, 4.0], [1.0, 3.0]])
    expected = [-3.0, -5.25, 5.5, 2.0, -2.0]
    np.testing.assert_allclose(multilinear([X, Y], values, points), expected)


def test_the_middle_of_a_box_is_the_mean_of_its_corners() -> None:
    values = np.array([[1.0, 10.0], [2.0, 40.0], [0.0, 0.0]])
    assert multilinear([X, Y], values, np.array([[0.5, 3.0]])) == (1 + 10 + 2 + 40) / 4


def test_beyond_the_grid_nothing_is_known() -> None:
    points = np.array([[-0.1, 3.0], [3.1, 3.0], [1.0, 1.9], [1.0, 4.1], [np.nan, 3.0]])
    assert np.isnan(multilinear([X, Y], np.ones((3, 2)), points)).all()


def test_a_corner_without_a_number_counts_only_where_it_has_a_share() -> None:
    values = np.array([[1.0, 2.0], [3.0, np.nan], [5.0, 6.0]])
    points = np.array([[0.5, 3.0], [1.0, 2.0], [0.0, 3.0], [2.0, 2.0]])
    np.testing.assert_array_equal(multilinear([X, Y], values, points), [np.nan, 3.0, 1.5, 4.0])


def test_one_axis_is_a_line() -> None:
    values = np.array([1.0, 3.0, 3.0])
    np.testing.assert_array_equal(multilinear([X], values, np.array([[0.5], [2.0]])), [2.0, 3.0])


def test_values_by_ratio_are_told_from_values_by_steps() -> None:
    assert is_log_spaced([1, 10, 100])
    assert is_log_spaced([0.1, 0.3, 1, 3])
    assert not is_log_spaced([2, 3, 4, 5])
    assert not is_log_spaced([0, 1, 10, 100]), "nothing has no logarithm"
    assert not is_log_spaced([1, 10]), "two are spaced both ways"
