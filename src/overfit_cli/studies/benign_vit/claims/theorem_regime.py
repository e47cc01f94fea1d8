"""Claims of Theorems 4.1 and 4.2, judged on cells that meet their Condition 4.1.

"There is a T" is tested as it stands: the loss reaches ε within the order of T steps. Whether T is
tight, with all of its powers, is a question of its own. "o(1)" is a limit: the test loss falls with
ε at least as fast as the proof says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import finite_numbers, one_setting, positive_numbers, require_done
from overfit_cli.claims.parts import Margin, Part, Statistic, tolerance_margin
from overfit_cli.claims.rules import judge, judge_estimate
from overfit_cli.core.claim import Claim, Measurement, inconclusive, not_run
from overfit_cli.stats.boundaries import PowerLaw, seeds_exponents
from overfit_cli.studies.benign_vit.boundary import (
    LEAST_VALUES,
    Boundary,
    balance_at,
    boundaries,
    why_no_boundary,
)
from overfit_cli.studies.benign_vit.claims.condition import (
    CONDITION,
    IN_CONVERGENCE,
    LARGE,
    MAY_VARY,
    SMALL_ERROR,
    SMALL_TEST_ERROR,
    T_DEPENDS_ON,
    WHERE,
    hypotheses_of,
    meeting_the_condition,
    numbers_of,
    require_condition,
    whole_design,
    with_error_of_convergence,
    with_large_product,
    with_small_error,
    with_small_test_error,
)
from overfit_cli.studies.benign_vit.claims.figure_1 import EXPONENT, MOST_FAILED
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.theory import (
    BALANCE_IN_WORDS,
    FIGURE_1_THRESHOLD,
    HARMFUL_LOSS,
    T_POWERS,
    THEOREMS,
    Regime,
    predicted_steps,
)

if TYPE_CHECKING:
    from overfit_cli.core.claim import Kind

TOLERANCE = 0.1
"""By how much a power may differ from the theorem's, which hides logarithms."""

LEAST_FACTORS: Mapping[str, float] = {
    "snr": 10.0,
    "epsilon": 10.0,
    "n": 2.0,
    "learning_rate": 2.0,
    "output_scale": 2.0,
}
"""By which factor the values of a parameter must differ: a power is told over a range alone."""

LEAST_EPSILONS = 3
"""The fewest values of ε that show a limit."""

AT_MOST_T = Margin(
    most=10.0,
    because="T's constant is open: ten is allowed, and fewer steps are as good",
    target=1.0,
)
RATE = Margin(least=1.0, because="1/(2M²) is the rate in (136) and (137)", fewest_seeds=5)
STAYS = Margin(
    most=TOLERANCE,
    because="Θ(1) does not fall with ε; the power of a logarithm is allowed",
    target=0.0,
)
AT_LEAST = Margin(least=0.1, because="Lemma E.6", fewest_seeds=5)

FINE = 1.1
"""The largest factor between ratios where curves cross: over N from 44 to 96 a crossing that is off
by half of it would move the exponent by a quarter."""

TRANSITION = replace(EXPONENT, fewest_seeds=20)
"""Curves differ less from seed to seed here than figure 1's do."""


CONSTANTS: Mapping[Regime, str] = {
    "benign": "T has a constant of 1",
    "harmful": "T has the constant (σ_p/σ̃_p)², 1/(25 M) by item 10: samples are fitted by σ̃_p",
}
"""The constant of T on each side."""


def most_steps(cells: pd.DataFrame, side: Regime) -> Measurement:
    """Measure the most steps over T that a cell of a seed takes; those not fitted take more."""
    least, most = _logs_over_t(cells, side)
    ends = pd.DataFrame({"least": least, "most": most}).groupby(cells["seed"]).max()
    known = least[np.isfinite(least)]
    statistic: Statistic = "geometric mean" if np.isfinite(ends.to_numpy()).all() else "median"
    return judge(
        [Part.of(np.exp(ends["least"]), AT_MOST_T, statistic, up_to=np.exp(ends["most"]))],
        details={"cells": len(cells)}
        | {"steps over T, least": float(np.exp(known.min()))}
        | {"steps over T, most": float(np.exp(known.max()))},
        note=f"The most steps over T of a seed's cells; {CONSTANTS[side]}.",
    )


