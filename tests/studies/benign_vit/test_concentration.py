"""Lemmas C.1 to C.4 of Jiang et al. 2024 on drawn data and weights, at a probability that tells.

The theorems have δ = 1/d, which no number of draws reaches. So draws are checked at δ = 0.1: at
most that share of them may break a lemma.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from overfit_cli.studies.benign_vit.vit.data import Realisation, draw
from overfit_cli.studies.benign_vit.vit.parameters import BenignVitParameters

Floats = NDArray[np.float64]

DELTA, DRAWS = 0.1, 200
N, M = 30, 4
DIRECT = BenignVitParameters.model_validate(
    {"n": N, "tokens": M, "d": 1000, "d_h": 250, "d_v": 4, "test_samples": 1}
    | {"initialisation": "gaussian", "noise": "orthogonal"}
)
LAW = DIRECT.model_copy(update={"sampling": "law", "d": 10**9, "d_h": 10**4})
LEMMAS = ("C.1", "C.2", "C.3", "C.4")


def noise_tokens(drawn: Realisation) -> Floats:
    """All noise tokens at unit scale, (N (M − 1), features)."""
    return drawn.train.tokens[:, 1:].reshape(N * (M - 1), -1)


def lopsided(drawn: Realisation) -> float:
    """Lemma C.1: how far the share of a label is from 1/2, over 1/4."""
    return float(abs((drawn.train.labels > 0).mean() - 0.5) / 0.25)


def first_values(drawn: Realisation, settings: BenignVitParameters) -> float:
    """Lemma C.2's proof: the largest first value over its bound, of signals and of noise."""
    w = drawn.weights.value @ drawn.weights.output  # deviation 1, (features,)
    root = math.sqrt(math.log(2 * N * M / DELTA))
    noise = np.abs(noise_tokens(drawn) @ w) / (2 * math.sqrt(settings.d) * root)
    return float(max(np.abs(w[:2]).max() / root, noise.max()))


def head_products(drawn: Realisation, settings: BenignVitParameters) -> tuple[float, float]:
    """Lemma C.3: norms from their mean over 1/2, and products over their bound, the largest."""
    unit = np.concatenate([np.eye(2, drawn.train.tokens.shape[2]), noise_tokens(drawn)])
    lengths = np.concatenate([np.ones(2), np.full(N * (M - 1), math.sqrt(settings.d))])
    heads = np.concatenate(
        [unit @ weight / lengths[:, None] for weight in (drawn.weights.query, drawn.weights.key)]
    )
    gram = heads @ heads.T
    norms, products = np.diag(gram) / settings.d_h, gram - np.diag(np.diag(gram))
    bound = 2 * math.sqrt(settings.d_h * math.log(6 * N**2 * M**2 / DELTA))
    return float(np.abs(norms - 1).max() / 0.5), float(np.abs(products).max() / bound)


def token_products(drawn: Realisation, settings: BenignVitParameters) -> tuple[float, float]:
    """Lemma C.4: the same of noise tokens."""
    gram = noise_tokens(drawn) @ noise_tokens(drawn).T
    norms, products = np.diag(gram) / settings.d, gram - np.diag(np.diag(gram))
    bound = 2 * math.sqrt(settings.d * math.log(4 * N**2 * M**2 / DELTA))
    return float(np.abs(norms - 1).max() / 0.5), float(np.abs(products).max() / bound)


def over_bounds(settings: BenignVitParameters) -> Floats:
    """What is bounded over its bound: C.1, C.2, C.3's and C.4's products and norms; (draws, 6)."""
    rows = []
    for seed in range(DRAWS):
        drawn = draw(settings, seed)
        heads, tokens = head_products(drawn, settings), token_products(drawn, settings)
        first = lopsided(drawn), first_values(drawn, settings)
        rows.append((*first, heads[1], tokens[1], heads[0], tokens[0]))
    return np.array(rows)


@pytest.mark.parametrize("settings", [DIRECT, LAW], ids=["direct", "law"])
@pytest.mark.slow
def test_draws_break_no_concentration_lemma_more_often_than_it_says(
    settings: BenignVitParameters,
) -> None:
    assert 8 * math.log(4 / DELTA) < N, "Lemma C.1's hypothesis"
    numbers = over_bounds(settings)
    assert ((numbers > 1).mean(axis=0) <= DELTA).all(), dict(zip(LEMMAS, numbers.T, strict=False))
    middle = np.median(numbers[:, :4], axis=0)
    assert (middle[1:] > 0.3).all(), "bounds that draws come near to"
