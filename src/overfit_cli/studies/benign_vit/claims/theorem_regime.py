"""Claims of Theorems 4.1 and 4.2, judged on cells that meet their Condition 4.1."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pandas as pd

from overfit_cli.claims.cells import check_alike
from overfit_cli.core.claim import Claim, Measurement, not_run
from overfit_cli.studies.benign_vit.claims import theorem_measures as measures
from overfit_cli.studies.benign_vit.claims.condition import (
    BENIGN_FROM,
    HARMFUL_UP_TO,
    LEAST_EPSILONS,
    MAY_VARY,
    meeting_the_condition,
    theorem_regime,
)
from overfit_cli.studies.benign_vit.claims.steps import SYMBOLS, TOLERANCE
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.theory.predictions import (
    BALANCE_IN_WORDS,
    STEP_POWERS,
    THEOREMS,
    Regime,
)

_ALIKE = [name for name in BenignVitParameters.model_fields if name not in {*SYMBOLS, *MAY_VARY}]

OnSide = Callable[[pd.DataFrame, Regime], Measurement]


def _on_side(side: Regime, judge: OnSide) -> Callable[[pd.DataFrame], Measurement]:
    """Judge one side's cells of the theorems' regime; say "not run" without both sides."""

    def measure(cells: pd.DataFrame) -> Measurement:
        regime = theorem_regime(cells)
        if regime is None:
            raise not_run(
                "It needs cells with initialisation=condition that meet Condition 4.1, on both "
                f"sides of the boundary, at {LEAST_EPSILONS} values of epsilon, as in `overfit "
                "sweep theorem-regime`."
            )
        check_alike(regime.cells, _ALIKE)
        return judge(regime.sides[side], side)

    return measure


def _transition(cells: pd.DataFrame) -> Measurement:
    """Judge the boundary's exponent on cells that meet the condition, of any N and SNR."""
    chosen = meeting_the_condition(cells)
    if chosen.empty:
        raise not_run(
            "It needs cells with initialisation=condition that meet Condition 4.1, as in `overfit "
            "sweep theorem-transition`."
        )
    check_alike(chosen, _ALIKE)
    return measures.transition(chosen)


def _claim(
    side: Regime, name: str, place: str, statement: str, holds_where: str, judge: OnSide
) -> Claim:
    return Claim(
        name=f"theorem-{side}-{name}",
        source=f"Jiang et al. 2024, Theorem {THEOREMS[side]}{place}",
        statement=f"Where Condition 4.1 holds and overfitting is {side}, {statement}.",
        holds_where=holds_where,
        measure=_on_side(side, judge),
        figure="heatmap",
        preset="theorem-regime",
    )


def _claims(side: Regime, loss: str, region: str) -> list[Claim]:
    extreme = "largest" if side == "benign" else "least"
    powers_of_t = ", ".join(
        f"{STEP_POWERS[side][name]:g} of {SYMBOLS[name]}" for name in measures.POWERS_OF_T
    )
    number = f"the {extreme} test loss of a seed, where N·SNR² is {region},"
    return [
        _claim(
            side,
            "steps",
            ".1",
            "the training loss reaches ε in the order of T steps",
            measures.ORDER_OF_T.in_words(
                "steps over T, of the quickest and of the slowest cell of a seed,"
            ),
            measures.steps,
        ),
        _claim(
            side,
            "powers",
            ", its T",
            "the number of steps scales with ‖μ‖, ε and N as T does",
            f"each power has its whole interval within {TOLERANCE:g} of T's: {powers_of_t} "
            "(T hides logarithms); 5 seeds or more",
            measures.powers,
        ),
        _claim(
            side,
            "test-loss",
            ".2",
            f"the test loss {loss}",
            f"{measures.LOSS[side].in_words(number)}; and "
            f"{measures.POWER_OF_LOSS[side].in_words('its power of ε')}",
            measures.loss,
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
        measures.NEAR_ONE.in_words("the attention, mean over tokens,"),
        measures.attention,
    ),
    _claim(
        "benign",
        "test-margin",
        " (Lemma 5.5)",
        "the test margin grows at least as log(1/ε) does, up to a constant",
        measures.GROWS.in_words("what log(1/ε) multiplies in the test margin"),
        measures.test_margin,
    ),
    _claim(
        "harmful",
        "steps-strong-noise",
        "; ours",
        "the training loss reaches ε in the order of T steps with σ̃_p in the place of σ_p: samples "
        "are fitted by token 2",
        measures.ORDER_OF_T.in_words(
            "steps over that, of the quickest and of the slowest cell of a seed,"
        ),
        partial(measures.steps, strong=True),
    ),
    Claim(
        name="theorem-transition",
        source="Jiang et al. 2024, Theorems 4.1 and 4.2",
        statement="Where Condition 4.1 holds, the boundary between the two is N·SNR² = C.",
        holds_where=measures.TRANSITION.in_words("the exponent"),
        measure=_transition,
        figure="boundary",
        preset="theorem-transition",
    ),
)
