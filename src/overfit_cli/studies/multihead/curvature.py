"""Exact gradients and Hessians of heads' outputs and of the loss (Deora et al. 2024, Lemma 1).

With A = softmax(X W Xᵀ), G_ts = ⟨u_t, x_s⟩ and means over s under row t of A,

    ∂Φ/∂u_t = x̄_t,   ∂Φ/∂W = Σ_t x_t p_tᵀ,   p_t = Σ_s A_ts (G_ts − Ḡ_t) x_s
    ∂²Φ/∂u_t ∂W = x_t ⊗ cov_t(x),
    ∂²Φ/∂W² = Σ_t x_t x_tᵀ ⊗ (Σ_s A_ts (G_ts − Ḡ_t) x_s x_sᵀ − p_t x̄_tᵀ − x̄_t p_tᵀ)

A head's parameters are U row by row, then W row by row: T d + d² of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from overfit_cli.studies.multihead.engine import log_mean_loss, loss_weights


@dataclass(frozen=True)
class Derivatives:
    """First and second derivatives of one head's output Φ(X; U, W) in its parameters.

    Attributes:
        outputs: Φ, shape (samples,).
        gradients: ∇Φ, shape (samples, parameters).
        _inputs: X, shape (samples, tokens, features).
        _covariances: cov_t(x), shape (samples, tokens, features, features).
        _curvatures: the bracket in ∂²Φ/∂W², in the same shape.
    """

    outputs: Tensor
    gradients: Tensor
    _inputs: Tensor
    _covariances: Tensor
    _curvatures: Tensor

    def first(self, count: int) -> Derivatives:
        """Return the derivatives of the first samples alone."""
        return Derivatives(
            self.outputs[:count],
            self.gradients[:count],
            self._inputs[:count],
            self._covariances[:count],
            self._curvatures[:count],
        )

    def hessians(self) -> Tensor:
        """Return the Hessian of each sample's output, (samples, parameters, parameters)."""
        X = self._inputs
        in_UW = torch.einsum("nta,ntjb->ntjab", X, self._covariances)  # (samples, T, d, d, d)
        in_WW = torch.einsum("nta,ntc,ntbe->nabce", X, X, self._curvatures)  # (samples, d, d, d, d)
        return _join(in_UW, in_WW)

    def mean_hessian(self, weights: Tensor) -> Tensor:
        """Return the Hessian of the weighted sum of outputs, (parameters, parameters).

        Args:
            weights: shape (samples,).
        """
        X, weighted = self._inputs, weights[:, None, None] * self._inputs  # each (samples, T, d)
        in_UW = torch.einsum("nta,ntjb->tjab", weighted, self._covariances)  # (T, d, d, d)
        in_WW = torch.einsum("nta,ntc,ntbe->abce", weighted, X, self._curvatures)  # (d, d, d, d)
        return _join(in_UW[None], in_WW[None])[0]


def _join(in_UW: Tensor, in_WW: Tensor) -> Tensor:
    """Join the blocks of Hessians; ∂²Φ/∂U² is zero.

    Args:
        in_UW: ∂²Φ/∂u_tj ∂W_ab, shape (samples, t, j, a, b).
        in_WW: ∂²Φ/∂W_ab ∂W_ce, shape (samples, a, b, c, e).

    Returns:
        Shape (samples, parameters, parameters).
    """
    n, T, d = in_UW.shape[:3]
    size_U, size_W = T * d, d**2
    UW = in_UW.reshape(n, size_U, size_W)
    hessians = UW.new_zeros(n, *(2 * [size_U + size_W]))
    hessians[:, :size_U, size_U:] = UW
    hessians[:, size_U:, :size_U] = UW.mT
    hessians[:, size_U:, size_U:] = in_WW.reshape(n, size_W, size_W)
    return hessians


