"""One layer of multi-head attention: its weights, optimisers, logits and gradients.

    Φ̃(X) = H^(−1/2) Σ_h ⟨U_h, softmax(X W_h Xᵀ) X⟩    (Deora et al. 2024, equation 2)

Heads that begin alike get the same gradient at every step, so they stay alike under any optimiser
that treats them alike. Each class of such heads is stored once and counts as often as it has heads.
From zero all H heads are one class. After the first phase of section 5.1, whose steps are ±1, they
are two.

For one head and sample, with S = X W Xᵀ, A = softmax(S) by rows, G_ts = ⟨u_t, x_s⟩ and
Ḡ_t = Σ_s A_ts G_ts,

    Φ = Σ_t Ḡ_t,   ∂Φ/∂u_t = Σ_s A_ts x_s,   ∂Φ/∂S_ts = A_ts (G_ts − Ḡ_t),
    ∂Φ/∂W = Σ_ts x_t (∂Φ/∂S_ts) x_sᵀ

Symbols in the code: T tokens, d features, n samples, C = cells · classes heads that are computed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from overfit_cli.core.arrays import Floats
from overfit_cli.core.training import named_rng
from overfit_cli.studies.multihead.data import Samples
from overfit_cli.studies.multihead.parameters import LEVELS, MultiheadParameters


@dataclass(frozen=True)
class Heads:
    """The heads of cells that are trained together."""

    U: Tensor  # (cells, classes, tokens, features)
    W: Tensor  # (cells, classes, features, features)
    counts: Tensor  # how many heads each class has, (cells, classes)
    heads: Tensor  # H, (cells,)

    @cached_property
    def mixing(self) -> Tensor:
        """The factor of a class's output in the logit, counts / √H, shape (cells, classes)."""
        return self.counts / self.heads.sqrt()[:, None]

    def select(self, cells: Tensor) -> Heads:
        """Return the heads of some of the cells, given by their indices."""
        return Heads(self.U[cells], self.W[cells], self.counts[cells], self.heads[cells])

    def copy(self) -> Heads:
        """Return a copy that steps don't change."""
        return Heads(self.U.clone(), self.W.clone(), self.counts, self.heads)


def initial_heads(
    settings: Sequence[MultiheadParameters],
    seed: int,
    first: Samples,
    *,
    dtype: torch.dtype,
    device: str,
) -> Heads:
    """Return the heads of a seed's cells, from the first phase's samples, before the first step."""

    def tensor(arrays: Iterable[Floats]) -> Tensor:
        return torch.tensor(np.stack(list(arrays)), dtype=dtype, device=device)

    by_cell = (_initial_classes(parameters, seed, first) for parameters in settings)
    U, W, counts = zip(*by_cell, strict=True)
    heads = (np.array(float(parameters.heads)) for parameters in settings)
    return Heads(tensor(U), tensor(W), tensor(counts), tensor(heads))


@dataclass(frozen=True)
class FirstSteps:
    """The step sizes α of the first phase, one for each class of heads, each (classes,)."""

    sizes: Floats
    counts: Floats  # how many heads take each

    def mean(self, values: Floats) -> float:
        """Return the mean over heads of numbers of their classes, (classes,)."""
        return float((self.counts * values).sum() / self.counts.sum())


def first_steps(parameters: MultiheadParameters, seed: int) -> FirstSteps:
    """Return the step sizes of the first phase by classes of heads; zero without it."""
    H = parameters.heads
    if parameters.each_head:
        return FirstSteps(first_step_sizes(parameters, seed), np.ones(H))
    if parameters.has_levels:
        middles = (2 * np.arange(LEVELS) + 1) / LEVELS - 1  # of equal parts of [−1, 1], (LEVELS,)
        chances = np.full(LEVELS, 1 / LEVELS)
        drawn = named_rng(seed, "init", "sizes").multinomial(H, chances)  # (LEVELS,)
        return FirstSteps(middles, drawn.astype(np.float64))
    if parameters.first_phase == "signs":
        positive = int((first_step_sizes(parameters, seed) > 0).sum())
        return FirstSteps(np.array([1.0, -1.0]), np.array([positive, H - positive], np.float64))
    # one class, whose H may be too large for an array of all heads
    return FirstSteps(np.zeros(1), np.array([float(H)]))


def first_step_sizes(parameters: MultiheadParameters, seed: int) -> Floats:
    """Return α_h, the step size of each head in the first phase, (heads,); zeros without it."""
    if parameters.first_phase == "none":
        return np.zeros(parameters.heads)
    if parameters.first_phase == "uniform":
        return named_rng(seed, "init", "sizes").uniform(-1.0, 1.0, parameters.heads)
    return named_rng(seed, "init", "signs").choice([1.0, -1.0], parameters.heads)


