"""Song et al. 2024: gradient descent on attention with a softmax and with a Gaussian kernel."""

from __future__ import annotations

from overfit_cli.core.cell import Paper

PAPER = Paper(
    authors="Song et al.",
    year=2024,
    title="Unraveling the Gradient Descent Dynamics of Transformers",
    url="https://arxiv.org/abs/2411.07538",
)
