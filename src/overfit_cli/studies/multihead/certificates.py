"""Certificates along a trajectory: what is measured over what the paper proves of it, at most."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from overfit_cli.studies.multihead.curvature import Derivatives, derivatives, loss_curvature
from overfit_cli.studies.multihead.heads import Heads, full_matrices
from overfit_cli.studies.multihead.theory.bounds import (
    THEOREM_1,
    THEOREM_2,
    Hypotheses,
    Sizes,
    gradient_bound,
    hessian_bound,
    largest_norm,
)

LOOKED_AT = 32
"""The training samples on which Proposition 1 is held to Hessians, the first ones."""

RATIOS = (
    "model_gradient",
    "model_hessian",
    "loss_gradient",
    "loss_hessian",
    "loss_concavity",
)
"""What is measured over its bound: Proposition 1's two, and Corollary 1's three."""


def radius(inputs: Tensor) -> float:
    """Return R of Assumption 1: the length of the longest token, and at least 1."""
    return max(1.0, float(inputs.norm(dim=-1).max()))


@dataclass(frozen=True)
class Weights:
    """One cell's heads, a class at a time, at a step.

    Attributes:
        projections: U, shape (classes, tokens, features).
        attentions: W, shape (classes, features, features).
        counts: how many heads each class has, shape (classes,).
    """

    projections: Tensor
    attentions: Tensor
    counts: Tensor


def of_cell(heads: Heads, place: int) -> Weights:
    """Return one cell's classes that have heads."""
    there = heads.counts[place] > 0
    projection, attention = full_matrices(heads.weights)
    return Weights(projection[place][there], attention[place][there], heads.counts[place][there])


def certificates(weights: Weights, inputs: Tensor, labels: Tensor) -> dict[str, float]:
    """Return what is measured over its bound, by the names of `RATIOS`; above 1 breaks one.

    Args:
        weights: of one cell.
        inputs: X, shape (samples, tokens, features).
        labels: y, shape (samples,).
    """
    each = [
        derivatives(inputs, projection, attention)
        for projection, attention in zip(weights.projections, weights.attentions, strict=True)
    ]
    found = [
        _of_model(one, projection, inputs)
        for one, projection in zip(each, weights.projections, strict=True)
    ]
    _, tokens, features = inputs.shape
    sizes = Sizes(tokens, features, radius(inputs), float(weights.counts.sum()))
    norm = float(largest_norm(weights.projections, weights.counts))
    curvature = loss_curvature(each, weights.counts, labels)
    largest = max(curvature.largest, -curvature.smallest)
    return {
        "model_gradient": max(one[0] for one in found),
        "model_hessian": max(one[1] for one in found),
        "loss_gradient": curvature.gradient / sizes.beta_1(norm),
        "loss_hessian": math.exp(curvature.log_loss) * largest / sizes.beta_2(norm),
        "loss_concavity": -curvature.smallest * math.sqrt(sizes.heads) / sizes.beta_3(norm),
    }


def _of_model(one: Derivatives, projection: Tensor, inputs: Tensor) -> tuple[float, float]:
    """Proposition 1's two ratios, at the worst sample."""
    gradients = one.gradients.norm(dim=1) / gradient_bound(inputs, projection)
    some = one.first(LOOKED_AT)
    norms = torch.linalg.eigvalsh(some.hessians()).abs().amax(1)
    hessians = norms / hessian_bound(inputs[:LOOKED_AT], projection)
    return float(gradients.max()), float(hessians.max())


def hypotheses(
    start: Weights, end: Weights, inputs: Tensor, losses: tuple[float, float], steps: int
) -> Hypotheses:
    """Return what Theorems 1 and 2 require of a cell, with the last step as their target θ.

    Args:
        start, end: the heads at both ends.
        inputs: X, shape (samples, tokens, features).
        losses: the training loss at both ends.
        steps: K.
    """
    _, tokens, features = inputs.shape
    before, after = (
        torch.cat([one.projections.flatten(1), one.attentions.flatten(1)], 1)
        for one in (start, end)
    )  # (classes, parameters)
    squares = (after - before).square().sum(1)
    return Hypotheses(
        Sizes(tokens, features, radius(inputs), float(end.counts.sum())),
        distance=float((end.counts * squares).sum().sqrt()),
        largest=float(after.norm(dim=1).max()),
        target_loss=losses[1],
        start_loss=losses[0],
        steps=steps,
    )


def theorem_columns(found: Hypotheses, step_size: float, samples: int) -> dict[str, float]:
    """Return Theorem 1's and 2's bounds, and the decimal logarithms of what they require.

    Args:
        found: what they depend on.
        step_size: η.
        samples: n.
    """
    if not 0 < found.distance < math.inf:
        return {}
    return {
        "theorem1_bound": found.training_bound(step_size),
        "theorem1_heads": found.log10_heads_needed(THEOREM_1),
        "theorem2_bound": found.generalisation_bound(step_size, samples),
        "theorem2_heads": found.log10_heads_needed(THEOREM_2),
        "theorem_step_size": found.log10_largest_step_size(),
    }
