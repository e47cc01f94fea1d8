"""Ridge regression of y on H = x bᵀ, its errors in closed form, and the posterior mean.

The Gram matrix of n sequences is (x xᵀ) ∘ (b bᵀ), entry by entry, so that none of the d (d + 1)
features is formed. It is solved where n is less than their number. Where n is more than twice that,
the normal equations are solved by conjugate gradients: their matrix takes Γ to

    Σ_μ x_μ (x_μᵀ Γ b_μ) b_μᵀ + Λ Γ,   Λ = n λ / d,

and in the mean over x to Γ (bᵀb / d + Λ), whose inverse is the preconditioner. What is left to do
depends on n / d² alone: 70 iterations at τ = 2 and 23 at τ = 10, to ten digits. In between the
normal equations are near their singularity at n = d (d + 1), and are solved as a matrix.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from overfit_cli.core.arrays import Floats
from overfit_cli.core.training import named_rng
from overfit_cli.studies.linear_attention.data import Problem
from overfit_cli.studies.linear_attention.parameters import Parameters

BLOCK = 4096
"""Sequences that are multiplied at a time, so that they stay in the processor's cache."""

SOLVED, MOST_ITERATIONS = 1e-11, 1000
"""How small the residual becomes over the first one, and the iterations that it may take."""

CONTEXTS = 64
"""Contexts of the posterior mean at a time."""


def ridge_regression(x: Floats, b: Floats, y: Floats, penalty: float) -> Floats:
    """Return the Γ, (d, d + 1), of the least Σ (y − xᵀ Γ b)² + Λ ‖Γ‖²; shapes as in `Problem`."""
    features = x.shape[1] * b.shape[1]
    if len(x) <= features:
        gram = (x @ x.T) * (b @ b.T)  # (n, n)
        return np.asarray((x * _solve(gram, penalty, y)[:, None]).T @ b)
    if len(x) < 2 * features:
        H = (x[:, :, None] * b[:, None, :]).reshape(len(x), features)  # (n, d (d + 1))
        return _solve(H.T @ H, penalty, H.T @ y).reshape(x.shape[1], b.shape[1])
    return _conjugate_gradients(x, b, y, penalty)


def _solve(matrix: Floats, penalty: float, right: Floats) -> Floats:
    matrix[np.diag_indices_from(matrix)] += penalty
    return np.asarray(cho_solve(cho_factor(matrix, overwrite_a=True), right))


def _conjugate_gradients(x: Floats, b: Floats, y: Floats, penalty: float) -> Floats:
    d = x.shape[1]
    preconditioner = np.linalg.inv(b.T @ b / d + penalty * np.eye(d + 1))  # (d + 1, d + 1)
    residual = x.T @ (y[:, None] * b)  # (d, d + 1)
    direction = residual @ preconditioner  # (d, d + 1)
    square = first = (residual * direction).sum()
    Gamma = np.zeros_like(residual)  # Γ, (d, d + 1)
    for _ in range(MOST_ITERATIONS):
        image = penalty * direction  # (d, d + 1)
        for at in range(0, len(x), BLOCK):
            queries, contexts = x[at : at + BLOCK], b[at : at + BLOCK]
            predicted = np.einsum("nj,nj->n", queries @ direction, contexts)  # (block,)
            image += queries.T @ (predicted[:, None] * contexts)
        step = square / (direction * image).sum()
        Gamma += step * direction
        residual -= step * image
        conditioned = residual @ preconditioner  # (d, d + 1)
        last, square = square, (residual * conditioned).sum()
        if square <= SOLVED**2 * first:
            return Gamma
        direction = conditioned + square / last * direction
    raise np.linalg.LinAlgError(f"no solution in {MOST_ITERATIONS} iterations")


def pretrain(p: Parameters, problem: Problem) -> Floats:
    """Return Γ of a cell."""
    return ridge_regression(problem.x, problem.b, problem.y, p.n * p.ridge / p.d)


@dataclass(frozen=True, eq=False)
class Tasks:
    """Moments of tasks w, with σ² = ‖w‖²/d + ρ, the variance of their labels."""

    second: Floats  # E w wᵀ, (d, d)
    weighted: Floats  # E σ² w, (d,)
    variance: float  # E σ²
    fourth: float  # E σ⁴


