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
        gradients: shape (samples, parameters).
    """

    outputs: Tensor
    gradients: Tensor
    _inputs: Tensor
    _covariances: Tensor
    _curvatures: Tensor

    def first(self, count: int) -> Derivatives:
        """Return those of the first samples alone."""
        return Derivatives(
            self.outputs[:count],
            self.gradients[:count],
            self._inputs[:count],
            self._covariances[:count],
            self._curvatures[:count],
        )

    def hessians(self) -> Tensor:
        """Return the Hessian of each sample's output, (samples, parameters, parameters)."""
        x = self._inputs
        in_both = torch.einsum("nta,ntjb->ntjab", x, self._covariances)
        in_attention = torch.einsum("nta,ntc,ntbe->nabce", x, x, self._curvatures)
        return self._whole(in_both, in_attention)

    def mean_hessian(self, weights: Tensor) -> Tensor:
        """Return the Hessian of the weighted sum of outputs, (parameters, parameters).

        Args:
            weights: shape (samples,).
        """
        x, weighted = self._inputs, weights[:, None, None] * self._inputs
        in_both = torch.einsum("nta,ntjb->tjab", weighted, self._covariances)
        in_attention = torch.einsum("nta,ntc,ntbe->abce", weighted, x, self._curvatures)
        return self._whole(in_both[None], in_attention[None])[0]

    def _whole(self, in_both: Tensor, in_attention: Tensor) -> Tensor:
        samples, tokens, features = in_both.shape[:3]
        of_projection, of_attention = tokens * features, features**2
        both = in_both.reshape(samples, of_projection, of_attention)
        found = both.new_zeros(samples, *(2 * [of_projection + of_attention]))
        found[:, :of_projection, of_projection:] = both
        found[:, of_projection:, :of_projection] = both.mT
        found[:, of_projection:, of_projection:] = in_attention.reshape(
            samples, of_attention, of_attention
        )
        return found


def derivatives(inputs: Tensor, projection: Tensor, attention: Tensor) -> Derivatives:
    """Return the derivatives of one head's output.

    Args:
        inputs: X, shape (samples, tokens, features).
        projection: U, shape (tokens, features).
        attention: W, shape (features, features).
    """
    weights = (inputs @ attention @ inputs.mT).softmax(-1)  # A, (samples, tokens, tokens)
    outputs = projection @ inputs.mT  # G, likewise
    mean = (weights * outputs).sum(-1)  # Ḡ, (samples, tokens)
    spread = weights * (outputs - mean[..., None])
    means = weights @ inputs  # x̄_t, (samples, tokens, features)
    pulls = spread @ inputs  # p_t
    squares = torch.einsum("nsa,nsb->nsab", inputs, inputs)
    second = torch.einsum("nts,nsab->ntab", weights, squares)
    crossed = pulls[..., :, None] * means[..., None, :]
    curvatures = torch.einsum("nts,nsab->ntab", spread, squares) - crossed - crossed.mT
    in_attention = torch.einsum("nta,ntb->nab", inputs, pulls)
    return Derivatives(
        outputs=mean.sum(-1),
        gradients=torch.cat([means.flatten(1), in_attention.flatten(1)], 1),
        _inputs=inputs,
        _covariances=second - means[..., :, None] * means[..., None, :],
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


def loss_curvature(of_classes: list[Derivatives], counts: Tensor, labels: Tensor) -> LossCurvature:
    """Return the curvature of the loss for heads in classes.

    The Hessian of all heads needs no matrix of their size. Within a class it is the same block for
    every head, plus the same rank-n part for every pair of heads; so its eigenvalues are those on
    the classes' means, and those of each class's block, which changes of heads against each other
    see.

    Args:
        of_classes: the derivatives of each class's output, for the training samples.
        counts: how many heads each class has, shape (classes,).
        labels: y, shape (samples,).
    """
    heads = counts.sum()
    logits = sum(
        count / heads.sqrt() * one.outputs for count, one in zip(counts, of_classes, strict=True)
    )
    margins = torch.as_tensor(logits) * labels
    weights = loss_weights(margins[None], scaled=True)[0] / len(margins)  # −ℓ′ / (n L), (samples,)
    curved = weights * torch.sigmoid(margins)  # ℓ″ = −ℓ′ σ(margin)
    roots = (counts / heads).sqrt()
    blocks = [one.mean_hessian(-weights * labels) / heads.sqrt() for one in of_classes]
    gradients = torch.cat(
        [root * one.gradients for root, one in zip(roots, of_classes, strict=True)], 1
    )  # (samples, classes · parameters)
    together: Tensor = torch.block_diag(*blocks)  # type: ignore[no-untyped-call]
    whole = together + gradients.T @ (curved[:, None] * gradients)
    found = [torch.linalg.eigvalsh(whole)]
    found += [
        torch.linalg.eigvalsh(block)
        for block, count in zip(blocks, counts, strict=True)
        if count > 1
    ]
    eigenvalues = torch.cat(found)
    gradient = gradients.T @ (weights * labels)
    return LossCurvature(
        log_loss=float(log_mean_loss(margins)),
        gradient=float(gradient.norm()),
        largest=float(eigenvalues.max()),
        smallest=float(eigenvalues.min()),
    )
