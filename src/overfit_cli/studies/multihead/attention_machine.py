"""The attention support vector machine, and how near to its solution the heads' W point.

For a fixed U, gradient descent on W is said to converge in direction to the W of least norm that
separates each row's best token from the others (Tarzanagh et al. 2023; Vasudeva et al. 2024).
"""

from __future__ import annotations

import numpy as np

from overfit_cli.studies.multihead.certificates import Weights
from overfit_cli.studies.multihead.problem import Floats, Samples
from overfit_cli.studies.multihead.theory.margins import LargestMargin, largest_margin

_NONE = 1e-9
"""The margin, in the longest vector's length, that is taken for none."""


def constraints(inputs: Floats, labels: Floats, projection: Floats) -> Floats:
    """Return the vectors whose largest margin is that of the attention support vector machine.

    For each row t of a sample the best token α has the largest y ⟨u_t, x_s⟩. W separates it from
    the others where x_tᵀ W (x_α − x_s) is positive for all s: products of W with these vectors.

    Args:
        inputs: X, shape (samples, tokens, features).
        labels: y, shape (samples,).
        projection: U, fixed, shape (tokens, features).

    Returns:
        x_t (x_α − x_s)ᵀ in a row for each sample, t and s other than α, (vectors, features²).
    """
    scores = labels[:, None, None] * (projection @ inputs.swapaxes(1, 2))  # (n, t, s)
    best = scores.argmax(-1)  # (n, t)
    chosen = np.take_along_axis(inputs, best[..., None], axis=1)  # x_α, (n, t, features)
    differences = chosen[:, :, None] - inputs[:, None]  # (n, t, s, features)
    products = inputs[:, :, None, :, None] * differences[..., None, :]
    others = np.arange(inputs.shape[1]) != best[..., None]  # (n, t, s)
    found: Floats = products[others].reshape(-1, inputs.shape[2] ** 2)
    return found


def solution(samples: Samples, projection: Floats) -> LargestMargin | None:
    """Return the machine's solution for one head; None where no W separates the best tokens.

    Args:
        samples: the training samples.
        projection: U, shape (tokens, features).
    """
    vectors = constraints(samples.inputs, samples.labels, projection)
    found = largest_margin(vectors)
    longest = float(np.linalg.norm(vectors, axis=1).max())
    return found if found.margin > _NONE * longest else None


def columns(samples: Samples, weights: Weights) -> dict[str, float]:
    """Return the mean cosine of the heads' W with their solutions, and the solutions' least margin.

    There is no cosine where a head has no solution, or no W yet.

    Args:
        samples: the training samples.
        weights: one cell's heads.
    """
    cosines, margins = [], []
    for projection, attention in zip(weights.projections, weights.attentions, strict=True):
        found = solution(samples, projection.cpu().double().numpy())
        own = attention.cpu().double().numpy().ravel()
        length = float(np.linalg.norm(own))
        margins.append(found.margin if found else 0.0)
        cosines.append(float(found.direction @ own) / length if found and length else np.nan)
    share = weights.counts.cpu().double().numpy()
    return {
        "machine_cosine": float(np.average(cosines, weights=share)),
        "machine_margin": min(margins),
    }
