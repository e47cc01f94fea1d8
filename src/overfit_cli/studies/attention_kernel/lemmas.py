"""Bounds of Lemmas 2, 3, 7 and 8 (Song et al. 2024, appendix), and how near descent comes to them.

Lemmas 2 and 3 are about softmax, 7 and 8 about the Gaussian of section 4.2.1; other kernels have
none. All ratios are left sides over right sides. All norms are Frobenius norms in the weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from overfit_cli.core.arrays import Floats
from overfit_cli.studies.attention_kernel import engine
from overfit_cli.studies.attention_kernel.data import Problem
from overfit_cli.studies.attention_kernel.engine import Constants, ForwardPass, Projections, Step
from overfit_cli.studies.attention_kernel.parameters import GAUSSIAN, SOFTMAX, Kernel
from overfit_cli.studies.attention_kernel.theory import Norms, norms_of

MOST_SCORES = 4096
"""The most scores of a cell whose gradients are measured sample by sample."""

NEGLIGIBLE = 1e-20
"""A squared move below this share of the starting loss is round-off."""


def _root(N: Norms) -> float:
    """Return n √H."""
    return N.n * math.sqrt(len(N.q))


def softmax_gradient(N: Norms, weights: Floats) -> Floats:
    """Return Lemma 2's Q_i, from W_K, or K_i, from W_Q (36, 37), shape (samples,)."""
    return np.asarray(_root(N) * N.x**3 * N.o * np.linalg.norm(weights) * N.v)


def gaussian_gradient(N: Norms) -> Floats:
    """Return Lemma 7's Q'_i (60), shape (heads, samples)."""
    scores = math.sqrt(2 * N.n / N.d) * N.x**2 * np.hypot(N.q, N.k)[:, None]  # of Lemma 7 (1)
    return np.asarray(scores * N.x * N.o * N.v)


def lipschitz_constants(N: Norms, kernel: Kernel, trained: tuple[str, ...]) -> tuple[float, float]:
    """Return the proofs' constants of outputs and of gradients: Z and G, or Z' and G'.

    Those of Lemma 3 for softmax, in W_Q alone or in all weights (90, 99), and of Lemma 8 for the
    Gaussian, in W_Q alone (equations after 101 and 109); only terms of trained weights count. They
    are nan for other kernels and weights.
    """
    samples, everything = len(N.x), "key" in trained
    reach = _root(N) * N.v * N.x * N.o + N.y  # of ‖MH(X_i) − y_i‖, (samples,)
    # R̄ (95), which bounds every (MH(X_i) − y_i) W_Oᵀ V'ᵀ
    largest = (_root(N) * N.v * N.X * N.o + float(np.linalg.norm(N.y))) * N.o * N.X * N.v

    def change(z: Floats) -> Floats:
        """Return P_i (97, 108), which bounds the change of these, (samples,)."""
        return np.asarray((z * N.v + reach) * N.x * N.o)

    if kernel == SOFTMAX and "query" in trained:
        bounds = [softmax_gradient(N, N.k)]  # Q_i
        if everything:
            bounds += [softmax_gradient(N, N.q), _root(N) * N.x * N.o]
        z = np.sqrt(sum(np.square(each) for each in bounds))  # (samples,)
        both = np.linalg.norm(np.concatenate([N.q, N.k]))
        spread = N.n / math.sqrt(N.d) * N.x**2 * both  # √(φ_i² + ψ_i²) of (33, 34)
        in_query = _root(N) * (change(z) + 2 * largest * spread)  # (samples,)
        in_value = spread * N.x * N.o * reach + _root(N) * N.o * z  # (samples,)
        outputs = math.sqrt(sum(each.max() ** 2 for each in bounds))
        gradients = 2 * in_query.max() + in_value.max() if everything else in_query.max()
    elif kernel == GAUSSIAN and trained == ("query",):
        z = np.linalg.norm(gaussian_gradient(N), axis=0)  # (samples,)
        scale = math.sqrt(N.n) * N.x**2
        scores = scale * float((N.q + N.k).max())
        in_query = largest * scale + scores * (change(z) + largest * scores)
        outputs, gradients = z.max(), in_query.max()
    else:
        return math.nan, math.nan
    return samples * float(outputs), samples * float(gradients)


def gradient_ratios(
    fixed: Constants, state: Projections, out: ForwardPass, problems: Sequence[Problem]
) -> Tensor:
    """Return the largest ratio over samples of Lemma 2 (4, 5), or of 7 (4), (cells,).

    nan where there are too many scores, and for other kernels.
    """
    samples, tokens = state.query.shape[2:4]
    if fixed.kernel not in (SOFTMAX, GAUSSIAN) or samples * tokens**2 > MOST_SCORES:
        return torch.full_like(out.loss, math.nan)
    norms = [norms_of(problem) for problem in problems]
    scores = engine.gradient_in_scores(fixed, state, out)  # ∂f/∂C
    # X_i X_iᵀ, (cells, 1, samples, tokens, tokens)
    gram = (fixed.inputs @ fixed.inputs.mT)[:, None]
    residual = out.residual.norm(dim=-1)[:, None]  # (cells, 1, samples)

    def over(gradient: Tensor, bounds: list[Floats]) -> Tensor:
        """Return ‖∂f(M; X_i)/∂W‖ over a bound times the residual, most of each cell, (cells,).

        The bounds of a cell are of all heads together, (samples,), or of each, (heads, samples).
        """
        by_head = (gradient * (gram @ gradient)).sum((-2, -1))  # (cells, heads, samples)
        together = bounds[0].ndim == 1
        squares = by_head.sum(1, keepdim=True) if together else by_head
        bound = residual * squares.new_tensor(np.stack(bounds)).view(squares.shape)
        ratios: Tensor = (squares.clamp(min=0).sqrt() / bound).where(bound > 0, 0.0)
        return ratios.flatten(1).amax(1)

    in_query = engine.gradient_in_queries(fixed.kernel, scores, state)
    if fixed.kernel == GAUSSIAN:
        return over(in_query, [gaussian_gradient(N) for N in norms])
    in_key = engine.gradient_in_keys(fixed.kernel, scores, state)
    return torch.maximum(
        over(in_query, [softmax_gradient(N, N.k) for N in norms]),
        over(in_key, [softmax_gradient(N, N.q) for N in norms]),
    )


class LipschitzRatios:
    """The largest ‖MH(M') − MH(M)‖ / ‖M' − M‖ of a step M to the next M', and that of gradients.

    nan where nothing moved.
    """

    def __init__(self, fixed: Constants, start: Tensor) -> None:
        self._fixed, self._start = fixed, start
        self.outputs = self.gradients = torch.full_like(start, torch.nan)  # (cells,)

    def add(self, before: Step, after: Step) -> None:
        """Take in a step and the next one, where the weights moved by more than round-off."""
        fixed = self._fixed
        # ‖M′ − M‖ = η ‖∇f(M)‖, (cells,)
        moved = fixed.learning_rate * engine.squared_norm(fixed, before.gradients).sqrt()
        tells = moved.square() > NEGLIGIBLE * self._start
        # the labels cancel
        outputs = (after.out.residual - before.out.residual).flatten(1).norm(dim=1)
        apart = {
            name: gradient.minus(before.gradients[name])
            for name, gradient in after.gradients.items()
        }
        gradients = engine.squared_norm(fixed, apart).sqrt()  # (cells,)
        ratios = ((each / moved).where(tells, torch.nan) for each in (outputs, gradients))
        self.outputs, self.gradients = map(torch.fmax, (self.outputs, self.gradients), ratios)
