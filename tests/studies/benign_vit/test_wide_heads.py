"""The end of wide heads: the closed forms against a plain model and trained cells."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import solve_ivp

from calibration.benign_vit import WORLDS
from calibration.rates import design
from overfit_cli.core.cells import Cells
from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.training import named_rng
from overfit_cli.studies.benign_vit.vit import theory
from overfit_cli.studies.benign_vit.vit.figures import draw_deficit
from overfit_cli.studies.benign_vit.vit.parameters import BenignVitParameters, weight_deviations
from overfit_cli.studies.benign_vit.vit.study import study
from tests.fake_study import words
from tests.studies.benign_vit.cells import small


@pytest.mark.parametrize("tokens", [2, 3, 16])
def test_the_limits_are_those_of_a_model_whose_attention_is_written_down(tokens: int) -> None:
    """All training attention is on the signal; a test sample's noise tokens pay 1/M each."""
    parameters = small(tokens=tokens, epsilon=0.02, d=10**4)
    value = theory.fitted_value(parameters)
    values = np.array([value] + [0.0] * (tokens - 1))  # of a sample's tokens, (tokens,)
    training = np.zeros((tokens, tokens))
    training[:, 0] = 1
    test = np.full((tokens, tokens), 1 / tokens)
    test[0] = training[0]
    assert np.log1p(np.exp(-(training @ values).mean())) == pytest.approx(0.02, rel=1e-12)
    loss = np.log1p(np.exp(-(test @ values).mean()))
    assert theory.wide_heads_test_loss(parameters) == pytest.approx(loss, rel=1e-12)
    assert theory.wide_heads_test_attention(tokens) == pytest.approx(test[:, 0].mean(), rel=1e-12)


def reduced_dynamics(parameters: BenignVitParameters) -> np.ndarray:
    """What the attention of each class of token misses of 1, from a few numbers alone.

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
    end = theory.fitted_value(parameters)

    def attention(score: np.ndarray) -> np.ndarray:
        return np.asarray(1 / (1 + (m - 1) * np.exp(-score)))

    def moves(v: float, score: np.ndarray) -> np.ndarray:
        a = attention(score)
        return np.asarray(c / rate * a * (1 - a) * v / (a @ shares))

    def missing(v: float, score: np.ndarray) -> float:
        return float(v * (attention(score) @ shares) - end)

    missing.terminal = True  # type: ignore[attr-defined]
    solved = solve_ivp(moves, (0, 20 * end), np.zeros(3), "LSODA", events=missing, rtol=1e-8)
    return 1 - attention(solved.y[:, -1])


def test_the_deficit_is_that_of_the_reduced_dynamics() -> None:
    """With wide heads, to the next order; the oracle steps through them."""
    parameters = small(
        n=20, snr=10, tokens=4, sigma_p=1, sigma_p_tilde=10, noise_per="token", epsilon=0.024,
        output_scale=1.5, d=10**18, d_h=10**16, learning_rate=1e-11,
    )  # fmt: skip
    predicted = np.array(theory.class_deficits(parameters))
    assert reduced_dynamics(parameters) == pytest.approx(predicted, rel=0.1)


def test_the_deficit_has_one_line_for_the_paper_and_a_legend_for_all(tmp_path: Path) -> None:
    name = "attention-deficit-formula"
    rows = WORLDS[name].true(design("attention-deficit"), named_rng(3, "wide", name))
    data = Cells.of(study, rows, rows, pd.DataFrame())
    figure = draw_deficit(data, FigureOptions())
    black = [line for line in figure.axes[0].lines if line.get_color() == "black"]
    assert len(black) == 1
    said = words(figure, tmp_path)
    assert "paper's rate" in said
    assert "0.01: c is fitted below" in said
    assert "says nothing" in said
