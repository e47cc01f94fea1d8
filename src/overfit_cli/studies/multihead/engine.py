"""The engine of one head or of classes of heads: weights, optimisers, gradients.

Weights of heads, kept once for each class of heads that are alike.

    Φ̃(X) = H^(−1/2) Σ_h ⟨U_h, softmax(X W_h Xᵀ) X⟩    (Deora et al. 2024, equation 2)

Heads that begin alike get the same gradient at every step, so they stay alike under any optimiser
that treats them alike. From zero all H heads are one class. After the first phase of section 5.1,
whose steps are ±1, they are two. A class counts as often as it has heads; nothing else changes.

Steps of the optimisers, for cells that are trained together.

Logits and gradients of classes of heads, by hand, for cells that share their samples.

Arrays over pairs of tokens are ordered (token s, sample, token t and class), so that sums over s
run over long rows, and each sample's scores are one small matrix product. No table of products of
two tokens' features is kept: it would be `features` squared times as large as the scores, and
reading it would cost more than all else. Samples are taken some at a time, so that the arrays stay
in a processor's cache.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from overfit_cli.core.training import named_rng
from overfit_cli.studies.multihead.parameters import Floats, MultiheadParameters, Optimiser, Samples

Weights = dict[str, Tensor]
"""What is trained, by name: `projection` (U) and `attention` (W), or the factors of both.

Each has shape (cells, classes, ...).
"""

FACTORS = {"projection": ("places", "values"), "attention": ("queries", "keys")}
"""The factors of U = P Vᵀ and of W = Q Kᵀ, where heads have a width."""


@dataclass(frozen=True)
class Heads:
    """The heads of cells that are trained together.

    Attributes:
        weights: what is trained.
        counts: how many heads each class has, shape (cells, classes).
        heads: H, shape (cells,).
    """

    weights: Weights
    counts: Tensor
    heads: Tensor

    @cached_property
    def mixing(self) -> Tensor:
        """What a class's output counts in the logit, counts / √H, shape (cells, classes)."""
        return self.counts / self.heads.sqrt()[:, None]

    def of(self, cells: Tensor) -> Heads:
        """Return those of some of the cells."""
        weights = {name: one[cells] for name, one in self.weights.items()}
        return Heads(weights, self.counts[cells], self.heads[cells])

    def copied(self) -> Heads:
        """Return a copy that steps don't change."""
        weights = {name: one.clone() for name, one in self.weights.items()}
        return Heads(weights, self.counts, self.heads)


