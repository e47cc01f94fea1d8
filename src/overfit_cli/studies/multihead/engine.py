"""Logits and gradients of classes of heads, by hand, for cells that share their samples.

Scores are linear in W: with the products of two tokens' features as rows of a table, those of all
samples and classes are one matrix product, and so is the gradient in W. Arrays over pairs of tokens
are ordered (class, token t, token s, sample), so that sums over s and t run over long rows. All of
them live in buffers that are used again at each step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional


@dataclass(frozen=True)
class Gradients:
    """Logits of the training samples, and the gradients of one head of each class.

    Attributes:
        logits: Φ̃, shape (cells, samples).
        log_loss: the logarithm of the training loss, shape (cells,).
        projection: in U, shape (cells, classes, tokens, features).
        attention: in W, shape (cells, classes, features, features).
    """

    logits: Tensor
    log_loss: Tensor
    projection: Tensor
    attention: Tensor

    def of(self, cells: Tensor) -> Gradients:
        """Return those of some of the cells."""
        parts = (self.logits, self.log_loss, self.projection, self.attention)
        return Gradients(*(one[cells] for one in parts))


class HeadGradients:
    """Computes the logits and gradients of cells on samples that they share.

    Args:
        inputs: X, shape (samples, tokens, features).
        labels: y, shape (samples,).
        cells, classes: how many there are.
    """

    def __init__(self, inputs: Tensor, labels: Tensor, cells: int, classes: int) -> None:
        n, tokens, features = inputs.shape
        self._shape = (cells, classes)
        self._labels = labels
        by_token = inputs.permute(1, 2, 0)  # (tokens, features, samples)
        pairs = by_token[:, None, :, None] * by_token[None, :, None]  # (t, s, a, b, samples)
        self._pairs = pairs.permute(2, 3, 0, 1, 4).reshape(features**2, -1).contiguous()
        self._rows = inputs.permute(2, 1, 0).reshape(features, -1).contiguous()  # (b, s · samples)
        both = cells * classes
        self._attention = inputs.new_empty(both, tokens, tokens, n)
        self._outputs = inputs.new_empty(both, tokens, tokens, n)
        self._products = inputs.new_empty(both, tokens, tokens, n)
        self._row = inputs.new_empty(both, tokens, 1, n)

    def __call__(
        self, projection: Tensor, attention: Tensor, mixing: Tensor, heads: Tensor, scaled: bool
    ) -> Gradients:
        """Return logits and gradients.

        Args:
            projection: U, shape (cells, classes, tokens, features).
            attention: W, shape (cells, classes, features, features).
            mixing: what a class counts in the logit, shape (cells, classes).
            heads: H, shape (cells,).
            scaled: whether gradients are divided by the loss; they then don't underflow with it.
        """
        cells, classes = self._shape
        softmax, outputs, products, row = (
            self._attention,
            self._outputs,
            self._products,
            self._row,
        )
        both, tokens, _, n = softmax.shape
        features = projection.shape[-1]
        # E = exp of x_tᵀ W x_s less its largest over s, (classes, t, s, samples); A = E / Σ_s E
        torch.mm(attention.reshape(both, -1), self._pairs, out=softmax.view(both, -1))
        softmax.sub_(torch.amax(softmax, 2, keepdim=True, out=row)).exp_()
        total = softmax.sum(2, keepdim=True)  # (classes, t, 1, samples)
        most = softmax > total / 2 if scaled else None
        # G = ⟨u_t, x_s⟩, and its mean under A, (classes, t, 1, samples)
        rows = projection.reshape(both * tokens, features)
        torch.mm(rows, self._rows, out=outputs.view(both * tokens, -1))
        torch.mul(softmax, outputs, out=products)
        mean = torch.sum(products, 2, keepdim=True, out=row).div_(total)
        of_class = mean.sum(1).view(cells, classes, n)
        logits = (mixing[..., None] * of_class).sum(1)  # (cells, samples)
        log_loss, weights = loss_weights(logits * self._labels, scaled)
        weights = -weights * self._labels / heads.sqrt()[:, None]  # ∂L/∂Φ of a head
        spread = weights[:, None].expand(cells, classes, n).reshape(both, 1, 1, n)
        # ∂Φ/∂u_t = Σ_s A x_s, and ∂Φ/∂score = A (G − mean)
        softmax.mul_(spread / total)
        in_projection = softmax.view(both * tokens, -1) @ self._rows.T
        outputs.sub_(mean).mul_(softmax)
        if most is not None:
            _balance(outputs, most)
        in_attention = outputs.view(both, -1) @ self._pairs.T
        return Gradients(
            logits,
            log_loss,
            in_projection.view(projection.shape),
            in_attention.view(attention.shape),
        )


def _balance(gradients: Tensor, most: Tensor) -> None:
    """Set the gradient in a score that has most of its row's softmax to minus that in the others.

    They sum to zero. As attention saturates all of them become small, and that one, a difference of
    two numbers that don't, is lost to round-off.

    Args:
        gradients: in scores, shape (classes, t, s, samples); changed in place.
        most: whether a score has most of its row's softmax, likewise.
    """
    others = gradients.masked_fill(most, 0.0).sum(2, keepdim=True)
    gradients.copy_(torch.where(most, others.neg_(), gradients))


def loss_weights(margins: Tensor, scaled: bool) -> tuple[Tensor, Tensor]:
    """Return the logarithm of the mean logistic loss, and −∂L/∂margin of each sample.

    Args:
        margins: y Φ̃, shape (cells, samples).
        scaled: whether the latter is divided by the loss.
    """
    log_losses = log_logistic_loss(margins)
    log_loss = log_losses.logsumexp(-1) - math.log(margins.shape[-1])
    log_weights = functional.logsigmoid(-margins)
    if scaled:
        log_weights = log_weights - log_loss[:, None]
    return log_loss, log_weights.exp() / margins.shape[-1]


def log_logistic_loss(margins: Tensor) -> Tensor:
    """Return log log(1 + exp(−margin)), which is near −margin where that is large."""
    small = torch.exp(-margins.clamp(min=_LARGE_MARGIN))
    return torch.where(
        margins > _LARGE_MARGIN,
        -margins - small / 2,
        functional.softplus(-margins.clamp(max=_LARGE_MARGIN)).log(),
    )


_LARGE_MARGIN = 20.0
"""Beyond, log(1 + e^−m) is e^−m (1 − e^−m / 2) to the last bit."""


def logits_of(inputs: Tensor, projection: Tensor, attention: Tensor, mixing: Tensor) -> Tensor:
    """Return Φ̃ of any samples, (cells, samples).

    Args:
        inputs: X, shape (samples, tokens, features).
        projection, attention, mixing: as for `HeadGradients`.
    """
    features = projection.shape[-1]
    softmax = attention_scores(inputs, attention)  # (cells, classes, t, s, samples)
    by_feature = inputs.permute(2, 1, 0).reshape(features, -1)  # (b, s · samples)
    outputs = (projection.reshape(-1, features) @ by_feature).view(softmax.shape)
    of_class = softmax.mul_(outputs).sum((2, 3))  # (cells, classes, samples)
    return (mixing[..., None] * of_class).sum(1)


def attention_scores(inputs: Tensor, attention: Tensor) -> Tensor:
    """Return A = softmax(X W Xᵀ), row t over s, as (cells, classes, t, s, samples)."""
    by_feature = inputs.permute(2, 1, 0)  # (b, tokens, samples)
    features, tokens, n = by_feature.shape
    # Wᵀ x_t, (cells, classes, b, t, samples)
    queries = (attention.mT @ by_feature.reshape(features, -1)).view(
        *attention.shape[:2], features, tokens, n
    )
    scores = queries.new_zeros(*attention.shape[:2], tokens, tokens, n)
    for query, key in zip(queries.unbind(2), by_feature, strict=True):
        scores.addcmul_(query[..., None, :], key)
    return scores.softmax(3)
