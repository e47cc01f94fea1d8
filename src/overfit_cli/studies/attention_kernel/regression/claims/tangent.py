"""Claims of ours where W_Q alone is trained: what tangent kernels predict."""

from __future__ import annotations

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import Selection, is_unknown, require_trained
from overfit_cli.claims.python import above, geometric_mean, near, ratio
from overfit_cli.claims.rules import (
    THEOREM_RULE,
    Requirements,
    judge_theorem,
)
from overfit_cli.claims.stated import stated_claim
from overfit_cli.core.claim import Claim, Measurement, inconclusive, not_run
from overfit_cli.studies.attention_kernel.regression.claims.rates import SOURCE, cells_under
from overfit_cli.studies.attention_kernel.regression.parameters import KernelRegressionParameters

SIZES, STEPS = "kernel-tangent", "kernel-tangent-steps"
"""The presets."""

BOTH = ("softmax", "gaussian")
SMALL = 0.02
"""The deviation of W_Q and W_K at which the formula of small weights is claimed."""

CLOSE, FEW = 0.05, 2
"""Measured and predicted steps agree within this share of them, or within so many steps."""


def _traces(cells: pd.DataFrame) -> pd.DataFrame:
    return require_trained(
        Selection(
            KernelRegressionParameters,
            at={"trained": "query", "kernel": BOTH, "sigma_w": SMALL, "target": "near"},
            vary=("learning_rate",),
            alike=("n", "d", "d_h", "training_steps", "distance", "dtype"),
            fewest={"tokens": 2},
            preset=SIZES,
        ).of(cells)
    )


def _under_12(cells: pd.DataFrame) -> tuple[pd.DataFrame, pd.Series[float]]:
    """Return cells of both kernels with near labels, and the decades by which they miss (12)."""
    return cells_under("12", cells, {"kernel": BOTH, "trained": "query"}, STEPS)


def _judge_steps(cells: pd.DataFrame) -> Measurement:
    chosen, decades = _under_12(cells)
    if "tangent_steps" not in chosen:
        raise inconclusive("No cell has a number of tangent_steps: sweep again.")
    predicted, measured = (
        chosen[name].astype(float) for name in ("tangent_steps", "steps_to_millionth")
    )
    within = predicted * (1 + CLOSE) + FEW <= chosen["training_steps"]
    # One without the other may be a number that was lost, unless the last loss says that the cell
    # never came down.
    came_down = ~(chosen["relative_loss"].astype(float) > 1e-6)
    lost = (predicted.isna() & measured.notna()) | (within & measured.isna() & came_down)
    unknown = is_unknown(chosen) | lost
    if not within.any():
        raise not_run(f"It needs cells that come down, as in `overfit sweep {STEPS}`.")
    chosen, decades = chosen[within | unknown], decades[within | unknown]
    unknown, predicted = unknown[chosen.index], predicted[chosen.index]
    measured = measured[chosen.index]
    apart = (measured - predicted).abs()
    allowed = np.maximum(CLOSE * predicted, FEW)
    return judge_theorem(
        ~(apart <= allowed) & ~unknown,
        chosen["seed"],
        unknown=unknown,
        requirements=Requirements(
            {"decades by which (12) is missed": decades}, "decades by which (12) is missed"
        ),
        details={
            "cells": len(chosen),
            **{f"cells, {name}": int((chosen["kernel"] == name).sum()) for name in BOTH},
            "steps apart, most": float(apart.max()),
            "share apart, most": float((apart / predicted).max()),
            "steps, least": float(measured.min()),
            "steps, most": float(measured.max()),
        },
    )


def _best(cells: pd.DataFrame) -> pd.DataFrame:
    chosen, decades = _under_12(cells)
    done = chosen[(chosen["status"] == "done") & (decades <= 0)]
    done = done[done["steps_to_millionth"].notna()]
    if done.empty:
        raise inconclusive("No cell comes down to a millionth of its start.")
    steps = done["steps_to_millionth"].astype(float)
    best: pd.DataFrame = done.loc[steps.groupby([done["kernel"], done["seed"]]).idxmin()]
    if len(best) < len(BOTH) * chosen["seed"].nunique():
        raise inconclusive("On some seeds no cell of a kernel comes down to a millionth.")
    return best


def _at_best(cells: pd.DataFrame) -> pd.DataFrame:
    """The same, with the best step size as a column: it is measured."""
    best = _best(cells)
    return best.assign(best_size=best["learning_rate"]).drop(columns="learning_rate")


def _over(column: str) -> str:
    return ratio(column, kernel=BOTH[::-1])


_SECTION = f"{SOURCE}, section 4.2"
_MET = (
    "condition (12) is met: W_Q and W_K have deviation 0.02, the labels lie 3e-9 from the outputs"
)


CLAIMS = (
    stated_claim(
        _traces,
        KernelRegressionParameters,
        near(
            geometric_mean(
                f"({_over('tangent_trace')}) / ({_over('tangent_small')})",
            ),
            1,
            factor=1.25,
            over="average",
            seeds=10,
        ),
        number="the geometric mean of the traces' ratio over it",
        because="at d = 8 traces spread by √(2/d), which is 0.5 a draw and 0.11 in the mean of 20",
        name="tangent-ratio",
        kind="ours",
        source=_SECTION,
        statement="At small W_Q and W_K, in the geometric mean over draws, the Gaussian's tangent "
        "kernel is larger than softmax's by the ratio of (Σ_j a_j)² ‖x_k‖² + ‖Σ_j a_j x_j‖² to "
        "‖Σ_j (a_j − ā) x_j‖²/n².",
        figure="tangent",
        preset=SIZES,
    ),
    Claim(
        name="tangent-steps",
        kind="identity",
        source=_SECTION,
        statement="Where condition (12) is met, either kernel takes the steps to a millionth of "
        "the loss that (I − η Θ)^t predicts, Θ being its tangent kernel at the start.",
        hypotheses=f"{_MET}; W_Q then moves by about 1e-9, so that this is its first order",
        holds_where=f"{THEOREM_RULE}; a cell breaks it that is {CLOSE:g} of its steps or {FEW} "
        "steps off, whichever is more",
        measure=_judge_steps,
        figure="tangent-steps",
        preset=STEPS,
    ),
    stated_claim(
        _at_best,
        KernelRegressionParameters,
        near(
            geometric_mean(f"1 / (({_over('best_size')}) * {_over('tangent_largest')})"),
            1,
            factor=2,
            seeds=10,
        ),
        number="the geometric mean of the one ratio over the other",
        because="step sizes are a factor of 2 apart",
        name="tangent-step-size",
        kind="identity",
        source=_SECTION,
        statement="Where condition (12) is met, softmax's best step size is larger than the "
        "Gaussian's by the ratio of the tangent kernels' largest eigenvalues.",
        hypotheses=f"{_MET}; (I − η Θ)^t has its best η between 1 and 2 over the largest "
        "eigenvalue, up to the grid",
        figure="tangent-steps",
        preset=STEPS,
    ),
    stated_claim(
        _at_best,
        KernelRegressionParameters,
        above(
            geometric_mean(ratio("steps_to_millionth", kernel=BOTH)), 1, strictly=False, seeds=10
        ),
        number="the geometric mean of the ratio of steps",
        because="as many steps as the Gaussian",
        name="tangent-slower",
        kind="ours",
        source=_SECTION,
        statement="Where condition (12) is met, softmax takes more steps than the Gaussian, each "
        "at its own best step size.",
        hypotheses=_MET,
        figure="tangent-steps",
        preset=STEPS,
    ),
)
