"""Errors of denoisers, and distances of samples to the target and to the training points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from overfit_cli.studies.softmax_network.diffusion.process import (
    Denoiser,
    Floats,
    Pairs,
    decay,
    score,
    variance,
)
from overfit_cli.studies.softmax_network.diffusion.targets import Mixture

DIRECTIONS = 64
"""Directions of the sliced Wasserstein distance."""


@dataclass(frozen=True, eq=False)
class Errors:
    """Means over points at one time.

    Attributes:
        denoising_loss: ‖F − x(0)‖², what is lost on points that weren't trained on.
        denoiser_error: ‖F − E[x(0) | x(t)]‖²; nan where nobody knows the truth, as the next two.
        score_error: ‖s − ∇ log p_t‖².
        score_square: ‖∇ log p_t‖².
    """

    denoising_loss: float
    denoiser_error: float
    score_error: float
    score_square: float


def errors_at(denoiser: Denoiser, test: Pairs, truth: Mixture | None) -> Errors:
    """Measure a denoiser on test points of one time.

    s − ∇ log p_t is e^(−t) / (1 − e^(−2t)) times F − E[x(0) | x(t)]. So the loss on which networks
    are trained weighs score errors by λ(t) = 4 sinh² t.
    """
    found = denoiser(test.noisy, test.times)
    loss = _square(found - test.clean)
    if truth is None:
        return Errors(loss, *[float("nan")] * 3)
    best = truth.denoise(test.noisy, test.times)
    error = _square(found - best)
    weight = float((decay(test.times) / variance(test.times))[0, 0]) ** 2
    return Errors(loss, error, weight * error, _square(score(best, test)))


def mean_over_times(values: Floats, times: Floats) -> float:
    """Return the mean over t, uniform from the first to the last of times that grow by one ratio.

    ∫ f dt = ∫ f t d(log t), by the trapezoidal rule.
    """
    logs = np.log(times)
    return float(np.trapezoid(values * times, logs) / np.trapezoid(times, logs))


def sliced_wasserstein(one: Floats, other: Floats, draws: np.random.Generator) -> float:
    """Return the Wasserstein-1 distance of equally many points, a mean over random directions."""
    directions = draws.standard_normal((one.shape[1], DIRECTIONS))
    directions /= np.linalg.norm(directions, axis=0)
    first, second = (np.sort(points @ directions, axis=0) for points in (one, other))
    return float(np.abs(first - second).mean())


def nearest_distance(points: Floats, training: Floats) -> float:
    """Return the median distance of points to the nearest of the training points."""
    distances, _ = cKDTree(training).query(points)
    return float(np.median(distances))


def _square(vectors: Floats) -> float:
    return float((vectors**2).sum(axis=1).mean())
