"""The diffusion process and its targets.

The forward process and the backward process (Cao et al. 2024, section 6.1).

With g = 2 the forward process is dx = −x dt + √2 dB, so that

    x(t) = e^(−t) x(0) + √(1 − e^(−2t)) ξ,   ξ ~ N(0, I).

By Tweedie's formula its score is (e^(−t) E[x(0) | x(t)] − x(t)) / (1 − e^(−2t)): to learn to
denoise is to learn the score. Numbers of one time stand in a column.

Targets, a mixture with a known denoiser or digits, and the draws that a cell has of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from overfit_cli.core.training import named_rng
from overfit_cli.studies.softmax_network.diffusion.parameters import (
    TEST_DIGITS,
    SoftmaxDiffusionParameters,
)
from overfit_cli.studies.softmax_network.paper import digit_components

Floats = NDArray[np.float64]

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
    """Noisy points, and what they were.

    Attributes:
        clean: x(0), shape (points, d).
        times: t, shape (points,).
        noisy: x(t), shape (points, d).
    """

    clean: Floats
    times: Floats
    noisy: Floats


def noised(clean: Floats, times: Floats, draws: np.random.Generator) -> Pairs:
    """Run the forward process from points, (points, d), for times of their own, (points,)."""
    noise = draws.standard_normal(clean.shape)
    return Pairs(clean, times, decay(times) * clean + np.sqrt(variance(times)) * noise)


def score(denoised: Floats, pairs: Pairs) -> Floats:
    """Return the score that a denoiser's outputs say, (points, d)."""
    found: Floats = (decay(pairs.times) * denoised - pairs.noisy) / variance(pairs.times)
    return found


def backward(
    denoiser: Denoiser, start: Floats, times: Floats, draws: np.random.Generator
) -> Floats:
    """Run the backward process by Euler and Maruyama, and return where it ends, (points, d).

    dy = (y + 2 s(y, t)) dt + √2 dB as t falls, where s is the score that the denoiser says, brought
    into the unit ball, where the target lies.

    Args:
        denoiser: what denoises.
        start: y at the first of the times, (points, d).
        times: t at each step, falling, shape (steps + 1,).
        draws: of the noise.
    """
    points = start
    for time, following in itertools.pairwise(times):
        now = Pairs(points, np.full(len(points), time), points)
        step = time - following
        drift = points + 2 * score(_in_unit_ball(denoiser(points, now.times)), now)
        points = points + step * drift + np.sqrt(2 * step) * draws.standard_normal(points.shape)
    return points


def _in_unit_ball(points: Floats) -> Floats:
    found: Floats = points / np.maximum(1.0, np.linalg.norm(points, axis=1, keepdims=True))
    return found


TIMES, TESTS = 24, 500
"""At how many times errors are measured, and at how many points each."""


@dataclass(frozen=True, eq=False)
class Mixture:
    """Gaussians of one deviation with equal weights; with a deviation of 0 they are points.

    Attributes:
        means: shape (components, d).
        deviation: of every coordinate.
    """

    means: Floats
    deviation: float

    def draw(self, count: int, seed: int, *stream: str) -> Floats:
        """Draw points, (count, d), from a cell's stream; more extend fewer."""
        modes = named_rng(seed, *stream, "modes").integers(len(self.means), size=count)
        noise = named_rng(seed, *stream, "points").standard_normal((count, self.means.shape[1]))
        found: Floats = self.means[modes] + self.deviation * noise
        return found

    def denoise(self, noisy: Floats, times: Floats) -> Floats:
        """Return E[x(0) | x(t)], (points, d), of x(t) at t: exactly, by Bayes' rule."""
        shrunk, total = decay(times), self.total_variance(times)
        weights = softmax(-self._squares(noisy, times) / (2 * total), axis=1)
        centre = weights @ self.means  # (points, d)
        share = shrunk * self.deviation**2 / total
        found: Floats = centre + share * (noisy - shrunk * centre)
        return found

    def density(self, noisy: Floats, times: Floats) -> Floats:
        """Return the density of x(t), (points,)."""
        total = self.total_variance(times)  # (points, 1)
        bells = np.exp(-self._squares(noisy, times) / (2 * total)).mean(axis=1)
        found: Floats = bells / (2 * np.pi * total[:, 0]) ** (noisy.shape[1] / 2)
        return found

    def total_variance(self, times: Floats) -> Floats:
        """Return the variance of x(t) around a component, (points, 1)."""
        return decay(times) ** 2 * self.deviation**2 + variance(times)

    def _squares(self, noisy: Floats, times: Floats) -> Floats:
        """‖x(t) − e^(−t) μ‖², (points, components)."""
        shrunk = decay(times)
        crossed = shrunk * (noisy @ self.means.T)
        lengths = shrunk**2 * (self.means**2).sum(axis=1)
        found: Floats = (noisy**2).sum(axis=1, keepdims=True) - 2 * crossed + lengths
        return found