def derivatives(inputs: Tensor, U: Tensor, W: Tensor) -> Derivatives:
    """Return the derivatives of one head's output.

    Args:
        inputs: X, shape (samples, tokens, features).
        U: shape (tokens, features).
        W: shape (features, features).
    """
    X = inputs
    A = (X @ W @ X.mT).softmax(-1)  # (samples, t, s)
    G = U @ X.mT  # (samples, t, s)
    G_mean = (A * G).sum(-1)  # Ḡ, (samples, t)
    spread = A * (G - G_mean[..., None])  # A_ts (G_ts − Ḡ_t), (samples, t, s)
    means = A @ X  # x̄_t, (samples, t, d)
    pulls = spread @ X  # p_t, (samples, t, d)
    squares = torch.einsum("nsa,nsb->nsab", X, X)  # x_s x_sᵀ, (samples, s, d, d)
    second = torch.einsum("nts,nsab->ntab", A, squares)  # (samples, t, d, d)
    crossed = pulls[..., :, None] * means[..., None, :]  # p_t x̄_tᵀ, (samples, t, d, d)
    curvatures = (
        torch.einsum("nts,nsab->ntab", spread, squares) - crossed - crossed.mT
    )  # (samples, t, d, d)
    in_W = torch.einsum("nta,ntb->nab", X, pulls)  # ∂Φ/∂W, (samples, d, d)
    return Derivatives(
        outputs=G_mean.sum(-1),
        gradients=torch.cat([means.flatten(1), in_W.flatten(1)], 1),
        _inputs=X,
        _covariances=second - means[..., :, None] * means[..., None, :],  # (samples, t, d, d)
        _curvatures=curvatures,
    )


@dataclass(frozen=True)
class LossCurvature:
    """Derivatives of the training loss in the weights of all heads, over the loss.

    Attributes:
        log_loss: the logarithm of the loss L.
        gradient: ‖∇L‖ / L.
        largest: the largest eigenvalue of ∇²L, over L.
        smallest: the smallest one, over L.
    """

    log_loss: float
    gradient: float
    largest: float
    smallest: float


def loss_curvature(by_class: list[Derivatives], counts: Tensor, labels: Tensor) -> LossCurvature:
    """Return the curvature of the loss for heads in classes.

    The Hessian of all heads needs no matrix of their size. Within a class it is the same block for
    every head, plus the same rank-n part for every pair of heads. So its eigenvalues are those on
    the classes' means, and, for changes of heads against each other, those of each class's block.

    Args:
        by_class: the derivatives of each class's output, for the training samples.
        counts: how many heads each class has, shape (classes,).
        labels: y, shape (samples,).
    """
    H = counts.sum()
    logits = sum(
        count / H.sqrt() * head.outputs for count, head in zip(counts, by_class, strict=True)
    )
    margins = torch.as_tensor(logits) * labels  # (samples,)
    weights = loss_weights(margins[None], scaled=True)[0] / len(margins)  # −ℓ′ / (n L), (samples,)
    curved = weights * torch.sigmoid(margins)  # ℓ″ / (n L), as ℓ″ = −ℓ′ σ(margin), (samples,)

    # Σ_i ℓ′ ∇²Φ / √H by class, and Σ_i ℓ″ ∇Φ ∇Φᵀ over all classes
    roots = (counts / H).sqrt()  # (classes,)
    blocks = [head.mean_hessian(-weights * labels) / H.sqrt() for head in by_class]
    gradients = torch.cat(
        [root * head.gradients for root, head in zip(roots, by_class, strict=True)], 1
    )  # (samples, classes · parameters)
    diagonal: Tensor = torch.block_diag(*blocks)  # type: ignore[no-untyped-call]
    hessian = diagonal + gradients.T @ (curved[:, None] * gradients)
    spectra = [torch.linalg.eigvalsh(hessian)]
    spectra += [
        torch.linalg.eigvalsh(block)
        for block, count in zip(blocks, counts, strict=True)
        if count > 1
    ]
    eigenvalues = torch.cat(spectra)
    gradient = gradients.T @ (weights * labels)  # −∇L / L, (classes · parameters,)
    return LossCurvature(
        log_loss=float(log_mean_loss(margins)),
        gradient=float(gradient.norm()),
        largest=float(eigenvalues.max()),
        smallest=float(eigenvalues.min()),
    )
