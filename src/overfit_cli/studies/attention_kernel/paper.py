"""The paper of these studies."""

from __future__ import annotations

from overfit_cli.core.cell import Paper

PAPER = Paper(
    authors="Song et al.",
    year=2024,
    title="Unraveling the Gradient Descent Dynamics of Transformers",
    url="https://arxiv.org/abs/2411.07538",
)
