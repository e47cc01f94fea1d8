"""Whether Proposition 1 and Corollary 1 hold along trajectories, and what Theorems 1 and 2 say."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import finite_numbers, require_done, require_trained
from overfit_cli.claims.rules import THEOREM_RULE, check_requirements, judge_theorem
from overfit_cli.core.claim import Claim, Measurement, not_run
from overfit_cli.studies.multihead.parameters import STEP_RULES

BOUNDS = {
    "proposition1": ("model_gradient", "model_hessian"),
    "corollary1": ("loss_gradient", "loss_hessian", "loss_concavity"),
}
"""The columns that are at most 1 where each holds."""

_IN_WORDS = {
    "proposition1": "The gradient and the Hessian of a head's output are as small as stated",
    "corollary1": "The loss's gradient, Hessian and concavity are as small as stated",
}
_SOURCES = {"proposition1": "Proposition 1", "corollary1": "Corollary 1"}

DRAWS = 1000
"""How many random draws it takes."""

ROUND_OFF = 1e-9
"""By how much a ratio may lie above 1: a gradient at zero weights can be the bound itself."""


def bound_claims(prefix: str, trajectories: str, at_random: str) -> tuple[Claim, ...]:
    """Return the claims that bounds hold along trajectories, and at random weights.

    Args:
        prefix: how their names begin.
        trajectories: a preset whose trajectories are held to them.
        at_random: one whose random weights are.
    """
    return tuple(
        Claim(
            name=f"{prefix}-{name}{'' if zero else '-random'}",
            source=f"Deora et al. 2024, {_SOURCES[name]}",
            statement=f"{_IN_WORDS[name]}, "
            + ("at every step of training." if zero else "at random weights of any size."),
            holds_where=f"{THEOREM_RULE}{'' if zero else f'; {DRAWS} cells or more'}",
            measure=_judge_bound(BOUNDS[name], zero, preset),
            figure="certificates",
            preset=preset,
        )
        for name in BOUNDS
        for zero, preset in ((True, trajectories), (False, at_random))
    )


def _judge_bound(
    columns: tuple[str, ...], zero: bool, preset: str
) -> Callable[[pd.DataFrame], Measurement]:
    initial = "zero" if zero else "gaussian"

    def measure(cells: pd.DataFrame) -> Measurement:
        certified = cells["certify"].astype(bool) & (cells["initialisation"] == initial)
        ended = require_done(require_trained(cells[certified]), 1.0)
        if ended.empty:
            raise not_run(
                f"It needs cells with certify=true and initialisation={initial}, as in "
                f"`overfit sweep {preset}`."
            )
        if not zero and len(ended) < DRAWS:
            raise not_run(
                f"It takes {DRAWS} cells with random weights, and there are {len(ended)}."
            )
        ratios = pd.DataFrame({name: finite_numbers(ended, name) for name in columns})
        return judge_theorem(
            (ratios > 1 + ROUND_OFF).any(axis=1),
            ended["seed"],
            details={
                **{
                    f"{name.replace('_', ' ')} over its bound, most": float(ratios[name].max())
                    for name in columns
                },
                "cells": len(ended),
            },
            note="At each logged step of each cell.",
        )

    return measure


def theorem_claims(prefix: str, preset: str) -> tuple[Claim, ...]:
    """Return the claims of Theorems 1 and 2, with the last step as their target θ."""
    training = (
        "1",
        "The mean training loss over K steps of gradient descent is at most 2 L(θ) + 5 ‖θ − θ₀‖² / "
        "(4 η K), with θ the last step.",
        "mean_train_loss",
    )
    testing = (
        "2",
        "The test loss is above the training loss by at most 4/n (2 K L(θ) + 9 ‖θ − θ₀‖² / (4 η)), "
        "with θ the last step.",
        "test_loss",
    )
    return tuple(
        Claim(
            name=f"{prefix}-theorem{number}",
            source=f"Deora et al. 2024, Theorem {number}",
            statement=statement,
            holds_where=f"H and η meet the theorem's requirements, and {THEOREM_RULE}",
            measure=_theorem(number, column, preset),
            figure="certificates",
            preset=preset,
        )
        for number, statement, column in (training, testing)
    )


def _theorem(number: str, column: str, preset: str) -> Callable[[pd.DataFrame], Measurement]:
    bound_column, heads_column = f"theorem{number}_bound", f"theorem{number}_heads"

    def measure(cells: pd.DataFrame) -> Measurement:
        from_zero = (cells["initialisation"] == "zero") & (cells["trained"] == "all")
        of_descent = cells[from_zero & (cells["optimiser"] == "gd")]
        fitted = require_done(require_trained(of_descent), 1.0)
        if fitted.empty:
            raise not_run(
                f"It needs cells of gradient descent from zero, as in `overfit sweep {preset}`."
            )
        side = finite_numbers(fitted, column)
        if column == "test_loss":
            side = side - finite_numbers(fitted, "train_loss")
        bound = finite_numbers(fitted, bound_column)
        lacking = finite_numbers(fitted, heads_column) - np.log10(fitted["heads"].astype(float))
        too_large = log10_step_sizes(fitted) - finite_numbers(fitted, "theorem_step_size")
        measured = judge_theorem(
            side > bound,
            fitted["seed"],
            details={"measured over the bound, most": float((side / bound).max())},
        )
        return check_requirements(
            measured,
            {
                "decades of heads missing": lacking,
                "decades by which steps are too large": too_large,
            },
            "there are too few heads, or steps are too large",
        )

    return measure


def log10_step_sizes(cells: pd.DataFrame) -> pd.Series[float]:
    """Return the decimal logarithm of the step size that each cell's heads take."""
    powers = cells["step_rule"].map(STEP_RULES).astype(float)
    sizes = cells["learning_rate"].astype(float) * cells["heads"].astype(float) ** powers
    return sizes.map(math.log10)
