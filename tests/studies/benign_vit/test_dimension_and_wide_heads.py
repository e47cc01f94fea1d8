"""The boundary at any dimension, and the end of wide heads: found, drawn, judged."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.integrate import solve_ivp

from overfit_cli.core.cells import Cells
from overfit_cli.core.figure import FigureOptions
from overfit_cli.figures.inputs import resolve_options
from overfit_cli.studies.benign_vit import theory
from overfit_cli.studies.benign_vit.boundary import balance_at, boundaries, why_no_boundary
from overfit_cli.studies.benign_vit.data import Weights, draw
from overfit_cli.studies.benign_vit.figures_dimension import draw_dimension
from overfit_cli.studies.benign_vit.parameters import (
    BenignVitParameters,
    token_scales,
    weight_deviations,
)
from overfit_cli.studies.benign_vit.reference import VisionTransformer, logistic_loss
from overfit_cli.studies.benign_vit.study import FIGURES, study
from overfit_cli.studies.benign_vit.theory import BALANCE, learning_balance, predicted_boundary
from tests.judged import measure
from tests.studies.benign_vit.cells import small


def made_up(constants: dict[float, float], *, noise: float = 0.02) -> pd.DataFrame:
    """Grids whose test loss is 0.2 where N · SNR² is the constant of their dimension.

    Seeds differ by `noise` of the logarithm.
    """
    draws = np.random.default_rng(0)
    defaults = BenignVitParameters().model_dump()
    rows = []
    for seed in range(5):
        shift = draws.normal(0, noise)
        for (d, constant), n in itertools.product(constants.items(), (8, 12, 16, 20)):
            for snr in np.geomspace(0.5, 60, 46):
                away = 2 * (np.log(n * snr**2 / constant) + shift)
                loss = {"test_loss": 0.69 / (1 + 2.45 * np.exp(away)), "steps": 10}
                axes = {"d": d, "n": n, "snr": snr, "seed": seed, "status": "done"}
                rows.append(defaults | axes | loss)
    return pd.DataFrame(rows)


def test_boundaries_are_those_that_made_the_cells() -> None:
    actual = boundaries(made_up({1e3: 900.0, 1e6: 1100.0}), "d", 0.2)
    assert [item.at for item in actual] == [1e3, 1e6]
    for item, constant in zip(actual, (900, 1100), strict=True):
        assert item.median == pytest.approx(constant, rel=0.03)
        assert item.low <= item.median <= item.high
        assert item.constants.to_numpy() == pytest.approx(constant, rel=0.06)
        assert item.fit is not None
        assert item.fit.exponent.value == pytest.approx(2, abs=0.1)
        # 0.69 / (1 + 2.45 e^(2a)) is 0.5 where e^(2a) = 0.155.
        assert item.onsets.to_numpy() == pytest.approx(constant * 0.155**0.5, rel=0.06)
        assert balance_at(item) == 2 * (20**2 + 14) * (item.at > 0)
        assert (item.curves, item.never) == (20, 0)


def test_a_boundarys_median_and_a_seeds_constant_are_the_middle_of_curves_alike() -> None:
    """Of four N, with boundaries at 800, 900, 1100 and 1200: between the second and the third."""
    parts = [
        made_up({1e3: constant, 1e6: constant}, noise=0).query(f"n == {n}")
        for n, constant in zip((8, 12, 16, 20), (800.0, 1100.0, 900.0, 1200.0), strict=True)
    ]
    actual = boundaries(pd.concat(parts), "d", 0.2)
    assert actual[0].constants.to_numpy() == pytest.approx(np.sqrt(900 * 1100), rel=0.01)
    assert actual[0].median == pytest.approx(np.sqrt(900 * 1100), rel=0.01)


def test_seeds_that_never_cross_count_as_beyond_the_grid() -> None:
    actual = boundaries(made_up({1e3: 1e3, 1e6: 1e7, 1e9: 0.01}), "d", 0.2)
    never, always = actual[1], actual[2]
    assert never.never == always.never == 20
    assert np.isinf(never.constants).all()
    assert np.isinf(never.median)
    assert (always.constants == 0).all()


def test_no_boundary_is_told_where_something_else_varies() -> None:
    cells, name = made_up({1e3: 1e3, 1e6: 1e3}), "dimension-constant"
    mixed = cells.assign(epsilon=np.where(cells["snr"] > 5, 0.01, 0.02))
    few, failed = cells[cells["n"] < 13], cells.assign(status="failed")
    for none, why in (
        (mixed, "epsilon varies too"),
        (mixed.assign(tokens=mixed["n"]), "tokens, epsilon vary too"),
        (few, "it takes 3 values of n, and there are 2"),
        (failed, f"none of the {len(cells)} cells is done"),
    ):
        assert boundaries(none, "d", 0.2) == []
        assert why_no_boundary(none, "d") == why
    assert "there are 2" in measure(name, few).note
    further = pd.concat([cells, cells.iloc[:1].assign(epsilon=0.02)], ignore_index=True)
    assert measure(name, further).verdict == measure(name, cells).verdict


def test_a_constant_beyond_the_grid_may_be_any_and_a_decade_of_dimensions_is_too_few() -> None:
    for constants in ({1e3: 1e3, 1e9: 1e7}, {1e3: 1e7, 1e9: 1e7}):
        assert measure("dimension-constant", made_up(constants)).verdict == "inconclusive"
    few = made_up({1e3: 1e3, 1e4: 1e3})
    assert measure("dimension-constant", few).verdict == "not run"


@pytest.mark.parametrize(("ratio", "tokens"), [(20.0, 16), (5.0, 4), (0.5, 12)])
def test_a_first_step_is_balanced_where_the_theory_says(ratio: float, tokens: int) -> None:
    """By autograd, from even attention and no values: what each sample's own tokens gain."""
    n, d = 60, 3000
    snr = float(np.sqrt(learning_balance(ratio, tokens) / n))
    shape = {"n": n, "d": d, "tokens": tokens, "d_h": 2, "d_v": 2, "test_samples": 1, "snr": snr}
    settings = small(**shape, sampling="direct", noise="orthogonal", sigma_p_tilde=ratio * 0.2)
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
    equation_of = FIGURES["heatmap"].equation_of
    assert equation_of is not None
    cells = made_up({1e3: 1e3})
    data = Cells.of(study, cells, cells, pd.DataFrame())
    assert equation_of(data) == ("n * snr**2 = 1000", "")
    weaker = data.with_trained(cells.assign(sigma_p_tilde=2.0, tokens=4))
    assert equation_of(weaker)[0] == f"n * snr**2 = {BALANCE}"
    assert predicted_boundary([20, 20, 10], [16, 4, 4]).tolist() == [1000, 804, 204]
    mixed = data.with_trained(cells.assign(tokens=np.where(cells["n"] > 10, 4, 16)))
    assert equation_of(mixed) == equation_of(weaker)  # each panel has its own constant
    assert resolve_options(FIGURES["heatmap"], FigureOptions(), mixed).law is None
    panels = FigureOptions(x="snr", y="n", by="tokens")
    each = data.with_trained(pd.concat([cells.assign(tokens=4), cells.assign(tokens=8)]))
    assert resolve_options(FIGURES["heatmap"], panels, each).law == equation_of(weaker)[:1]


