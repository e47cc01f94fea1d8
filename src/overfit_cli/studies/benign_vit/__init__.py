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
            "Figure 1's boundary between benign and harmful overfitting is N·SNR^p = C as stated: "
            "p is {fig1-exponent}, where the paper has 2, and N·SNR² is {fig1-contour} on it, "
            "where it has 1000. That number depends on the scale of the last layer, which the "
            "paper leaves open; with balanced labels p is {fig1-balanced-exponent}.",
            {
                "fig1-exponent": "holds",
                "fig1-contour": "holds",
                "fig1-balanced-exponent": "holds",
            },
        ),
        Finding(
            "In the theorems' own regime, sampled exactly in law, training reaches ε after "
            "{theorem-benign-steps} T steps where overfitting is benign and after "
            "{theorem-harmful-steps} T where it is harmful, and T's powers are tight.",
            {
                "theorem-benign-steps": "holds",
                "theorem-harmful-steps": "holds",
                "theorem-benign-powers": "holds",
                "theorem-harmful-powers": "holds",
            },
        ),
        Finding(
            "Figure 1's constant C does not follow the noise as the theorems' condition does: it "
            "goes as the power {constant-balance} of 2 ((σ̃_p/σ_p)² + M − 2).",
            {"constant-balance": "fails"},
        ),
    ),
)
