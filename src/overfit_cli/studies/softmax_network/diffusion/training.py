"""Training of a cell: its denoiser, the errors of the denoiser, and distances of samples."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import torch
from scipy.spatial import cKDTree

from overfit_cli.core.arrays import Floats
from overfit_cli.core.cell import Cell, CellResult
from overfit_cli.core.training import Training, known_numbers, named_rng
from overfit_cli.studies.softmax_network.diffusion.data import (
    Denoiser,
    Mixture,
    Pairs,
    Problem,
    backward,
    decay,
    draw_problem,
    measured_times,
    score,
    variance,
)
from overfit_cli.studies.softmax_network.diffusion.engine import (
    initial_network,
    tangent_spectrum,
    tuned_network,
)
from overfit_cli.studies.softmax_network.diffusion.study import SoftmaxDiffusionParameters
from overfit_cli.studies.softmax_network.theory import Statement

P = SoftmaxDiffusionParameters
Row = dict[str, float]

DIRECTIONS = 64
"""Directions of the sliced Wasserstein distance."""

LOGGED_SAMPLES = 500
"""At most so many samples of a cell are logged."""

LEAST_ROOM = 0.25
"""The least lead of copies over fresh draws, in distance to training points, that tells."""

ROUND_OFF = 1e-14
"""The share of the largest eigenvalue below which the smallest one is round-off."""


def errors_at(denoiser: Denoiser, test: Pairs, truth: Mixture | None) -> Row:
    """Measure a denoiser on test points of one time: means over points.

    s − ∇ log p_t is e^(−t) / (1 − e^(−2t)) times F − E[x(0) | x(t)]. So the loss on which networks
    are trained weighs score errors by λ(t) = 4 sinh² t. Without the truth there is the loss alone.
    """
    F = denoiser(test.noisy, test.times)  # (points, d)
    row = {"denoising_loss": _square(F - test.clean)}  # ‖F − x(0)‖²
    if truth is None:
        return row
    best = truth.denoise(test.noisy, test.times)  # E[x(0) | x(t)], (points, d)
    error = _square(F - best)
    weight = float((decay(test.times) / variance(test.times))[0, 0]) ** 2  # 1/λ(t), of one time
    squares = {"score_error": weight * error, "score_square": _square(score(best, test))}
    return row | {"denoiser_error": error} | squares


def mean_over_times(values: Floats, times: Floats) -> float:
    """Return the mean over t, uniform from the first to the last of times that grow by one ratio.

    ∫ f dt = ∫ f t d(log t), by the trapezoidal rule.
    """
    logs = np.log(times)  # (times,)
    return float(np.trapezoid(values * times, logs) / np.trapezoid(times, logs))


def sliced_wasserstein(left: Floats, right: Floats, draws: np.random.Generator) -> float:
    """Return the Wasserstein-1 distance of equally many points, a mean over random directions.

    On a line it is the mean distance of the sorted points: mean_θ mean_i |⟨θ, x⟩_(i) − ⟨θ, y⟩_(i)|.
    """
    normals = draws.standard_normal((left.shape[1], DIRECTIONS))  # (d, directions)
    directions = normals / np.linalg.norm(normals, axis=0)  # θ, of unit length, (d, directions)
    x, y = (np.sort(points @ directions, axis=0) for points in (left, right))  # (points, dir.)
    return float(np.abs(x - y).mean())


def nearest_distance(points: Floats, training: Floats) -> float:
    """Return the median distance of points to the nearest of the training points."""
    distances, _ = cKDTree(training).query(points)  # (points,)
    return float(np.median(distances))


def _square(vectors: Floats) -> float:
    return float((vectors**2).sum(axis=1).mean())


def train_cell(cell: Cell[P], training: Training) -> CellResult[P]:
    """Train a cell's denoiser, measure it at all times, and draw samples with it."""
    p, problem = cell.parameters, draw_problem(cell.parameters, cell.seed)
    with torch.no_grad():
        made = _network(cell, training, problem) if p.is_network else (_baseline(p, problem), Row())
        steps = training.steps_logged(cell)
        if made is None:
            return CellResult(cell, {}, steps, "diverged")
        denoiser, measured = made
        errors = pd.DataFrame([errors_at(denoiser, test, problem.truth) for test in problem.tests])
        draws = named_rng(cell.seed, "test", "backward")
        start = draws.standard_normal((p.samples, p.d))  # y at T, of N(0, I), (samples, d)
        times = np.geomspace(p.last_time, p.first_time, p.sampling_steps + 1)
        samples = backward(denoiser, start, times, draws)  # at T₀, (samples, d)
    for number, sample in enumerate(samples[:LOGGED_SAMPLES], start=1):
        row = {f"sample_{axis + 1}": value for axis, value in enumerate(sample[:2])}
        training.log(cell, steps + number, known_numbers(row))
    at = measured_times(p)
    means = {str(name): mean_over_times(errors[name].to_numpy(), at) for name in errors}
    if square := means.pop("score_square", None):
        means["score_share"] = means["score_error"] / square
    measured |= means | _sample_distances(cell, problem, samples)
    if p.is_network:
        measured |= _theorem_6_6(p, measured)
    return CellResult(cell, known_numbers(measured), steps)


def _baseline(p: P, problem: Problem) -> Denoiser:
    if p.model == "true" and problem.truth is not None:
        return problem.truth.denoise
    if p.model == "posterior":
        return Mixture(problem.points, 0.0).denoise
    mean = problem.points.mean(axis=0)  # (d,)
    return lambda noisy, times: np.broadcast_to(mean, noisy.shape)


def _network(cell: Cell[P], training: Training, problem: Problem) -> tuple[Denoiser, Row] | None:
    p = cell.parameters
    start = initial_network(p, cell.seed, problem.train, training.device)
    largest, smallest = tangent_spectrum(p, problem.train, start.radius)
    curvature = start.output_scale**2 * p.m * largest  # λ_max(JJᵀ), JJᵀ = c² m H
    tuned = tuned_network(
        start, p, curvature, problem, lambda step, row: training.log(cell, step, row)
    )
    if tuned is None:
        return None
    smallest = max(smallest, ROUND_OFF * largest)
    return tuned.denoiser, {**tuned.row, "best_step": tuned.step, "lambda_limit": smallest}


def _sample_distances(cell: Cell[P], problem: Problem, samples: Floats) -> Row:
    fresh, again = problem.fresh

    def distance(points: Floats) -> float:
        return sliced_wasserstein(points, fresh, named_rng(cell.seed, "test", "directions"))

    of_samples, of_fresh, of_copies = (
        nearest_distance(points, problem.points) for points in (samples, again, problem.copies)
    )
    row = {"sliced_wasserstein": distance(samples), "wasserstein_fresh": distance(again)}
    if (room := 1 - of_copies / of_fresh) > LEAST_ROOM:
        row["memorised"] = (1 - of_samples / of_fresh) / room
    return row


def _theorem_6_6(p: P, measured: Row) -> Row:
    """By how many decades Theorem 6.6 is missed, at least: λ is at most what it is taken for."""
    stated = Statement(p.n * p.noisings, 1 + p.d, p.d, p.sigma, measured["lambda_limit"], p.m)
    row = {"width_missing": stated.log10_width_for_scores() - math.log10(p.m)}
    if p.optimiser == "gd":
        row["step_size_beyond"] = math.log10(measured["step_size"]) - stated.log10_step_size()
    if (error := measured.get("denoiser_error", 0)) > 0:
        row["bound_over_error"] = stated.log10_score_bound() - math.log10(error)
    return row
