"""Training of a cell: its denoiser, the errors of the denoiser, and distances of samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
import torch
from scipy.spatial import cKDTree

from overfit_cli.core.cell import CellResult
from overfit_cli.core.training import Training, known_numbers, named_rng
from overfit_cli.studies.softmax_network.diffusion.data import (
    Denoiser,
    Floats,
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
from overfit_cli.studies.softmax_network.diffusion.parameters import (
    DiffusionCell,
    SoftmaxDiffusionParameters,
)
from overfit_cli.studies.softmax_network.theory import Statement

P = SoftmaxDiffusionParameters
DIRECTIONS = 64
"""Directions of the sliced Wasserstein distance."""


@dataclass(frozen=True, eq=False)
class Errors:
    """Means over points at one time."""

    denoising_loss: float  # ‖F − x(0)‖², what is lost on points that weren't trained on
    # ‖F − E[x(0) | x(t)]‖²; nan where the truth isn't known, as the next two
    denoiser_error: float
    score_error: float  # ‖s − ∇ log p_t‖²
    score_square: float  # ‖∇ log p_t‖²


def errors_at(denoiser: Denoiser, test: Pairs, truth: Mixture | None) -> Errors:
    """Measure a denoiser on test points of one time.

    s − ∇ log p_t is e^(−t) / (1 − e^(−2t)) times F − E[x(0) | x(t)]. So the loss on which networks
    are trained weighs score errors by λ(t) = 4 sinh² t.
    """
    F = denoiser(test.noisy, test.times)  # (points, d)
    loss = _square(F - test.clean)
    if truth is None:
        return Errors(loss, *[float("nan")] * 3)
    best = truth.denoise(test.noisy, test.times)  # E[x(0) | x(t)], (points, d)
    error = _square(F - best)
    weight = float((decay(test.times) / variance(test.times))[0, 0]) ** 2  # 1/λ(t), of one time
    return Errors(loss, error, weight * error, _square(score(best, test)))


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


LOGGED_SAMPLES = 500
"""At most so many samples of a cell are logged."""

LEAST_ROOM = 0.25
"""The least lead of copies over fresh draws, in distance to training points, that tells."""

ROUND_OFF = 1e-14
"""The share of the largest eigenvalue below which the smallest one is round-off."""

Row = dict[str, float]


def train_cell(cell: DiffusionCell, training: Training) -> CellResult[P]:
    """Train a cell's denoiser, measure it at all times, and draw samples with it."""
    parameters, problem = cell.parameters, draw_problem(cell.parameters, cell.seed)
    with torch.no_grad():
        trained: tuple[Denoiser, Row] | None = _baseline(parameters, problem), {}
        if parameters.is_network:
            trained = _network(cell, training, problem)
        steps = training.steps_logged(cell)
        if trained is None:
            return CellResult(cell, {}, steps, "diverged")
        denoiser, measured = trained
        by_time = [errors_at(denoiser, test, problem.truth) for test in problem.tests]
        samples = _samples(cell, denoiser)  # (samples, d)
    _log(cell, training, by_time, samples, steps)
    measured |= _means(parameters, by_time) | _sample_distances(cell, problem, samples)
    if parameters.is_network:
        measured |= _theorem_6_6(parameters, measured)
    return CellResult(cell, known_numbers(measured), steps)


def _baseline(parameters: P, problem: Problem) -> Denoiser:
    if parameters.model == "true" and problem.truth is not None:
        return problem.truth.denoise
    if parameters.model == "posterior":
        return Mixture(problem.points, 0.0).denoise
    mean = problem.points.mean(axis=0)  # (d,)
    return lambda noisy, times: np.broadcast_to(mean, noisy.shape)


def _network(
    cell: DiffusionCell, training: Training, problem: Problem
) -> tuple[Denoiser, Row] | None:
    parameters = cell.parameters
    start = initial_network(parameters, cell.seed, problem.train, training.device)
    largest, smallest = tangent_spectrum(parameters, problem.train, start.radius)
    curvature = start.output_scale**2 * parameters.m * largest  # λ_max(JJᵀ), JJᵀ = c² m H
    tuned = tuned_network(
        start, parameters, curvature, problem, lambda step, row: training.log(cell, step, row)
    )
    if tuned is None:
        return None
    smallest = max(smallest, ROUND_OFF * largest)
    return tuned.denoiser, tuned.row | {"best_step": tuned.step, "lambda_limit": smallest}


def _samples(cell: DiffusionCell, denoiser: Denoiser) -> Floats:
    """Run the backward process from N(0, I) at T to T₀; all models of a seed have one noise."""
    sizes = cell.parameters
    draws = named_rng(cell.seed, "test", "backward")
    start = draws.standard_normal((sizes.samples, sizes.d))  # y at T, (samples, d)
    times = np.geomspace(sizes.last_time, sizes.first_time, sizes.sampling_steps + 1)
    return backward(denoiser, start, times, draws)


def _log(
    cell: DiffusionCell, training: Training, by_time: Sequence[Errors], samples: Floats, steps: int
) -> None:
    times = measured_times(cell.parameters)
    rows: list[Row] = [
        {"time": time, **asdict(errors)} for time, errors in zip(times, by_time, strict=True)
    ]
    for sample in samples[:LOGGED_SAMPLES]:
        rows.append({f"sample_{axis + 1}": value for axis, value in enumerate(sample[:2])})
    for number, row in enumerate(rows, start=1):
        training.log(cell, steps + number, known_numbers(row))


def _means(parameters: P, by_time: Sequence[Errors]) -> Row:
    times = measured_times(parameters)  # (times,)
    rows = [asdict(errors) for errors in by_time]
    means = {
        name: mean_over_times(np.array([row[name] for row in rows]), times) for name in rows[0]
    }
    return means | {"score_share": means["score_error"] / means["score_square"]}


def _sample_distances(cell: DiffusionCell, problem: Problem, samples: Floats) -> Row:
    fresh, again = problem.fresh

    def distance(points: Floats) -> float:
        return sliced_wasserstein(points, fresh, named_rng(cell.seed, "test", "directions"))

    of_samples, of_fresh, of_copies = (
        nearest_distance(points, problem.points) for points in (samples, again, problem.copies)
    )
    row = {
        "sliced_wasserstein": distance(samples),
        "wasserstein_fresh": distance(again),
    }
    if (room := 1 - of_copies / of_fresh) > LEAST_ROOM:
        row["memorised"] = (1 - of_samples / of_fresh) / room
    return row


def _theorem_6_6(parameters: P, measured: Row) -> Row:
    """By how many decades Theorem 6.6 is missed, at least: λ is at most what it is taken for."""
    d, m, N = parameters.d, parameters.m, parameters.n * parameters.noisings
    stated = Statement(N, 1 + d, d, parameters.sigma, measured["lambda_limit"], m)
    row = {"width_missing": stated.log10_width_for_scores() - math.log10(m)}
    if parameters.optimiser == "gd":
        step_size = math.log10(measured["step_size"])
        row["step_size_beyond"] = step_size - stated.log10_step_size()
    if (error := measured["denoiser_error"]) > 0:
        row["bound_over_error"] = stated.log10_score_bound() - math.log10(error)
    return row
