"""The study `softmax-diffusion`: processes, targets, networks, measures, and slow oracles."""

from __future__ import annotations

import math
from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import integrate, stats

from overfit_cli.core.arrays import Floats
from overfit_cli.core.cell import CellResult
from overfit_cli.core.training import logged_steps
from overfit_cli.studies.softmax_network import NAMES, Activation
from overfit_cli.studies.softmax_network.activations import initial_weights
from overfit_cli.studies.softmax_network.diffusion import data, engine
from overfit_cli.studies.softmax_network.diffusion import training as measures
from overfit_cli.studies.softmax_network.diffusion.study import (
    LEAST_STEPS,
    Model,
    SoftmaxDiffusionParameters,
    study,
)
from overfit_cli.studies.softmax_network.reference import plain_network
from tests.training import begins_with, cell_of, train

SMALL = {"n": 40, "m": 16, "training_steps": 30, "samples": 200, "validation": 50}


def parameters(**values: object) -> SoftmaxDiffusionParameters:
    return SoftmaxDiffusionParameters.model_validate(SMALL | values)


def trained(seed: int = 0, **values: object) -> CellResult[Any]:
    [result] = train(study, cell_of(study, parameters(**values), seed), trajectories=True)
    return result


def points(count: int, d: int, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).normal(size=(count, d))


def test_noised_points_are_where_the_forward_equation_takes_them() -> None:
    """Against steps of dx = −x dt + √2 dB; deviations of 40,000 draws are about 0.005."""
    random = np.random.default_rng(0)
    start, time, steps = 0.8, 0.7, 400
    x = np.full(40_000, start)
    for _ in range(steps):
        x += -x * time / steps + np.sqrt(2 * time / steps) * random.normal(size=len(x))
    clean = np.full((40_000, 1), start)
    actual = data.add_noise(clean, np.full(40_000, time), random).noisy[:, 0]
    assert actual.mean() == pytest.approx(x.mean(), abs=0.02)
    assert actual.std() == pytest.approx(x.std(), abs=0.02)
    assert stats.ks_2samp(actual, x).pvalue > 1e-3


@pytest.mark.parametrize("deviation", [0.0, 0.3])
def test_a_mixture_denoises_as_bayes_rule_by_quadrature_does(deviation: float) -> None:
    mixture = data.Mixture(np.array([[-0.5], [0.2], [0.6]]), deviation)
    for time, noisy in ((0.05, 0.1), (0.6, -0.7)):
        shrunk, noise = math.exp(-time), math.sqrt(1 - math.exp(-2 * time))
        if deviation:

            def posterior(x: float, power: int) -> float:
                prior = stats.norm.pdf(x, mixture.means[:, 0], deviation).mean()
                likelihood = stats.norm.pdf(noisy, shrunk * x, noise)  # noqa: B023
                return float(x**power * prior * likelihood)

            total, first = (
                integrate.quad(posterior, -3, 3, (power,), limit=200)[0] for power in (0, 1)
            )
        else:
            likelihoods = stats.norm.pdf(noisy, shrunk * mixture.means[:, 0], noise)
            total, first = likelihoods.mean(), (likelihoods * mixture.means[:, 0]).mean()
        index, when = np.array([[noisy]]), np.array([time])
        assert mixture.denoise(index, when)[0, 0] == pytest.approx(first / total, rel=1e-7)
        assert mixture.density(index, when)[0] == pytest.approx(total, rel=1e-7)


def test_the_score_is_the_gradient_of_the_logarithm_of_the_density() -> None:
    mixture, small = data.Mixture(points(4, 2), 0.2), 1e-5
    noisy, times = points(6, 2, 1), np.linspace(0.1, 1.0, 6)
    actual = data.score(mixture.denoise(noisy, times), data.Pairs(noisy, times, noisy))
    for axis in range(2):
        step = small * np.eye(2)[axis]
        above, below = (np.log(mixture.density(noisy + way * step, times)) for way in (1, -1))
        np.testing.assert_allclose(actual[:, axis], (above - below) / (2 * small), rtol=1e-6)


def test_the_backward_process_with_the_true_score_ends_at_the_target() -> None:
    mixture = data.Mixture(np.array([[0.7, 0.0], [-0.3, 0.5]]), 0.1)
    random = np.random.default_rng(0)
    times = np.geomspace(4.0, 0.02, 200)
    samples = data.backward(mixture.denoise, random.normal(size=(4000, 2)), times, random)
    fresh, again = (
        data.add_noise(mixture.draw(4000, 0, name), np.full(4000, 0.02), random).noisy
        for name in ("one", "other")
    )
    near, floor, far = (
        measures.sliced_wasserstein(item, fresh, np.random.default_rng(1))
        for item in (samples, again, 0 * samples)
    )
    assert near < 3 * floor
    assert far > 20 * floor


