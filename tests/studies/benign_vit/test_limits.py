"""The boundary at any dimension, and the end of wide heads: found and judged."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.integrate import solve_ivp

from overfit_cli.core.cells import Cells
from overfit_cli.core.figure import FigureOptions
from overfit_cli.figures.inputs import resolve_options
from overfit_cli.studies.benign_vit import theory
from overfit_cli.studies.benign_vit.claims.limits import constants, error_law
from overfit_cli.studies.benign_vit.data import Weights, draw
from overfit_cli.studies.benign_vit.parameters import token_scales, weight_deviations
from overfit_cli.studies.benign_vit.reference import VisionTransformer, logistic_loss
from overfit_cli.studies.benign_vit.study import study
from tests.judged import design
from tests.studies.benign_vit.cells import P, in_law, number


def made_up(constants: dict[float, float], *, noise: float = 0.02) -> pd.DataFrame:
    """Grids whose test loss is 0.2 where N · SNR² is the constant of their dimension.

    Seeds differ by `noise` of the logarithm.
    """
    grid = itertools.product(range(5), constants, (8, 12, 16, 20), np.geomspace(0.5, 60, 46))
    cells = pd.DataFrame(grid, columns=["seed", "d", "n", "snr"])
    shift = np.random.default_rng(0).normal(0, noise, 5)[cells["seed"]]
    away = 2 * (np.log(cells["n"] * cells["snr"] ** 2 / cells["d"].map(constants)) + shift)
    others = design("dimension")[:1].drop(columns=cells.columns)
    return cells.assign(test_loss=0.69 / (1 + 2.45 * np.exp(away))).merge(others, how="cross")


def test_boundaries_are_those_that_made_the_cells() -> None:
    cells = made_up({1e3: 900.0, 1e6: 1100.0})
    found = constants(cells, "d", 0.2).set_index("d")["constant"]
    assert found.index.unique().tolist() == [1e3, 1e6]
    # 0.69 / (1 + 2.45 e^(2a)) is 0.5 where e^(2a) = 0.155.
    onsets = constants(cells, "d", theory.HARMFUL_LOSS).set_index("d")["constant"]
    for d, constant in ((1e3, 900), (1e6, 1100)):
        assert found[d].to_numpy() == pytest.approx(constant, rel=0.06)
        assert onsets[d].to_numpy() == pytest.approx(constant * 0.155**0.5, rel=0.06)
        assert len(found[d]) == 5


def test_curves_that_never_cross_count_as_beyond_the_grid() -> None:
    found = constants(made_up({1e6: 1e7, 1e9: 0.01}), "d", 0.2).set_index("d")["constant"]
    assert np.isinf(found[1e6]).all()
    assert (found[1e9] == 0).all()


@pytest.mark.parametrize(("ratio", "tokens"), [(20.0, 16), (5.0, 4), (0.5, 12)])
def test_a_first_step_is_balanced_where_the_theory_says(ratio: float, tokens: int) -> None:
    """By autograd, from even attention and no values: what each sample's own tokens gain."""
    n, d = 60, 3000
    snr = float(np.sqrt(theory.learning_balance(ratio, tokens) / n))
    shape = {"n": n, "d": d, "tokens": tokens, "d_h": 2, "d_v": 2, "test_samples": 1, "snr": snr}
    settings = in_law(**shape, sampling="direct", noise="orthogonal", sigma_p_tilde=ratio * 0.2)
    drawn = draw(settings, 0)
    nothing, output = np.zeros((d, 2)), np.ones(2)
    model = VisionTransformer(Weights(nothing, nothing, nothing, output), torch.float64)
    x = torch.from_numpy(drawn.train.tokens * token_scales(settings)[:, None])
    y = torch.from_numpy(drawn.train.labels)
    [gradient] = torch.autograd.grad(logistic_loss(y * model(x)), [model.value])
    gained = y[:, None] * (x @ -gradient @ torch.from_numpy(output))
    by_signal, by_noise = float(gained[:, 0].mean()), float(gained[:, 1:].sum(1).mean())
    assert by_signal == pytest.approx(by_noise, rel=0.1)


def test_the_curve_is_figure_1s_with_its_tokens_and_the_balance_of_learning_with_others() -> None:
    heatmap = study.figures()["heatmap"]
    assert heatmap.equation_of is not None
    cells = made_up({1e3: 1e3})
    data = Cells.of(study, cells, cells, pd.DataFrame())
    assert heatmap.equation_of(data) == ("n * snr**2 = 1000", "")
    weaker = data.with_trained(cells.assign(sigma_p_tilde=64.0, tokens=4))
    assert heatmap.equation_of(weaker)[0] == f"n * snr**2 = {theory.BALANCE}"
    assert theory.predicted_boundary([20, 20, 10], [16, 4, 4]).tolist() == [1000, 804, 204]
    mixed = data.with_trained(cells.assign(tokens=np.where(cells["n"] > 10, 4, 16)))
    assert heatmap.equation_of(mixed) == heatmap.equation_of(weaker)  # each panel has its own
    assert resolve_options(heatmap, FigureOptions(), mixed).law is None
    panels = FigureOptions(x="snr", y="n", by="tokens")
    each = data.with_trained(pd.concat([cells.assign(tokens=4), cells.assign(tokens=8)]))
    assert resolve_options(heatmap, panels, each).law == heatmap.equation_of(weaker)[:1]


def test_only_cells_of_the_paper_are_called_its_figure() -> None:
    heatmap, cells = study.figures()["heatmap"], design("fig1")
    assert heatmap.source == "Jiang et al. 2024, figure 1a"
    for changed in ({}, {"label_flip": 0.2}, {"d": 500}):
        data = Cells.of(study, cells.assign(**changed), cells)
        assert heatmap.reproduces(data) == (not changed), changed


