"""Gradient descent on tied dot-product attention, by inner products, for many cells at once.

    f_Q(x) = S x,   S = softmax(a aᵀ),   a = x Q / √d;   loss Σ_i ‖f_Q(x_i) − y_i‖² / 2d + λ/2 ‖Q‖²

The diagonal P_l = S_ll is a logistic function of z_l = ⟨a_l, a_l − a_k⟩, k the other token. With
D = P − T and E = 2 P − 1 (see `data.py`) a sample's loss is

    ℓ = ½ Σ_l (D_l² gap + 2 D_l E_l tilt + E_l² / d)

and its slope in P_l is linear in P_l, with the same factor in both tokens:

    ∂ℓ/∂P_l = steepness P_l − offset_l,   steepness = gap + 4 tilt + 4/d
                                          offset_l = T_l (gap + 2 tilt) + tilt + 2/d
    r_l = ∂ℓ/∂P_l · P_l (1 − P_l),   ∂ℓ/∂a_l = 2 r_l a_l − (r₁ + r₂) a_k
    ∇ = Σ x_lᵀ ∂ℓ/∂a_l / √d + λ Q

Cells of a seed share the samples: their Q are columns of one matrix. Products have the few cells as
rows, which MKL multiplies two to three times as fast, and from one copy of the tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from overfit_cli.core.arrays import Floats
from overfit_cli.core.cell import Cell
from overfit_cli.studies.positional_semantic.data import Problem, Sentences
from overfit_cli.studies.positional_semantic.parameters import MIXINGS, Parameters

BETAS, ADAM_EPSILON = (0.9, 0.999), 1e-8
"""Adam's decay rates and what it adds to the root, as in the common libraries."""


class ForwardPass(NamedTuple):
    """Attention's outputs on the training samples."""

    scores: Tensor  # a, (2, samples, cells, rank)
    kept: Tensor  # P, (2, samples, cells)


@dataclass(frozen=True, eq=False)
class Targets:
    """The targets of a pass."""

    kept: Tensor  # T_ll, (2, samples, cells)
    gap: Tensor  # of the samples, (samples, 1)
    tilt: Tensor  # of the samples, (samples, 1)
    d: int

    def losses(self, P: Tensor) -> Tensor:
        """Return ℓ of every sample, (samples, cells)."""
        D, E = P - self.kept, 2 * P - 1  # (2, samples, cells)
        terms = D * (D * self.gap + 2 * E * self.tilt) + E * E / self.d  # (2, samples, cells)
        return terms.sum(0) / 2

    @cached_property
    def _steepness(self) -> Tensor:
        return self.gap + 4 * self.tilt + 4 / self.d  # (samples, 1)

    @cached_property
    def _offset(self) -> Tensor:
        by_kept = self.gap + 2 * self.tilt  # (samples, 1)
        return self.kept * by_kept + self.tilt + 2 / self.d  # (2, samples, cells)

    def slopes(self, P: Tensor) -> Tensor:
        """Return r = ∂ℓ/∂z, (2, samples, cells)."""
        by_kept = torch.mul(P, self._steepness).sub_(self._offset)  # ∂ℓ/∂P
        return by_kept.mul_(torch.addcmul(P, P, P, value=-1))


def targets(sentences: Sentences, cells: list[Parameters], like: Tensor) -> Targets:
    """Return the targets of cells: T_ll = (1 − ω) softmax(χ χᵀ)_ll + ω A_ll."""

    def tensor(values: Floats) -> Tensor:
        return torch.from_numpy(values).to(like)

    omega = np.array([p.omega for p in cells])  # (cells,)
    A = np.array([MIXINGS[p.mixing] for p in cells]).T[:, None, :]  # (2, 1, cells)
    kept = (1 - omega) * sentences.teacher[..., None] + omega * A  # (2, samples, cells)
    gap, tilt = (tensor(values)[:, None] for values in (sentences.gap, sentences.tilt))
    return Targets(tensor(kept), gap, tilt, cells[0].d)


def kept_shares(scores: Tensor) -> Tensor:
    """Return P, the diagonal of softmax(a aᵀ), (2, samples, cells), of scores a."""
    products = (scores - scores.flip(0)).mul_(scores)  # (2, samples, cells, rank)
    z = products.squeeze(-1) if products.shape[-1] == 1 else products.sum(-1)
    return torch.sigmoid(z)


