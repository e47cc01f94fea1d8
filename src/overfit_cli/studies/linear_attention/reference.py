"""The plain model of Lu et al. 2025: explicit contexts, and H as a row of d (d + 1) features."""

from __future__ import annotations

import numpy as np

from overfit_cli.core.arrays import Floats
from overfit_cli.core.training import named_rng
from overfit_cli.studies.linear_attention.parameters import Parameters


def features(x: Floats, y: Floats, query: Floats) -> Floats:
    """Return H of a context x, (ℓ, d), and y, (ℓ,), with the query's x, (d,): (d (d + 1),)."""
    length, d = x.shape
    b = np.append(d / length * (y @ x), np.mean(y**2))  # (d + 1,)
    return np.outer(query, b).ravel()


def draw_labels(x: Floats, w: Floats, noise: Floats) -> Floats:
    """Return y = x w + ε, (ℓ,)."""
    return np.asarray(x @ w + noise)


def pretrain_plainly(p: Parameters, seed: int) -> Floats:
    """Return Γ, (d, d + 1), of the draws of a cell with `sampling=direct`."""

    def stream(name: str) -> np.random.Generator:
        return named_rng(seed, "train", name)

    tasks = stream("tasks").standard_normal((p.k or p.n, p.d))  # (k, d)
    queries = stream("queries").standard_normal((p.n, p.d)) / p.d**0.5  # (n, d)
    query_noise = p.rho**0.5 * stream("noise").standard_normal(p.n)  # (n,)
    tokens, labels = stream("tokens"), stream("labels")
    H, targets = np.empty((p.n, p.d * (p.d + 1))), np.empty(p.n)
    for index in range(p.n):
        w = tasks[index % len(tasks)]  # (d,)
        if p.task_norm == "fixed":
            w = w * p.d**0.5 / np.linalg.norm(w)
        x = tokens.standard_normal((p.context, p.d)) / p.d**0.5  # (ℓ, d)
        y = draw_labels(x, w, p.rho**0.5 * labels.standard_normal(p.context))  # (ℓ,)
        H[index] = features(x, y, queries[index])
        targets[index] = queries[index] @ w + query_noise[index]
    penalty = p.n / p.d * p.ridge * np.eye(H.shape[1])  # (d (d + 1), d (d + 1))
    return np.asarray(np.linalg.solve(H.T @ H + penalty, H.T @ targets)).reshape(p.d, p.d + 1)


def squared_errors(
    p: Parameters, Gamma: Floats, tasks: Floats, draws: np.random.Generator
) -> Floats:
    """Return (y − ⟨Γ, H⟩)² of a fresh sequence for each task, (tasks, d)."""
    errors = []
    for w in tasks:
        x = draws.standard_normal((p.context + 1, p.d)) / p.d**0.5  # (ℓ + 1, d)
        y = draw_labels(x, w, p.rho**0.5 * draws.standard_normal(p.context + 1))  # (ℓ + 1,)
        errors.append((y[-1] - Gamma.ravel() @ features(x[:-1], y[:-1], x[-1])) ** 2)
    return np.array(errors)


def posterior_errors(
    p: Parameters, known: Floats, tasks: Floats, draws: np.random.Generator
) -> Floats:
    """Return ‖w − ŵ‖²/d of the posterior mean over the known tasks, (k, d), for each of others."""
    errors = []
    for w in tasks:
        x = draws.standard_normal((p.context, p.d)) / p.d**0.5  # (ℓ, d)
        y = draw_labels(x, w, p.rho**0.5 * draws.standard_normal(p.context))  # (ℓ,)
        logs = [-((y - x @ each) ** 2).sum() / (2 * p.rho) for each in known]  # (k,)
        weights = np.exp(np.array(logs) - max(logs))  # (k,)
        errors.append(((w - weights @ known / weights.sum()) ** 2).mean())
    return np.array(errors)
