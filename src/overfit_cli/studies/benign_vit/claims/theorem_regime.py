"""Claims of Theorems 4.1 and 4.2, judged on cells that meet their Condition 4.1."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from overfit_cli.analysis.bounds import all_met
from overfit_cli.claim import Claim, Measurement, Verdict, inconclusive, not_run
from overfit_cli.claims.powers import fitted_powers
from overfit_cli.claims.rules import (
    accepted_exponent,
    between,
    exponent_measurement,
    within,
    worst,
)
from overfit_cli.parameter_values import of_row
from overfit_cli.studies.benign_vit.claims.steps import SYMBOLS, TOLERANCE
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.theory.boundaries import (
    balance_at,
    boundaries,
    exponent_in_words,
    why_no_boundary,
)
from overfit_cli.studies.benign_vit.theory.condition import condition_items
from overfit_cli.studies.benign_vit.theory.predictions import (
    BALANCE_IN_WORDS,
    FIGURE_1_EXPONENT,
    FIGURE_1_THRESHOLD,
    HARMFUL_LOSS,
    STEP_POWERS,
    THEOREMS,
    Regime,
    boundary_product,
    learning_balance,
    predicted_steps,
)

BENIGN_FROM, HARMFUL_UP_TO = 3.0, 0.25
"""N · SNR² over the balance of learning: from where "large" and "small" are taken to begin."""

MOST_OVER_T = 10.0
"""By which factor steps may exceed T, whose constant the theorems leave open."""


@dataclass(frozen=True)
class TheoremRegime:
    """Cells that meet the condition.

    Attributes:
        cells: all of them, failed ones too.
        sides: those that are far enough on either side of the boundary.
    """

    cells: pd.DataFrame
    sides: dict[Regime, pd.DataFrame]


Judge = Callable[[TheoremRegime], Measurement]


def theorem_regime(cells: pd.DataFrame) -> TheoremRegime | None:
    """Return the cells of the theorems' regime; None where one of its sides has no cell."""
    drawn = cells[cells["initialisation"] == "condition"]
    settings = (of_row(BenignVitParameters, row) for _, row in drawn.iterrows())
    meets = [all_met(condition_items(one, one.output_scale)) for one in settings]
    chosen = drawn[np.array(meets, dtype=bool)]
    balance = learning_balance(chosen["sigma_p_tilde"] / chosen["sigma_p"], chosen["tokens"])
    far = boundary_product(chosen["n"], chosen["snr"]) / balance
    benign, harmful = chosen[far >= BENIGN_FROM], chosen[far <= HARMFUL_UP_TO]
    if benign.empty or harmful.empty:
        return None
    return TheoremRegime(chosen, {"benign": benign, "harmful": harmful})


def _in_regime(judge: Judge) -> Callable[[pd.DataFrame], Measurement]:
    """Judge the cells of the theorems' regime; say "not run" without any."""

    def measure(cells: pd.DataFrame) -> Measurement:
        regime = theorem_regime(cells)
        if regime is None:
            return not_run(
                "It needs cells with initialisation=condition that meet Condition 4.1, on both "
                "sides of the boundary, as in `overfit sweep theorem-regime`."
            )
        return judge(regime)

    return measure


def _on_side(
    side: Regime, judge: Callable[[pd.DataFrame, Regime], Measurement]
) -> Callable[[pd.DataFrame], Measurement]:
    return _in_regime(lambda regime: judge(regime.sides[side], side))


def _steps(cells: pd.DataFrame, side: Regime) -> Measurement:
    """Whether cells are fitted within the order of T."""
    settings = (of_row(BenignVitParameters, row) for _, row in cells.iterrows())
    over = cells["steps"] / [predicted_steps(one, one.output_scale, side) for one in settings]
    fitted, slow = cells["status"] == "done", over > MOST_OVER_T
    verdict: Verdict = "holds" if fitted.all() else "inconclusive"
    if slow.any() or (~fitted & (cells["reason"] != "step limit")).any():
        verdict = "fails"
    reached = f"{int(fitted.sum())} of {len(cells)} cells reach ε"
    if not fitted.any():
        return Measurement(verdict, f"{reached}.")
    steps, over = cells["steps"][fitted], over[fitted]
    least, most = float(over.min()), float(over.max())
    sentence = (
        f"{reached}, after {steps.min():.3g} to {steps.max():.3g} steps: {least:.3g} to "
        f"{most:.3g} times T with a constant of 1."
    )
    if side == "harmful":  # A harmful cell fits its samples by their token 2.
        strong = over * (cells["sigma_p_tilde"] / cells["sigma_p"])[fitted] ** 2
        sentence += (
            f" With σ̃_p in the place of σ_p it is {strong.min():.2f} to {strong.max():.2f} times."
        )
    return Measurement(verdict, sentence, most, least, most, "least and most of the cells")


