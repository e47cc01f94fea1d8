"""What is kept of cells while they train: running counts, and the steps that are logged."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from overfit_cli.studies.attention_kernel.regression import engine
from overfit_cli.studies.attention_kernel.regression.engine import Pass, Space, State

DIVERGED = 1e12
"""A cell whose loss is more than this times its start has diverged."""

ROUND_OFF = 1e-20
"""Shares of the starting loss below this are round-off: bounds and ratios aren't checked there."""

SLACK = 1e-9
"""A loss is above a bound only if it is so by this share."""

EVERY, RATIO = 10, 1.08


def logged_steps(steps: int) -> list[int]:
    """Return the steps that are logged: the first ten, then ever fewer, by ratio, and the last."""
    found = list(range(min(EVERY, steps) + 1))
    while found[-1] < steps:
        found.append(min(max(found[-1] + 1, round(found[-1] * RATIO)), steps))
    return found


@dataclass(frozen=True)
class Bounds:
    """The linear rates that a batch's losses are held against, each of shape (cells,).

    Attributes:
        paper, corrected: rates; nan where there is none to hold against.
        learning_rate: the step sizes.
    """

    paper: Tensor
    corrected: Tensor
    learning_rate: Tensor

    def at(self, step: int) -> tuple[Tensor, Tensor]:
        """Return (1 − ηα)^step for both rates: 0 where ηα is above 1, nan where α is."""
        return self._of(self.paper, step), self._of(self.corrected, step)

    def _of(self, rate: Tensor, step: int) -> Tensor:
        bound = (1 - self.learning_rate * rate).clamp(min=0) ** step
        return torch.where(rate.isnan(), torch.nan, bound)  # nan to the power of 0 is 1


class Running:
    """Counts over all steps of a batch, kept as tensors (cells,) so that nothing waits for a GPU.

    Attributes:
        start: the loss at step 0.
        millionth: the first step at 1e-6 of it; −1 before.
        diverged: the first step of a diverged loss; −1 before.
        violations_paper, violations_corrected: steps above each bound.
    """

    def __init__(self, bounds: Bounds, start: Pass) -> None:
        count = torch.zeros_like(start.loss, dtype=torch.int64)
        self.start = start.loss
        self.millionth = count - 1
        self.diverged = count - 1
        self.violations_paper = count.clone()
        self.violations_corrected = count.clone()
        self._bounds = bounds

    def add(self, step: int, now: Pass) -> None:
        """Take in a step."""
        share = now.loss / self.start
        gone = ~torch.isfinite(now.loss) | (share > DIVERGED)
        self.diverged = torch.where(gone & (self.diverged < 0), step, self.diverged)
        self.millionth = torch.where((share <= 1e-6) & (self.millionth < 0), step, self.millionth)
        paper, corrected = self._bounds.at(step)
        self.violations_paper += _above(share, paper)
        self.violations_corrected += _above(share, corrected)


def _above(share: Tensor, bound: Tensor) -> Tensor:
    return (share > bound * (1 + SLACK)) & (bound > ROUND_OFF)


def squared_gradients(space: Space, state: State, now: Pass) -> dict[str, Tensor]:
    """Return ‖∇f‖² in W_Q, W_K and W_V, each (cells,), under `query`, `key` and `value`."""
    scores = engine.gradient_in_scores(space, state, now)
    in_query = engine.gradient_in_queries(space.kernel, scores, state)
    in_key = engine.gradient_in_keys(space.kernel, scores, state)
    in_value = engine.gradient_in_values(now)[..., None]
    squared = space.output_squared[..., None, None, None]
    return {
        "query": _squared(space, in_query),
        "key": _squared(space, in_key),
        "value": _squared(space, squared.sqrt() * in_value),
    }


def _squared(space: Space, gradient: Tensor) -> Tensor:
    """‖Xᵀ g‖², summed over heads: the squared norm in the weights of a gradient in projections."""
    return (gradient * engine.spread(space, gradient)).sum((1, 2, 3, 4)).clamp(min=0)


def smallest_attention(now: Pass) -> Tensor:
    """Return the smallest entry of S, (cells,)."""
    return now.attention.amin((1, 2, 3, 4))


def polyak_lojasiewicz_bound(
    space: Space, state: State, now: Pass, delta: Tensor, lambda_b: Tensor
) -> Tensor:
    """Return a lower bound of ‖∇f‖² / 2f here, (cells,), from the singular values here.

    With W_Q alone, δ² (min S)² (min|V′W_O|)² for a kernel without normalisation (lemma 7 (3)),
    and 0 for one with; with W_V, min_h ‖W_O,h‖² λ_B².
    """
    if space.trained != "query":
        return space.output_squared.amin(1) * lambda_b.square()
    if space.kernel.normalised:
        return torch.zeros_like(now.loss)
    smallest = state.value.abs().amin((1, 2, 3)) * smallest_attention(now)
    return (delta * smallest).square()