def first_gradient(first: Samples) -> Floats:
    """Return what the first phase adds to U for a step size of 1, (tokens, features).

    Each row is Σ_i y_i Σ_t x_it / (2 n₁ T) (equation 120); W has no gradient at zero.
    """
    n, T, _ = first.inputs.shape
    row: Floats = np.einsum("n,ntd->d", first.labels, first.inputs) / (2 * n * T)  # (features,)
    return np.broadcast_to(row, first.inputs.shape[1:])  # (tokens, features)


def _initial_classes(
    parameters: MultiheadParameters, seed: int, first: Samples
) -> tuple[Floats, Floats, Floats]:
    """U and W of each class, (classes, T, d) and (classes, d, d), and how many heads it has."""
    T, d, H = parameters.tokens, parameters.d, parameters.heads
    if parameters.initialisation == "zero":
        steps = first_steps(parameters, seed)
        U = steps.sizes[:, None, None] * first_gradient(first)  # (classes, T, d)
        return U, np.zeros((len(U), d, d)), steps.counts
    U, W = (
        parameters.sigma_init * named_rng(seed, "init", name).standard_normal((H, rows, d))
        for name, rows in (("projection", T), ("attention", d))
    )
    return (np.zeros_like(U) if parameters.initialisation == "attention" else U), W, np.ones(H)


def squared_norm(matrices: Tensor, counts: Tensor) -> Tensor:
    """Return the squared Frobenius norm of a matrix of all heads together, (cells,)."""
    return (counts * matrices.square().sum((-2, -1))).sum(-1)


_PART_NUMBERS = {"cpu": 150_000, "cuda": 200_000_000}
"""The most numbers of an array over pairs of tokens, of all classes together."""


@dataclass(frozen=True)
class Gradients:
    """Logits of the training samples, and the gradients of one head of each class."""

    logits: Tensor  # Φ̃, (cells, samples)
    loss: Tensor  # the training loss, (cells,)
    projection: Tensor  # ∂L/∂U, (cells, classes, tokens, features)
    attention: Tensor  # ∂L/∂W, (cells, classes, features, features)

    def select(self, cells: Tensor) -> Gradients:
        """Return the gradients of some of the cells, given by their indices."""
        parts = (self.logits, self.loss, self.projection, self.attention)
        return Gradients(*(part[cells] for part in parts))


class HeadGradients:
    """Computes the logits and gradients of cells on samples that they share.

    They are X, (samples, tokens, features), and y, (samples,), or (cells, samples) where cells have
    labels of their own: a sample of label 0 adds nothing to a gradient, so that a cell is trained
    without it, and log(2)/n to the loss.
    """

    def __init__(self, inputs: Tensor, labels: Tensor, cells: int, classes: int) -> None:
        self._parts = _split_samples(inputs, cells, classes)
        self._labels = torch.split(labels, self._parts[0].size, dim=-1)

    def __call__(self, U: Tensor, W: Tensor, mixing: Tensor, H: Tensor, scaled: bool) -> Gradients:
        """Return logits and gradients of L = mean log(1 + exp(−y Φ̃)).

        U is (cells, classes, T, d), W (cells, classes, d, d), the mixing, which multiplies a
        class's output in the logit, (cells, classes), and H (cells,). Where `scaled`, gradients are
        divided by the loss; they then don't underflow with it.
        """
        by_part = []
        for part, y in zip(self._parts, self._labels, strict=True):
            logits = part.logits(U, W, mixing)  # (cells, samples)
            margins = logits * y  # (cells, samples)
            slopes = loss_weights(margins, scaled) * (-y / y.shape[-1])  # ∂L/∂Φ̃, (cells, samples)
            weights = slopes / H.sqrt()[:, None]  # ∂L/∂Φ of one head, (cells, samples)
            loss = functional.softplus(-margins).mean(-1)  # (cells,)
            by_part.append(Gradients(logits, loss, *part.gradients(weights, scaled)))
        return by_part[0] if len(by_part) == 1 else self._join(by_part, scaled)

    def _join(self, by_part: Sequence[Gradients], scaled: bool) -> Gradients:
        counts = by_part[0].loss.new_tensor([y.shape[-1] for y in self._labels])  # (parts,)
        shares = (counts / counts.sum())[:, None]  # (parts, 1)
        loss = (shares * torch.stack([part.loss for part in by_part])).sum(0)  # (cells,)
        if scaled:  # each part's gradients are divided by its own loss
            margins = [
                part.logits * y for part, y in zip(by_part, self._labels, strict=True)
            ]  # y Φ̃, each (cells, samples of the part)
            logs = torch.stack([log_mean_loss(of_part) for of_part in margins])  # (parts, cells)
            shares = (logs + counts.log()[:, None]).softmax(0)  # (parts, cells)
        else:
            shares = shares.expand(-1, len(loss))  # (parts, cells)
        grad_U = torch.stack([part.projection for part in by_part])  # (parts, cells, classes, T, d)
        grad_W = torch.stack([part.attention for part in by_part])  # (parts, cells, classes, d, d)
        return Gradients(
            torch.cat([part.logits for part in by_part], 1),  # (cells, samples)
            loss,
            torch.einsum("pc,pc...->c...", shares, grad_U),  # (cells, classes, T, d)
            torch.einsum("pc,pc...->c...", shares, grad_W),  # (cells, classes, d, d)
        )