def test_the_backward_process_brings_estimates_into_the_unit_ball() -> None:
    seen = []

    def far(noisy: Floats, times: Floats) -> Floats:
        seen.append(times[0])
        return np.full(noisy.shape, 100.0)

    times, random = np.geomspace(3.0, 0.001, 400), np.random.default_rng(0)
    end = data.backward(far, np.zeros((50, 2)), times, random)
    np.testing.assert_allclose(np.linalg.norm(end, axis=1), 1.0, atol=0.2)
    np.testing.assert_array_equal(seen, times[:-1])


def test_means_over_time_are_integrals() -> None:
    times = data.measured_times(parameters(first_time=0.02, last_time=1.0))
    exact = integrate.quad(lambda t: t**-2.0, 0.02, 1.0)[0] / 0.98
    assert measures.mean_over_times(times**-2.0, times) == pytest.approx(exact, rel=0.005)
    assert measures.mean_over_times(np.ones(len(times)), times) == 1.0


def test_the_sliced_distance_on_a_line_is_the_wasserstein_distance() -> None:
    first, second = points(50, 1), 0.5 + 2 * points(50, 1, 1)
    distance = measures.sliced_wasserstein(first, second, np.random.default_rng(0))
    assert distance == pytest.approx(stats.wasserstein_distance(first[:, 0], second[:, 0]))


def test_the_nearest_training_point_tells_how_near_points_are() -> None:
    training = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    distance = measures.nearest_distance(np.array([[0.1, 0.0], [0.5, 0.0], [0.0, 0.8]]), training)
    assert distance == pytest.approx(0.2)


def test_both_weightings_are_of_one_error() -> None:
    problem = data.draw_problem(parameters(), 0)
    assert problem.truth is not None
    for test, time in zip(problem.tests, data.measured_times(parameters()), strict=True):
        actual = measures.errors_at(lambda noisy, _: 0.3 * noisy, test, problem.truth)
        weight = 4 * math.sinh(time) ** 2
        assert actual["denoiser_error"] == pytest.approx(weight * actual["score_error"], rel=1e-9)
        scores = data.score(problem.truth.denoise(test.noisy, test.times), test)
        assert actual["score_square"] == pytest.approx((scores**2).sum(axis=1).mean())


def plain_tuning(settings: SoftmaxDiffusionParameters, seed: int) -> tuple[float, float, int]:
    """Train with each step size by autograd; the best validation loss, its step size and step."""
    problem = data.draw_problem(settings, seed)
    train, validation = (
        np.concatenate([item.times[:, None], item.noisy], axis=1)
        for item in (problem.train, problem.validation)
    )
    unit = np.linalg.norm(train, axis=1).max()
    x, x_validation = torch.tensor(train / unit), torch.tensor(validation / unit)
    y, y_validation = (torch.tensor(item.clean) for item in (problem.train, problem.validation))
    w, a = initial_weights(
        "symmetric", (settings.m, 1 + settings.d, settings.d), settings.sigma, seed
    )
    scale = 1.0 if settings.output_scale == "paper" else settings.m**-0.5
    collected = []
    for size in engine.STEP_SIZES[settings.optimiser]:
        weights = torch.tensor(w, requires_grad=True)
        rate = size
        if settings.optimiser == "gd":
            start = engine.initial_network(settings, seed, problem.train, "cpu")
            curvature = engine.tangent_spectrum(settings, problem.train, start.radius)[0]
            rate = size / (scale**2 * settings.m * curvature)
        kind = torch.optim.Adam if settings.optimiser == "adam" else torch.optim.SGD
        optimiser = kind([weights], lr=rate)
        for step in range(settings.training_steps + 1):
            activation: Activation = settings.model  # type: ignore[assignment]
            outputs = scale * plain_network(activation, x_validation, weights, torch.tensor(a))
            loss = (outputs - y_validation).square().sum(1).mean().item()
            if math.isfinite(loss) and step in logged_steps(settings.training_steps, ratio=1.1):
                collected.append((loss, rate, step))
            optimiser.zero_grad()
            fitted = scale * plain_network(activation, x, weights, torch.tensor(a))
            ((fitted - y).square().sum() / 2).backward()
            optimiser.step()
    return min(collected)


