"""What training sees of a seed's draws: inner products only (DESIGN 4.1, the token-space engine).

Gradient descent on equation (1) sees the tokens through their Gram matrix and the weights through
the tokens' projections. At unit scale these are the same for every signal-to-noise ratio, and for
N samples they are the leading part of those for more, so a seed's cells share one `Start`.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

import torch
from torch import Tensor

from overfit_cli.studies.benign_vit.batching import STARTS_KEPT, capacity_for
from overfit_cli.studies.benign_vit.data import Samples, Weights, draw_directly
from overfit_cli.studies.benign_vit.law import draw_in_law
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters


@dataclass(frozen=True)
class Start:
    """A seed's draws at unit scale, for any number of training samples up to `capacity`.

    Tokens are of strength 1, and Gaussian weights of deviation 1; the engine scales both.

    Attributes:
        labels, flip_draws: shape (capacity,).
        gram: inner products of training tokens, (capacity · tokens, capacity · tokens).
        query, key: their initial projections in the rotated head space, (capacity, tokens, width).
        value: their x W_V w_O, (capacity, tokens).
        output_norm_squared: ‖w_O‖².
        test_labels: shape (test samples,).
        test_gram: test against training tokens, (test samples · tokens, capacity · tokens).
        test_query, test_key, test_value: as for training, (test samples, tokens[, width]).
        test_scores: initial q kᵀ of each test sample, (test samples, tokens, tokens).
        signal_gram: e₁ and e₂ against training tokens, (2, capacity · tokens).
        signal_query, signal_key, signal_value: projections of e₁ and e₂, (2[, width]).
    """

    labels: Tensor
    flip_draws: Tensor
    gram: Tensor
    query: Tensor
    key: Tensor
    value: Tensor
    output_norm_squared: float
    test_labels: Tensor
    test_gram: Tensor
    test_query: Tensor
    test_key: Tensor
    test_value: Tensor
    test_scores: Tensor
    signal_gram: Tensor
    signal_query: Tensor
    signal_key: Tensor
    signal_value: Tensor
    _outside: dict[int, Tensor] = field(default_factory=dict)

    def head_width(self, samples: int) -> int:
        """Return how many head coordinates the first `samples` samples reach: 2r, or all."""
        distinct = 2 + samples * (self.query.shape[1] - 1)
        return min(2 * distinct, self.query.shape[2])

    def labels_of(self, cell: BenignVitParameters) -> Tensor:
        """Return the cell's training labels with its flips, (samples,)."""
        labels = self.labels[: cell.n]
        return torch.where(self.flip_draws[: cell.n] < cell.label_flip, -labels, labels)

    def test_scores_outside(self, width: int) -> Tensor:
        """Return the part of the test scores that the first `width` head coordinates lack."""
        if width not in self._outside:
            inside = self.test_query[..., :width] @ self.test_key[..., :width].mT
            self._outside[width] = self.test_scores - inside
        return self._outside[width]


def start_of(parameters: BenignVitParameters, seed: int, device: str) -> Start:
    """Return the start that the cell shares with all cells of its seed and shape."""
    kind = "pytorch" if parameters.initialisation == "pytorch" else "gaussian"
    shared = parameters.model_copy(
        update={
            "n": capacity_for(parameters),
            "initialisation": kind,
            **{name: type(parameters).model_fields[name].default for name in _NOT_IN_START},
        }
    )
    return _start_at_unit_scale(shared, seed, device)


# These scale or steer what a start holds, or come after it; cells that differ in them share one.
_NOT_IN_START = (
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


@functools.lru_cache(maxsize=STARTS_KEPT)
def _start_at_unit_scale(parameters: BenignVitParameters, seed: int, device: str) -> Start:
    draw = draw_in_law if parameters.sampling == "law" else draw_directly
    draws = draw(parameters, seed)
    weights, train, test = draws.weights, draws.train, draws.test
    dtype = getattr(torch, parameters.dtype)

    def stored(tensor: Tensor) -> Tensor:
        return tensor.to(device=device, dtype=dtype).contiguous()

    # In float64 whatever the cell's precision: it is done once a seed.
    x, x_test = torch.from_numpy(train.tokens), torch.from_numpy(test.tokens)
    w_query, w_key = torch.from_numpy(weights.query), torch.from_numpy(weights.key)
    w_value = torch.from_numpy(weights.value) @ torch.from_numpy(weights.output)
    query, key, basis = _rotated(train, weights)
    test_query, test_key = x_test @ w_query, x_test @ w_key
    rows, rows_test = x.flatten(0, 1), x_test.flatten(0, 1)
    return Start(
        labels=stored(torch.from_numpy(train.labels)),
        flip_draws=stored(torch.from_numpy(train.flip_draws)),
        gram=stored(rows @ rows.mT),
        query=stored(query),
        key=stored(key),
        value=stored(x @ w_value),
        output_norm_squared=float((weights.output**2).sum()),
        test_labels=stored(torch.from_numpy(test.labels)),
        test_gram=stored(rows_test @ rows.mT),
        test_query=stored(test_query @ basis),
        test_key=stored(test_key @ basis),
        test_value=stored(x_test @ w_value),
        test_scores=stored(test_query @ test_key.mT),
        signal_gram=stored(rows[:, :2].mT),
        signal_query=stored(w_query[:2] @ basis),
        signal_key=stored(w_key[:2] @ basis),
        signal_value=stored(w_value[:2]),
    )


def _rotated(train: Samples, weights: Weights) -> tuple[Tensor, Tensor, Tensor]:
    """Project the training tokens, in coordinates whose first 2r carry the first N samples.

    The rows of [q; k] are orthonormalised in the order signals, sample 1, sample 2, ...: the r
    distinct tokens of the first N samples then lie in the first 2r coordinates, and stay there,
    because a gradient step adds rows to rows. Returns queries and keys (samples, tokens, width)
    and the basis (d_h, width).
    """
    x = torch.from_numpy(train.tokens)
    w_query, w_key = torch.from_numpy(weights.query), torch.from_numpy(weights.key)
    query, key = x @ w_query, x @ w_key
    signals = torch.cat([w_query[:2], w_key[:2]])
    noise = torch.cat([query[:, 1:], key[:, 1:]], dim=1).flatten(0, 1)
    ordered = torch.cat([signals, noise])
    width = min(len(ordered), ordered.shape[1])
    basis, _ = torch.linalg.qr(ordered[:width].mT)
    return query @ basis, key @ basis, basis
