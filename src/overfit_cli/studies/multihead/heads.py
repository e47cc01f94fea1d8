"""Weights of heads, kept once for each class of heads that are alike.

    Φ̃(X) = H^(−1/2) Σ_h ⟨U_h, softmax(X W_h Xᵀ) X⟩    (Deora et al. 2024, equation 2)

Heads that begin alike get the same gradient at every step, so they stay alike under any optimiser
that treats them alike. From zero all H heads are one class. After the first phase of section 5.1,
whose steps are ±1, they are two. A class counts as often as it has heads; nothing else changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from overfit_cli.core.training import named_rng
from overfit_cli.studies.multihead.parameters import MultiheadParameters
from overfit_cli.studies.multihead.problem import Floats, Samples

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