# The end of wide heads: the closed forms against a plain model and reduced dynamics


def fitted_value(parameters: P) -> float:
    """The margin of each sample where all have the loss ε."""
    return -math.log(math.expm1(parameters.epsilon))


@pytest.mark.parametrize("tokens", [2, 3, 16])
def test_the_limit_is_that_of_a_model_whose_attention_is_written_down(tokens: int) -> None:
    """All training attention is on the signal; a test sample's noise tokens pay 1/M each."""
    parameters = in_law(tokens=tokens, epsilon=0.02, d=10**4)
    values = np.array([fitted_value(parameters)] + [0.0] * (tokens - 1))  # (tokens,)
    training = np.zeros((tokens, tokens))
    training[:, 0] = 1
    test = np.full((tokens, tokens), 1 / tokens)
    test[0] = training[0]
    assert np.log1p(np.exp(-(training @ values).mean())) == pytest.approx(0.02, rel=1e-12)
    loss = np.log1p(np.exp(-(test @ values).mean()))
    assert number(theory.WIDE_HEADS_LOSS, parameters) == pytest.approx(loss, rel=1e-12)
    assert test[:, 0].mean() == pytest.approx((2 * tokens - 1) / tokens**2, rel=1e-12)


def reduced_dynamics(parameters: P) -> float:
    """What the attention of tokens misses of 1 in the mean, from a few numbers alone.

    Kept are the signal's value v and, of each class of query, the signal's score over the others'.
    While v grows by ‖w_O‖²‖μ‖²/2 · g ā, that score grows by c g a(1 − a) v. It ends where v ā, the
    margin, is that of a loss ε.
    """
    n, m = parameters.n, parameters.tokens
    head = weight_deviations(parameters)[0] ** 2 * parameters.d_h
    signal, *_ = lengths = np.array(
        [parameters.signal_norm, parameters.strong_noise_norm, parameters.noise_norm]
    )
    teachers = np.array([n / 2, 1, 1])  # the samples that have the query
    c = 2 * signal**2 * lengths**2 * head * teachers / (n * m)
    rate = parameters.output_scale**2 * signal**2 / 2
    shares = np.array([1, 1, m - 2]) / m
    end = fitted_value(parameters)

    def attention(score: np.ndarray) -> np.ndarray:
        return np.asarray(1 / (1 + (m - 1) * np.exp(-score)))

    def moves(v: float, score: np.ndarray) -> np.ndarray:
        a = attention(score)
        return np.asarray(c / rate * a * (1 - a) * v / (a @ shares))

    def missing(v: float, score: np.ndarray) -> float:
        return float(v * (attention(score) @ shares) - end)

    missing.terminal = True  # type: ignore[attr-defined]
    solved = solve_ivp(moves, (0, 20 * end), np.zeros(3), "LSODA", events=missing, rtol=1e-8)
    return float((1 - attention(solved.y[:, -1])) @ shares)


def test_the_deficit_is_that_of_the_reduced_dynamics() -> None:
    parameters = in_law(
        n=20, snr=10, tokens=4, sigma_p=1, sigma_p_tilde=10, noise_per="token", epsilon=0.024,
        output_scale=1.5, d=10**18, d_h=10**16, learning_rate=1e-11,
    )  # fmt: skip
    deficit = number(theory.DEFICIT, parameters)
    assert reduced_dynamics(parameters) == pytest.approx(deficit, rel=0.1)


def test_what_a_signal_learns_is_the_solution_of_its_equations() -> None:
    """Of scores and the signal's value against u, by a solver that chooses its steps."""
    tokens: dict[str, Any] = {"tokens": 4, "noise_per": "token", "sigma_p": 1, "sigma_p_tilde": 10}
    p = in_law(**tokens, snr=0.2, d=10**12, d_h=10**16, n=44)
    lengths = np.array([0.2, 10.0, 1.0, 1.0])

    def rates(u: float, state: np.ndarray) -> np.ndarray:
        paid = 1 / (1 + 3 * np.exp(-state[:4]))
        scores = paid * (1 - paid) * lengths**2 * u / 2 / paid.mean()
        return np.append(scores, (1 - paid).mean() / 3 / paid.mean())

    gained = solve_ivp(rates, (1e-4, 1e4), np.zeros(5), "LSODA", rtol=1e-8).y[4, -1]
    one = p.output_scale / (weight_deviations(p)[0] * math.sqrt(p.d_h))
    assert theory.learned_signal(p) == pytest.approx(22 * (0.2 / 10) ** 2 * one * gained, rel=0.01)


def test_the_law_of_the_test_error_is_a_share_of_samples() -> None:
    """Of drawn noise values, of which each part is the larger one once."""
    cells = design("theorem-small-values").drop_duplicates(["sigma_v", "d"])
    cells = cells.assign(test_attention_signal=0.25, test_attention_noise=0.25, status="done")
    cells = cells.assign(value_plus=2e-5, value_minus=-2e-5, test_error=0.0)
    first, lengths = np.random.default_rng(0).standard_normal((2, 100_000)), [10.0, 1.0, 1.0]
    fitted = -math.log(math.expm1(0.024)) * np.sqrt(44 / cells["d"].to_numpy()) / 10
    size = math.hypot(*lengths)
    offs = error_law(cells)["error_off"]
    for sigma, overlap, off in zip(cells["sigma_v"], fitted, offs, strict=True):
        wrong = 2e-5 + size * (sigma * first[0] + overlap * first[1]) < 0
        assert -off == pytest.approx(wrong.mean(), abs=0.005)
