"""The paper of these studies."""

from __future__ import annotations

from overfit_cli.core.study import Paper

PAPER = Paper(
    authors="Cao et al.",
    year=2024,
    title="Exploring the Frontiers of Softmax: Provable Optimization, Applications in "
    "Diffusion Model, and Beyond",
    url="https://arxiv.org/abs/2405.03251",
)
