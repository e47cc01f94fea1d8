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
            "As Table 1 suggests, softmax, exp and ReLU networks need nearly the same T λ² at the "
            "paper's step size, which contains λ: the least sure ratio of two of them is "
            "{softmax-steps-paper}.",
            {"softmax-steps-paper": "holds"},
        ),
        Finding(
            "From a symmetric start the Gram matrix of softmax and exp networks changes less in "
            "training than the bounds say: the farther of the two powers of the width is "
            "{softmax-drift-symmetric}, not −1. That of ReLU networks keeps −1 "
            "({softmax-drift-relu-symmetric}).",
            {"softmax-drift-symmetric": "fails", "softmax-drift-relu-symmetric": "holds"},
        ),
        Finding(
            "Equation (24) is not gradient descent on the loss (23), as the text says; kernel "
            "regression by (24) as printed does track the network (distance "
            "{softmax-equation-24}).",
            {"softmax-gradient-of-23": "fails", "softmax-equation-24": "holds"},
        ),
    ),
)

Activation = Literal["softmax", "exp", "relu"]
Initialisation = Literal["symmetric", "independent"]

NAMES = {"softmax": "softmax", "exp": "exp", "relu": "ReLU"}
"""The networks' names in sentences and legends."""

PIXELS, DIGITS = 64, 1797
"""Pixels of a digit of 8 × 8, and the number of digits."""