def new_tasks(p: Parameters, excess: float = 2.0) -> Tasks:
    """Return the moments of w ~ N(0, I), where ‖w‖²/d has the variance `excess`/d."""
    fourth = (1 + p.rho) ** 2 + excess / p.d
    return Tasks(np.eye(p.d), np.zeros(p.d), 1 + p.rho, fourth)


def pretraining_tasks(p: Parameters, tasks: Floats) -> Tasks:
    """Return the moments of the tasks, (k, d), or of their law where each sequence has its own."""
    if not p.k:
        return new_tasks(p, 0.0 if p.task_norm == "fixed" else 2.0)
    variances = np.square(tasks).mean(1) + p.rho  # σ², (k,)
    weighted = variances @ tasks / p.k  # (d,)
    squares = float(variances.mean()), float(np.square(variances).mean())
    return Tasks(tasks.T @ tasks / p.k, weighted, *squares)


def error(p: Parameters, Gamma: Floats, tasks: Tasks) -> float:
    """Return E (y − ⟨Γ, H⟩)² = E ‖w − Γ b‖² / d + ρ over tasks and their contexts.

    E b bᵀ has the blocks (d/ℓ) σ² I + (1 + 1/ℓ) w wᵀ, (1 + 2/ℓ) σ² w and (1 + 2/ℓ) σ⁴, in the mean
    over w, and E w bᵀ the blocks w wᵀ and σ² w.
    """
    over = 1 / p.context  # 1/ℓ
    crossed = np.column_stack([tasks.second, tasks.weighted])  # E w bᵀ, (d, d + 1)
    second = np.empty((p.d + 1, p.d + 1))  # E b bᵀ
    second[:-1, :-1] = p.d * over * tasks.variance * np.eye(p.d) + (1 + over) * tasks.second
    second[-1, :-1] = second[:-1, -1] = (1 + 2 * over) * tasks.weighted
    second[-1, -1] = (1 + 2 * over) * tasks.fourth
    squares = np.trace(tasks.second) - 2 * (Gamma * crossed).sum() + (Gamma @ second * Gamma).sum()
    return float(squares) / p.d + p.rho


def posterior_gap(p: Parameters, seed: int, tasks: Floats) -> float:
    """Return e_ICL − e_IDG of the posterior mean over the tasks, (k, d), on fresh contexts.

    Of a context it needs XᵀX = L Lᵀ/d, with L the factor of Bartlett, (d, min(d, ℓ)), and
    Xᵀε = √(ρ/d) L g with g ~ N(0, I). Then task j has the weight exp(−‖a − a_j‖²/2), where
    a = Lᵀw/√(ρ d) + g and a_j = Lᵀw_j/√(ρ d). Both errors are measured on the same L and g.
    """
    normals, lengths = (named_rng(seed, "test", name) for name in ("normals", "lengths"))
    new, known = named_rng(seed, "test", "tasks"), np.arange(p.test_contexts) % len(tasks)
    width, gaps = min(p.d, p.context), []
    for first in range(0, p.test_contexts, CONTEXTS):
        old = tasks[known[first : first + CONTEXTS]]  # (contexts, d)
        fresh = new.standard_normal(old.shape)  # (contexts, d)
        L = np.tril(normals.standard_normal((len(old), p.d, width)), -1)  # (contexts, d, width)
        freedom = p.context - np.arange(width)  # (width,)
        L[:, range(width), range(width)] = np.sqrt(lengths.chisquare(freedom, (len(old), width)))
        g = normals.standard_normal((len(old), width, 1))  # (contexts, width, 1)
        L = L.transpose(0, 2, 1) / math.sqrt(p.rho * p.d)  # (contexts, width, d)
        seen = L @ tasks.T  # a_j, (contexts, width, k)
        halves = np.einsum("cwk,cwk->ck", seen, seen) / 2  # (contexts, k)
        errors = []
        for w in (fresh, old):
            scores = ((L @ w[:, :, None] + g).mT @ seen)[:, 0] - halves  # (contexts, k)
            weights = np.exp(scores - scores.max(1, keepdims=True))  # (contexts, k)
            means = weights @ tasks / weights.sum(1, keepdims=True)  # (contexts, d)
            errors.append(np.square(w - means).mean(1))
        gaps.append(errors[0] - errors[1])
    return float(np.concatenate(gaps).mean())
