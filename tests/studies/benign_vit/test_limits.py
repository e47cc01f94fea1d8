"""The boundary at any dimension, and the end of wide heads: found and judged."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
import torch

from overfit_cli.core.cells import Cells
from overfit_cli.core.figure import FigureOptions
from overfit_cli.figures.inputs import resolve_options
from overfit_cli.studies.benign_vit import theory
from overfit_cli.studies.benign_vit.claims.limits import constants
from overfit_cli.studies.benign_vit.data import Weights, draw
from overfit_cli.studies.benign_vit.parameters import token_scales
from overfit_cli.studies.benign_vit.reference import VisionTransformer, logistic_loss
from overfit_cli.studies.benign_vit.study import study
from tests.judged import design
from tests.studies.benign_vit.cells import in_law, number


def made_up(constants: dict[float, float], *, noise: float = 0.02) -> pd.DataFrame:
    """Grids whose test loss is 0.2 where N · SNR² is the constant of their dimension.

    Seeds differ by `noise` of the logarithm.
    """
    grid = itertools.product(range(5), constants, (8, 12, 16, 20), np.geomspace(0.5, 60, 31))
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


@pytest.mark.slow
def test_only_cells_of_the_paper_are_called_its_figure() -> None:
    heatmap, cells = study.figures()["heatmap"], design("fig1")
    assert heatmap.source == "Jiang et al. 2024, figure 1a"
    for changed in ({}, {"label_flip": 0.2}, {"d": 500}):
        data = Cells.of(study, cells.assign(**changed), cells)
        assert heatmap.reproduces(data) == (not changed), changed


# The end of wide heads: the closed form against a plain model


@pytest.mark.parametrize("tokens", [2, 3, 16])
def test_the_limit_is_that_of_a_model_whose_attention_is_written_down(tokens: int) -> None:
    """All training attention is on the signal; a test sample's noise tokens pay 1/M each."""
    parameters = in_law(tokens=tokens, epsilon=0.02, d=10**4)
    fitted = -math.log(math.expm1(0.02))  # the margin at which a loss is ε
    values = np.array([fitted] + [0.0] * (tokens - 1))  # (tokens,)
    training = np.zeros((tokens, tokens))
    training[:, 0] = 1
    test = np.full((tokens, tokens), 1 / tokens)
    test[0] = training[0]
    assert np.log1p(np.exp(-(training @ values).mean())) == pytest.approx(0.02, rel=1e-12)
    loss = np.log1p(np.exp(-(test @ values).mean()))
    assert number(theory.WIDE_HEADS_LOSS, parameters) == pytest.approx(loss, rel=1e-12)
    assert test[:, 0].mean() == pytest.approx((2 * tokens - 1) / tokens**2, rel=1e-12)
