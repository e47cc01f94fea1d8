"""Tokens, labels and initial weights of a cell (Song et al. 2024, section 4), and the example.

The theorems leave the draws open. Here X has entries N(0, 1/D), W_Q and W_K N(0, σ_W²), W_O
N(0, 1/d), and W_V is the smallest for which every token's value X W_V W_O is uniform in [1, 2]:
then the hull of the values, where softmax attention must stay, is known. With fewer features than
tokens (D < N n), which only W_V's training takes, values are as near to that as X can bring them.
A balance c multiplies W_O and divides W_V, which leaves the values as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from overfit_cli.core.arrays import Floats
from overfit_cli.core.training import named_rng
from overfit_cli.studies.attention_kernel.parameters import KERNELS, KernelRegressionParameters

VALUES = (1.0, 2.0)
"""Between which numbers a token's value is uniform, for each head."""

OUTSIDE = (0.3, 0.9)
"""Between which numbers a label's size is uniform, for each head, where it lies below the hull."""

INSIDE = (0.2, 0.8)
"""Between which shares of the way across its sample's hull a label is uniform, inside the hull."""


@dataclass(frozen=True)
class Problem:
    """A regression problem and the weights that gradient descent starts from."""

    inputs: Floats  # X, (samples, tokens, features)
    labels: Floats  # y, one a token, (samples, tokens)
    # query, key: W_Q and W_K, (heads, features, width)
    query: Floats
    key: Floats
    value: Floats  # W_V, (heads, features, width)
    output: Floats  # W_O, (heads, width); it isn't trained


def draw_problem(parameters: KernelRegressionParameters, seed: int) -> Problem:
    """Draw a seed's problem. Kernels, step sizes and targets of one seed share its draws."""
    problem = (_example if parameters.instance == "example" else _random)(parameters, seed)
    c = parameters.balance
    return replace(problem, value=problem.value / c, output=c * problem.output)


def _random(parameters: KernelRegressionParameters, seed: int) -> Problem:
    n, tokens, d, heads = parameters.n, parameters.tokens, parameters.d, parameters.heads
    # X, (samples, tokens, features)
    inputs = named_rng(seed, "train", "tokens").standard_normal((n, tokens, d)) / np.sqrt(d)
    # W_O, (heads, width)
    output = named_rng(seed, "init", "output").standard_normal((heads, parameters.d_h))
    output /= np.sqrt(parameters.d_h)
    # of tokens, (heads, samples · tokens)
    values = named_rng(seed, "init", "values").uniform(*VALUES, (heads, n * tokens))
    # W_V W_O, (heads, features)
    readouts = np.linalg.lstsq(inputs.reshape(-1, d), values.T, rcond=None)[0].T
    lengths = np.square(output).sum(-1)[:, None, None]  # ‖W_O,h‖², (heads, 1, 1)
    problem = Problem(
        inputs=inputs,
        labels=np.zeros((n, tokens)),
        **_query_and_key(parameters, seed),
        value=readouts[:, :, None] * output[:, None, :] / lengths,
        output=output,
    )
    return replace(problem, labels=_labels(parameters, problem, inputs @ readouts.T, seed))


def token_values(problem: Problem) -> Floats:
    """Return X W_V W_O, each token's value in each head, (samples, heads, tokens)."""
    values: Floats = np.einsum("ntd,hdw,hw->nht", problem.inputs, problem.value, problem.output)
    return values


def outputs(parameters: KernelRegressionParameters, problem: Problem) -> Floats:
    """Return MH(X) at a problem's weights, (samples, tokens)."""
    kernel = KERNELS[parameters.kernel]
    tokens = problem.inputs[:, None]  # (samples, 1, tokens, features)
    query, key = tokens @ problem.query, tokens @ problem.key  # (samples, heads, tokens, width)
    scores = query @ key.swapaxes(-1, -2)  # q_k·k_j, (samples, heads, tokens, tokens)
    if kernel.distance is not None:
        lengths = np.square(query).sum(-1)[..., :, None] + np.square(key).sum(-1)[..., None, :]
        scores = kernel.distance * (2 * scores - lengths)
    S = np.exp(scores / np.sqrt(query.shape[-1]))  # (samples, heads, tokens, tokens)
    if kernel.normalised:
        S /= S.sum(-1, keepdims=True)
    S *= kernel.scale(parameters.tokens)
    total: Floats = np.einsum("nhkj,nhj->nk", S, token_values(problem))
    return total


def _labels(
    parameters: KernelRegressionParameters, problem: Problem, values: Floats, seed: int
) -> Floats:
    """Draw the labels, (samples, tokens); `values` has shape (samples, tokens, heads)."""
    shape = (parameters.n, parameters.tokens)
    random = named_rng(seed, "train", "labels")
    if parameters.target == "near":
        direction = random.standard_normal(shape)
        away: Floats = parameters.distance * direction / np.linalg.norm(direction)
        return outputs(parameters, problem) + away
    draws = random.random(shape)  # (samples, tokens)
    if parameters.target == "inside":
        low, high = values.min(1).sum(-1), values.max(1).sum(-1)  # the hull, each (samples,)
        shares = INSIDE[0] + (INSIDE[1] - INSIDE[0]) * draws
        inside: Floats = low[:, None] + shares * (high - low)[:, None]
        return inside
    sizes: Floats = parameters.heads * (OUTSIDE[0] + (OUTSIDE[1] - OUTSIDE[0]) * draws)
    if parameters.target == "below":
        return sizes
    signs: Floats = named_rng(seed, "train", "signs").choice([-1.0, 1.0], shape)
    return signs * sizes


def _query_and_key(parameters: KernelRegressionParameters, seed: int) -> dict[str, Floats]:
    shape = (parameters.heads, parameters.d, parameters.d_h)
    if parameters.weights == "identity":
        # (heads, features, width)
        identity = np.broadcast_to(parameters.sigma_w * np.eye(parameters.d, parameters.d_h), shape)
        return {"query": identity, "key": identity}
    return {
        name: parameters.sigma_w * named_rng(seed, "init", name).standard_normal(shape)
        for name in ("query", "key")
    }


def _example(parameters: KernelRegressionParameters, seed: int) -> Problem:
    """Section 4.2.2's example with a = 1: both token values are 3, or 3 ± ε; both labels are y.

    Where ε is 0 softmax attention gives 3 whatever W_Q and W_K, so the loss is (3 − y)² and its
    gradient in them is zero. The paper leaves y, W_Q and W_K open.
    """
    gap = parameters.value_gap
    return Problem(
        inputs=np.eye(2)[None],
        labels=np.full((1, 2), parameters.label),
        **_query_and_key(parameters, seed),
        value=np.array([[[2.0 + gap, 1.0], [1.0, 2.0 - gap]]]),
        output=np.ones((1, 2)),
    )
