"""Claims on Theorem 4.2 and the lemmas as they are stated, with their constants.

A statement with probability 1 − δ is judged by the share of seeds at each setting. Theorem 4.2's m
and η are not met by any cell, but what the proof bounds at every step needs neither to be measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import pandas as pd

from overfit_cli.claims.bounds import OUT_OF_REACH
from overfit_cli.claims.cells import is_unknown
from overfit_cli.claims.parts import Margin, Part
from overfit_cli.claims.rules import THEOREM_RULE, Requirements, judge, judge_theorem
from overfit_cli.claims.stated import joined
from overfit_cli.core.arrays import varying
from overfit_cli.core.claim import Claim, Measurement, inconclusive
from overfit_cli.studies.softmax_network.convergence.claims.kernels import (
    DRIFT_PRESET,
    FARTHEST,
    OUTPUTS_PRESET,
    SMALL,
    SMALL_PRESET,
    WIDE,
    paper_cells,
    softmax_claim,
)
from overfit_cli.studies.softmax_network.convergence.parameters import SoftmaxConvergenceParameters
from overfit_cli.studies.softmax_network.theory import CHANCE

PROBABLE = Margin(least=1 - CHANCE, because="1 − δ", fewest_seeds=10)
LARGEST_CONSTANT = 10.0
"""The most that the constant of an O(·) is taken for."""


def unknown_cells(cells: pd.DataFrame, numbers: pd.Series[float]) -> pd.Series[bool]:
    """Return which cells have no number, for another reason than that they diverged."""
    return is_unknown(cells) | (numbers.isna() & (cells["reason"] != "diverged"))


def _judge_probable(
    cells: pd.DataFrame,
    broken: pd.Series[bool],
    *,
    unknown: pd.Series[bool],
    requirements: Requirements,
    decades_over: pd.Series[float] | None = None,
    details: Mapping[str, float] | None = None,
) -> Measurement:
    """Measure a statement with probability 1 − δ: by the share of seeds, at each setting.

    It is vacuous as a theorem without probability is.
    """
    strict = judge_theorem(
        broken,
        cells["seed"],
        unknown=unknown,
        requirements=requirements,
        decades_over=decades_over,
        details=details,
    )
    if strict.verdict in ("vacuous", "holds by far"):
        return strict
    held = cells.assign(broken=broken, unknown=unknown)[requirements.judged(unknown)]
    varied = varying(held, SoftmaxConvergenceParameters.model_fields)
    settings = dict(list(held.groupby(varied))) if varied else {"all": held}
    names = ", ".join(varied)
    shares = [
        Part.of(
            ~rows["broken"] & ~rows["unknown"],
            PROBABLE,
            "share",
            up_to=~rows["broken"] | rows["unknown"],
            called=f"{names} = {', '.join(map(str, value))}" if varied else "all",
        )
        for value, rows in settings.items()
    ]
    note = "The share of seeds without an exception, at each setting; decisive is the one named."
    return judge(shares, note=note, details=strict.details)


def _theorem(cells: pd.DataFrame) -> Measurement:
    held = paper_cells(cells, SMALL_PRESET)
    ratios = held["rate_ratio"].astype(float)
    return _judge_probable(
        held,
        (ratios > 1) | (held["reason"] == "diverged"),
        unknown=unknown_cells(held, ratios),
        requirements=Requirements(
            {
                "decades of hidden units missing": held["width_missing"].astype(float),
                "decades by which steps are too large": held["step_size_beyond"].astype(float),
            },
            "there are too few hidden units, or steps are too large",
        ),
        details={"loss over the bound, most": float(ratios.max())},
    )


def _rate(cells: pd.DataFrame, *, several: bool = False) -> Measurement:
    held = paper_cells(cells, OUTPUTS_PRESET if several else DRIFT_PRESET, WIDE, several=several)
    ratios, contraction = held["rate_ratio"].astype(float), held["contraction"].astype(float)
    return judge_theorem(
        (ratios > 1) | (held["reason"] == "diverged"),
        held["seed"],
        unknown=unknown_cells(held, ratios),
        details={
            "loss over the bound, most": float(ratios.max()),
            "mean contraction over the stated one, least": float(contraction.min()),
        },
        note="Steps whose loss is below 1e-14 of the first are left out: that is round-off.",
    )


def log10_of(numbers: pd.Series[float]) -> pd.Series[float]:
    """Return decimal logarithms; that of 0 is −∞."""
    with np.errstate(divide="ignore"):  # of 0
        return pd.Series(np.log10(numbers.to_numpy(float)), numbers.index)


def _movement_above(cells: pd.DataFrame) -> pd.Series[float]:
    return log10_of(cells["movement"].astype(float) / FARTHEST)


def _lemma51(cells: pd.DataFrame) -> Measurement:
    held = paper_cells(cells, SMALL_PRESET)
    decades = held["drift_over_bound"].astype(float)
    return _judge_probable(
        held,
        decades > 0,
        unknown=unknown_cells(held, decades),
        requirements=Requirements(
            {"decades by which the movement is above 0.01": _movement_above(held)},
            "weights move by 0.01 or more",
        ),
        decades_over=decades,
    )


def _lemma53(cells: pd.DataFrame, *, several: bool = False) -> Measurement:
    if several:
        held = paper_cells(cells, OUTPUTS_PRESET, several=True, sigma=SMALL)
    else:
        held = paper_cells(cells, SMALL_PRESET)
    decades = held["movement_over_bound"].astype(float)
    return _judge_probable(
        held,
        decades > 0,
        unknown=unknown_cells(held, decades),
        requirements=Requirements(
            {
                "decades by which the movement is above 0.01": _movement_above(held),
                "decades of loss above its rate": log10_of(held["rate_ratio"].astype(float)),
            },
            "weights move by 0.01 or more, or the loss falls more slowly than by 1 − m η λ/2",
        ),
        decades_over=decades,
    )


def _without_exponential(cells: pd.DataFrame, *, several: bool = False) -> Measurement:
    held = paper_cells(cells, OUTPUTS_PRESET if several else DRIFT_PRESET, WIDE, several=several)
    shares = held["drift_share"].astype(float)
    return judge_theorem(
        shares > 1,
        held["seed"],
        unknown=unknown_cells(held, shares),
        decades_over=log10_of(shares),
        details={"‖H − H*‖ over R n d, most": float(shares.max())},
    )


def _gap(cells: pd.DataFrame) -> Measurement:
    held = paper_cells(cells, SMALL_PRESET)
    ratios = held["gap_over_bound"].astype(float)
    smallest, drift = held["lambda_start"].astype(float), held["kernel_drift"].astype(float)
    shrinking = drift * held["m"] * smallest / (held["n"] * held["outputs"])
    return judge_theorem(
        ratios > LARGEST_CONSTANT,
        held["seed"],
        unknown=unknown_cells(held, ratios),
        requirements=Requirements(
            {
                "decades by which H moves by more than λ/2": log10_of(2 * drift / smallest),
                "decades by which ε_H m λ is above nd": log10_of(shrinking),
            },
            "H moves by more than λ/2, or the logarithm in the bound is negative",
        ),
        decades_over=log10_of(ratios / LARGEST_CONSTANT),
        note=f"The constant of its O(·) is taken for {LARGEST_CONSTANT:g} at most.",
    )


def _never_above(cells: pd.DataFrame, column: str, most: float) -> Measurement:
    held = paper_cells(cells, DRIFT_PRESET, WIDE)
    if column not in held:
        raise inconclusive(f"No cell has a number of {column}: sweep again.")
    numbers = held[column].astype(float)
    return judge_theorem(
        numbers > most,
        held["seed"],
        unknown=unknown_cells(held, numbers),
        details={"most": float(numbers.max()), "median": float(numbers.median())},
    )


def _step_claim(column: str, most: float) -> Claim:
    """Return the claim on what Lemma E.2's proof bounds at every step, of one of its columns."""
    return softmax_claim(
        "step-bounds",
        "ours",
        "Lemmas E.3 and E.4, Claim E.5 and Lemma 5.3 (Lemma D.2)",
        f"With {WIDE} hidden units or more, at every logged step: |C₀| is at most 0.1 m η λ "
        "‖F − Y‖², C₁ at most −1.6 m η vᵀ H(τ) v with v = F − Y, η ‖Δw_r‖ at most 0.01, and "
        "λ_min(H(τ)) at least λ/2.",
        THEOREM_RULE,
        partial(_never_above, column=column, most=most),
        "curves",
        DRIFT_PRESET,
        "Theorem 4.2's m and η and D < R = λ/(2nd e^(10B)) are not met; the step size is "
        "1/(m λ_max), far larger than the theorem's. At the symmetric start C₁ is −2 of it by "
        "algebra, which decides nothing: later steps can break it",
    )


