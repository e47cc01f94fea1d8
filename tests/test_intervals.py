"""Bootstrap intervals of a mean cover it about as often as they say."""

from __future__ import annotations

import numpy as np
import pytest

from overfit_cli.analysis.intervals import bootstrap_mean


def test_it_agrees_with_the_normal_interval_on_many_independent_lines() -> None:
    values = np.random.default_rng(0).normal(3, 2, size=(400, 1))
    half = 1.96 * values.std(ddof=1) / np.sqrt(400)
    low, high = bootstrap_mean(values)
    assert low == pytest.approx(values.mean() - half, abs=0.02)
    assert high == pytest.approx(values.mean() + half, abs=0.02)


def test_it_counts_what_a_seed_shares_once_a_seed() -> None:
    """Many lines that all repeat their seeds' values say no more than one line."""
    by_seed = np.random.default_rng(1).normal(size=(1, 8))
    once, often = bootstrap_mean(by_seed), bootstrap_mean(np.repeat(by_seed, 50, axis=0))
    assert once == pytest.approx(often, abs=0.05)


def test_it_stays_within_the_values() -> None:
    low, high = bootstrap_mean(np.array([[-1, -1], [-1, -0.9]]))
    assert -1 <= low <= high <= -0.9
    assert bootstrap_mean([[0.5]]) == (0.5, 0.5)
