"""Deora et al. 2024: optimisation and generalisation of multi-head attention."""

from __future__ import annotations

from overfit_cli.core.cell import Paper

PAPER = Paper(
    authors="Deora et al.",
    year=2024,
    title="On the Optimization and Generalization of Multi-head Attention",
    url="https://arxiv.org/abs/2310.12680",
)