@dataclass(frozen=True, eq=False)
class Problem:
    """What a cell learns from, and what it is held to. Train and test draws share no stream.

    Attributes:
        points: x(0) to train on, shape (n, d).
        train, validation: noisy pairs at times that are uniform between T₀ and T.
        tests: noisy pairs at each of `TIMES` times.
        fresh: x(T₀) of two further draws of as many points as samples, which samples are held to.
        copies: x(T₀) of as many training points.
        truth: the mixture; None where nobody knows the score.
    """

    points: Floats
    train: Pairs
    validation: Pairs
    tests: tuple[Pairs, ...]
    fresh: tuple[Floats, Floats]
    copies: Floats
    truth: Mixture | None


def mixture(parameters: SoftmaxDiffusionParameters) -> Mixture:
    """Return the mixture: modes on a circle in the first two coordinates, for d = 1 on a line."""
    of = parameters
    means = np.zeros((of.modes, of.d))
    if of.d == 1:
        means[:, 0] = of.radius * np.linspace(-1, 1, of.modes) if of.modes > 1 else of.radius
    else:
        angles = 2 * np.pi * np.arange(of.modes) / of.modes
        means[:, :2] = of.radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return Mixture(means, of.deviation)


def measured_times(parameters: SoftmaxDiffusionParameters) -> Floats:
    """Return the times at which errors are measured, from T₀ to T by one ratio, (times,)."""
    return np.geomspace(parameters.first_time, parameters.last_time, TIMES)


def draw_problem(parameters: SoftmaxDiffusionParameters, seed: int) -> Problem:
    """Draw what a cell needs; a longer training set extends a shorter one."""
    of = parameters
    truth = mixture(of) if of.target == "mixture" else None
    points, validation, source = _digits(of, seed) if truth is None else _drawn(of, truth, seed)
    span = of.last_time - of.first_time

    def pairs(clean: Floats, stream: str) -> Pairs:
        times = of.first_time + span * named_rng(seed, stream, "times").random(len(clean))
        return noised(clean, times, named_rng(seed, stream, "noise"))

    def test(count: int, time: float, name: str, of_points: Mixture = source) -> Pairs:
        clean = of_points.draw(count, seed, "test", name)
        return noised(clean, np.full(count, time), named_rng(seed, "test", name, "noise"))

    first, second = (test(of.samples, of.first_time, name).noisy for name in ("fresh", "again"))
    copies = test(of.samples, of.first_time, "copies", Mixture(points, 0.0)).noisy
    return Problem(
        points=points,
        train=pairs(np.tile(points, (of.noisings, 1)), "train"),
        validation=pairs(validation, "validation"),
        tests=tuple(test(TESTS, time, f"time {at}") for at, time in enumerate(measured_times(of))),
        fresh=(first, second),
        copies=copies,
        truth=truth,
    )


def _drawn(
    parameters: SoftmaxDiffusionParameters, truth: Mixture, seed: int
) -> tuple[Floats, Floats, Mixture]:
    """Points to train and to tune on, and what test points are drawn from."""
    train = truth.draw(parameters.n, seed, "train")
    return train, truth.draw(parameters.validation, seed, "validation"), truth


def _digits(parameters: SoftmaxDiffusionParameters, seed: int) -> tuple[Floats, Floats, Mixture]:
    """The same of digits in an order of their own for each seed; the last are tested on."""
    points, _ = digit_components(parameters.d)
    order = named_rng(seed, "train", "digits").permutation(len(points))
    rest, tests = points[order[:-TEST_DIGITS]], points[order[-TEST_DIGITS:]]
    return rest[: parameters.n], rest[len(rest) - parameters.validation :], Mixture(tests, 0.0)
