"""Jiang et al. 2024: benign and harmful overfitting of a two-layer Vision Transformer."""

from __future__ import annotations

from overfit_cli.core.cell import Paper

PAPER = Paper(
    authors="Jiang et al.",
    year=2024,
    title="Unveil Benign Overfitting for Transformer in Vision: Training Dynamics, "
    "Convergence, and Generalization",
    url="https://arxiv.org/abs/2409.19345",
)
