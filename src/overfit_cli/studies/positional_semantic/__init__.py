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
            "At ω = 0.3 gradient descent ends where the replica equations say: from the positions "
            "m less theirs is {positional-m}, and from the teacher the training loss over theirs "
            "is {semantic-train-loss}, averaged over α.",
            {"positional-m": "holds", "semantic-train-loss": "holds"},
        ),
        Finding(
            "With few samples it keeps what the equations' solution has lost: over all ω, θ from "
            "the teacher lies above theirs by {semantic-theta-all}, and m from the positions by "
            "{positional-m-all}.",
            {"semantic-theta-all": "fails", "positional-m-all": "fails"},
        ),
        Finding(
            "From the positions it meets the published simulations: m less theirs is "
            "{positional-m-published}, averaged over ω and α.",
            {"positional-m-published": "holds"},
        ),
    ),
)
