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
            "At ω = 0.3 gradient descent ends where the authors' solution of the replica equations "
            "says: θ from the teacher less theirs is {semantic-theta}, and m from the positions "
            "less theirs {positional-m}, averaged over α.",
            {"semantic-theta": "holds", "positional-m": "holds"},
        ),
        Finding(
            "With few samples it keeps overlaps that the global minimum has lost: over all ω, θ "
            "from the teacher lies above our solution by {semantic-theta-solved}, and m from the "
            "positions by {positional-m-solved}.",
            {"semantic-theta-solved": "fails", "positional-m-solved": "fails"},
        ),
        Finding(
            "From the positions it meets the published simulations: m less theirs is "
            "{positional-m-published}, averaged over ω and α.",
            {"positional-m-published": "holds"},
        ),
    ),
)
