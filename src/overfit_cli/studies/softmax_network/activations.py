"""The three networks in batches: outputs, gradients, tangent kernels by formula, initial weights.

    F_ℓ(x) = Σ_r a_ℓr h_r(z),   z = W x;   h = m softmax(z), exp(z) or max(z, 0)

Only W is trained. All three have ∂F_ℓ/∂w_r = B_ℓr x with B_ℓr = (a_ℓr − c_ℓ) h′_r: c_ℓ is F_ℓ / m
for softmax and zero for the others. So JJᵀ = m H, where (Cao et al. 2024, Definition 3.6)

    H_(ℓi)(kj) = 1/m ⟨x_i, x_j⟩ Σ_r B_iℓr B_jkr.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from overfit_cli.core.arrays import Floats
from overfit_cli.core.training import named_rng
from overfit_cli.studies.softmax_network import Activation, Initialisation


@dataclass(frozen=True)
class Network:
    """Networks of one activation and width, one for each cell."""

    activation: Activation  # h
    weights: Tensor  # W, (cells, m, d)
    signs: Tensor  # a, (cells, outputs, m)

    @property
    def width(self) -> int:
        """The number m of hidden units."""
        return self.weights.shape[1]

    def forward(self, inputs: Tensor) -> Outputs:
        """Return the outputs F at inputs X, shape (cells, n, d)."""
        X, W, a, m = inputs, self.weights, self.signs, self.width
        z = X @ W.mT  # (cells, n, m)
        if self.activation == "relu":
            h, slopes = z.relu(), (z > 0).to(z)  # h and h′, (cells, n, m)
        elif self.activation == "exp":
            h = slopes = z.exp()  # (cells, n, m)
        else:
            h = slopes = m * z.softmax(-1)  # (cells, n, m)
        F = h @ a.mT  # (cells, n, outputs)
        c = F / m if self.activation == "softmax" else torch.zeros_like(F)  # (cells, n, outputs)
        return Outputs(X, a, F, slopes, c)

    def select(self, cells: Tensor) -> Network:
        """Return the networks of the cells at the indices `cells`."""
        return Network(self.activation, self.weights[cells], self.signs[cells])


@dataclass(frozen=True)
class Outputs:
    """Outputs of networks at some inputs, and what their derivatives need."""

    inputs: Tensor  # X, (cells, n, d)
    signs: Tensor  # a, (cells, outputs, m)
    values: Tensor  # F, (cells, n, outputs)
    slopes: Tensor  # h′, (cells, n, m)
    centres: Tensor  # c, (cells, n, outputs)

    def gradient(self, residual: Tensor) -> Tensor:
        """Return the gradient of ½‖F − Y‖² in W, (cells, m, d), from F − Y (Claim 3.4).

        ∂/∂w_r = Σ_i x_i h′_r(z_i) Σ_ℓ (a_ℓr − c_iℓ) (F − Y)_iℓ; the residual F − Y is (cells, n,
        outputs).
        """
        centre = (residual * self.centres).sum(-1, keepdim=True)  # Σ_ℓ c (F − Y), (cells, n, 1)
        by_hidden = (residual @ self.signs - centre) * self.slopes  # (cells, n, m)
        return by_hidden.mT @ self.inputs  # (cells, m, d)

    def features(self) -> Tensor:
        """Return B, (cells, outputs · n, m), with rows (ℓ, i) in the paper's order."""
        a = self.signs[:, :, None]  # (cells, outputs, 1, m)
        c = self.centres.mT[..., None]  # (cells, outputs, n, 1)
        B = (a - c) * self.slopes[:, None]  # (cells, outputs, n, m)
        return B.flatten(1, 2)


def gram_matrix(rows: Outputs, columns: Outputs | None = None) -> Tensor:
    """Return H between inputs, (cells, outputs · n, outputs · n′) (Definition 3.6).

    Without outputs at the columns' inputs, those at the rows' are taken.
    """
    columns = rows if columns is None else columns
    outputs, m = rows.signs.shape[1:]
    inner = rows.inputs @ columns.inputs.mT  # ⟨x_i, x_j⟩, (cells, n, n′)
    products = rows.features() @ columns.features().mT / m  # (cells, outputs · n, outputs · n′)
    return products * inner.repeat(1, outputs, outputs)


def limit_gram_matrix(
    activation: Activation, rows: Tensor, columns: Tensor, sigma: Tensor, outputs: int
) -> Tensor:
    """Return H as the width grows without end, (cells, outputs · n, outputs · n′).

    With w ~ N(0, σ²I), signs that are independent of it, and outputs that are uncorrelated: ⟨x, x′⟩
    exp(σ²⟨x, x′⟩) for softmax, ⟨x, x′⟩ exp(σ²‖x + x′‖²/2) for exp, and ⟨x, x′⟩ (π − θ)/2π for ReLU,
    where θ is the angle between x and x′ (the arc-cosine kernel of order 0). Rows and columns are x
    and x′, (cells, n, d) and (cells, n′, d); σ is (cells,).
    """
    inner = rows @ columns.mT  # ⟨x, x′⟩, (cells, n, n′)
    norms = rows.norm(dim=-1)[:, :, None]  # ‖x‖, (cells, n, 1)
    column_norms = columns.norm(dim=-1)[:, None]  # ‖x′‖, (cells, 1, n′)
    variance = sigma.square()[:, None, None]  # σ², (cells, 1, 1)
    if activation == "softmax":
        kernel = (variance * inner).exp()  # (cells, n, n′)
    elif activation == "exp":
        squares = norms.square() + column_norms.square()  # ‖x‖² + ‖x′‖², (cells, n, n′)
        kernel = (variance * (squares / 2 + inner)).exp()  # (cells, n, n′)
    else:
        products = norms * column_norms  # (cells, n, n′)
        cosines = torch.where(products > 0, inner / products, 0.0).clamp(-1, 1)  # (cells, n, n′)
        kernel = 0.5 - cosines.acos() / (2 * torch.pi)  # (cells, n, n′)
    same_output = torch.eye(outputs, dtype=rows.dtype, device=rows.device)
    return torch.kron(same_output, inner * kernel)


def initial_weights(
    way: Initialisation, shape: tuple[int, int, int], sigma: float, seed: int
) -> tuple[Floats, Floats]:
    """Draw W(0), (m, d), and a, (outputs, m); a wider network extends a narrower one.

    In the symmetric case each hidden unit stands twice, with opposite signs (Definition 3.7), and m
    is even. The shape is m, d and outputs.
    """
    m, d, outputs = shape
    units = m // 2 if way == "symmetric" else m
    W = named_rng(seed, "init", "weights").standard_normal((units, d))  # (units, d)
    a = named_rng(seed, "init", "signs").choice([-1.0, 1.0], (units, outputs)).T  # (outputs, units)
    if way == "symmetric":
        W = np.repeat(W, 2, axis=0)  # w₁, w₁, w₂, w₂, ..., (m, d)
        a = np.stack([a, -a], axis=-1).reshape(outputs, -1)  # a₁, −a₁, ..., (outputs, m)
    return sigma * W, a
