"""The fitted probability that a cell lies above a threshold, against worlds of known truth."""

from __future__ import annotations

import numpy as np
import pytest

from overfit_cli.analysis.sides import DEGREE, Floats, fit_sides

CELLS = 2000

# A maximum-likelihood fit of k coefficients to m cells has, by the delta method, a mean squared
# error of the probability, over the places of the cells, of at most max p(1 - p) · k / m = k / 4m.
BOUND = np.sqrt(2 * (DEGREE + 1) / (4 * CELLS))


def middle(y: Floats) -> Floats:
    """Where along x a cell lies above in half of the cases: a cubic, which the fit can be."""
    return 0.8 * y - 0.5 * y**3


def truth(x: Floats, y: Floats, steepness: float) -> Floats:
    return 1 / (1 + np.exp(steepness * (x - middle(y))))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("steepness", [2.0, 8.0])
@pytest.mark.parametrize("spread", [None, 0.3])
def test_the_probability_is_known_to_its_statistical_error(
    seed: int, steepness: float, spread: float | None
) -> None:
    """Of cells all over the plane, and of cells near the boundary, as a refining sweep has them."""
    draws = np.random.default_rng(seed)
    y = draws.uniform(-1, 1, CELLS)
    x = draws.uniform(-2, 2, CELLS)
    if spread is not None:
        x = middle(y) + spread * draws.standard_normal(CELLS)
    above = draws.random(CELLS) < truth(x, y, steepness)
    error = fit_sides(x, y, above).probability(x, y) - truth(x, y, steepness)
    assert np.abs(error).mean() < BOUND
    assert np.abs(truth(x, y, steepness) - above.mean()).mean() > 2 * BOUND, "a guess is worse"


def test_the_scale_of_x_and_y_changes_nothing() -> None:
    draws = np.random.default_rng(0)
    x, y = draws.uniform(-2, 2, (2, 500))
    above = draws.random(500) < truth(x, y, 4.0)
    one = fit_sides(x, y, above).probability(x, y)
    other = fit_sides(1e6 + 1e3 * x, 1e-6 * y, above).probability(1e6 + 1e3 * x, 1e-6 * y)
    np.testing.assert_allclose(one, other, atol=1e-3)


def test_a_boundary_without_errors_is_steep_and_no_step() -> None:
    """Likelihood alone would have it infinitely steep."""
    x, y = (part.ravel() for part in np.meshgrid(np.linspace(0, 4, 41), np.linspace(0, 1, 9)))
    sides = fit_sides(x, y, x < 2.05)
    along = sides.probability(np.linspace(0, 4, 401), np.full(401, 0.5))
    assert (np.diff(along) < 0).all()
    assert along[0] > 0.999
    assert along[-1] < 0.001
    half = np.linspace(0, 4, 401)[np.argmin(np.abs(along - 0.5))]
    assert half == pytest.approx(2.05, abs=0.1)  # the cells lie so far apart


@pytest.mark.parametrize("above", [True, False])
def test_where_all_cells_lie_on_one_side_it_is_sure_of_it(above: bool) -> None:
    x, y = np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 1.0])
    sides = fit_sides(x, y, np.full(3, above))
    places = np.zeros((4, 5))
    assert (sides.probability(places, places) == float(above)).all()
    assert sides.probability(places, places).shape == (4, 5)


def test_cells_of_one_place_give_its_share() -> None:
    x, y, above = np.ones(40), np.ones(40), np.arange(40) < 30
    found = fit_sides(x, y, above).probability(x[:1], y[:1])
    assert found == pytest.approx([0.75], abs=0.01)
