"""The plain model and training loop of Cui et al. 2024, in all d features and by autograd."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from overfit_cli.core.training import named_rng
from overfit_cli.studies.positional_semantic.parameters import Parameters

MAPS = {"stay": [[0.6, 0.4], [0.4, 0.6]], "cross": [[0.3, 0.7], [0.8, 0.2]]}
"""The positional map A."""


def plain_attention(x: Tensor, Q: Tensor) -> Tensor:
    """Return softmax((x Q / √d) (x Q / √d)ᵀ) x, (samples, 2, d), of x with that shape."""
    a = x @ Q / x.shape[2] ** 0.5  # (samples, 2, rank)
    return torch.softmax(a @ a.mT, dim=-1) @ x


def draw_sentences(p: Parameters, xi: Tensor, teacher: Tensor) -> tuple[Tensor, Tensor]:
    """Return x and y, both (samples, 2, d), of words ξ of that shape."""
    ones = xi.new_ones(p.d)
    x = xi + torch.stack([ones, -ones]) / p.d**0.5  # (samples, 2, d)
    chi = xi @ teacher / p.d**0.5  # (samples, 2, rank)
    A = torch.tensor(MAPS[p.mixing], dtype=torch.float64).to(xi)
    T = (1 - p.omega) * torch.softmax(chi @ chi.mT, dim=-1) + p.omega * A  # (samples, 2, 2)
    return x, T @ xi


def train_plainly(p: Parameters, seed: int) -> dict[str, float]:
    """Train a cell of `sampling=direct` by autograd; return its measurements.

    Fresh samples are drawn in all features: they are others than the engine's, of the same law.
    """
    dtype = getattr(torch, p.dtype)

    def draw(*name: str, shape: tuple[int, ...]) -> Tensor:
        return torch.from_numpy(named_rng(seed, *name).standard_normal(shape)).to(dtype)

    teacher = draw("init", "teacher", shape=(p.rank, p.d)).T  # Q⋆, (d, rank)
    random = draw("init", "weights", shape=(p.rank, p.d)).T  # (d, rank)
    x, y = draw_sentences(p, p.sigma * draw("train", "tokens", shape=(p.n, 2, p.d)), teacher)
    positional = 0.01 * random
    positional[:, 0] = p.d**-0.5
    starts = {"semantic": teacher, "positional": positional, "agnostic": 0.1 * random}
    Q = torch.nn.Parameter(starts[p.start].clone())
    descent = {"gd": torch.optim.SGD, "adam": torch.optim.Adam}[p.optimiser]([Q], p.learning_rate)

    def loss() -> Tensor:
        squares = (plain_attention(x, Q) - y).square().sum()
        return squares / (2 * p.d) + p.weight_decay / 2 * Q.square().sum()

    for _ in range(p.training_steps):
        (Q.grad,) = torch.autograd.grad(loss(), Q)
        descent.step()
    with torch.no_grad():
        fresh = p.sigma * draw("test", "features", shape=(p.test_samples, 2, p.d))
        x_test, y_test = draw_sentences(p, fresh, teacher)
        error = (plain_attention(x_test, Q) - y_test).square().sum((1, 2)).mean() / (2 * p.d)
        return {
            "train_loss": float(loss()),
            "theta": float(torch.linalg.svdvals(teacher.T @ Q / p.d).mean()),
            "m": float(Q.sum(0).norm()) / p.d,
            "test_error": float(error),
            "linear_test_error": _linear_error(x, y, x_test, y_test),
        }


def _linear_error(x: Tensor, y: Tensor, x_test: Tensor, y_test: Tensor) -> float:
    d = x.shape[2]
    inputs, labels = (v.transpose(1, 2).reshape(-1, 2).double().numpy() for v in (x, y))
    inputs, labels = inputs / d**0.5, labels / d**0.5  # (samples · d, 2)
    B = np.linalg.solve(inputs.T @ inputs + 1e-4 * np.eye(2), inputs.T @ labels).T
    squares = (torch.from_numpy(B).to(x) @ x_test - y_test).square().sum()
    return float(squares) / (2 * d * len(x_test))
