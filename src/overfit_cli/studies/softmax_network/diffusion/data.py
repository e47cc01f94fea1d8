"""The diffusion process, its target distributions, and the draws of a cell.

The forward process of section 6.1 (Cao et al. 2024) with g = 2 is dx = −x dt + √2 dB, so that

    x(t) = e^(−t) x(0) + √(1 − e^(−2t)) ξ,   ξ ~ N(0, I).

By Tweedie's formula its score is

    ∇ log p_t(x(t)) = (e^(−t) E[x(0) | x(t)] − x(t)) / (1 − e^(−2t)):

to learn to denoise is to learn the score. Targets are a mixture with a known denoiser, or digits.
Numbers that depend on the time alone stand in a column, (points, 1).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from overfit_cli.core.arrays import Floats
from overfit_cli.core.training import named_rng
from overfit_cli.studies.softmax_network.data import digit_components
from overfit_cli.studies.softmax_network.diffusion.study import (
    TEST_DIGITS,
    SoftmaxDiffusionParameters,
)

Denoiser = Callable[[Floats, Floats], Floats]
"""From x(t), (points, d), and t, (points,), to E[x(0) | x(t)], (points, d)."""


def decay(times: Floats) -> Floats:
    """Return e^(−t), (points, 1)."""
    return np.exp(-times)[:, None]


def variance(times: Floats) -> Floats:
    """Return 1 − e^(−2t), the variance of the noise, (points, 1)."""
    return -np.expm1(-2 * times)[:, None]


@dataclass(frozen=True, eq=False)
class Pairs:
    """Noisy points with their clean points."""

    clean: Floats  # x(0), (points, d)
    times: Floats  # t, (points,)
    noisy: Floats  # x(t), (points, d)


def add_noise(clean: Floats, times: Floats, draws: np.random.Generator) -> Pairs:
    """Run the forward process from x(0), (points, d), each point to its own time, (points,)."""
    noise = draws.standard_normal(clean.shape)  # ξ, (points, d)
    return Pairs(clean, times, decay(times) * clean + np.sqrt(variance(times)) * noise)


def score(denoised: Floats, pairs: Pairs) -> Floats:
    """Return (e^(−t) E[x(0) | x(t)] − x(t)) / (1 − e^(−2t)), (points, d), of denoised points."""
    scores: Floats = (decay(pairs.times) * denoised - pairs.noisy) / variance(
        pairs.times
    )  # (points, d)
    return scores


def backward(
    denoiser: Denoiser, start: Floats, times: Floats, draws: np.random.Generator
) -> Floats:
    """Run the backward process by Euler and Maruyama, and return its last points, (points, d).

    dy = (y + 2 s(y, t)) dt + √2 dB as t falls: the backward process of section 6.1 with g = 2. It
    starts at y, (points, d), at the first of the falling times, (steps + 1,). The score s is that
    of the denoiser's outputs, projected onto the unit ball, where the target lies.
    """
    y = start  # (points, d)
    for time, following in itertools.pairwise(times):
        now = Pairs(y, np.full(len(y), time), y)  # the process at `time`; no clean points
        step = time - following  # dt
        drift = y + 2 * score(_project_onto_unit_ball(denoiser(y, now.times)), now)  # (points, d)
        y = y + step * drift + np.sqrt(2 * step) * draws.standard_normal(y.shape)  # (points, d)
    return y


def _project_onto_unit_ball(points: Floats) -> Floats:
    lengths = np.linalg.norm(points, axis=1, keepdims=True)  # (points, 1)
    inside: Floats = points / np.maximum(1.0, lengths)
    return inside


TIMES, TESTS = 24, 500
"""The number of times at which errors are measured, and of points at each."""


@dataclass(frozen=True, eq=False)
class Mixture:
    """Gaussians of one deviation with equal weights; with a deviation of 0 they are points."""

    means: Floats  # (components, d)
    deviation: float

    def draw(self, count: int, seed: int, *stream: str) -> Floats:
        """Draw points, (count, d), from a cell's stream; more extend fewer."""
        components, d = self.means.shape
        modes = named_rng(seed, *stream, "modes").integers(components, size=count)  # (count,)
        noise = named_rng(seed, *stream, "points").standard_normal((count, d))  # (count, d)
        points: Floats = self.means[modes] + self.deviation * noise  # μ_c + σ ξ, (count, d)
        return points

    def denoise(self, noisy: Floats, times: Floats) -> Floats:
        """Return E[x(0) | x(t)], (points, d), of x(t) at t: exactly, by Bayes' rule.

        With s² the variance of x(t) around a component and p_c ∝ exp(−‖x(t) − e^(−t) μ_c‖²/(2 s²)),
        μ̄ = Σ_c p_c μ_c and E[x(0) | x(t)] = μ̄ + e^(−t) σ²/s² (x(t) − e^(−t) μ̄).
        """
        shrunk, total = decay(times), self.total_variance(times)  # e^(−t) and s², (points, 1)
        weights = softmax(
            -self._squares(noisy, times) / (2 * total), axis=1
        )  # p_c, (points, components)
        centre = weights @ self.means  # μ̄, (points, d)
        share = shrunk * self.deviation**2 / total  # e^(−t) σ²/s², (points, 1)
        denoised: Floats = centre + share * (noisy - shrunk * centre)  # (points, d)
        return denoised

    def density(self, noisy: Floats, times: Floats) -> Floats:
        """Return mean_c exp(−‖x(t) − e^(−t) μ_c‖²/(2 s²)) / (2π s²)^(d/2), (points,)."""
        total = self.total_variance(times)  # (points, 1)
        bells = np.exp(-self._squares(noisy, times) / (2 * total)).mean(axis=1)  # (points,)
        densities: Floats = bells / (2 * np.pi * total[:, 0]) ** (noisy.shape[1] / 2)
        return densities

    def total_variance(self, times: Floats) -> Floats:
        """Return s² = e^(−2t) σ² + 1 − e^(−2t), x(t)'s around a component, (points, 1)."""
        return decay(times) ** 2 * self.deviation**2 + variance(times)

    def _squares(self, noisy: Floats, times: Floats) -> Floats:
        shrunk = decay(times)  # e^(−t), (points, 1)
        crossed = shrunk * (noisy @ self.means.T)  # (points, components)
        lengths = shrunk**2 * (self.means**2).sum(axis=1)  # (points, components)
        squares: Floats = (noisy**2).sum(axis=1, keepdims=True) - 2 * crossed + lengths
        return squares


