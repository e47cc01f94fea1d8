"""The share of seeds above a threshold, against worlds of known truth."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from overfit_cli.core.arrays import Floats
from overfit_cli.stats.crossings import crossings, medians_by_row, share_above

SEEDS = 40


def world(places: dict[int, list[float]], *, falls: bool = True) -> tuple[pd.DataFrame, Floats]:
    """Cells of curves that cross 1, each at places of its own; and where they cross."""
    crossing = np.exp(np.random.default_rng(0).normal(0.0, 0.3, SEEDS))
    rows = [
        (8.0, seed, x, (x / crossing[seed]) ** (-2 if falls else 2))
        for seed in range(SEEDS)
        for x in places[seed]
    ]
    cells = pd.DataFrame(rows, columns=["y", "seed", "x", "value"])
    return cells.assign(status="done"), crossing


COARSE = np.geomspace(0.1, 10, 9).tolist()
AT = np.geomspace(0.12, 8, 50)


@pytest.mark.parametrize("falls", [True, False])
def test_it_is_the_share_of_seeds_that_cross_further_on(falls: bool) -> None:
    cells, crossing = world(dict.fromkeys(range(SEEDS), COARSE), falls=falls)
    found = share_above(cells, "x", "y", "value", 1.0, AT)[8.0]
    beyond = crossing[:, None] > AT if falls else crossing[:, None] < AT
    np.testing.assert_allclose(found, beyond.mean(axis=0), atol=1.5 / SEEDS)


def test_seeds_that_were_sampled_near_their_crossing_alone_count_everywhere() -> None:
    """As a refining sweep has them: two seeds on the coarse grid, the others where they cross."""
    _, crossing = world(dict.fromkeys(range(SEEDS), COARSE))
    near = {seed: [0.8 * crossing[seed], 1.3 * crossing[seed]] for seed in range(2, SEEDS)}
    cells, _ = world({0: COARSE, 1: COARSE, **near})
    found = share_above(cells, "x", "y", "value", 1.0, AT)[8.0]
    beyond = (crossing[:, None] > AT).mean(axis=0)
    np.testing.assert_allclose(found, beyond, atol=1.5 / SEEDS)


def test_a_half_lies_where_the_median_crossing_is() -> None:
    cells, _ = world(dict.fromkeys(range(SEEDS), COARSE))
    [median] = medians_by_row(crossings(cells, "x", "y", "value", 1.0), "y")["crossing"]
    at = median * np.array([0.98, 1.02])
    before, after = share_above(cells, "x", "y", "value", 1.0, at)[8.0]
    assert before >= 0.5 >= after


def test_a_seed_that_crosses_nowhere_counts_where_it_was_sampled() -> None:
    cells = pd.DataFrame({"y": 1, "seed": [0, 0, 1, 1], "x": [1.0, 9.0, 4.0, 5.0]})
    cells = cells.assign(value=[3.0, 0.5, 3.0, 2.0], status="done")
    found = share_above(cells, "x", "y", "value", 1.0, np.array([2.0, 4.5, 8.5]))[1]
    assert found.tolist() == [1.0, 0.5, 0.0]
    alone = share_above(cells[2:], "x", "y", "value", 1.0, np.array([2.0, 4.5, 8.5]))[1]
    np.testing.assert_equal(alone, [np.nan, 1.0, np.nan])
