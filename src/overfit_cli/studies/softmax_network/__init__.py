"""Two-layer networks with softmax, exponential and ReLU hidden units (Cao et al. 2024)."""

from __future__ import annotations

from typing import Literal

from overfit_cli.core.cell import Finding, Paper

PAPER = Paper(
    authors="Cao et al.",
    year=2024,
    title="Exploring the Frontiers of Softmax: Provable Optimization, Applications in "
    "Diffusion Model, and Beyond",
    url="https://arxiv.org/abs/2405.03251",
    findings=(
        Finding(
            "The largest change of softmax networks' Gram matrix within R that ascent finds is at "
            "most ten times R n, where Lemma 5.1 has e^(10B), 22,000 or more. At σ = 1 and m of "
            "1024 or more it is above R n on all 60 networks with n = 4, up to 2.3 R n, and on "
            "three of 60 with n = 16, up to 1.3 R n. Ascent may miss the largest.",
            {
                "softmax-lemma51-worst": "holds",
                "softmax-drift-constant-softmax-4": "fails",
                "softmax-drift-constant-softmax-16": "fails",
            },
        ),
        Finding(
            "From a symmetric start the Gram matrix of softmax and exp networks changes less in "
            "training than the bounds say, at σ = 1, n = 16 and m up to 8192: the farther of the "
            "two powers of the width is {softmax-drift-symmetric}, not −1. That of ReLU networks "
            "keeps −1 ({softmax-drift-relu-symmetric}).",
            {"softmax-drift-symmetric": "fails", "softmax-drift-relu-symmetric": "holds"},
        ),
        Finding(
            "At the paper's step size, with n = 8 and m = 256, softmax, exp and ReLU networks need "
            "nearly the same T λ², nearly by construction, as that step size contains λ: the least "
            "sure ratio of two of them is {softmax-steps-paper}. T alone differs by a factor of up "
            "to 120.",
            {"softmax-steps-paper": "holds", "softmax-steps-without-lambda": "fails"},
        ),
    ),
)

Activation = Literal["softmax", "exp", "relu"]
Initialisation = Literal["symmetric", "independent"]

NAMES = {"softmax": "softmax", "exp": "exp", "relu": "ReLU"}
"""The networks' names in sentences and legends."""

PIXELS, DIGITS = 64, 1797
"""Pixels of a digit of 8 × 8, and the number of digits."""