@dataclass(frozen=True, eq=False)
class Problem:
    """The draws of a cell, to train on and to test on. Train and test draws share no stream."""

    points: Floats  # x(0) to train on, (n, d)
    # train, validation: noisy pairs at times that are uniform between T₀ and T
    train: Pairs
    validation: Pairs
    tests: tuple[Pairs, ...]  # noisy pairs at each of `TIMES` times
    # x(T₀) of two further draws of as many points as samples, to compare samples with
    fresh: tuple[Floats, Floats]
    copies: Floats  # x(T₀) of as many training points
    truth: Mixture | None  # the mixture; None where the score isn't known


def mixture(parameters: SoftmaxDiffusionParameters) -> Mixture:
    """Return the mixture: modes on a circle in the first two coordinates, for d = 1 on a line."""
    modes, radius = parameters.modes, parameters.radius
    means = np.zeros((modes, parameters.d))  # μ_c, (modes, d)
    if parameters.d == 1:
        means[:, 0] = radius * np.linspace(-1, 1, modes) if modes > 1 else radius
    else:
        angles = 2 * np.pi * np.arange(modes) / modes  # (modes,)
        means[:, :2] = radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return Mixture(means, parameters.deviation)


def measured_times(parameters: SoftmaxDiffusionParameters) -> Floats:
    """Return the times at which errors are measured, from T₀ to T by one ratio, (times,)."""
    return np.geomspace(parameters.first_time, parameters.last_time, TIMES)


def draw_problem(parameters: SoftmaxDiffusionParameters, seed: int) -> Problem:
    """Draw what a cell needs; a longer training set extends a shorter one."""
    first_time, span = parameters.first_time, parameters.last_time - parameters.first_time
    if parameters.target == "mixture":
        truth: Mixture | None = mixture(parameters)
        points, validation, source = _mixture_points(parameters, seed)
    else:
        truth = None
        points, validation, source = _digit_points(parameters, seed)

    def pairs(clean: Floats, stream: str) -> Pairs:
        uniform = named_rng(seed, stream, "times").random(len(clean))  # (points,)
        times = first_time + span * uniform  # t ~ U(T₀, T), (points,)
        return add_noise(clean, times, named_rng(seed, stream, "noise"))

    def test(count: int, time: float, name: str, target: Mixture = source) -> Pairs:
        clean = target.draw(count, seed, "test", name)  # x(0), (count, d)
        return add_noise(clean, np.full(count, time), named_rng(seed, "test", name, "noise"))

    samples, times = parameters.samples, measured_times(parameters)
    return Problem(
        points=points,
        train=pairs(np.tile(points, (parameters.noisings, 1)), "train"),
        validation=pairs(validation, "validation"),
        tests=tuple(test(TESTS, time, f"time {index}") for index, time in enumerate(times)),
        fresh=(test(samples, first_time, "fresh").noisy, test(samples, first_time, "again").noisy),
        copies=test(samples, first_time, "copies", Mixture(points, 0.0)).noisy,
        truth=truth,
    )


def _mixture_points(
    parameters: SoftmaxDiffusionParameters, seed: int
) -> tuple[Floats, Floats, Mixture]:
    truth = mixture(parameters)
    train = truth.draw(parameters.n, seed, "train")
    return train, truth.draw(parameters.validation, seed, "validation"), truth


def _digit_points(
    parameters: SoftmaxDiffusionParameters, seed: int
) -> tuple[Floats, Floats, Mixture]:
    points, _ = digit_components(parameters.d)
    order = named_rng(seed, "train", "digits").permutation(len(points))
    rest, tests = points[order[:-TEST_DIGITS]], points[order[-TEST_DIGITS:]]
    return rest[: parameters.n], rest[len(rest) - parameters.validation :], Mixture(tests, 0.0)