@pytest.mark.parametrize("model", NAMES)
@pytest.mark.parametrize(("optimiser", "scale"), [("adam", "root"), ("gd", "paper")])
@pytest.mark.one_in(3)
def test_networks_are_tuned_as_by_autograd(model: str, optimiser: str, scale: str) -> None:
    settings: dict[str, Any] = {"model": model, "optimiser": optimiser, "output_scale": scale}
    settings |= {"training_steps": 14, "dtype": "float64"}
    result = trained(3, **settings)
    measurements = result.measurements
    assert pd.Series(result.trajectory["sample_2"]).count() == SMALL["samples"]
    loss, size, step = plain_tuning(parameters(**settings), 3)
    assert measurements["validation_loss"] == pytest.approx(loss, rel=1e-8)
    assert measurements["step_size"] == pytest.approx(size)
    assert measurements["best_step"] == step


def test_the_curvature_is_that_of_a_wide_network() -> None:
    """λ_max(JJᵀ) over m; that of 50,000 units by autograd differs by a few per cent."""
    settings = parameters(n=12, m=50_000, dtype="float64", output_scale="paper")
    problem = data.draw_problem(settings, 0)
    start = engine.initial_network(settings, 0, problem.train, "cpu")
    largest, smallest = engine.tangent_spectrum(settings, problem.train, start.radius)
    inputs = torch.as_tensor(
        engine.network_inputs(problem.train.noisy, problem.train.times, start.radius)
    )
    weights = start.net.weights[0].clone().requires_grad_()
    values = plain_network("softmax", inputs, weights, start.net.signs[0])[:, 0]
    rows = torch.stack(
        [torch.autograd.grad(value, weights, retain_graph=True)[0] for value in values]
    )
    gram = rows.flatten(1) @ rows.flatten(1).T / settings.m
    assert torch.linalg.eigvalsh(gram)[-1].item() == pytest.approx(largest, rel=0.05)
    assert 0 <= smallest < 1e-3 * largest


@pytest.mark.slow
def test_training_ends_where_the_best_step_is_far_behind() -> None:
    """Twenty noisy points are overfitted within a few steps."""
    result = trained(n=20, training_steps=1000)
    logged = pd.DataFrame(result.trajectory)[["step", "validation_loss"]].dropna()
    assert result.measurements["validation_loss"] == logged["validation_loss"].min()
    last = logged["step"].iloc[-1]
    assert max(LEAST_STEPS, 3 * result.measurements["best_step"]) < last < 1000
    assert result.steps == last


@pytest.mark.parametrize("model", get_args(Model))
@pytest.mark.one_in(3)
def test_each_denoiser_is_where_it_should_be(model: str) -> None:
    """The truth has no error, the constant the most; the posterior of all points is the truth.

    At T₀ = 0.02 copies are as far from training points of a plane as fresh draws are.
    """
    n = 400 if model in NAMES else 2000
    measurements = trained(model=model, deviation=0.0, n=n).measurements
    assert "memorised" not in measurements
    if model in NAMES:
        assert 0 < measurements["score_share"] < 1.2
        assert measurements["width_missing"] > 100
        return
    assert "step_size" not in measurements
    assert measurements["score_share"] < {"true": 1e-12, "posterior": 0.01, "constant": 2.0}[model]
    if model == "constant":
        assert measurements["score_share"] > 0.5


def test_the_posterior_copies_few_digits_and_the_constant_copies_none() -> None:
    digits: dict[str, Any] = {"target": "digits", "d": 8, "n": 60, "first_time": 0.002}
    copied, constant = (
        trained(model=model, validation=100, **digits).measurements
        for model in ("posterior", "constant")
    )
    assert copied["memorised"] == pytest.approx(1.0, abs=0.15)
    assert constant["memorised"] < 0.1
    assert "score_error" not in copied


def test_longer_training_sets_extend_shorter_ones_and_share_the_test_points() -> None:
    for target in ("mixture", "digits"):
        short, long = (data.draw_problem(parameters(n=n, target=target), 1) for n in (20, 30))
        assert begins_with(long.points, short.points)
        np.testing.assert_array_equal(long.validation.noisy, short.validation.noisy)
        for first, second in zip(long.tests, short.tests, strict=True):
            np.testing.assert_array_equal(first.noisy, second.noisy)


def test_no_digit_is_both_trained_and_tested_on() -> None:
    problem = data.draw_problem(parameters(target="digits", n=1000, validation=297), 0)
    tested = np.concatenate([test.clean for test in problem.tests])
    sets = [
        {item.tobytes() for item in points} for points in (problem.points, problem.validation.clean)
    ]
    assert len(sets[0]) == 1000
    assert not sets[0] & sets[1]
    assert not (sets[0] | sets[1]) & {item.tobytes() for item in tested}


def test_each_point_is_noised_as_often_as_asked() -> None:
    problem = data.draw_problem(parameters(noisings=3), 0)
    assert problem.train.noisy.shape == (120, 2)
    np.testing.assert_array_equal(problem.train.clean, np.tile(problem.points, (3, 1)))
    assert len(np.unique(problem.train.times)) == 120
