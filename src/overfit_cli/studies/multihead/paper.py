"""The paper of these studies."""

from overfit_cli.paper import Paper

PAPER = Paper(
    authors="Deora et al.",
    year=2024,
    title="On the Optimization and Generalization of Multi-head Attention",
    url="https://arxiv.org/abs/2310.12680",
)
