"""Pretraining sequences, drawn token by token or in law, and test contexts of the posterior mean.

    x_i ~ N(0, I/d),   y_i = x_iᵀ w + ε_i,   ε_i ~ N(0, ρ)           (i = 1, …, ℓ, and the query)
    b = [(d/ℓ) Σ y_i x_i, Σ y_i² / ℓ],       H = x bᵀ of the query's x

Tasks w ~ N(0, I) are scaled to ‖w‖² = d with `task_norm=fixed`. Given its task, a context enters by
b alone. Along w its tokens are g/√d with g ~ N(0, I), so that y = a g + ε with a = ‖w‖/√d; across
it they don't depend on y. So

    Σ y_i x_i = (gᵀy w/‖w‖ + ‖y‖ P z) / √d,    z ~ N(0, I) and P the projection across w,

and with a standard normal u, and chi-square s and t of ℓ and ℓ − 1 degrees of freedom,

    gᵀy = a s + √(ρ s) u,    ‖y‖² = a² s + 2 a √(ρ s) u + ρ (u² + t).

`sampling=law` draws s, t, u and z: d + 3 numbers in the place of (d + 1) ℓ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from overfit_cli.core.arrays import Floats
from overfit_cli.core.training import named_rng
from overfit_cli.studies.linear_attention.parameters import Parameters

DRAWN_AT_ONCE = 10**7
"""How many numbers of tokens are in memory at a time."""


@dataclass(frozen=True, eq=False)
class Problem:
    """The pretraining sequences of a cell."""

    x: Floats  # queries, (n, d)
    b: Floats  # contexts, (n, d + 1)
    y: Floats  # the queries' labels, (n,)
    tasks: Floats  # of which sequence μ has task μ mod k, (k, d); k = n where all are new


def draw_tasks(p: Parameters, seed: int) -> Floats:
    """Draw the tasks of pretraining, (k, d); more tasks extend fewer."""
    w = named_rng(seed, "train", "tasks").standard_normal((p.k or p.n, p.d))  # (k, d)
    if p.task_norm == "fixed":
        w *= math.sqrt(p.d) / np.linalg.norm(w, axis=1, keepdims=True)
    return w


def draw_problem(p: Parameters, seed: int) -> Problem:
    """Draw a cell's sequences; more extend fewer."""
    tasks = draw_tasks(p, seed)
    w = tasks[np.arange(p.n) % len(tasks)]  # (n, d)
    x = named_rng(seed, "train", "queries").standard_normal((p.n, p.d)) / math.sqrt(p.d)  # (n, d)
    noise = named_rng(seed, "train", "noise").standard_normal(p.n)  # (n,)
    b = (_contexts if p.sampling == "direct" else _contexts_in_law)(p, seed, w)
    return Problem(x, b, (x * w).sum(1) + math.sqrt(p.rho) * noise, tasks)


def _contexts(p: Parameters, seed: int, w: Floats) -> Floats:
    """From tasks, (n, d), to b, (n, d + 1), with every token drawn."""
    tokens, noise = (named_rng(seed, "train", name) for name in ("tokens", "labels"))
    b, at_once = np.empty((p.n, p.d + 1)), max(1, DRAWN_AT_ONCE // (p.context * p.d))
    for first in range(0, p.n, at_once):
        some = w[first : first + at_once, :, None]  # (some, d, 1)
        x = tokens.standard_normal((len(some), p.context, p.d)) / math.sqrt(p.d)  # (some, ℓ, d)
        errors = noise.standard_normal((len(some), p.context))  # (some, ℓ)
        y = (x @ some)[..., 0] + math.sqrt(p.rho) * errors  # (some, ℓ)
        b[first : first + at_once, :-1] = (y[:, None] @ x)[:, 0] * (p.d / p.context)
        b[first : first + at_once, -1] = np.square(y).mean(1)
    return b


def _contexts_in_law(p: Parameters, seed: int, w: Floats) -> Floats:
    """The same in law."""
    draws = {name: named_rng(seed, "train", name) for name in "stuz"}
    s = draws["s"].chisquare(p.context, p.n)  # (n,)
    t = draws["t"].chisquare(p.context - 1, p.n)  # (n,)
    u = draws["u"].standard_normal(p.n)  # (n,)
    z = draws["z"].standard_normal((p.n, p.d))  # (n, d)
    length = np.linalg.norm(w, axis=1)  # ‖w‖, (n,)
    a = length / math.sqrt(p.d)  # (n,)
    along = a * s + np.sqrt(p.rho * s) * u  # gᵀy, (n,)
    squares = a * (along + np.sqrt(p.rho * s) * u) + p.rho * (u * u + t)  # ‖y‖², (n,)
    across = np.sqrt(squares)  # (n,)
    of_w = (along - across * (z * w).sum(1) / length) / length  # (n,)
    b = np.empty((p.n, p.d + 1))
    b[:, :-1] = (of_w[:, None] * w + across[:, None] * z) * (math.sqrt(p.d) / p.context)
    b[:, -1] = squares / p.context
    return b
