"""Lu et al. 2025: linear attention that learns in context, solved in closed form."""

from __future__ import annotations

from overfit_cli.core.cell import Paper

PAPER = Paper(
    authors="Lu et al.",
    year=2025,
    title="Asymptotic theory of in-context learning by linear attention",
    url="https://arxiv.org/abs/2405.11751",
)
