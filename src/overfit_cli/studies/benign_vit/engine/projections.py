"""Token projections: all that training sees of a seed's realisation.

Gradient descent on equation (1) sees the tokens through their inner products and the weights
through the tokens' queries, keys and values. At unit scale these are the same for every
signal-to-noise ratio, and for N samples they are the leading part of those for more, so a seed's
cells share one `TokenProjections`.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

import torch
from torch import Tensor

from overfit_cli.studies.benign_vit.data import draw
from overfit_cli.studies.benign_vit.parameters import REALISATIONS_KEPT, BenignVitParameters


@dataclass(frozen=True)
class Projected:
    """Tokens of one kind at unit scale: the training tokens, the test tokens or the two signals.

    Attributes:
        gram: inner products with the training tokens, (rows, capacity · tokens).
        query, key: initial projections in the rotated head space, (rows, width).
        value: initial x W_V w_O, (rows,).
    """

    gram: Tensor
    query: Tensor
    key: Tensor
    value: Tensor


@dataclass(frozen=True)
class TokenProjections:
    """A seed's tokens and weights, for any number of training samples up to `capacity`.

    Tokens have strength 1, and Gaussian weights deviation 1; the engine scales both.

    Attributes:
        labels, flip_draws: shape (capacity,).
        test_labels: shape (test samples,).
        train, test, signals: the tokens; rows are capacity · tokens, test samples · tokens, and 2.
        test_scores: initial q kᵀ of each test sample, (test samples, tokens, tokens).
        output_norm_squared: ‖w_O‖².
    """

    labels: Tensor
    flip_draws: Tensor
    test_labels: Tensor
    train: Projected
    test: Projected
    signals: Projected
    test_scores: Tensor
    output_norm_squared: float
    _outside: dict[int, Tensor] = field(default_factory=dict)

    def head_width(self, samples: int) -> int:
        """Return how many head coordinates the first `samples` samples reach: 2r, or all."""
        tokens = len(self.train.value) // len(self.labels)
        distinct = 2 + samples * (tokens - 1)
        return min(2 * distinct, self.train.query.shape[1])

    def labels_of(self, cell: BenignVitParameters) -> Tensor:
        """Return the cell's training labels with its flips, (samples,)."""
        labels = self.labels[: cell.n]
        return torch.where(self.flip_draws[: cell.n] < cell.label_flip, -labels, labels)

    def test_scores_outside(self, width: int) -> Tensor:
        """Return the part of the test scores that the first `width` head coordinates lack."""
        if width not in self._outside:
            samples, tokens, _ = self.test_scores.shape
            query, key = (
                part[:, :width].view(samples, tokens, -1)
                for part in (self.test.query, self.test.key)
            )
            self._outside[width] = self.test_scores - query @ key.mT
        return self._outside[width]


def projections_of(parameters: BenignVitParameters, seed: int, device: str) -> TokenProjections:
    """Return the projections that the cell shares with all cells of its seed and shape."""
    kind = "pytorch" if parameters.initialisation == "pytorch" else "gaussian"
    fields = type(parameters).model_fields
    defaults = {name: fields[name].default for name in _NOT_PROJECTED}
    shared = {"n": parameters.capacity, "initialisation": kind, **defaults}
    return _at_unit_scale(parameters.model_copy(update=shared), seed, device)


_NOT_PROJECTED = (
    "snr",
    "sigma_p",
    "sigma_p_tilde",
    "noise_per",
    "sigma_h",
    "sigma_v",
    "output_scale",
    "learning_rate",
    "epsilon",
    "label_flip",
    "max_steps",
    "leap",
)
"""What scales or steers projections, or comes after them: cells that differ in it share them."""


@functools.lru_cache(maxsize=REALISATIONS_KEPT)
def _at_unit_scale(parameters: BenignVitParameters, seed: int, device: str) -> TokenProjections:
    # In float64 whatever the cell's precision: it is done once a seed.
    drawn = draw(parameters, seed)
    weights, train, test = drawn.weights, drawn.train, drawn.test
    x, x_test = torch.from_numpy(train.tokens), torch.from_numpy(test.tokens)  # (.., tokens, d)
    x_signal = torch.eye(2, x.shape[2], dtype=x.dtype)  # e₁ and e₂
    w_query, w_key = torch.from_numpy(weights.query), torch.from_numpy(weights.key)
    w_value = torch.from_numpy(weights.value) @ torch.from_numpy(weights.output)  # (d,)
    train_heads, test_heads = ((one @ w_query, one @ w_key) for one in (x, x_test))
    basis = _head_basis((w_query[:2], w_key[:2]), train_heads)
    rows = x.flatten(0, 1)  # (capacity · tokens, d)
    dtype = getattr(torch, parameters.dtype)

    def stored(tensor: Tensor) -> Tensor:
        return tensor.to(device=device, dtype=dtype).contiguous()

    def projected(tokens: Tensor, heads: tuple[Tensor, Tensor]) -> Projected:
        query, key = (stored((head @ basis).view(len(tokens), -1)) for head in heads)
        return Projected(stored(tokens @ rows.mT), query, key, stored(tokens @ w_value))

    return TokenProjections(
        labels=stored(torch.from_numpy(train.labels)),
        flip_draws=stored(torch.from_numpy(train.flip_draws)),
        test_labels=stored(torch.from_numpy(test.labels)),
        train=projected(rows, train_heads),
        test=projected(x_test.flatten(0, 1), test_heads),
        signals=projected(x_signal, (w_query[:2], w_key[:2])),
        test_scores=stored(test_heads[0] @ test_heads[1].mT),
        output_norm_squared=float((weights.output**2).sum()),
    )


def _head_basis(signals: tuple[Tensor, Tensor], heads: tuple[Tensor, Tensor]) -> Tensor:
    """Return an orthonormal basis of the head space whose first 2r carry the first N samples.

    The rows of [q; k] are orthonormalised in the order signals, sample 1, sample 2, ...: the r
    distinct tokens of the first N samples then lie in the first 2r coordinates, and stay there,
    because a gradient step adds rows to rows.

    Args:
        signals: queries and keys of e₁ and e₂, (2, d_h) each.
        heads: queries and keys of the training tokens, (samples, tokens, d_h) each.

    Returns:
        Shape (d_h, width).
    """
    query, key = heads
    noise = torch.cat([query[:, 1:], key[:, 1:]], dim=1).flatten(0, 1)
    ordered = torch.cat([*signals, noise])  # (2r, d_h)
    basis: Tensor = torch.linalg.qr(ordered[: min(ordered.shape)].mT).Q
    return basis