def full_matrices(weights: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Return U, (cells, classes, tokens, features), and W, (cells, classes, features, features)."""
    if "projection" in weights:
        return weights["projection"], weights["attention"]
    return (
        weights["places"] @ weights["values"].mT,
        weights["queries"] @ weights["keys"].mT,
    )


def gradients_of(weights: Mapping[str, Tensor], projection: Tensor, attention: Tensor) -> Weights:
    """Return the gradients in what is trained, from those in U and W."""
    if "projection" in weights:
        return {"projection": projection, "attention": attention}
    return {
        "places": projection @ weights["values"],
        "values": projection.mT @ weights["places"],
        "queries": attention @ weights["keys"],
        "keys": attention.mT @ weights["queries"],
    }


def initial_heads(
    settings: Sequence[MultiheadParameters],
    seed: int,
    first: Samples,
    *,
    dtype: torch.dtype,
    device: str,
) -> Heads:
    """Return the heads of a seed's cells before the first step.

    Args:
        settings: the cells', which all have as many classes.
        seed: of all of them.
        first: samples of the first phase.
        dtype, device: of the tensors.
    """

    def tensor(arrays: Sequence[Floats]) -> Tensor:
        return torch.tensor(np.stack(arrays), dtype=dtype, device=device)

    each = [_initial_classes(one, seed, first) for one in settings]
    names = each[0][0]
    return Heads(
        weights={name: tensor([weights[name] for weights, _ in each]) for name in names},
        counts=tensor([counts for _, counts in each]),
        heads=tensor([np.array(float(one.heads)) for one in settings]),
    )


def classes(parameters: MultiheadParameters) -> int:
    """Return how many classes of heads there are."""
    if parameters.each_head:
        return parameters.heads
    return 2 if parameters.first_phase == "signs" else 1


def first_step_sizes(parameters: MultiheadParameters, seed: int) -> Floats:
    """Return α_h, the step size of each head in the first phase, (heads,); zeros without it."""
    if parameters.first_phase == "none":
        return np.zeros(parameters.heads)
    if parameters.first_phase == "positive":
        return np.ones(parameters.heads)
    return named_rng(seed, "init", "signs").choice([1.0, -1.0], parameters.heads)


def first_gradient(first: Samples) -> Floats:
    """Return what the first phase adds to U for a step size of 1, the same row for each token.

    It is Σ_i y_i Σ_t x_it / (2 n₁ T) (equation 120); W has no gradient at zero.
    """
    n, tokens, _ = first.inputs.shape
    row: Floats = np.einsum("n,ntd->d", first.labels, first.inputs) / (2 * n * tokens)
    return np.broadcast_to(row, first.inputs.shape[1:])


def _initial_classes(
    parameters: MultiheadParameters, seed: int, first: Samples
) -> tuple[dict[str, Floats], Floats]:
    """The first weights of each class, and how many heads it has."""
    features, heads = parameters.d, parameters.heads
    if parameters.initialisation == "gaussian":
        return _gaussian(parameters, seed), np.ones(heads)
    signs = first_step_sizes(parameters, seed)
    counts = np.ones(heads)
    if not parameters.separate_heads and parameters.first_phase == "signs":
        counts = np.array([(signs > 0).sum(), (signs < 0).sum()], dtype=np.float64)
        signs = np.array([1.0, -1.0])
    elif not parameters.separate_heads:
        counts, signs = np.array([float(heads)]), signs[:1]
    return {
        "projection": signs[:, None, None] * first_gradient(first),
        "attention": np.zeros((len(signs), features, features)),
    }, counts


def _gaussian(parameters: MultiheadParameters, seed: int) -> dict[str, Floats]:
    tokens, features = parameters.tokens, parameters.d
    shapes = {"projection": (tokens, features), "attention": (features, features)}
    if parameters.head_width == "shared":
        width = features // parameters.heads
        shapes = {
            "places": (tokens, width),
            "values": (features, width),
            "queries": (features, width),
            "keys": (features, width),
        }
    return {
        name: parameters.sigma_init
        * named_rng(seed, "init", name).standard_normal((parameters.heads, *shape))
        for name, shape in shapes.items()
    }


BETAS = (0.9, 0.999)
SMALL = 1e-8
"""What Adam adds to the root of the mean square; PyTorch's default, as the betas are."""


class Steps:
    """Takes steps with one optimiser, and keeps what it remembers.

    Args:
        optimiser: which.
        step_sizes: of each cell, shape (cells,).
        momentum: for `momentum`, of each cell, shape (cells,).
        counts: how many heads each class has, shape (cells, classes): a norm is over all heads.
    """

    def __init__(
        self, optimiser: Optimiser, step_sizes: Tensor, momentum: Tensor, counts: Tensor
    ) -> None:
        self._optimiser = optimiser
        self._step_sizes = step_sizes[:, None, None, None]
        self._momentum = momentum[:, None, None, None]
        self._counts = counts
        self._first: Weights = {}
        self._second: Weights = {}
        self._taken = 0

    @property
    def by_loss(self) -> bool:
        """Whether the gradients it is to be given are divided by the loss."""
        return self._optimiser in ("loss-normalised", "gradient-normalised")

    def take(self, weights: Weights, gradients: Mapping[str, Tensor]) -> None:
        """Change the weights by a step, in place."""
        self._taken += 1
        size = self._step_sizes
        if self._optimiser == "gradient-normalised":
            size = size / _norm(gradients, self._counts)[:, None, None, None]
        for name, gradient in gradients.items():
            weights[name].addcmul_(size, self._direction(name, gradient), value=-1)

    def _direction(self, name: str, gradient: Tensor) -> Tensor:
        if self._optimiser == "momentum":
            before = _kept(self._first, name, gradient)
            return before.mul_(self._momentum).add_(gradient)
        if self._optimiser == "adam":
            return self._adam(name, gradient)
        return gradient

    def _adam(self, name: str, gradient: Tensor) -> Tensor:
        first = _kept(self._first, name, gradient)
        second = _kept(self._second, name, gradient)
        first.lerp_(gradient, 1 - BETAS[0])
        second.mul_(BETAS[1]).addcmul_(gradient, gradient, value=1 - BETAS[1])
        mean, square = (1 - beta**self._taken for beta in BETAS)
        return (first / mean) / ((second / square).sqrt() + SMALL)

    def keep(self, cells: Tensor) -> None:
        """Go on with some of the cells alone."""
        self._step_sizes, self._momentum = self._step_sizes[cells], self._momentum[cells]
        self._counts = self._counts[cells]
        self._first = {name: one[cells] for name, one in self._first.items()}
        self._second = {name: one[cells] for name, one in self._second.items()}


def _kept(kept: Weights, name: str, gradient: Tensor) -> Tensor:
    """What is remembered of the gradients so far; zeros before the first."""
    if name not in kept:
        kept[name] = torch.zeros_like(gradient)
    return kept[name]


def _norm(gradients: Mapping[str, Tensor], counts: Tensor) -> Tensor:
    """The Frobenius norm of all heads together, (cells,), whose squares needn't be floats."""
    largest = torch.stack([one.abs().amax((-3, -2, -1)) for one in gradients.values()]).amax(0)
    largest = largest.clamp(min=torch.finfo(largest.dtype).tiny)
    scaled = {name: one / largest[:, None, None, None] for name, one in gradients.items()}
    return largest * squared_norm(scaled, counts).sqrt()


def squared_norm(weights: Mapping[str, Tensor], counts: Tensor) -> Tensor:
    """Return the squared Frobenius norm of all heads together, (cells,)."""
    of_class = torch.stack([one.square().sum((-2, -1)) for one in weights.values()]).sum(0)
    return (counts * of_class).sum(-1)


_AT_ONCE = {"cpu": 150_000, "cuda": 200_000_000}
"""The numbers of an array over pairs of tokens, of all classes, at most."""


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
        self._parts = _in_parts(inputs, cells, classes)
        self._labels = torch.split(labels, self._parts[0].size)

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
        found = []
        for part, labels in zip(self._parts, self._labels, strict=True):
            logits = part.logits(projection, attention, mixing)
            margins = logits * labels
            weights = loss_weights(margins, scaled) * (-labels / len(labels))
            weights /= heads.sqrt()[:, None]  # ∂L/∂Φ of a head
            loss = functional.softplus(-margins).mean(-1)
            found.append(Gradients(logits, loss, *part.gradients(weights, scaled)))
        return found[0] if len(found) == 1 else self._joined(found, scaled)

    def _joined(self, found: Sequence[Gradients], scaled: bool) -> Gradients:
        """Put those of all samples together from those of each part."""
        counts = found[0].loss.new_tensor([len(labels) for labels in self._labels])
        shares = (counts / counts.sum())[:, None]  # (parts, cells)
        loss = (shares * torch.stack([one.loss for one in found])).sum(0)
        if scaled:  # each part's gradients are divided by its own loss
            margins = [one.logits * y for one, y in zip(found, self._labels, strict=True)]
            logs = torch.stack([log_mean_loss(one) for one in margins])
            shares = (logs + counts.log()[:, None]).softmax(0)
        else:
            shares = shares.expand(-1, len(loss))
        projections = torch.stack([one.projection for one in found])
        attentions = torch.stack([one.attention for one in found])
        return Gradients(
            torch.cat([one.logits for one in found], 1),
            loss,
            torch.einsum("pc,pc...->c...", shares, projections),
            torch.einsum("pc,pc...->c...", shares, attentions),
        )


def logits_of(inputs: Tensor, projection: Tensor, attention: Tensor, mixing: Tensor) -> Tensor:
    """Return Φ̃ of any samples, (cells, samples).

    Args:
        inputs: X, shape (samples, tokens, features).
        projection, attention, mixing: as for `HeadGradients`.
    """
    parts = _in_parts(inputs, *mixing.shape)
    return torch.cat([one.logits(projection, attention, mixing) for one in parts], 1)


def _in_parts(inputs: Tensor, cells: int, classes: int) -> list[_Part]:
    """Split samples so that the arrays of each part fit into a cache; parts share the arrays."""
    n, tokens, _ = inputs.shape
    columns = tokens * cells * classes
    size = min(n, max(1, _AT_ONCE[inputs.device.type] // (tokens * columns)))
    room = [inputs.new_empty(tokens * size * columns) for _ in range(3)]
    return [_Part(one, room, cells, classes) for one in torch.split(inputs, size)]


class _Part:
    """Some of the samples, and the arrays over their pairs of tokens, used again at each step.

    Args:
        inputs: X, shape (samples, tokens, features).
        room: memory for three of the arrays.
        cells, classes: how many there are.
    """

    def __init__(self, inputs: Tensor, room: Sequence[Tensor], cells: int, classes: int) -> None:
        n, tokens, features = inputs.shape
        self.size = n
        columns = tokens * cells * classes
        self._samples = inputs.contiguous()  # (samples, t, a)
        self._by_sample = self._samples.view(-1, features)  # (samples · t, a)
        self._by_token = inputs.transpose(0, 1).reshape(-1, features)  # (s · samples, b)
        # (s, samples, t · classes)
        self._softmax, self._outputs, self._products = (
            one[: tokens * n * columns].view(tokens, n, columns) for one in room
        )
        self._row = inputs.new_empty(n, columns)

    def logits(self, projection: Tensor, attention: Tensor, mixing: Tensor) -> Tensor:
        """Return Φ̃, (cells, samples), and keep what its gradients need."""
        cells, classes, tokens, features = projection.shape
        both = cells * classes
        softmax, outputs, products, row = self._softmax, self._outputs, self._products, self._row
        _, n, columns = softmax.shape
        # E = exp of x_tᵀ W x_s less its largest over s; A = E / Σ_s E
        of_classes = attention.reshape(both, features, features).transpose(0, 1)
        queries = (self._by_sample @ of_classes.reshape(features, -1)).view(n, columns, features)
        scores = torch.bmm(self._samples, queries.mT, out=products.view(n, tokens, columns))
        softmax.copy_(scores.transpose(0, 1))
        softmax.sub_(torch.amax(softmax, 0, out=row)).exp_()
        self._total = softmax.sum(0)  # (samples, t · classes)
        # G = ⟨u_t, x_s⟩, and its mean under A, (samples, t · classes)
        rows = projection.reshape(both, tokens, features).transpose(0, 1).reshape(columns, features)
        torch.mm(self._by_token, rows.T, out=outputs.view(-1, columns))
        torch.mul(softmax, outputs, out=products)
        self._mean = torch.sum(products, 0, out=row).div_(self._total)
        of_class = self._mean.view(n, tokens, cells, classes).sum(1)
        return (mixing * of_class).sum(-1).T

    def gradients(self, weights: Tensor, scaled: bool) -> tuple[Tensor, Tensor]:
        """Return the gradients in U and in W, after `logits`; what that kept is lost.

        Args:
            weights: ∂L/∂Φ of a head, shape (cells, samples).
            scaled: whether they are divided by the loss.
        """
        softmax, outputs = self._softmax, self._outputs
        tokens, n, columns = softmax.shape
        cells, features = len(weights), self._samples.shape[-1]
        classes = columns // (tokens * cells)
        most = softmax > self._total / 2 if scaled else None
        # ∂Φ/∂u_t = Σ_s A x_s, and ∂Φ/∂score = A (G − mean)
        of_total = self._total.view(n, tokens, cells, classes)
        softmax.mul_((weights.T[:, None, :, None] / of_total).view(n, columns))
        in_projection = self._by_token.T @ softmax.view(-1, columns)  # (b, t · classes)
        outputs.sub_(self._mean).mul_(softmax)
        if most is not None:
            _balance(outputs, most)
        both = cells * classes
        in_queries = torch.bmm(
            self._samples.mT, outputs.transpose(0, 1)
        )  # (samples, b, t · classes)
        by_token = in_queries.view(n, features, tokens, both).permute(0, 2, 3, 1)
        in_attention = self._by_sample.T @ by_token.reshape(n * tokens, -1)  # (a, classes · b)
        shape = (cells, classes, tokens, features)
        return (
            in_projection.view(features, tokens, both).permute(2, 1, 0).reshape(shape),
            in_attention.view(features, both, -1)
            .transpose(0, 1)
            .reshape(cells, classes, features, features),
        )


def _balance(gradients: Tensor, most: Tensor) -> None:
    """Set the gradient in a score that has most of its row's softmax to minus that in the others.

    They sum to zero. As attention saturates all of them become small, and that one, a difference of
    two numbers that don't, is lost to round-off.

    Args:
        gradients: in scores, shape (s, samples, t · classes); changed in place.
        most: whether a score has most of its row's softmax, likewise.
    """
    others = gradients.masked_fill(most, 0.0).sum(0)
    gradients.copy_(torch.where(most, others.neg_(), gradients))


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
