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
            "At ω = 0.3 gradient descent from the teacher does not end where the authors' solution "
            "of the replica equations says: below α = 0.5 its overlap θ is larger, at the worst α "
            "by {semantic-theta} of the curve's largest.",
            {"semantic-theta": "fails", "semantic-theta-above": "holds"},
        ),
        Finding(
            "It ends near another solution of ours, for which we assume that each sample keeps the "
            "side of its start. Of the curve's largest, θ from the teacher differs from it by "
            "{semantic-theta-sided} at the worst ω and α, and m from the positions by "
            "{positional-m-sided}.",
            {"semantic-theta-sided": "holds", "positional-m-sided": "holds"},
        ),
        Finding(
            "With few samples it keeps overlaps that the global minimum has lost: at the worst ω "
            "and α, θ from the teacher lies above our solution by {semantic-theta-solved} of the "
            "curve's largest, and m from the positions by {positional-m-solved}.",
            {"semantic-theta-solved": "fails", "positional-m-solved": "fails"},
        ),
    ),
)