def _logs_over_t(cells: pd.DataFrame, side: Regime) -> tuple[pd.Series[float], pd.Series[float]]:
    """The least and the most that the logarithm of steps over T can be of each cell.

    T has the constant of `CONSTANTS`. A cell that reached the step limit takes more steps than it
    took, and of one that failed otherwise nothing is known.
    """
    done = cells["status"] == "done"
    if done.any():
        positive_numbers(cells[done], "steps")
    over = cells["steps"].astype(float) / numbers_of(
        cells, lambda cell: predicted_steps(cell, cell.output_scale, side)
    )
    if side == "harmful":
        over *= (cells["sigma_p_tilde"] / cells["sigma_p"]).astype(float) ** 2
    logs = over.map(np.log)
    counted = done | (cells["reason"] == "step limit")
    return logs.where(counted, -np.inf), logs.where(done, np.inf)


def powers(cells: pd.DataFrame, side: Regime) -> Measurement:
    """Measure whether steps scale with each parameter as T does, all fitted at once."""
    for name, factor in LEAST_FACTORS.items():
        if float(cells[name].max() / cells[name].min()) < factor:
            raise not_run(f"It needs values of {name} that are a factor of {factor:g} apart.")
    fitted = require_done(cells)
    positive_numbers(fitted, "steps")
    measured = seeds_exponents(fitted, list(T_DEPENDS_ON), "steps")
    if measured is None:
        raise inconclusive("No seed has cells that tell the axes apart.")
    return judge(
        [
            Part.of(
                of_seeds,
                tolerance_margin(T_POWERS[side][name], TOLERANCE, "T hides logarithms"),
                called=f"power of {T_DEPENDS_ON[name]}",
            )
            for name, of_seeds in measured.items()
        ],
        note="Fitted seed by seed.",
        details={"cells": len(cells)},
    )


def benign_loss(cells: pd.DataFrame, side: Regime) -> Measurement:
    """Measure the least power of ε in the test loss, in units of the proof's 1/(2M²)."""
    slopes = slopes_of(cells, "test_loss", logs=True)
    measured = judge(
        [Part.of(slopes.min(axis=1) * _inverse_rate(cells), RATE)],
        note="The power of ε in the test loss between neighbouring ε, the least, times 2M².",
        details={"cells": len(cells)},
    )
    return replace(measured, details={**measured.details, **_by_epsilon(cells, "test_loss")})


def test_margin(cells: pd.DataFrame, side: Regime) -> Measurement:
    """Measure what log(1/ε) multiplies in the mean test margin, in units of 1/(2M²)."""
    slopes = -slopes_of(cells, "test_margin")
    return judge(
        [Part.of(slopes.min(axis=1) * _inverse_rate(cells), RATE)],
        note="What log(1/ε) multiplies in the mean test margin between neighbouring ε, the least, "
        "times 2M².",
        details={"cells": len(cells)} | _by_epsilon(cells, "test_margin"),
    )


def harmful_loss(cells: pd.DataFrame, side: Regime) -> Measurement:
    """Measure the least test loss, and the most with which it falls as ε does."""
    least = require_done(cells).groupby("seed")["test_loss"].min()
    steepest = slopes_of(cells, "test_loss", logs=True).max(axis=1)
    errors = cells["test_error"]
    return judge(
        [
            Part.of(least, AT_LEAST, called="least test loss of a seed's cells"),
            Part.of(steepest, STAYS, called="largest power of ε in the test loss"),
        ],
        details={"cells": len(cells)}
        | {"test error, least": float(errors.min()), "test error, most": float(errors.max())},
    )


