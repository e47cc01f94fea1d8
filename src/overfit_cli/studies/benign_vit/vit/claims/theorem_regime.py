"""Claims of Theorems 4.1 and 4.2, judged on cells that meet their Condition 4.1.

Margins come first, then a measurement for each form of claim, then the claims.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import finite_numbers, one_setting, positive_numbers, require_done
from overfit_cli.claims.rules import (
    Margin,
    exponentiate,
    factor_margin,
    judge_estimate,
    judge_estimates,
    tolerance_margin,
)
from overfit_cli.core.claim import Claim, Measurement, inconclusive, not_run
from overfit_cli.core.parameters import map_parameters
from overfit_cli.core.text import plural
from overfit_cli.stats.boundaries import Boundary, PowerLaw
from overfit_cli.stats.intervals import level_of_each, mean_estimate
from overfit_cli.studies.benign_vit.vit.claims.figure_1 import EXPONENT, MOST_FAILED
from overfit_cli.studies.benign_vit.vit.claims.steps import (
    BENIGN_FROM,
    HARMFUL_UP_TO,
    LEAST_EPSILONS,
    MAY_VARY,
    SYMBOLS,
    TOLERANCE,
    fitted_powers,
    meeting_the_condition,
    theorem_regime,
)
from overfit_cli.studies.benign_vit.vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.vit.theory import (
    BALANCE_IN_WORDS,
    FIGURE_1_THRESHOLD,
    HARMFUL_LOSS,
    STEP_POWERS,
    THEOREMS,
    Regime,
    balance_at,
    boundaries,
    predicted_steps,
    why_no_boundary,
)

POWERS_OF_T = ("snr", "epsilon", "n")
"""The parameters whose powers in T are judged."""

ORDER_OF_T = factor_margin(1.0, 10.0, "an order of magnitude: T's constant is open", 5)
POWER_OF_LOSS: dict[Regime, Margin] = {
    "benign": Margin(least=TOLERANCE, because="less is no fall", fewest_seeds=5),
    "harmful": tolerance_margin(0.0, TOLERANCE, "less is no fall", 5),
}
LOSS: dict[Regime, Margin] = {
    "benign": Margin(most=FIGURE_1_THRESHOLD, because="figure 1b's cut", fewest_seeds=5),
    "harmful": Margin(least=HARMFUL_LOSS, because="ln 2 = 0.69 is that of a guess", fewest_seeds=5),
}
NEAR_ONE = Margin(least=0.9, because="nearly 1: nine tenths of all attention", fewest_seeds=5)
GROWS = Margin(least=0.1, because="the lemma's 1/C′, open: a tenth is taken", fewest_seeds=5)

FINE = 1.1
"""The largest factor between ratios where curves cross: over N from 44 to 96 a crossing that is off
by half of it would move the exponent by a quarter."""

TRANSITION = replace(EXPONENT, fewest_seeds=20)
"""Curves differ less from seed to seed here than figure 1's do."""


def steps(cells: pd.DataFrame, side: Regime, *, strong: bool = False) -> Measurement:
    """Measure steps over T: the least and the most of each seed's cells.

    With `strong` T has σ̃_p in the place of σ_p.
    """
    ratios = positive_numbers(cells, "steps") / map_parameters(
        BenignVitParameters, cells, lambda cell: predicted_steps(cell, cell.output_scale, side)
    )
    if strong:
        ratios = ratios * (cells["sigma_p_tilde"] / cells["sigma_p"]) ** 2
    stopped = cells["status"] != "done"
    if (stopped & ((cells["reason"] != "step limit") | (ratios <= ORDER_OF_T.most))).any():
        raise inconclusive(f"{int(stopped.sum())} of {len(cells)} cells failed too early to tell.")
    by_seed = ratios.map(np.log).groupby(cells["seed"])
    ends = {"least": by_seed.min(), "most": by_seed.max()}
    level = level_of_each(len(ends))
    return judge_estimates(
        {
            f"{name} steps over T": (exponentiate(mean_estimate(logs, level)), ORDER_OF_T)
            for name, logs in ends.items()
        },
        note=f"Over each seed's cells, geometric means over seeds; {len(cells)} cells, "
        f"{int(stopped.sum())} of them not fitted. T has a constant of 1"
        f"{', and σ̃_p in the place of σ_p' if strong else ''}.",
    )


def powers(cells: pd.DataFrame, side: Regime) -> Measurement:
    """Measure whether steps scale with each parameter as T does."""
    fitted = fitted_powers(cells, "steps", SYMBOLS, POWERS_OF_T)
    return judge_estimates(
        {
            f"power of {SYMBOLS[name]}": (
                power,
                tolerance_margin(STEP_POWERS[side][name], TOLERANCE, "T hides logarithms", 5),
            )
            for name, power in fitted.items()
        },
        note=f"Steps of {plural(len(cells), 'cell')}.",
    )


