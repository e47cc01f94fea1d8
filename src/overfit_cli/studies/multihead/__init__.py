"""Deora et al. 2024: optimisation and generalisation of multi-head attention."""

from __future__ import annotations

from overfit_cli.core.cell import Finding, Paper

PAPER = Paper(
    authors="Deora et al.",
    year=2024,
    title="On the Optimization and Generalization of Multi-head Attention",
    url="https://arxiv.org/abs/2310.12680",
    findings=(
        Finding(
            "With η = 1 training to a loss of 0.001 takes 51 steps with 1 head and 264 with 50; "
            "with η = √H it takes 51 and 4 (medians on the mixture). All of it is gained by 5 "
            "heads, after losses of 5 to 23, and less with smaller c of c √H: with c = 0.1 50 "
            "heads take {mixture-sqrt-smaller} times one head's steps.",
            {
                "mixture-constant-slower": "holds",
                "mixture-sqrt-by-five": "holds",
                "mixture-sqrt-smaller": "holds",
            },
        ),
        Finding(
            "Lemma 15 requires {mixture-least-heads-margin} decades more heads than the margin "
            "γ⋆/2 takes, at T = 2, S = 8 and without noise.",
            {"mixture-least-heads-margin": "holds"},
        ),
        Finding(
            "Lemma 2's factor ζ/2 is ζ/4: what is missing of ζ/2 does not fall with the samples "
            "(power {mixture-lemma2}, where the lemma has −1/2), what is missing of ζ/4 does "
            "(power {mixture-lemma2-quarter}).",
            {"mixture-lemma2": "fails", "mixture-lemma2-quarter": "holds"},
        ),
    ),
)
