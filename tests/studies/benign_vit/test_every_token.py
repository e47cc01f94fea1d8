"""The worst of every token, sample and key, held to loops over the weights that autograd trains."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

from overfit_cli.studies.benign_vit.claims.stages import ROUNDING
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.study import study
from overfit_cli.studies.benign_vit.theory import Regime
from overfit_cli.studies.benign_vit.true_scale import logged_row
from tests.studies.benign_vit.cells import preset, settings
from tests.studies.benign_vit.test_dynamics import Autograd, engine, small
from tests.training import cell_of, train

Row = dict[str, float]


def scores_of(oracle: Autograd) -> list[list[list[float]]]:
    """⟨q_i, k_j⟩ of every sample, by loops."""
    _, q = oracle.projected(oracle.model.query)
    _, k = oracle.projected(oracle.model.key)
    tokens = range(q.shape[1])
    return [[[float(q[n, i] @ k[n, j]) for j in tokens] for i in tokens] for n in range(len(q))]


def gaps(scores: list[list[list[float]]], wins: int) -> dict[str, float]:
    """The least gap to a token's key, of the queries of each class."""
    least = {"signal": math.inf, "noise": math.inf, "rest": math.inf}
    for sample in scores:
        for i, row in enumerate(sample):
            name = ("signal", "noise", "rest")[min(i, 2)]
            for j, score in enumerate(row):
                if j != wins:
                    least[name] = min(least[name], row[wins] - score)
    return {name: value for name, value in least.items() if math.isfinite(value)}


def distinct(oracle: Autograd, matrix: torch.Tensor) -> list[tuple[str, torch.Tensor]]:
    """The projections of the signals and of all noise tokens, with the sample of each."""
    signals, tokens = oracle.projected(matrix)
    noise = [(str(n), row) for n, sample in enumerate(tokens) for row in sample[1:]]
    return [("+", signals[0]), ("-", signals[1]), *noise]


def products(oracle: Autograd) -> list[float]:
    """Products of two queries, of two keys, and of a query and a key that meet in no sample."""
    q, k = (distinct(oracle, matrix) for matrix in (oracle.model.query, oracle.model.key))
    alike = [float(a @ b) for kind in (q, k) for (_, a), (_, b) in itertools.combinations(kind, 2)]
    stray = [
        float(a @ b)
        for (first, a), (second, b) in itertools.product(q, k)
        if first != second and (first in "+-") == (second in "+-")
    ]
    return alike + stray


def norms(oracle: Autograd) -> list[float]:
    return [
        float(row @ row)
        for matrix in (oracle.model.query, oracle.model.key)
        for _, row in distinct(oracle, matrix)
    ]


def values(oracle: Autograd) -> Row:
    signals, tokens = oracle.values(oracle.signals), oracle.values(oracle.x)
    noise = [abs(float(value)) for sample in tokens for value in sample[1:]]
    rest = [abs(float(value)) for sample in tokens for value in sample[2:]]
    strong = [float(y * sample[1]) for y, sample in zip(oracle.labels, tokens, strict=True)]
    return {
        "noise_value_most": max(noise),
        "rest_value_most": max(rest + [abs(float(value)) for value in signals]),
        "strong_value_least": min(strong),
    }


def rises(scores: list[list[list[float]]], before: list[list[list[float]]]) -> Row:
    signal, noise = [], []
    for sample, earlier in zip(scores, before, strict=True):
        for row, old in zip(sample, earlier, strict=True):
            moved = [new - last for new, last in zip(row, old, strict=True)]
            signal += [moved[0], *(-move for move in moved[1:])]
            noise += [moved[1] - 2 * move for j, move in enumerate(moved) if j != 1]
    return {"signal_score_rise": min(signal), "noise_score_rise": min(noise)}


@pytest.mark.parametrize(
    "settings", [small(), small(noise="orthogonal", label_flip=0.3), small(tokens=2, epsilon=0.02)]
)
def test_the_worst_token_is_that_of_loops_over_trained_weights(
    settings: BenignVitParameters,
) -> None:
    oracle = Autograd(settings)
    oracle.labels = torch.from_numpy(oracle.samples.observed(settings.label_flip))
    first, drawn, last, before = norms(oracle), products(oracle), None, None
    for trained, now in engine(settings):
        row, scores = logged_row(trained.tokens, now, last), scores_of(oracle)
        moves = [abs(new - old) for new, old in zip(products(oracle), drawn, strict=True)]
        expected = values(oracle) | {"stray_product_move": max(moves)}
        growth = [new / old for new, old in zip(norms(oracle), first, strict=True)]
        expected |= {"head_norm_least": min(growth), "head_norm_most": max(growth)}
        for name, wins in (("signal", 0), ("noise", 1)):
            least = gaps(scores, wins)
            expected |= {f"{name}_gap_{source}": value for source, value in least.items()}
        flat = [score for sample in scores for line in sample for score in line]
        expected["score_most"] = max(map(abs, flat))
        expected["score_range_most"] = max(
            max(line) - min(line) for sample in scores for line in sample
        )
        if before is not None:
            expected |= rises(scores, before)
        assert {name: row[name] for name in expected} == pytest.approx(expected, abs=1e-9)
        assert not any(math.isnan(row[name]) for name in expected)
        last, before = now, scores
        oracle.step()


@pytest.mark.parametrize("side", ["benign", "harmful"])
def test_scores_round_by_less_than_a_claim_allows(side: Regime) -> None:
    [parameters, *_] = settings(preset(f"theorem-dynamics-{side}"))
    for trained, now in itertools.islice(engine(parameters), 0, 100, 33):
        heads = trained.tokens.queries_and_keys()
        q, k = (part[0].numpy().astype(np.longdouble) for part in heads)
        exact = np.einsum("nia,nja->nij", q, k)
        wrong = np.abs(now.scores[0].numpy() - exact).max() / np.abs(exact).max()
        assert 0 < wrong < float(ROUNDING) / 6


def test_lengths_of_tokens_and_step_sizes_are_one_scale() -> None:
    """C times the length trains like c² times the step size."""
    base: dict[str, object] = {"n": 6, "tokens": 3, "d": 10**6, "d_h": 10**6, "snr": 2.0}
    base |= {"sampling": "law", "initialisation": "condition", "noise": "orthogonal"}
    base |= {"noise_per": "token", "sigma_p": 1.0, "sigma_p_tilde": 4.0, "dtype": "float64"}
    base |= {"epsilon": 0.1, "max_steps": 10**9, "leap": 0.05, "output_scale": 2.0}
    first = base | {"learning_rate": 9e-4}
    longer = base | {"sigma_p": 3.0, "sigma_p_tilde": 12.0, "learning_rate": 1e-4}
    short, long = train(study, cell_of(study, first), cell_of(study, longer))
    assert short.steps == long.steps
    assert short.measurements["test_loss"] == pytest.approx(long.measurements["test_loss"])
    assert short.steps > 50