_claim = partial(softmax_claim, figure="kernel-drift", preset=SMALL_PRESET)
_ours = partial(softmax_claim, figure="kernel-drift", preset=DRIFT_PRESET)
_several = partial(softmax_claim, figure="bounds", preset=OUTPUTS_PRESET)

_CONSTANTS = (
    "d outside B is the number of outputs, 1 here; C is at 10, the end of C > 10, and δ = 0.05"
)
_SEVERAL = (
    "d outside B is the number of outputs, 3 and 8; C is at 10, the end of C > 10, and δ = 0.05"
)
_REACH = f"the bound is less than {OUT_OF_REACH:g} decades away"
_SHARES = PROBABLE.in_words("at each setting the share of seeds without an exception")

BOUND_CLAIMS = (
    _claim(
        "theorem42",
        "paper",
        "Corollary 4.3 (Theorem 4.2 with one output) and Lemma E.2",
        "With m and η as stated, ‖F − Y‖² falls by 1 − m η λ/2 at every step, with probability "
        "1 − δ, so that T̂ steps bring it to ε.",
        _SHARES,
        _theorem,
        hypotheses=f"m and η are as stated, with 1 for the constant of Ω(·); {_CONSTANTS}",
    ),
    _ours(
        "linear-rate",
        "ours",
        "Lemma E.2",
        f"With {WIDE} hidden units or more ‖F − Y‖² falls by 1 − m η λ/2 at every step, also "
        "where Theorem 4.2's m and η are not met.",
        THEOREM_RULE,
        _rate,
    ),
    _claim(
        "lemma51-bound",
        "paper",
        "Lemma 5.1",
        "With probability 1 − δ, ‖H(W) − H(W̃)‖_F is at most R n d e^(10B).",
        f"{_REACH}; {_SHARES}",
        _lemma51,
        hypotheses="‖x_i‖ ≤ 1 and R < 0.01; W̃ are the initial weights, and of all W within R those "
        f"on the way of gradient descent; {_CONSTANTS}",
    ),
    _several(
        "linear-rate-outputs",
        "ours",
        "Lemma E.2",
        f"With several outputs and {WIDE} hidden units or more ‖F − Y‖² falls by 1 − m η λ/2 at "
        "every step, also where Theorem 4.2's m and η are not met.",
        THEOREM_RULE,
        partial(_rate, several=True),
    ),
    _several(
        "lemma51-outputs",
        "ours",
        "Lemma 5.1",
        f"With several outputs and {WIDE} hidden units or more ‖H − H*‖_F is at most R n d, "
        "without the factor e^(10B), on the way of gradient descent from the symmetric start.",
        f"{_REACH}; {THEOREM_RULE}",
        partial(_without_exponential, several=True),
    ),
    _several(
        "lemma53-bound-outputs",
        "ours",
        "Lemma 5.3 (Lemma C.2)",
        "With several outputs, where ‖F − Y‖² falls by 1 − m η λ/2 at every step and weights move "
        "by less than 0.01, they move by at most D = 4 e^(3B) √(nd) ‖F(0) − Y‖ / (m λ), with "
        "probability 1 − δ.",
        f"{_REACH}; {_SHARES}",
        partial(_lemma53, several=True),
        hypotheses="the lemma also requires Theorem 4.2's m and η and D < R = λ/(2nd e^(10B)), "
        f"which are not met; its proof uses only the rate and R < 0.01; σ = {SMALL:g}; {_SEVERAL}",
    ),
    _ours(
        "lemma51",
        "ours",
        "Lemma 5.1",
        f"With {WIDE} hidden units or more ‖H − H*‖_F is at most R n d, without the factor "
        "e^(10B), on the way of gradient descent from the symmetric start. There the first order "
        "cancels between the units of a pair, as it need not for every W.",
        f"{_REACH}; {THEOREM_RULE}",
        _without_exponential,
    ),
    _claim(
        "lemma53-bound",
        "ours",
        "Lemma 5.3 (Lemma C.2)",
        "Where ‖F − Y‖² falls by 1 − m η λ/2 at every step and weights move by less than 0.01, "
        "they move by at most D = 4 e^(3B) √(nd) ‖F(0) − Y‖ / (m λ), with probability 1 − δ.",
        f"{_REACH}; {_SHARES}",
        _lemma53,
        hypotheses="the lemma also requires Theorem 4.2's m and η and D < R = λ/(2nd e^(10B)), "
        f"which are not met; its proof uses only the rate and R < 0.01; {_CONSTANTS}",
    ),
    _claim(
        "theorem-f2-bound",
        "paper",
        "Theorem F.2",
        "At every step the network parts from kernel regression by O(√(nd) ε_test/λ + √(nd) "
        "log²(nd/(ε_H m λ)) ε_H/λ²), with a constant of at most 10.",
        f"{_REACH}; {THEOREM_RULE}",
        _gap,
        hypotheses="‖H − H*‖_F ≤ ε_H ≤ λ/2 and ‖K − K*‖_F ≤ ε_test on the way, and nd is above "
        "ε_H m λ; d is the number of outputs, 1 here",
    ),
    joined(
        {
            "C₀": _step_claim("c0_over_bound", 1.0),
            "C₁": _step_claim("c1", -1.6),
            "λ_min(H)": _step_claim("lambda_lost", 0.5),
            "η ‖Δw_r‖": _step_claim("step_length", FARTHEST),
        }
    ),
)
