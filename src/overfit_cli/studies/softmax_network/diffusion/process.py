"""The forward process and the backward process (Cao et al. 2024, section 6.1).

With g = 2 the forward process is dx = −x dt + √2 dB, so that

    x(t) = e^(−t) x(0) + √(1 − e^(−2t)) ξ,   ξ ~ N(0, I).

By Tweedie's formula its score is (e^(−t) E[x(0) | x(t)] − x(t)) / (1 − e^(−2t)): to learn to
denoise is to learn the score. Numbers of one time stand in a column.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