def slopes_of(cells: pd.DataFrame, column: str, *, logs: bool = False) -> pd.DataFrame:
    """What log(ε) multiplies in a column, between neighbouring ε; (seeds, values of ε − 1).

    Each seed's number at an ε is the mean over its other settings, all of which every ε has.
    """
    epsilons = np.sort(cells["epsilon"].unique())
    if len(epsilons) < LEAST_EPSILONS or epsilons[-1] / epsilons[0] < LEAST_FACTORS["epsilon"]:
        raise not_run(
            f"A limit takes {LEAST_EPSILONS} values of epsilon, a factor of "
            f"{LEAST_FACTORS['epsilon']:g} apart."
        )
    numbers = (positive_numbers if logs else finite_numbers)(require_done(cells), column)
    scaled = cells.assign(number=np.log(numbers) if logs else numbers)
    settings = [name for name in T_DEPENDS_ON if name != "epsilon"]
    table = scaled.pivot_table(index=["seed", *settings], columns="epsilon", values="number")
    means = table.groupby("seed").mean()
    slopes: pd.DataFrame = means.diff(axis=1).iloc[:, 1:] / np.diff(np.log(epsilons))
    return slopes


def _inverse_rate(cells: pd.DataFrame) -> float:
    """2M², by which (136) divides log(C/ε)."""
    return 2 * float(cells["tokens"].iloc[0]) ** 2


def _by_epsilon(cells: pd.DataFrame, column: str) -> dict[str, float]:
    means = cells.groupby("epsilon")[column].mean()
    name = column.replace("_", " ")
    return {f"{name}, ε = {epsilon:g}": float(mean) for epsilon, mean in means.items()}


GUESS = math.log(2)
"""The test loss of a guess."""


def transition(cells: pd.DataFrame) -> Measurement:
    """Measure whether the boundary of both sides' cells is N · SNR² = C, at the smallest ε."""
    if (counts := cells[["n", "snr"]].nunique()).min() < LEAST_VALUES:
        raise not_run(
            f"A boundary takes {LEAST_VALUES} values of n and of snr; these cells have "
            f"{counts['n']} and {counts['snr']}."
        )
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
    values = np.sort(boundary.cells["snr"].unique())
    ns = boundary.cells["n"].unique()
    crossings = (fit.constant.value / ns) ** (
        1 / fit.exponent.value
    )  # the fitted crossing of each n
    upper = np.searchsorted(values, crossings).clip(1, len(values) - 1)
    return float(np.max(values[upper] / values[upper - 1]))


OnSide = Callable[[pd.DataFrame, Regime], Measurement]

Needs = Callable[[pd.DataFrame], pd.DataFrame]
"""From cells to those that meet a further hypothesis."""

_NOT_ALIKE = {"n", "snr", "epsilon", *MAY_VARY}


def _transition(cells: pd.DataFrame) -> Measurement:
    chosen = meeting_the_condition(cells)
    if chosen.empty:
        raise not_run(
            "It needs cells with initialisation=condition that meet Condition 4.1, as in `overfit "
            "sweep theorem-transition`."
        )
    return transition(
        one_setting(
            chosen, [name for name in BenignVitParameters.model_fields if name not in _NOT_ALIKE]
        )
    )


def _measure(
    cells: pd.DataFrame, side: Regime, judge: OnSide, needs: Sequence[Needs], example: str
) -> Measurement:
    chosen = require_condition(cells, side, example)
    for need in needs:
        chosen = need(chosen)
    return judge(whole_design(chosen), side)


