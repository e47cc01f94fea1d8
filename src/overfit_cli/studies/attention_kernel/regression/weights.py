"""Singular values of the weights while they are trained, from queries, keys and token values.

No weight matrix is kept in training. Gradients lie in the span of the token rows X, so that by a
step W_Q has changed by X⁺ (q − q₀), with the pseudoinverse X⁺, and W_V,h by
X⁺ (a_h − a_h0) W_O,hᵀ / ‖W_O,h‖².
Inductions (45) and (67) of Song et al. 2024 bound their largest singular values along the way.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from overfit_cli.studies.attention_kernel.regression.data import Problem
from overfit_cli.studies.attention_kernel.regression.engine import Constants, Projections


class LargestWeights:
    """The largest ratio of σ_max(W) to the inductions' bound, over heads and looks.

    The bounds are 3/2 σ_max(W_Q) and 3/2 σ_max(W_K) of the start, head by head, and for W_V 3/2 λ̄_V
    with appendix 1.3's λ̄_V, which is 1 + σ_max(W_V) of the start. Only trained weights count.
    """

    def __init__(self, fixed: Constants, start: Projections, problems: Sequence[Problem]) -> None:
        rows = fixed.inputs.flatten(1, 2)[:, None]  # X, (cells, 1, rows, features)
        self._inverse = torch.linalg.pinv(rows)  # X⁺, (cells, 1, features, rows)
        self._start = start
        self._names = ("query", "key", "value") if fixed.trained == "all" else (fixed.trained,)
        # at the start, (cells, heads, features, width)
        self._weights = {
            name: _stack(fixed, [getattr(problem, name) for problem in problems])
            for name in self._names
        }
        output = _stack(fixed, [problem.output for problem in problems])  # (cells, heads, width)
        self._direction = output / output.square().sum(-1, keepdim=True)  # W_O,h / ‖W_O,h‖²
        self._bounds = {name: self._bound(name) for name in self._names}
        self._most = torch.full_like(fixed.learning_rate, -torch.inf)  # (cells,)

    def add(self, state: Projections) -> None:
        """Take in the weights of a step."""
        for name in self._names:
            finite = getattr(state, name).flatten(1).isfinite().all(1)  # (cells,)
            weights = self.at(state, name)
            norms = torch.linalg.matrix_norm(
                weights.where(finite[:, None, None, None], 0.0), 2
            )  # (cells, heads)
            ratio = (norms / self._bounds[name]).amax(1)
            self._most = torch.fmax(self._most, ratio.where(finite, torch.inf))

    def most(self) -> Tensor:
        """Return the largest ratio so far, (cells,)."""
        return self._most

    def at(self, state: Projections, name: str) -> Tensor:
        """Return W_Q, W_K or W_V of a state, (cells, heads, features, width)."""
        change = getattr(state, name) - getattr(self._start, name)
        change = torch.nan_to_num(change, nan=0.0, posinf=0.0, neginf=0.0)
        if name == "value":
            moved = self._inverse @ change.flatten(2)[..., None]  # (cells, heads, features, 1)
            moved = moved * self._direction[..., None, :]  # (cells, heads, features, width)
        else:
            moved = self._inverse @ change.flatten(2, 3)
        weights: Tensor = self._weights[name] + moved
        return weights

    def _bound(self, name: str) -> Tensor:
        """Return the bound of each head, (cells, heads)."""
        norms: Tensor = torch.linalg.matrix_norm(self._weights[name], 2)
        return 1 + norms if name == "value" else 1.5 * norms


def _stack(fixed: Constants, arrays: Sequence[np.ndarray]) -> Tensor:
    return fixed.learning_rate.new_tensor(np.stack(arrays))
