"""Cui et al. 2024: when dot-product attention learns positions, and when meaning."""

from __future__ import annotations

from overfit_cli.core.cell import Finding, Paper

PAPER = Paper(
    authors="Cui et al.",
    year=2024,
    title="A phase transition between positional and semantic learning in a solvable model of "
    "dot-product attention",
    url="https://arxiv.org/abs/2402.03902",
    findings=(
        Finding(
            "The transition is of first order: on six seeds at d = 1000, ω = 0.1 and 0.3, and the "
            "α next to α_c, gradient descent ends in either of two stationary states, between "
            "which θ and m jump. The smallest jump, of m at ω = 0.1, is {first-order}.",
            {"first-order": "holds"},
        ),
        Finding(
            "Gradient descent keeps overlaps that the global minimum, by our solution of the "
            "replica equations, has lost: at d = 1000 and the worst ω and α, θ from the teacher "
            "lies above it by {semantic-theta-solved} of the curve's largest, and m from the "
            "positions by {positional-m-solved}.",
            {"semantic-theta-solved": "fails", "positional-m-solved": "fails"},
        ),
    ),
)
