"""Claims on Theorem 4.2 and the lemmas as they are stated, with their constants.

Widths that suffice, and the widest networks of a sweep, are measured here for Table 1 too.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import finite_numbers, require_done, require_trained
from overfit_cli.claims.rules import (
    THEOREM_RULE,
    Requirements,
    judge_theorem,
    mark_vacuous,
)
from overfit_cli.core.claim import Measurement, not_run
from overfit_cli.stats.crossings import crossings
from overfit_cli.studies.softmax_network.convergence.claims.kernels import (
    DRIFT_PRESET,
    WIDE,
    softmax_claim,
)

ENOUGH = 2.0
"""A width suffices from which on training takes so many times the steps of endless width."""

_ENDLESS = 1e100


def widest(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells of the largest m."""
    chosen: pd.DataFrame = cells[cells["m"] == cells["m"].max()]
    return chosen


def keep_slow_cells(cells: pd.DataFrame) -> pd.DataFrame:
    """Take cells that don't come to ε within their steps for done, and for endlessly slow."""
    ratios = cells["steps_over_limit"].astype(float).fillna(_ENDLESS)
    return cells.assign(steps_over_limit=ratios, status="done")


def sufficient_widths(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the smallest sufficient width of each `activation`, `n` and `seed`, as `width`.

    No parameter but these and `m` may vary. A cell that doesn't come to ε within its steps, or
    failed, isn't wide enough. The width is infinite where no m of the sweep suffices, and 0 where
    all do.
    """
    each = []
    for activation, group in keep_slow_cells(cells).groupby("activation"):
        crossed = crossings(group, "m", "n", "steps_over_limit", ENOUGH)
        width = crossed["crossing"].where(crossed["side"] != "above", np.inf)
        width = width.where(crossed["side"] != "below", 0.0)
        each.append(crossed[["n", "seed"]].assign(activation=activation, width=width))
    return pd.concat(each, ignore_index=True)


OUT_OF_REACH = 3.0
"""The decades below a bound from which on it couldn't have been broken."""


def _softmax(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells that the paper speaks of."""
    is_paper = (cells["activation"] == "softmax") & (cells["initialisation"] == "symmetric")
    held = require_done(require_trained(cells[is_paper]), 1.0)
    held = held[finite_numbers(held, "steps") > 0]
    if held.empty:
        raise not_run(
            "It needs cells of activation=softmax and initialisation=symmetric that take a step, "
            f"as in `overfit sweep {DRIFT_PRESET}`."
        )
    return held


def _theorem(cells: pd.DataFrame) -> Measurement:
    """Measure Theorem 4.2's rate, and by how much its width and step size are missed."""
    held = _softmax(cells)
    ratios, missing = finite_numbers(held, "rate_ratio"), finite_numbers(held, "width_missing")
    excess = finite_numbers(held, "step_size_beyond")
    return judge_theorem(
        ratios > 1,
        held["seed"],
        requirements=Requirements(
            {
                "decades of hidden units missing": missing,
                "decades by which steps are too large": excess,
            },
            "there are too few hidden units, or steps are too large",
        ),
        details={"loss over the bound, most": float(ratios.max())},
    )


def _rate(cells: pd.DataFrame) -> Measurement:
    """Measure the rate of Theorem 4.2 on wide networks, whatever it requires of them."""
    held = _softmax(cells)
    held = held[held["m"] >= WIDE]
    if held.empty:
        raise not_run(
            f"It needs cells with m of {WIDE} or more, as in `overfit sweep {DRIFT_PRESET}`."
        )
    ratios, contraction = finite_numbers(held, "rate_ratio"), finite_numbers(held, "contraction")
    return judge_theorem(
        ratios > 1,
        held["seed"],
        details={
            "loss over the bound, most": float(ratios.max()),
            "mean contraction over the stated one, least": float(contraction.min()),
        },
        note="Steps whose loss is below 1e-14 of the first are left out: that is round-off.",
    )


def _bound(cells: pd.DataFrame, column: str) -> Measurement:
    """Measure by how many decades a number lies above its bound; vacuous where far below."""
    held = _softmax(cells)
    decades = finite_numbers(held, column)
    measured = judge_theorem(
        decades > 0, held["seed"], details={"decades over the bound, most": float(decades.max())}
    )
    if decades.max() > -OUT_OF_REACH:
        return measured
    return mark_vacuous(
        measured,
        f"The bound is out of reach by {-float(decades.max()):.0f} decades or more.",
        {"decades below it, least": -float(decades.max())},
    )


def _gap(cells: pd.DataFrame) -> Measurement:
    """Measure the worst test gap over Theorem F.2's bound, where H has moved by less than λ/2."""
    held = _softmax(cells)
    met = finite_numbers(held, "kernel_drift") <= finite_numbers(held, "lambda_start") / 2
    if not met.any():
        raise not_run("In no cell has H moved by less than λ/2, as the theorem requires.")
    ratios = finite_numbers(held[met], "gap_over_bound")
    measured = judge_theorem(
        ratios > 1,
        held["seed"][met],
        details={
            "gap over the bound, most": float(ratios.max()),
            "cells that don't meet its requirement": int((~met).sum()),
        },
        note="The constant of its O(·) is taken for 1.",
    )
    if np.log10(ratios.max()) > -OUT_OF_REACH:
        return measured
    decades = -float(np.log10(ratios.max()))
    return mark_vacuous(
        measured, "The bound is out of reach.", {"decades below it, least": decades}
    )


_claim = partial(softmax_claim, figure="kernel-drift", preset=DRIFT_PRESET)

BOUND_CLAIMS = (
    _claim(
        "theorem42",
        "Theorem 4.2",
        "With m and η as stated, ‖F − Y‖² falls by 1 − m η λ/2 at every step.",
        f"m and η are as stated (C = 10, δ = 0.05), and {THEOREM_RULE}",
        _theorem,
    ),
    _claim(
        "linear-rate",
        "Lemma 5.3; ours",
        f"With {WIDE} hidden units or more ‖F − Y‖² falls by 1 − m η λ/2 at every step.",
        THEOREM_RULE,
        _rate,
    ),
    _claim(
        "lemma51-bound",
        "Lemma 5.1",
        "‖H − H*‖_F is at most R n d e^(10B).",
        f"the bound can be reached, and {THEOREM_RULE}",
        partial(_bound, column="drift_over_bound"),
    ),
    _claim(
        "lemma53-bound",
        "Lemma 5.3",
        "Weights move by at most D = 4 e^(3B) √(nd) ‖F(0) − Y‖ / (m λ).",
        f"the bound can be reached, and {THEOREM_RULE}",
        partial(_bound, column="movement_over_bound"),
    ),
    _claim(
        "theorem-f2-bound",
        "Theorem F.2",
        "The network parts from kernel regression by at most what H's and K's changes allow.",
        f"the bound can be reached, and {THEOREM_RULE}",
        _gap,
    ),
)
