"""Trends along the lines of a grid are Spearman's, and survive every value of what is missing."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from overfit_cli.claims.grammar import read
from overfit_cli.claims.measured import Table
from overfit_cli.claims.quantities import _end_ranks, _rank_correlations
from overfit_cli.claims.stated import claim
from overfit_cli.core.claim import Measurement
from overfit_cli.core.study import AnyStudy
from overfit_cli.functions.function_study import study_of_function


def study() -> AnyStudy:
    def value(n: int = 1, snr: int = 1, seed: int = 0) -> dict[str, float]:
        return {"value": 0.0}

    return study_of_function(value)


def grid(slope: float = 0.1, seeds: int = 5) -> pd.DataFrame:
    """Noise with ties, and a trend along n; one line is constant."""
    random = np.random.default_rng(0)
    rows = [
        (n, snr, seed, round(random.normal() + slope * n, 1))
        for n in range(2, 14)
        for snr in range(8)
        for seed in range(seeds)
    ]
    frame = pd.DataFrame(rows, columns=["n", "snr", "seed", "value"])
    frame.loc[(frame["snr"] == 3) & (frame["seed"] == 1), "value"] = 1.0
    return frame.assign(status="done", reason="").sample(frac=1, random_state=0)


FALLS = "mean of value falls along n on average"


def judged(cells: pd.DataFrame, text: str = FALLS) -> Measurement:
    return claim(text, study()).judge(cells)


def slow_trend(line: pd.DataFrame) -> float:
    """Spearman's correlation; that of a constant line, which has none, is taken as 0."""
    constant = line["value"].nunique() == 1
    return 0.0 if constant else float(spearmanr(line["n"], line["value"]).statistic)


def test_the_trend_is_the_mean_over_seeds_of_spearmans_on_each_line() -> None:
    frame, by_seed = grid(), []
    for _, of_seed in frame.groupby("seed"):
        by_seed.append(np.mean([slow_trend(line) for _, line in of_seed.groupby("snr")]))
    trend, *_ = read(FALLS).parts(Table(frame, study().parameters))
    np.testing.assert_allclose(trend.low, by_seed, atol=1e-12)
    np.testing.assert_allclose(trend.high, by_seed, atol=1e-12)


def test_a_trend_is_told_from_none() -> None:
    assert judged(grid(-0.3)).verdict == "holds"
    assert judged(grid(0.3)).verdict == "fails"
    assert judged(grid(0.0)).verdict == "inconclusive"
    assert judged(grid().assign(value=1.0)).verdict == "inconclusive"
    assert judged(grid().query("n == 3")).verdict == "not run"


def test_a_trend_on_few_lines_does_not_stand_for_all() -> None:
    """Constant lines count: else one that falls would decide for seven that don't."""
    frame = grid(-0.3)
    frame.loc[frame["snr"] > 0, "value"] = 1.0
    measured = judged(frame)
    assert measured.value is not None
    assert measured.value > -0.15


def test_the_ends_of_a_trend_are_those_of_all_values_that_are_missing() -> None:
    random = np.random.default_rng(0)
    x = np.arange(6.0)
    for missing in itertools.combinations(range(6), 2):
        values = random.permutation(6).astype(float)
        places = [-1.0, *(values + 0.5)]  # below, between and above all others
        filled = []
        for pair in itertools.product(places, repeat=2):
            for tie in (-0.1, 0.1):
                row = values.copy()
                row[list(missing)] = pair[0], pair[1] + tie
                filled.append(row)
        known = _rank_correlations(x, np.array(filled)).low
        ends = _end_ranks(np.array(filled)).low
        values[list(missing)] = np.nan
        trend, end = _rank_correlations(x, values[None]), _end_ranks(values[None])
        assert trend.low[0] <= known.min() + 1e-12
        assert known.max() - 1e-12 <= trend.high[0]
        assert trend.high[0] - trend.low[0] <= known.max() - known.min() + 0.12  # a pair's order
        assert (end.low[0], end.high[0]) == pytest.approx((ends.min(), ends.max()))


def test_a_trend_depends_on_order_alone() -> None:
    frame = grid(-0.3)
    scaled = frame.assign(value=np.exp(frame["value"]), n=frame["n"] ** 3)
    first, second = judged(frame), judged(scaled.sample(frac=1, random_state=1))
    for name in ("the whole line", "its end"):
        numbers = [
            {key: each for key, each in measured.details.items() if name in key}
            for measured in (first, second)
        ]
        assert numbers[0] == pytest.approx(numbers[1])
        assert numbers[0]


def test_a_line_that_rises_between_two_falls_does_not_fall() -> None:
    frame = grid(-0.3, seeds=20)
    peak = frame["n"].map({6: 8.0, 7: 16.0, 8: 8.0}).fillna(0.0)
    turned = judged(frame.assign(value=frame["value"] + peak))
    assert turned.verdict == "fails"
    assert "its turn" in turned.note
    assert judged(frame.assign(value=frame["value"] + 0.01 * peak)).verdict == "holds"