def loss(cells: pd.DataFrame, side: Regime) -> Measurement:
    """Measure whether the test loss goes to zero with ε, or stays of order one."""
    power = fitted_powers(cells, "test_loss", SYMBOLS, ("epsilon",))
    by_seed = require_done(cells).groupby("seed")["test_loss"]
    worst, extreme = ("largest", by_seed.max()) if side == "benign" else ("least", by_seed.min())
    measured = judge_estimates(
        {
            f"{worst} test loss of a seed's cells": (
                mean_estimate(extreme, level_of_each(2)),
                LOSS[side],
            ),
            "power of ε in the test loss": (power["epsilon"], POWER_OF_LOSS[side]),
        },
        note=f"{plural(len(cells), 'cell')}.",
    )
    errors = cells["test_error"]
    ends = {"test error, least": errors.min(), "test error, most": errors.max()}
    return replace(measured, details={**measured.details, **ends})


def attention(cells: pd.DataFrame, side: Regime) -> Measurement:
    """Measure the attention on the signal, mean over all tokens, where training ends."""
    attention = finite_numbers(require_done(cells), "train_attention_signal")
    return judge_estimate(
        mean_estimate(attention.groupby(cells["seed"]).mean(), within=(0.0, 1.0)),
        NEAR_ONE,
        details={"least": float(attention.min()), "most": float(attention.max())},
        note="Mean over tokens, samples and each seed's cells.",
    )


def test_margin(cells: pd.DataFrame, side: Regime) -> Measurement:
    """Measure by how much the mean test margin grows as log(1/ε) does."""
    margins = finite_numbers(require_done(cells), "test_margin")
    means = margins.groupby([cells["seed"], cells["epsilon"]]).mean().unstack()
    logs = np.log(1 / means.columns.to_numpy(dtype=np.float64))
    slopes = pd.Series(np.polyfit(logs, means.to_numpy().T, 1)[0], index=means.index)
    return judge_estimate(
        mean_estimate(slopes),
        GROWS,
        details={
            f"test margin, ε = {epsilon:g}": float(means[epsilon].mean()) for epsilon in means
        },
        note="What log(1/ε) multiplies in the test margin, seed by seed, each seed the mean of its "
        "cells.",
    )


def transition(cells: pd.DataFrame) -> Measurement:
    """Measure whether the boundary of both sides' cells is N · SNR² = C, at the smallest ε."""
    if why := why_no_boundary(cells, "epsilon"):
        raise inconclusive(f"The boundary can't be found: {why}.")
    finite_numbers(require_done(cells, MOST_FAILED), "test_loss")
    by_epsilon = boundaries(cells, "epsilon", FIGURE_1_THRESHOLD)
    fit = by_epsilon[0].fit  # at the smallest ε
    if fit is None:
        raise inconclusive(
            f"Fewer than three medians cross {FIGURE_1_THRESHOLD:g}: {by_epsilon[0].never} of "
            f"{by_epsilon[0].curves} curves never do."
        )
    step = _step_at(by_epsilon[0], fit)
    if step > FINE:
        raise inconclusive(
            f"Where curves cross, the ratios lie a factor of {step:.3g} apart, and it takes "
            f"{FINE:g}: interpolated crossings would tilt the exponent."
        )
    details: dict[str, float] = {
        "curves": by_epsilon[0].curves,
        "curves that never cross": by_epsilon[0].never,
        "step of SNR where curves cross": step,
    }
    for boundary in by_epsilon:
        onset = float(boundary.onsets.median())
        details |= {
            f"N·SNR² at a test loss of {HARMFUL_LOSS:g}, ε = {boundary.at:g}": onset,
            f"that over the balance, ε = {boundary.at:g}": onset / balance_at(boundary),
            f"N·SNR² at a test loss of {FIGURE_1_THRESHOLD:g}, ε = {boundary.at:g}": (
                boundary.median
            ),
        }
    return judge_estimate(
        fit.exponent,
        TRANSITION,
        details=details,
        note=f"p of N·SNR^p = C through the median crossings at {fit.rows} values of n, at "
        f"ε = {by_epsilon[0].at:g}. The balance is {BALANCE_IN_WORDS}.",
    )


def _step_at(boundary: Boundary, fit: PowerLaw) -> float:
    """The largest factor between neighbouring ratios of the grid between which curves cross."""
    values = np.sort(boundary.cells["snr"].unique())
    ns = boundary.cells["n"].unique()
    crossings = (fit.constant.value / ns) ** (
        1 / fit.exponent.value
    )  # the fitted crossing of each n
    upper = np.searchsorted(values, crossings).clip(1, len(values) - 1)
    return float(np.max(values[upper] / values[upper - 1]))


