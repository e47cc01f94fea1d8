"""Song et al. 2024: gradient descent on attention with a softmax and with a Gaussian kernel."""

from __future__ import annotations

from overfit_cli.core.cell import Finding, Paper

PAPER = Paper(
    authors="Song et al.",
    year=2024,
    title="Unraveling the Gradient Descent Dynamics of Transformers",
    url="https://arxiv.org/abs/2411.07538",
    findings=(
        Finding(
            "Theorem 1's rate is too fast as printed for several heads: with 2, the share of draws "
            "on which some step size keeps its bound is {theorem1-paper-two}, and with 4 it is "
            "smaller; the steps taken or the exact recursion break it on the others. With "
            "min_h ‖W_O,h‖² in the place of ‖W_O‖² the bound holds on every draw.",
            {"theorem1-paper-two": "fails", "theorem1-corrected-four": "holds"},
        ),
        Finding(
            "Trained in W_Q alone, Gaussian attention reaches zero loss where condition (12) is "
            "met, on every draw, as Theorem 3 says; softmax attention stops above its optimum on a "
            "share {trapped-softmax} of the draws, as the paper says that it may.",
            {"theorem3-gaussian-zero": "holds", "trapped-softmax": "holds"},
        ),
        Finding(
            "On generated reviews, which stand in for IMDb, Gaussian attention learns faster "
            "(mean test loss less softmax's {text-gaussian-faster}). Its landscape is the rougher "
            "one there, against figure 4 (log₂ ratio of Laplacians {landscape-curvature}), which "
            "all claims together leave open. What the paper measured on IMDb and LRA's Pathfinder "
            "is not run.",
            {"text-gaussian-faster": "holds", "landscape-curvature": "inconclusive"},
        ),
    ),
)
