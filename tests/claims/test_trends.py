"""Trends along the lines of a grid are Spearman's, averaged seed by seed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from overfit_cli.claims.rules import falls, rank_correlation
from overfit_cli.core.claim import UndecidedError


def grid(slope: float = 0.1, seeds: int = 5) -> pd.DataFrame:
    """Noise with ties and holes, and a trend along n; one line is constant."""
    random = np.random.default_rng(0)
    rows = [
        (n, snr, seed, round(random.normal() + slope * n, 1))
        for n in range(2, 14)
        for snr in range(8)
        for seed in range(seeds)
    ]
    frame = pd.DataFrame(rows, columns=["n", "snr", "seed", "value"])
    frame.loc[(frame["snr"] == 3) & (frame["seed"] == 1), "value"] = 1.0
    return frame.sample(frac=0.9, random_state=0)


def slow_trend(line: pd.DataFrame) -> float:
    """Spearman's correlation; that of a constant line, which has none, is taken as 0."""
    constant = line["value"].nunique() == 1
    return 0.0 if constant else float(spearmanr(line["n"], line["value"]).statistic)


def test_the_trend_is_the_mean_over_seeds_of_spearmans_on_each_line() -> None:
    frame, by_seed = grid(), []
    for _, of_seed in frame.groupby("seed"):
        by_seed.append(np.mean([slow_trend(line) for _, line in of_seed.groupby("snr")]))
    found = rank_correlation(frame, "value", "n", "snr")
    assert found.value == pytest.approx(np.mean(by_seed), abs=1e-12)
    assert (found.seeds, len(by_seed)) == (5, 5)


def test_a_trend_is_told_from_none() -> None:
    assert falls(grid(-0.3), "value", "n", "snr").verdict == "holds"
    assert falls(grid(0.3), "value", "n", "snr").verdict == "fails"
    assert falls(grid(0.0), "value", "n", "snr").verdict == "inconclusive"
    assert falls(grid().assign(value=1.0), "value", "n", "snr").verdict == "inconclusive"
    with pytest.raises(UndecidedError, match="No line along n tells a trend"):
        falls(grid().query("n == 3"), "value", "n", "snr")


def test_a_trend_on_few_lines_does_not_stand_for_all() -> None:
    """Constant lines count: else one that falls would decide for seven that don't."""
    frame = grid(-0.3)
    frame.loc[frame["snr"] > 0, "value"] = 1.0
    assert rank_correlation(frame, "value", "n", "snr").value > -0.15


def test_a_trend_of_too_few_seeds_decides_nothing() -> None:
    few = falls(grid(-0.3, seeds=4), "value", "n", "snr")
    assert few.verdict == "inconclusive"
    assert "It needs 5 seeds; these cells have 4 seeds." in few.note


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_cell_without_a_number_leaves_a_trend_open(bad: float) -> None:
    frame = grid(-0.3)
    frame.loc[frame.index[0], "value"] = bad
    with pytest.raises(UndecidedError, match="have no number of value"):
        falls(frame, "value", "n", "snr")


def test_a_trend_depends_on_order_alone() -> None:
    frame = grid(-0.3)
    scaled = frame.assign(value=np.exp(frame["value"]), n=frame["n"] ** 3)
    mixed = scaled.sample(frac=1, random_state=1)
    assert rank_correlation(mixed, "value", "n", "snr").value == pytest.approx(
        rank_correlation(frame, "value", "n", "snr").value
    )
