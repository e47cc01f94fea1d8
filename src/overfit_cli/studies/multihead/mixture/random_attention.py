"""The tangent kernel's margin where attention is random and U is zero (a question of section 7).

With U = 0 a head's output and its gradient in W are zero, and its gradient in u_t is x̄_t, the mean
of tokens that row t of softmax(X W Xᵀ) takes. So B_Φ of Definition 1 may be 1, its least value, and
the products of two samples' features are 1/H Σ_h Σ_t ⟨x̄_t, x̄′_t⟩. Margins are for parameters of
norm √2.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from overfit_cli.studies.multihead.engine import FirstSteps, first_gradient
from overfit_cli.studies.multihead.mixture.theory import (
    largest_margin,
    mixture_margins,
    tangent_margins,
)
from overfit_cli.studies.multihead.parameters import Floats, Problem
from overfit_cli.studies.multihead.theory import derivatives


def random_attention_columns(problem: Problem, W: Tensor) -> dict[str, float]:
    """Return margins of W, (heads, features, features), and after a first phase."""
    assert problem.patterns is not None
    inputs = torch.as_tensor(problem.train.inputs)  # (samples, tokens, features)
    U = torch.as_tensor(first_gradient(problem.first).copy())  # of a head with α = 1, (T, d)
    head = derivatives(inputs, U, inputs.new_zeros(2 * inputs.shape[2:]))
    first, _ = tangent_margins(problem, head, FirstSteps(np.ones(1), np.ones(1)))
    stated = mixture_margins(problem.train, problem.patterns, 0.0)
    return {
        "ntk_margin": math.sqrt(2) * output_margin(problem, W),
        "ntk_margin_first": first,
        "gamma_attention": stated.attention(),
    }


def output_margin(problem: Problem, W: Tensor) -> float:
    """Return the largest margin of gradients in U for U = 0, for parameters of norm 1."""
    X = torch.as_tensor(problem.train.inputs, dtype=torch.float64)  # (samples, tokens, features)
    products = X.new_zeros(2 * (len(X),))  # (samples, samples)
    for of_head in W.double().cpu():
        means = ((X @ of_head @ X.mT).softmax(-1) @ X).flatten(1)  # x̄, (samples, T d)
        products += means @ means.T / len(W)
    signed = problem.train.labels[:, None] * products.numpy() * problem.train.labels
    sizes, directions = np.linalg.eigh(signed)
    # vectors with these products, of as many dimensions as there are samples
    vectors: Floats = directions * np.sqrt(sizes.clip(min=0.0))
    return largest_margin(vectors).margin