def _claim(
    side: Regime,
    name: str,
    part: str,
    statement: str,
    holds_where: str,
    judge: OnSide,
    *,
    kind: Kind = "paper",
    on_test_data: bool = False,
) -> Claim:
    hypotheses, needs, example = [hypotheses_of(side)], list[Needs](), f"theorem-{side}"
    if side == "benign" and kind == "paper":
        example = "theorem-benign-stage3"
        hypotheses += [SMALL_ERROR, IN_CONVERGENCE]
        needs = [with_large_product, with_small_error, with_error_of_convergence]
        if on_test_data:
            hypotheses.append(SMALL_TEST_ERROR)
            needs.append(with_small_test_error)
    elif side == "benign":
        hypotheses = [f"{CONDITION}; {LARGE}"]
    source = part if part.startswith("Lemma") else f"Theorem {THEOREMS[side]}{part}"
    return Claim(
        name=f"theorem-{side}-{name}",
        kind=kind,
        source=f"Jiang et al. 2024, {source}",
        statement=f"{WHERE}, and overfitting is {side}, {statement}.",
        hypotheses="; ".join(hypotheses),
        holds_where=holds_where,
        measure=partial(_measure, side=side, judge=judge, needs=needs, example=example),
        preset=example,
    )


def _claims(side: Regime) -> list[Claim]:
    powers_of_t = ", ".join(
        f"{T_POWERS[side][name]:g} of {symbol}" for name, symbol in T_DEPENDS_ON.items()
    )
    formulas: Mapping[Regime, str] = {
        "benign": "η⁻¹ ε⁻¹ ‖μ‖⁻² ‖w_O‖⁻²",
        "harmful": "N η⁻¹ ε⁻¹ σ_p⁻² d⁻¹ ‖w_O‖⁻²",
    }
    return [
        _claim(
            side,
            "steps",
            ".1",
            f"there is a T = Θ({formulas[side]}) at which the training loss is at most ε",
            AT_MOST_T.in_words("steps to ε over T, the most of a seed's cells,")
            + f"; {CONSTANTS[side]}",
            most_steps,
        ),
        _claim(
            side,
            "powers",
            ", its T",
            "T is tight: the number of steps to ε scales with ‖μ‖, ε, N, η and ‖w_O‖ as "
            f"{formulas[side]}",
            f"each power has its whole interval within {TOLERANCE:g} of T's: {powers_of_t} "
            "(T hides logarithms); at least 5 seeds",
            powers,
            kind="sharp",
        ),
    ]


THEOREM_REGIME = (
    *_claims("benign"),
    _claim(
        "benign",
        "test-loss",
        ".2",
        "the test loss at T is o(1): it goes to zero as ε does",
        RATE.in_words("the least power of ε in the test loss between neighbouring ε, times 2M²,"),
        benign_loss,
        on_test_data=True,
    ),
    *_claims("harmful"),
    _claim(
        "harmful",
        "test-loss",
        ".2",
        "the test loss at T is Θ(1): at least 0.1, whatever ε is",
        f"{AT_LEAST.in_words('the least test loss of a seed')}; and "
        f"{STAYS.in_words('the largest power of ε in it, between neighbouring ε,')}",
        harmful_loss,
    ),
    _claim(
        "benign",
        "test-margin",
        "Lemma 5.5, (136)",
        "a test sample's margin is at least log(C/ε)/C′ − 1 with probability at least 1 − δ/(N²M), "
        "and C′ is 2M²: so, as ε falls, the mean margin grows by log(1/ε)/(2M²) or more",
        RATE.in_words("what log(1/ε) multiplies in the mean test margin, times 2M²,"),
        test_margin,
        on_test_data=True,
    ),
    Claim(
        name="theorem-transition",
        kind="ours",
        source="Jiang et al. 2024, remark after Theorem 4.2",
        statement=f"{WHERE}, the transition between benign and harmful overfitting is where "
        "N·SNR² is a constant.",
        hypotheses=f"{CONDITION}; the test loss crosses {FIGURE_1_THRESHOLD:g}, figure 1b's cut; "
        "the crossing lies between the theorems' constants: 60 M² C_p² is not asked for",
        holds_where=TRANSITION.in_words("the exponent"),
        measure=_transition,
        figure="boundary",
        preset="theorem-transition",
    ),
)