class Attention:
    """Cells of one seed and one shape in training, with weights Q, (features, cells, rank)."""

    def __init__(self, batch: list[Cell[Parameters]], problem: Problem, device: str) -> None:
        cells = [cell.parameters for cell in batch]
        dtype = getattr(torch, cells[0].dtype)
        features = len(problem.ones)
        x = torch.from_numpy(problem.train.tokens).to(device=device, dtype=dtype)
        self._x = x.reshape(-1, features).contiguous()  # x / √d, (2 samples, features)
        self.Q = torch.from_numpy(_first_weights(cells, problem)).to(self._x)
        self.targets = targets(problem.train, cells, self._x)
        self.decay = self._row([p.weight_decay for p in cells])  # λ, (cells, 1)
        self._rate = self._row([p.learning_rate for p in cells])  # η, (cells, 1)
        self._kept = 1 - self._rate * self.decay  # of the weights in a step, (cells, 1)
        self._adam = cells[0].optimiser == "adam"
        self._means = torch.zeros(2, *self.Q.shape).to(self.Q) if self._adam else None
        self._steps = 0

    def _row(self, values: list[float]) -> Tensor:
        return torch.tensor(values, dtype=torch.float64)[:, None].to(self._x)

    def forward(self) -> ForwardPass:
        """Return the pass on the training samples."""
        a = (self.Q.flatten(1).T.contiguous() @ self._x.T).T  # (2 samples, cells · rank)
        scores = a.reshape(2, -1, *self.Q.shape[1:])  # (2, samples, cells, rank)
        return ForwardPass(scores, kept_shares(scores))

    def train_losses(self, now: ForwardPass) -> Tensor:
        """Return Σ_i ℓ_i + λ/2 ‖Q‖², (cells,)."""
        penalty = self.decay[:, 0] / 2 * self.Q.square().sum((0, 2))  # (cells,)
        return self.targets.losses(now.kept).sum(0) + penalty

    def _by_samples(self, now: ForwardPass) -> Tensor:
        r = self.targets.slopes(now.kept)[..., None]  # (2, samples, cells, 1)
        of_scores = torch.mul(r, now.scores).mul_(2)  # 2 r_l a_l, (2, samples, cells, rank)
        of_scores.addcmul_(r.sum(0), now.scores.flip(0), value=-1)  # − (r₁ + r₂) a_k
        by_token = of_scores.flatten(2).flatten(0, 1)  # (2 samples, cells · rank)
        by_feature: Tensor = (by_token.T.contiguous() @ self._x).T  # (features, cells · rank)
        return by_feature.reshape(self.Q.shape)

    def gradient(self, now: ForwardPass) -> Tensor:
        """Return ∇, (features, cells, rank)."""
        return self._by_samples(now) + self.decay * self.Q

    def slopes(self, now: ForwardPass) -> Tensor:
        """Return ‖∇‖ / λ‖Q‖, (cells,)."""
        lengths = [v.square().sum((0, 2)).sqrt() for v in (self.gradient(now), self.Q)]
        return lengths[0] / (self.decay[:, 0] * lengths[1])

    def step(self, now: ForwardPass) -> None:
        """Take a step of gradient descent or of Adam."""
        if self._means is None:
            self.Q = torch.addcmul(self.Q * self._kept, self._by_samples(now), self._rate, value=-1)
            return
        gradient = self.gradient(now)  # (features, cells, rank)
        self._steps += 1
        powers = torch.stack([gradient, gradient.square()])  # (2, features, cells, rank)
        betas = torch.tensor(BETAS, dtype=torch.float64).to(powers).view(2, 1, 1, 1)
        self._means = betas * self._means + (1 - betas) * powers  # (2, features, cells, rank)
        mean, square = self._means / (1 - betas**self._steps)
        self.Q -= self._rate * mean / (square.sqrt() + ADAM_EPSILON)


def _first_weights(cells: list[Parameters], problem: Problem) -> Floats:
    """Q at the start, (features, cells, rank): Q⋆, p₁ / √d in the first column, or 0.1 N(0, I).

    Further columns of the positional start are 0.01 N(0, I): at 0 they would stay there.
    """
    positional = 0.01 * problem.noise  # (features, rank)
    positional[:, 0] = problem.ones / np.sqrt(cells[0].d)
    starts = {
        "semantic": problem.teacher,
        "positional": positional,
        "agnostic": 0.1 * problem.noise,
    }
    return np.stack([starts[p.start] for p in cells], axis=1)