def _powers(cells: pd.DataFrame, side: Regime) -> Measurement:
    """Whether steps scale with each parameter as T does."""
    found = fitted_powers(cells, "steps", SYMBOLS, ("snr", "epsilon", "n"))
    theorem = STEP_POWERS[side]
    if isinstance(found, Measurement):
        return found
    words = ", ".join(
        f"{SYMBOLS[name]}^{one.value:.2f} [{one.low:.2f}, {one.high:.2f}] "
        f"({theorem[name]:g} in the theorem)"
        for name, one in found.items()
    )
    return Measurement(
        worst(within(one.low, one.high, theorem[name], TOLERANCE) for name, one in found.items()),
        f"In {len(cells)} cells steps go with {words}.",
        max(abs(one.value - theorem[name]) for name, one in found.items()),
    )


def _loss(cells: pd.DataFrame, side: Regime) -> Measurement:
    """Whether the test loss goes to zero with ε, or stays of order one."""
    found = fitted_powers(cells, "test_loss", SYMBOLS, ("epsilon",))
    if isinstance(found, Measurement):
        return found
    power, least, most = found["epsilon"], cells["test_loss"].min(), cells["test_loss"].max()
    if side == "benign":
        level = most <= FIGURE_1_THRESHOLD
        verdict = between(power.low, power.high, TOLERANCE, math.inf)
    else:
        level, verdict = least >= HARMFUL_LOSS, within(power.low, power.high, 0.0, TOLERANCE)
    errors = cells["test_error"]
    return Measurement(
        verdict if level else "fails",
        f"In {len(cells)} cells the test loss is {least:.3f} to {most:.3f} and scales as "
        f"ε^{power.value:.2f} [{power.low:.2f}, {power.high:.2f}]; the test error is "
        f"{errors.min():.0%} to {errors.max():.0%}, {errors.mean():.1%} in the mean.",
        *power.estimate,
        "95 % t over seeds",
    )


def _transition(regime: TheoremRegime) -> Measurement:
    """Whether the boundary is N · SNR² = C, at the smallest ε."""
    if why := why_no_boundary(regime.cells, "epsilon"):
        return inconclusive(f"The boundary can't be found: {why}.")
    found = boundaries(regime.cells, "epsilon", FIGURE_1_THRESHOLD)
    one = found[0]  # the smallest ε
    if 2 * one.never > one.curves:
        return Measurement(
            "fails", f"{one.never} of {one.curves} curves never cross {FIGURE_1_THRESHOLD:g}."
        )
    where = "; ".join(
        f"at ε = {at.at:g} {at.onsets.median():.0f}, {at.onsets.median() / balance_at(at):.2f} "
        f"times {BALANCE_IN_WORDS}, and {at.median:.0f} (quartiles {at.low:.0f}, "
        f"{at.high:.0f}), {at.widths.median():.2f} times as much as that"
        for at in found
    )
    return exponent_measurement(
        one.fit,
        FIGURE_1_EXPONENT,
        lambda fit: (
            f"{exponent_in_words(fit)} over {fit.rows} values of n and {fit.seeds} seeds; "
            f"{one.never} of {one.curves} curves never cross. N·SNR² where the test loss falls "
            f"below {HARMFUL_LOSS:g} and {FIGURE_1_THRESHOLD:g}: {where}."
        ),
    )


def _claims(side: Regime, loss: str, accepted_loss: str) -> list[Claim]:
    theorem = THEOREMS[side]
    table = (
        (
            "steps",
            f"{theorem}.1",
            "the training loss reaches ε in at most the order of T steps",
            f"every cell reaches ε in at most {MOST_OVER_T:g} T, with T's constant 1",
            _steps,
        ),
        (
            "powers",
            f"{theorem}, its T",
            "the number of steps scales with ‖μ‖, ε and N as T does",
            f"each power's 95 % interval lies within {TOLERANCE:g} of T's; the number is the "
            "largest difference",
            _powers,
        ),
        ("test-loss", f"{theorem}.2", f"the test loss {loss}", accepted_loss, _loss),
    )
    return [
        Claim(
            name=f"theorem-{side}-{name}",
            source=f"Jiang et al. 2024, Theorem {place}",
            statement=f"Where Condition 4.1 holds and overfitting is {side}, {statement}.",
            accepted=accepted,
            measure=_on_side(side, judge),
        )
        for name, place, statement, accepted, judge in table
    ]


THEOREM_REGIME = (
    *_claims(
        "benign",
        "goes to zero with ε",
        f"it is at most {FIGURE_1_THRESHOLD:g} in every cell whose N·SNR² is {BENIGN_FROM:g} times "
        f"{BALANCE_IN_WORDS} or more, and its power of ε lies above {TOLERANCE:g} with its "
        "95 % interval",
    ),
    *_claims(
        "harmful",
        "is of order one whatever ε is",
        f"it is at least {HARMFUL_LOSS:g} in every cell whose N·SNR² is {HARMFUL_UP_TO:g} times "
        f"{BALANCE_IN_WORDS} or less, and its power of ε lies within {TOLERANCE:g} of 0 "
        "with its 95 % interval",
    ),
    Claim(
        name="theorem-transition",
        source="Jiang et al. 2024, Theorems 4.1 and 4.2",
        statement="Where Condition 4.1 holds, the boundary between the two is N·SNR² = C.",
        accepted=f"most curves cross {FIGURE_1_THRESHOLD:g}, and "
        f"{accepted_exponent(FIGURE_1_EXPONENT)}",
        measure=_in_regime(_transition),
    ),
)