def logits_of(inputs: Tensor, U: Tensor, W: Tensor, mixing: Tensor) -> Tensor:
    """Return Φ̃ of any samples X, (samples, tokens, features), as (cells, samples)."""
    parts = _split_samples(inputs, *mixing.shape)
    return torch.cat([part.logits(U, W, mixing) for part in parts], 1)


def _split_samples(inputs: Tensor, cells: int, classes: int) -> list[_Part]:
    """Split samples so that the arrays of each part fit into a cache; parts share the arrays."""
    n, T, _ = inputs.shape
    columns = T * cells * classes
    size = min(n, max(1, _PART_NUMBERS[inputs.device.type] // (T * columns)))
    arrays = [inputs.new_empty(T * size * columns) for _ in range(2)]
    return [_Part(samples, arrays, cells, classes) for samples in torch.split(inputs, size)]


class _Part:
    """Logits and gradients on some of the samples.

    Arrays over pairs of tokens are ordered (s, samples, t · C): sums over s then run over long
    rows, and each sample's scores are one small matrix product. No table of products of two tokens'
    features is kept: it would be d² times as large as the scores, and reading it would cost more
    than all else. Two arrays are kept, and each formula overwrites the one before it:

        first: S, then E (after `logits`), then w A (after `gradients`);
        second: G (after `logits`), then ∂L/∂S (after `gradients`).

    With a new array for each formula a step takes 1.02 times as long for one class of heads of DM1,
    and 1.3 times for figure 4's six cells or for 50 heads one by one (`benchmarks.buffers`).
    """

    def __init__(self, inputs: Tensor, arrays: Sequence[Tensor], cells: int, classes: int) -> None:
        n, T, d = inputs.shape
        self.size = n
        columns = T * cells * classes
        self._X = inputs.contiguous()  # (samples, tokens, features)
        self._X_rows = self._X.view(-1, d)  # (samples · t, features)
        self._X_columns = inputs.transpose(0, 1).reshape(-1, d)  # (s · samples, features)
        self._first, self._second = (
            array[: T * n * columns].view(T, n, columns) for array in arrays
        )  # each (s, samples, t · C)

    def logits(self, U: Tensor, W: Tensor, mixing: Tensor) -> Tensor:
        """Return Φ̃ = Σ_c mixing_c Σ_t Ḡ_t, (cells, samples), and keep E, Σ_s E, G and Ḡ."""
        cells, classes, T, d = U.shape
        C, n = cells * classes, self.size

        # S = x_tᵀ W x_s;  E = exp(S − max_s S), and A = E / Σ_s E
        W_columns = W.reshape(C, d, d).transpose(0, 1).reshape(d, -1)  # (d, C · d)
        queries = (self._X_rows @ W_columns).view(n, T * C, d)  # x_tᵀ W, (samples, t · C, d)
        S = self._first.copy_((self._X @ queries.mT).transpose(0, 1))  # (s, samples, t · C)
        self._E = S.sub_(S.amax(0)).exp_()  # in place of S, (s, samples, t · C)
        self._E_sum = self._E.sum(0)  # (samples, t · C)

        # G = ⟨u_t, x_s⟩, and Ḡ = Σ_s A G
        U_rows = U.reshape(C, T, d).transpose(0, 1).reshape(T * C, d)  # (t · C, d)
        torch.mm(self._X_columns, U_rows.T, out=self._second.view(-1, T * C))
        self._G = self._second  # (s, samples, t · C)
        self._G_mean = (self._E * self._G).sum(0) / self._E_sum  # (samples, t · C)

        outputs = self._G_mean.view(n, T, cells, classes).sum(1)  # Φ, (samples, cells, classes)
        return (mixing * outputs).sum(-1).T  # (cells, samples)

    def gradients(self, weights: Tensor, scaled: bool) -> tuple[Tensor, Tensor]:
        """Return the gradients in U and in W of w = ∂L/∂Φ, (cells, samples); E and G are lost."""
        T, n, columns = self._E.shape
        cells, d = len(weights), self._X.shape[-1]
        C = columns // T
        classes = C // cells
        dominant = self._E_sum / 2 < self._E if scaled else None  # A > 1/2, (s, samples, t · C)

        # ∂L/∂u_t = Σ_i w_i Σ_s A x_s
        totals = self._E_sum.view(n, T, cells, classes)  # Σ_s E, (samples, t, cells, classes)
        ratios = weights.T[:, None, :, None] / totals  # w / Σ_s E, in the same shape
        wA = self._E.mul_(ratios.view(n, columns))  # in place of E, (s, samples, t · C)
        grad_U = self._X_columns.T @ wA.view(-1, columns)  # (d, t · C)
        grad_U = grad_U.view(d, T, C).permute(2, 1, 0)  # (C, T, d)

        # ∂L/∂S = w A (G − Ḡ), and ∂L/∂W = Σ_i Σ_t x_t (Σ_s ∂L/∂S x_s)ᵀ
        grad_S = self._G.sub_(self._G_mean).mul_(wA)  # in place of G, (s, samples, t · C)
        if dominant is not None:
            grad_S = _balance(grad_S, dominant)  # (s, samples, t · C)
        pulls = self._X.mT @ grad_S.transpose(0, 1)  # Σ_s ∂L/∂S x_s, (samples, d, t · C)
        pulls = pulls.view(n, d, T, C).permute(0, 2, 3, 1)  # (samples, t, C, d)
        grad_W = self._X_rows.T @ pulls.reshape(n * T, -1)  # (d, C · d)
        grad_W = grad_W.view(d, C, d).transpose(0, 1)  # (C, d, d)

        return grad_U.reshape(cells, classes, T, d), grad_W.reshape(cells, classes, d, d)


def _balance(grad_S: Tensor, dominant: Tensor) -> Tensor:
    """Return ∂L/∂S with that in a dominant score as minus the sum of the others of its row.

    A row's gradients sum to zero. As attention saturates all of them become small, and the dominant
    one, a difference of two numbers that don't, is lost to round-off. A dominant score has more
    than half of its row's softmax. All shapes are (s, samples, t · C).
    """
    others = grad_S.masked_fill(dominant, 0.0).sum(0)  # (samples, t · C)
    return torch.where(dominant, -others, grad_S)


def loss_weights(margins: Tensor, scaled: bool) -> Tensor:
    """Return −∂ log(1 + e^−m) / ∂m, (cells, samples); where `scaled`, divided by the mean loss."""
    if not scaled:
        return torch.sigmoid(-margins)
    return (functional.logsigmoid(-margins) - log_mean_loss(margins)[:, None]).exp()


def log_mean_loss(margins: Tensor) -> Tensor:
    """Return the logarithm of the mean logistic loss, (cells,), which doesn't underflow with it."""
    return log_logistic_loss(margins).logsumexp(-1) - math.log(margins.shape[-1])


_LARGE_MARGIN = 40.0
"""Beyond, log(1 + e^−m) is e^−m to the last bit."""


def log_logistic_loss(margins: Tensor) -> Tensor:
    """Return log log(1 + exp(−margin)), which is −margin where that is large."""
    return torch.where(margins > _LARGE_MARGIN, -margins, functional.softplus(-margins).log())


def attention_scores(inputs: Tensor, W: Tensor) -> Tensor:
    """Return A = softmax(X W Xᵀ), row t over s, as (cells, classes, t, s, samples)."""
    X = inputs.permute(2, 1, 0)  # (d, tokens, samples)
    d, T, n = X.shape
    queries = W.mT @ X.reshape(d, -1)  # Wᵀ x_t, (cells, classes, d, t · samples)
    queries = queries.view(*W.shape[:2], d, T, n)  # (cells, classes, d, t, samples)
    S = queries.new_zeros(*W.shape[:2], T, T, n)  # (cells, classes, t, s, samples)
    for query, key in zip(queries.unbind(2), X, strict=True):  # one feature a after the other
        S.addcmul_(query[..., None, :], key)  # S_ts = Σ_a (Wᵀ x_t)_a x_sa, the sum so far
    return S.softmax(3)
