"""Claims that Proposition 1 and Corollary 1 hold at random weights, and along trajectories."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd

from overfit_cli.claims.bounds import OUT_OF_REACH
from overfit_cli.claims.rules import THEOREM_RULE, judge_theorem
from overfit_cli.claims.stated import worst_verdict
from overfit_cli.core.claim import Claim, Measurement, not_run
from overfit_cli.studies.multihead.claims import PAPER_NAME, numbers

BOUNDS = {
    "proposition1": ("model_gradient", "model_hessian"),
    "corollary1-gradient": ("loss_gradient",),
    "corollary1-hessian": ("loss_hessian",),
    "corollary1-concavity": ("loss_concavity",),
}
"""The columns that are at most 1 where each holds."""

_IN_WORDS = {
    "proposition1": "The gradient and the Hessian of a head's output are at most 2 ‖X‖²_{2,∞} "
    "Σ ‖X u_t‖_∞ + √T ‖X‖_{2,∞} and 6d ‖X‖²_{2,∞} ‖X‖²_{1,∞} Σ ‖X u_t‖_∞ + 2 √(Td) ‖X‖²_{2,∞} "
    "‖X‖_{1,∞}",
    "corollary1-gradient": "The norm of the loss's gradient is at most β₁ L̂",
    "corollary1-hessian": "The norm of the loss's Hessian is at most β₂",
    "corollary1-concavity": "The loss's Hessian has no eigenvalue below −β₃ L̂/√H, with β₃ = "
    "2 √(Td) R³ (3 √d R² max ‖U_h‖ + 1)",
}
_SOURCES = {
    "proposition1": "Proposition 1",
    "corollary1-gradient": "Corollary 1 (1)",
    "corollary1-hessian": "Corollary 1 (2)",
    "corollary1-concavity": "Corollary 1 (3)",
}

DRAWS = 1000
"""The number of random draws."""

ROUND_OFF = 1e-9
"""By how much a ratio may lie above 1: a gradient at zero weights can be the bound itself."""


def _judge_bound(
    columns: tuple[str, ...], zero: bool, preset: str
) -> Callable[[pd.DataFrame], Measurement]:
    initial = "zero" if zero else "gaussian"

    def measure(cells: pd.DataFrame) -> Measurement:
        certified = cells[cells["certify"].astype(bool) & (cells["initialisation"] == initial)]
        if certified.empty:
            raise not_run(
                f"It needs cells with certify=true and initialisation={initial}, as in "
                f"`overfit sweep {preset}`."
            )
        if not zero and len(certified) < DRAWS:
            raise not_run(
                f"It takes {DRAWS} cells with random weights, and there are {len(certified)}."
            )
        parts = {name: _at_most_one(certified, name) for name in columns}
        verdict = worst_verdict(part.verdict for part in parts.values())
        decisive = next(part for part in parts.values() if part.verdict == verdict)
        details = {
            f"{name.replace('_', ' ')} over its bound, most": float(certified[name].max())
            for name in columns
        }
        by_far = [
            name.replace("_", " ") for name, part in parts.items() if part.verdict == "holds by far"
        ]
        out_of_reach = f" Out of reach: {', '.join(by_far)}." if by_far else ""
        return replace(
            decisive,
            details=details | {"cells": len(certified)} | dict(decisive.details),
            note=f"{decisive.note}{out_of_reach} At each logged step of each cell.",
        )

    return measure


def _at_most_one(cells: pd.DataFrame, name: str) -> Measurement:
    ratio = numbers(cells, name)
    decades = pd.Series(np.log10(ratio.clip(lower=np.finfo(float).tiny)), ratio.index).fillna(0.0)
    return judge_theorem(
        ratio > 1 + ROUND_OFF, cells["seed"], unknown=ratio.isna(), decades_over=decades
    )


def _claim(name: str, *, zero: bool, preset: str) -> Claim:
    return Claim(
        name=f"mixture-{name}{'' if zero else '-random'}",
        kind="paper",
        source=f"{PAPER_NAME} (TMLR, April 2024), {_SOURCES[name]}",
        statement=f"{_IN_WORDS[name]}, "
        + ("at every step of training." if zero else "at random weights of any size."),
        hypotheses="R is at least 1 and the length of the longest token that was drawn",
        holds_where=f"{THEOREM_RULE}{'' if zero else f'; {DRAWS} cells or more'}; vacuous "
        f"where one of them is out of reach by {OUT_OF_REACH:g} decades",
        measure=_judge_bound(BOUNDS[name], zero, preset),
        figure="certificates",
        preset=preset,
    )


BOUND_CLAIMS = (
    _claim("proposition1", zero=False, preset="heads-random"),
    _claim("corollary1-gradient", zero=False, preset="heads-random"),
    _claim("corollary1-hessian", zero=False, preset="heads-random"),
    _claim("corollary1-concavity", zero=True, preset="heads-fig2"),
)