_ALIKE = [name for name in BenignVitParameters.model_fields if name not in {*SYMBOLS, *MAY_VARY}]

OnSide = Callable[[pd.DataFrame, Regime], Measurement]


def _judge_side(side: Regime, judge: OnSide) -> Callable[[pd.DataFrame], Measurement]:
    """Judge one side's cells of the theorems' regime; say "not run" without both sides."""

    def measure(cells: pd.DataFrame) -> Measurement:
        regime = theorem_regime(cells)
        if regime is None:
            raise not_run(
                "It needs cells with initialisation=condition that meet Condition 4.1, on both "
                f"sides of the boundary, at {LEAST_EPSILONS} values of epsilon, as in `overfit "
                "sweep theorem-regime`."
            )
        return judge(one_setting(regime.sides[side], _ALIKE), side)

    return measure


def _transition(cells: pd.DataFrame) -> Measurement:
    """Judge the boundary's exponent on cells that meet the condition, of any N and SNR."""
    chosen = meeting_the_condition(cells)
    if chosen.empty:
        raise not_run(
            "It needs cells with initialisation=condition that meet Condition 4.1, as in `overfit "
            "sweep theorem-transition`."
        )
    return transition(one_setting(chosen, _ALIKE))


def _claim(
    side: Regime, name: str, part: str, statement: str, holds_where: str, judge: OnSide
) -> Claim:
    return Claim(
        name=f"theorem-{side}-{name}",
        source=f"Jiang et al. 2024, Theorem {THEOREMS[side]}{part}",
        statement=f"Where Condition 4.1 holds and overfitting is {side}, {statement}.",
        holds_where=holds_where,
        measure=_judge_side(side, judge),
        figure="heatmap",
        preset="theorem-regime",
    )


def _claims(side: Regime, course: str, region: str) -> list[Claim]:
    extreme = "largest" if side == "benign" else "least"
    powers_of_t = ", ".join(
        f"{STEP_POWERS[side][name]:g} of {SYMBOLS[name]}" for name in POWERS_OF_T
    )
    number = f"the {extreme} test loss of a seed, where N·SNR² is {region},"
    return [
        _claim(
            side,
            "steps",
            ".1",
            "the training loss reaches ε in the order of T steps",
            ORDER_OF_T.in_words("steps over T, of the quickest and of the slowest cell of a seed,"),
            steps,
        ),
        _claim(
            side,
            "powers",
            ", its T",
            "the number of steps scales with ‖μ‖, ε and N as T does",
            f"each power has its whole interval within {TOLERANCE:g} of T's: {powers_of_t} "
            "(T hides logarithms); at least 5 seeds",
            powers,
        ),
        _claim(
            side,
            "test-loss",
            ".2",
            f"the test loss {course}",
            f"{LOSS[side].in_words(number)}; and {POWER_OF_LOSS[side].in_words('its power of ε')}",
            loss,
        ),
    ]


THEOREM_REGIME = (
    *_claims(
        "benign",
        "is small, and falls as ε does",
        f"{BENIGN_FROM:g} times {BALANCE_IN_WORDS} or more",
    ),
    *_claims(
        "harmful",
        "is of order one whatever ε is",
        f"{HARMFUL_UP_TO:g} times {BALANCE_IN_WORDS} or less",
    ),
    _claim(
        "benign",
        "attention",
        " (section 5.3, stage 3)",
        "the attention on the signal is nearly 1 when training ends",
        NEAR_ONE.in_words("the attention, mean over tokens,"),
        attention,
    ),
    _claim(
        "benign",
        "test-margin",
        " (Lemma 5.5)",
        "the test margin grows at least as log(1/ε) does, up to a constant",
        GROWS.in_words("what log(1/ε) multiplies in the test margin"),
        test_margin,
    ),
    _claim(
        "harmful",
        "steps-strong-noise",
        "; ours",
        "the training loss reaches ε in the order of T steps with σ̃_p in the place of σ_p: samples "
        "are fitted by token 2",
        ORDER_OF_T.in_words("steps over that, of the quickest and of the slowest cell of a seed,"),
        partial(steps, strong=True),
    ),
    Claim(
        name="theorem-transition",
        source="Jiang et al. 2024, Theorems 4.1 and 4.2",
        statement="Where Condition 4.1 holds, the boundary between the two is N·SNR² = C.",
        holds_where=TRANSITION.in_words("the exponent"),
        measure=_transition,
        figure="boundary",
        preset="theorem-transition",
    ),
)
