"""Jiang et al. 2024: benign and harmful overfitting of a two-layer Vision Transformer."""

from __future__ import annotations

from overfit_cli.core.cell import Finding, Paper

PAPER = Paper(
    authors="Jiang et al.",
    year=2024,
    title="Unveil Benign Overfitting for Transformer in Vision: Training Dynamics, "
    "Convergence, and Generalization",
    url="https://arxiv.org/abs/2409.19345",
    findings=(
        Finding(
            "Figure 1's boundary between benign and harmful overfitting lies at N·SNR² = "
            "{fig1-contour}, where the paper has 1000, and the share of cells on the side that it "
            "predicts is {fig1-sides}. Of N·SNR^p = C, p is {fig1-exponent} with labels by fair "
            "coins: whether it is 2, as the paper has it, is open. With balanced labels p is "
            "{fig1-balanced-exponent}, above 2. The number 1000 depends on the scale of the last "
            "layer, which the paper leaves open.",
            {
                "fig1-contour": "holds",
                "fig1-sides": "holds",
                "fig1-exponent": "inconclusive",
                "fig1-balanced-exponent": "holds",
            },
        ),
        Finding(
            "Where Condition 4.1 holds but for item 2's bound, sampled exactly in law, training "
            "reaches ε after {theorem-benign-steps} T steps where overfitting is benign, in one "
            "setting, and after {theorem-harmful-steps} T/(25 M) where it is harmful, and T's "
            "powers are tight.",
            {
                "theorem-benign-steps": "holds",
                "theorem-harmful-steps": "holds",
                "theorem-benign-powers": "holds",
                "theorem-harmful-powers": "holds",
            },
        ),
        Finding(
            "Harmful overfitting can classify perfectly: with a small σ_V, which Condition 4.1 "
            "bounds from above only, the test loss is log 2 and the test error "
            "{theorem-harmful-test-error}, where Theorem 4.2 is said to make it large.",
            {"theorem-harmful-test-error": "fails", "harmful-error-law": "holds"},
        ),
    ),
)