@pytest.mark.slow
def test_boundaries_beyond_the_grid_are_arrows_at_the_edge(tmp_path: Path) -> None:
    cells = made_up({1e3: 0.1, 1e6: 1e3, 1e9: 1e9}, noise=0.3).assign(key="k")
    some = cells[(cells["d"] != 1e6) | (cells["n"] * cells["snr"] ** 2 < 1e3)]
    data = Cells.of(study, some, some, pd.DataFrame())
    figure = draw_dimension(data, FigureOptions())
    lines = [line for line in figure.axes[0].lines if line.get_marker() in ("^", "v")]
    assert [line.get_marker() for line in lines] == ["^", "v"]
    assert np.asarray(lines[0].get_xdata())[-1] == 1e9
    assert np.asarray(lines[1].get_xdata()).tolist() == [1e3]
    figure.savefig(tmp_path / "d.svg")
    assert "beyond the grid" in (tmp_path / "d.svg").read_text()


def test_the_caption_says_which_lines_coincide() -> None:
    cells = made_up({1e3: 300.0, 1e6: 1e3, 1e9: 1e3}, noise=0.0).assign(key="k")
    figure = draw_dimension(Cells.of(study, cells, cells, pd.DataFrame()), FigureOptions())
    assert "The lines of $d$ = $10^{6}$ and $d$ = $10^{9}$ coincide." in figure.facts
    assert sum("coincide" in fact for fact in figure.facts) == 1


# The end of wide heads: the closed forms against a plain model and reduced dynamics


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
