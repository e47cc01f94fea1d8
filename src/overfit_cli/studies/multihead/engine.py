"""Logits and gradients of classes of heads, by hand, for cells that share their samples.

Arrays over pairs of tokens are ordered (token s, sample, token t and class), so that sums over s
run over long rows, and each sample's scores are one small matrix product. No table of products of
two tokens' features is kept: it would be `features` squared times as large as the scores, and
reading it would cost more than all else. The arrays live in buffers that are used again.
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
        loss: the training loss, shape (cells,).
        projection: in U, shape (cells, classes, tokens, features).
        attention: in W, shape (cells, classes, features, features).
    """

    logits: Tensor
    loss: Tensor
    projection: Tensor
    attention: Tensor

    def of(self, cells: Tensor) -> Gradients:
        """Return those of some of the cells."""
        parts = (self.logits, self.loss, self.projection, self.attention)
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
        self._of_labels = -labels / n
        self._samples = inputs.contiguous()  # (samples, t, a)
        self._by_sample = self._samples.view(-1, features)  # (samples · t, a)
        self._by_token = inputs.transpose(0, 1).reshape(-1, features)  # (s · samples, b)
        columns = tokens * cells * classes
        self._softmax = inputs.new_empty(tokens, n, columns)
        self._outputs = torch.empty_like(self._softmax)
        self._products = torch.empty_like(self._softmax)
        self._row = inputs.new_empty(n, columns)

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
        both = cells * classes
        _, _, tokens, features = projection.shape
        # (s, samples, t · classes)
        softmax, outputs, products, row = self._softmax, self._outputs, self._products, self._row
        _, n, columns = softmax.shape
        # E = exp of x_tᵀ W x_s less its largest over s; A = E / Σ_s E
        of_classes = attention.reshape(both, features, features).transpose(0, 1)
        queries = (self._by_sample @ of_classes.reshape(features, -1)).view(n, columns, features)
        scores = torch.bmm(self._samples, queries.mT, out=products.view(n, tokens, columns))
        softmax.copy_(scores.transpose(0, 1))
        softmax.sub_(torch.amax(softmax, 0, out=row)).exp_()
        total = softmax.sum(0)  # (samples, t · classes)
        # G = ⟨u_t, x_s⟩, and its mean under A, (samples, t · classes)
        rows = projection.reshape(both, tokens, features).transpose(0, 1).reshape(columns, features)
        torch.mm(self._by_token, rows.T, out=outputs.view(-1, columns))
        torch.mul(softmax, outputs, out=products)
        mean = torch.sum(products, 0, out=row).div_(total)
        of_class = mean.view(n, tokens, cells, classes).sum(1)
        logits = (mixing * of_class).sum(-1).T  # (cells, samples)
        margins = logits * self._labels
        of_labels = self._of_labels / heads.sqrt()[:, None]
        weights = loss_weights(margins, scaled) * of_labels  # ∂L/∂Φ of a head
        of_total = total.view(n, tokens, cells, classes)
        # ∂Φ/∂u_t = Σ_s A x_s, and ∂Φ/∂score = A (G − mean)
        softmax.mul_((weights.T[:, None, :, None] / of_total).view(n, columns))
        in_projection = self._by_token.T @ softmax.view(-1, columns)  # (b, t · classes)
        outputs.sub_(mean).mul_(softmax)
        in_queries = torch.bmm(outputs.permute(1, 2, 0), self._samples)  # (samples, t · classes, b)
        in_attention = self._by_sample.T @ in_queries.view(n * tokens, -1)  # (a, classes · b)
        return Gradients(
            logits,
            functional.softplus(-margins).mean(-1),
            in_projection.view(features, tokens, both).permute(2, 1, 0).reshape(projection.shape),
            in_attention.view(features, both, -1).transpose(0, 1).reshape(attention.shape),
        )


def loss_weights(margins: Tensor, scaled: bool) -> Tensor:
    """Return −∂/∂margin of each sample's loss.

    Args:
        margins: y Φ̃, shape (cells, samples).
        scaled: whether they are divided by the mean loss.
    """
    if not scaled:
        return torch.sigmoid(-margins)
    return (functional.logsigmoid(-margins) - log_mean_loss(margins)[:, None]).exp()


def log_mean_loss(margins: Tensor) -> Tensor:
    """Return the logarithm of the mean logistic loss, (cells,), which doesn't underflow with it."""
    return log_logistic_loss(margins).logsumexp(-1) - math.log(margins.shape[-1])


def log_logistic_loss(margins: Tensor) -> Tensor:
    """Return log log(1 + exp(−margin)), which is −margin where that is large."""
    return torch.where(margins > _LARGE_MARGIN, -margins, functional.softplus(-margins).log())


_LARGE_MARGIN = 40.0
"""Beyond, log(1 + e^−m) is e^−m to the last bit."""


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
