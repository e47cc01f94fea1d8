"""Sampling in law gives the law of direct draws, for the draws and for all that training makes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from overfit_cli.core.arrays import bartlett_rows
from overfit_cli.core.training import named_rng
from overfit_cli.studies.benign_vit.data import draw
from overfit_cli.studies.benign_vit.engine import projections_of
from overfit_cli.studies.benign_vit.parameters import token_scales
from overfit_cli.studies.benign_vit.reference import train_one_cell
from overfit_cli.studies.benign_vit.study import study
from tests import training
from tests.studies.benign_vit.cells import P
from tests.training import begins_with, cell_of

SMALL = {"initialisation": "gaussian", "tokens": 4, "test_samples": 12, "d_v": 5, "sigma_p": 0.3}
SMALL |= {"sigma_p_tilde": 1.0, "sigma_h": 0.05, "sigma_v": 0.1, "output_scale": 0.6}
SMALL |= {"epsilon": 0.2, "learning_rate": 0.1, "d": 200, "d_h": 30}


def small(**settings: object) -> P:
    values = {**SMALL, **settings}
    if values.get("sampling") == "law":
        del values["d_v"]  # only W_V w_O is drawn
    return P.model_validate(values)


def train(settings: P, seed: int) -> pd.Series[float]:
    [result] = training.train(study, cell_of(study, settings, seed))
    return pd.Series({"steps": result.steps, **result.measurements})


def many(rows: int, dimension: int, count: int) -> np.ndarray:
    """`count` factors of some vectors and some more, (count, rows, width)."""
    left, right = ((named_rng(7, word, "normals"), named_rng(7, word, "lengths")) for word in "ab")
    factors = np.zeros((count, rows, min(rows, dimension)))
    first = rows // 2
    for factor in factors:
        factor[:first, :first] = bartlett_rows(*left, first, dimension)
        factor[first:] = bartlett_rows(*right, rows - first, dimension, before=first)
    return factors


@pytest.mark.parametrize("dimension", [3, 5, 40, 10**6, 10**15])
def test_inner_products_have_the_moments_of_normal_vectors(dimension: int) -> None:
    """Of standard normal x and y: E |x|² = d, Var |x|² = 2d, E x·y = 0, Var x·y = d."""
    count = 4000
    factor = many(5, dimension, count)
    gram = factor @ factor.swapaxes(1, 2)
    squares = gram.diagonal(axis1=1, axis2=2) / dimension  # (count, 5)
    products = gram[:, *np.tril_indices(5, -1)] / np.sqrt(dimension)  # (count, 10)
    spread = 0.3 if dimension < 40 else 0.15
    assert np.abs(squares.mean(0) - 1).max() < 5 * np.sqrt(2 / dimension / count)
    assert squares.var(0) * dimension == pytest.approx(np.full(5, 2), rel=spread)
    assert np.abs(products.mean(0)).max() < 5 / np.sqrt(count)
    assert products.var(0) == pytest.approx(np.ones(10), rel=spread)


MOMENTS: dict[str, dict[str, Any]] = {
    "huge": {"d": 10**12, "d_h": 10**9},
    "little room, narrow head": {"d": 14, "d_h": 5},
    "little room, wide head": {"d": 14, "d_h": 60},
    "orthogonal": {"d": 14, "d_h": 9, "noise": "orthogonal"},
}


@pytest.mark.slow
@pytest.mark.parametrize("setting", MOMENTS)
def test_draws_have_their_exact_moments(setting: str) -> None:
    """Everything that training sees of one training and one test sample, over many seeds.

    Noise tokens x ≠ y in f features (d, or d − 2 beside the signals): |x|² has mean f and variance
    2f, x·y has 0 and f, e₁·x has 0 and 1 (or is 0). With weights of deviation 1, x W_Q W_Kᵀ yᵀ has
    mean 0 and variance d_h |x|²|y|², x W_Q·y W_Q has mean d_h x·y and variance
    d_h (|x|²|y|² + (x·y)²), so has W_K, and x W_V w_O has variance |x|², all given the tokens.
    Values are independent of scores: their products have mean 0 and the product of the variances.
    """
    settings, count = small(n=1, test_samples=1, sampling="law", **MOMENTS[setting]), 1500
    features = settings.d - (2 if settings.noise == "orthogonal" else 0)
    collected = [_seen(settings, seed) for seed in range(count)]
    signal, squares, products, *others = (np.array(part) for part in zip(*collected, strict=True))
    close = 5 / np.sqrt(count)
    if settings.noise == "orthogonal":
        assert not signal.any()
    else:
        assert np.abs(signal.mean(0)).max() < close
        np.testing.assert_allclose(signal.var(0), 1, atol=1.5 * close)
    assert np.abs((squares / features - 1).mean(0)).max() < close * np.sqrt(2 / features)
    np.testing.assert_allclose(squares.var(0) / features, 2, atol=6 * close)
    for unit in (products / np.sqrt(features), *others):
        assert np.abs(unit.mean(0)).max() < close
        np.testing.assert_allclose(unit.var(0), 1, atol=6 * close)


def _seen(settings: P, seed: int) -> list[np.ndarray]:
    """Noise along e₁, squares and products, then what has mean 0 and variance 1 given those."""
    draws = draw(settings, seed)
    noise = np.concatenate([draws.train.tokens[0, 1:3], draws.test.tokens[0, 1:3]])
    gram = noise @ noise.T
    lengths = np.sqrt(gram.diagonal())
    apart = np.triu_indices(4, 1)
    query, key = noise @ draws.weights.query, noise @ draws.weights.key
    over = np.outer(lengths, lengths)
    scores = query @ key.T / over / np.sqrt(settings.d_h)
    spread = np.sqrt(settings.d_h * (over**2 + gram**2))
    heads = [(side @ side.T - settings.d_h * gram) / spread for side in (query, key)]
    value = draws.weights.value @ draws.weights.output
    values = noise @ value / lengths
    of_signals = draws.weights.query[:2] @ draws.weights.key[:2].T / np.sqrt(settings.d_h)
    together = [np.outer(values, scores), np.outer(value[:2], of_signals)]
    unit = [scores, *heads, values, of_signals, *together]
    return [noise[:, 0], gram.diagonal(), gram[apart], *(part.ravel() for part in unit)]


@pytest.mark.parametrize(
    "other",
    [{}, {"label_flip": 0.4}, {"noise": "orthogonal"}, {"d_h": 50}],
    ids=lambda other: next(iter(other), "plain"),
)
def test_the_engine_trains_draws_in_law_as_the_autograd_loop_does(other: dict[str, Any]) -> None:
    """Same draws, same steps: what is left out of the draws is nothing that training sees."""
    huge: dict[str, Any] = {"d": 10**9, "d_h": 10**6, "sigma_h": 0.01, "sigma_p": 1e-4}
    huge |= {"sigma_p_tilde": 5e-4, "n": 6, "snr": 2.0, "learning_rate": 0.01, "dtype": "float64"}
    settings = small(**(huge | other), sampling="law")
    got = train(settings, 3)
    oracle = train_one_cell(settings, 3, draw(settings, 3))
    assert got["steps"] == oracle.steps > 5
    assert got["train_loss"] == pytest.approx(oracle.train_loss, rel=1e-8)
    assert got["test_loss"] == pytest.approx(oracle.test_loss, rel=1e-8)
    on_signal = oracle.test_attention[:, :, 0].mean()
    assert got["test_attention_signal"] == pytest.approx(on_signal, rel=1e-8)


def test_more_training_samples_extend_fewer_and_leave_the_test_samples() -> None:
    few, more = (draw(small(n=n, d=10**6, sampling="law"), 2) for n in (32, 33))
    assert begins_with(more.train.tokens, few.train.tokens)
    assert begins_with(more.test.tokens, few.test.tokens)
    assert not more.test.tokens[:, :, few.test.tokens.shape[2] :].any()
    for part in ("query", "key", "value"):
        assert begins_with(getattr(more.weights, part), getattr(few.weights, part))


def test_a_cell_at_the_least_d_draws_for_no_more_samples_than_there_is_room_for() -> None:
    settings = small(n=3, d=3 * 15 + 2, sampling="law")
    assert len(projections_of(settings, 0, "cpu").labels) == 3
    assert draw(settings, 0).train.tokens.shape == (3, 4, 47)
    with pytest.raises(ValueError, match="at least 47"):
        small(n=3, d=3 * 15 + 1, sampling="law")


def test_a_seeds_cells_share_what_is_sampled() -> None:
    first = projections_of(small(n=3, snr=1.0, d=10**6, sampling="law"), 0, "cpu")
    second = small(n=20, snr=9.0, d=10**6, sampling="law", epsilon=0.1, noise_per="token")
    scaled = second.model_copy(update={"sigma_h": 0.3, "sigma_v": 2.0, "output_scale": 0.1})
    asked = second.model_copy(update={"initialisation": "condition"})
    for cell in (second, scaled, asked):
        assert projections_of(cell, 0, "cpu") is first
    assert projections_of(second.model_copy(update={"d": 10**7}), 0, "cpu") is not first
    assert projections_of(second, 1, "cpu") is not first


def test_noise_given_for_a_token_is_as_long_in_any_dimension() -> None:
    for d in (10**3, 10**12):
        lengths_of = {"noise_per": "token", "sigma_p": 6.4, "sigma_p_tilde": 128}
        settings = small(n=2, d=d, sampling="law", **lengths_of)
        assert settings.noise_norm == 6.4
        assert settings.signal_norm == pytest.approx(6.4 * settings.snr)
        unit = projections_of(settings, 0, "cpu").train.G.diagonal().view(-1, 4).sqrt().numpy()
        lengths = unit[:, 1:] * token_scales(settings)[1:]
        assert float(lengths[:, 0].mean()) == pytest.approx(128, rel=0.02)
        assert float(lengths[:, 1:].mean()) == pytest.approx(6.4, rel=0.02)


@pytest.mark.parametrize(
    ("side", "snr", "leap"),
    [("benign", 7.0, 0.05), ("harmful", 1.5, 0.02), ("transition", 4.5, 0.05)],
)
@pytest.mark.slow
def test_taking_many_steps_at_a_time_ends_where_single_steps_do(
    side: str, snr: float, leap: float
) -> None:
    regime: dict[str, Any] = {"initialisation": "condition", "noise_per": "token", "sigma_p": 1.0}
    regime |= {"sigma_p_tilde": 10.0, "snr": snr, "n": 12, "d": 10**6, "d_h": 10**3}
    regime |= {"sigma_h": 0.00113, "sigma_v": 0.00113, "learning_rate": 8e-3 / (1 + snr)}
    settings = small(**regime, epsilon=0.08, sampling="law", dtype="float64", max_steps=10**6)
    single, leaping = (train(settings.model_copy(update={"leap": by}), 7) for by in (0.0, leap))
    assert single["updates"] == single["steps"] > 1000
    assert leaping["updates"] < single["steps"] / 2
    assert leaping["train_loss"] == pytest.approx(single["train_loss"], rel=0.01)
    low, high = {"harmful": (0.6, 0.7), "transition": (0.2, 0.6), "benign": (0, 0.2)}[side]
    assert low < single["test_loss"] < high
    for name in ("steps", "test_loss", "test_attention_signal", "value_plus"):
        assert leaping[name] == pytest.approx(single[name], rel=0.02), name
