"""The three networks: softmax, exponential, rectified linear.

The three networks, their Jacobians and their tangent kernels, by formula and in batches.

    F_ℓ(x) = Σ_r a_ℓr h_r(z),   z = W x;   h = m softmax(z), exp(z) or max(z, 0)

Only W is trained. All three have ∂F_ℓ/∂w_r = B_ℓr x with B_ℓr = (a_ℓr − c_ℓ) h′_r: c_ℓ is F_ℓ / m
for softmax and zero for the others. So JJᵀ = m H, where (Cao et al. 2024, Definition 3.6)

    H_(ℓi)(kj) = 1/m ⟨x_i, x_j⟩ Σ_r B_iℓr B_jkr.

Initial weights of the two-layer networks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from overfit_cli.core.training import named_rng
from overfit_cli.studies.softmax_network.paper import Activation, Initialisation


@dataclass(frozen=True)
class Network:
    """Networks of one activation and width, one for each cell.

    Attributes:
        activation: h.
        weights: W, shape (cells, m, d).
        signs: a, shape (cells, outputs, m).
    """

    activation: Activation
    weights: Tensor
    signs: Tensor

    @property
    def width(self) -> int:
        """M."""
        return self.weights.shape[1]

    def at(self, inputs: Tensor) -> Outputs:
        """Return the outputs at inputs X, shape (cells, n, d)."""
        scores = inputs @ self.weights.mT  # z, (cells, n, m)
        if self.activation == "relu":
            hidden, slopes = scores.relu(), (scores > 0).to(scores)
        elif self.activation == "exp":
            hidden = slopes = scores.exp()
        else:
            hidden = slopes = self.width * scores.softmax(-1)
        outputs = hidden @ self.signs.mT  # (cells, n, outputs)
        centred = self.activation == "softmax"
        centres = outputs / self.width if centred else torch.zeros_like(outputs)
        return Outputs(inputs, self.signs, outputs, slopes, centres)

    def of(self, cells: Tensor) -> Network:
        """Return those of some of the cells."""
        return Network(self.activation, self.weights[cells], self.signs[cells])


@dataclass(frozen=True)
class Outputs:
    """Networks' outputs at some inputs, and what their derivatives need.

    Attributes:
        inputs: X, shape (cells, n, d).
        signs: a, shape (cells, outputs, m).
        values: F, shape (cells, n, outputs).
        slopes: h′, shape (cells, n, m).
        centres: c, shape (cells, n, outputs).
    """

    inputs: Tensor
    signs: Tensor
    values: Tensor
    slopes: Tensor
    centres: Tensor

    def gradient(self, residual: Tensor) -> Tensor:
        """Return the gradient of ½‖F − Y‖² in W, (cells, m, d) (Claim 3.4).

        Args:
            residual: F − Y, shape (cells, n, outputs).
        """
        inner = (residual * self.centres).sum(-1, keepdim=True)
        pulls = (residual @ self.signs - inner) * self.slopes  # (cells, n, m)
        return pulls.mT @ self.inputs

    def features(self) -> Tensor:
        """Return B, (cells, outputs · n, m), with rows (ℓ, i) in the paper's order."""
        centred = self.signs[:, :, None] - self.centres.mT[..., None]  # (cells, outputs, n, m)
        return (centred * self.slopes[:, None]).flatten(1, 2)


def gram_matrix(one: Outputs, other: Outputs | None = None) -> Tensor:
    """Return H between inputs, (cells, outputs · n, outputs · n′) (Definition 3.6).

    Args:
        one: at the rows' inputs.
        other: of the same networks at the columns' inputs; the same ones without.
    """
    other = one if other is None else other
    outputs, width = one.signs.shape[1:]
    inner = one.inputs @ other.inputs.mT  # (cells, n, n′)
    products = one.features() @ other.features().mT / width
    return products * inner.repeat(1, outputs, outputs)


def limit_gram_matrix(
    activation: Activation, one: Tensor, other: Tensor, sigma: Tensor, outputs: int
) -> Tensor:
    """Return H as the width grows without end, (cells, outputs · n, outputs · n′).

    With w ~ N(0, σ²I), signs that are independent of it, and outputs that are uncorrelated:
    ⟨x, x′⟩ exp(σ²⟨x, x′⟩) for softmax, ⟨x, x′⟩ exp(σ²‖x + x′‖²/2) for exp, and ⟨x, x′⟩ (π − θ)/2π
    for ReLU, where θ is the angle between x and x′ (the arc-cosine kernel of order 0).

    Args:
        activation: h.
        one, other: inputs, shapes (cells, n, d) and (cells, n′, d).
        sigma: σ, shape (cells,).
        outputs: how many.
    """
    inner = one @ other.mT
    lengths, others = (x.norm(dim=-1) for x in (one, other))
    variance = sigma.square()[:, None, None]
    if activation == "softmax":
        kernel = (variance * inner).exp()
    elif activation == "exp":
        squares = lengths.square()[:, :, None] + others.square()[:, None]
        kernel = (variance * (squares / 2 + inner)).exp()
    else:
        products = lengths[:, :, None] * others[:, None]
        cosines = torch.where(products > 0, inner / products, 0.0).clamp(-1, 1)
        kernel = 0.5 - cosines.acos() / (2 * torch.pi)
    same_output = torch.eye(outputs, dtype=one.dtype, device=one.device)
    return torch.kron(same_output, inner * kernel)


Floats = NDArray[np.float64]


def initial_weights(
    way: Initialisation, shape: tuple[int, int, int], sigma: float, seed: int
) -> tuple[Floats, Floats]:
    """Draw W(0), (m, d), and a, (outputs, m); a wider network extends a narrower one.

    In the symmetric case each hidden unit stands twice, with opposite signs (Definition 3.7).

    Args:
        way: which case.
        shape: m, d and outputs; m is even in the symmetric case.
        sigma: σ, the deviation of a weight.
        seed: the cell's.
    """
    m, d, outputs = shape
    units = m // 2 if way == "symmetric" else m
    weights = named_rng(seed, "init", "weights").standard_normal((units, d))
    signs = named_rng(seed, "init", "signs").choice([-1.0, 1.0], (units, outputs)).T
    if way == "symmetric":
        weights = np.repeat(weights, 2, axis=0)
        signs = np.stack([signs, -signs], axis=-1).reshape(outputs, -1)
    return sigma * weights, signs
