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
            "For the block-diagonal W_V of (5), Theorem 1's rate is too fast as printed for "
            "several heads: with 2, the share of draws on which some step size keeps its bound is "
            "{theorem1-paper-two}, and with 4 it is smaller; the steps taken or the exact "
            "recursion break it on the others. For the unrestricted W_V of (27) it is right. Lemma "
            "1 and Theorem 2 fail by the same slip; with min_h ‖W_O,h‖² in the place of ‖W_O‖² the "
            "rate is right by algebra.",
            {
                "theorem1-paper-two": "fails",
                "theorem2-paper-two": "fails",
                "lemma1-value-several": "fails",
            },
        ),
        Finding(
            "Where condition (12) is met and W_Q alone is trained, Gaussian attention reaches zero "
            "loss on every draw, as Theorem 3 says, and softmax on all but one, on which its loss "
            "still falls: whether it always gets there is open, and so is whether it takes more "
            "steps, each kernel at its best step size. From weights that miss (12) softmax stops "
            "above its optimum on a share {trapped-softmax} of the draws, as the paper says that "
            "it may.",
            {
                "theorem3-gaussian-zero": "holds",
                "zero-softmax-near": "inconclusive",
                "tangent-slower": "inconclusive",
                "trapped-softmax": "holds",
            },
        ),
        Finding(
            "On generated reviews, which stand in for IMDb, six seeds leave open whether Gaussian "
            "attention learns faster, each kernel at its best step size (mean test loss less "
            "softmax's {text-gaussian-faster}), and ten networks whether its landscape is flatter "
            "(log₂ ratio of Laplacians {landscape-curvature}). What the paper measured on IMDb and "
            "LRA's Pathfinder is not run.",
            {"text-gaussian-faster": "inconclusive", "landscape-curvature": "inconclusive"},
        ),
    ),
)
