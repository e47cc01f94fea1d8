"""What Theorems 4.1 and 4.2 say, judged on cells that meet their Condition 4.1."""

from __future__ import annotations

import math

import pandas as pd

from overfit_cli.claim import Claim, Measurement, Verdict
from overfit_cli.parameters import of_row
from overfit_cli.studies.benign_vit.boundaries import HARMFUL_LOSS
from overfit_cli.studies.benign_vit.claims.powers import (
    SYMBOLS,
    TOLERANCE,
    fitted_powers,
    within,
)
from overfit_cli.studies.benign_vit.claims.regime import (
    BENIGN_FROM,
    HARMFUL_UP_TO,
    InRegime,
    Judge,
    judged,
)
from overfit_cli.studies.benign_vit.claims.verdicts import between, worst
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.theory import (
    BALANCE_IN_WORDS,
    FIGURE_1_THRESHOLD,
    STEP_LAWS,
    THEOREMS,
    Regime,
    predicted_steps,
)

MOST_OVER_T = 10.0
"""By which factor steps may exceed T, whose constant the theorems leave open."""


def _steps(side: Regime) -> Judge:
    """Whether cells are fitted within the order of T."""

    def judge(regime: InRegime) -> Measurement:
        cells = regime.sides[side]
        over = cells["steps"] / _predicted(cells, side)
        fitted, slow = cells["status"] == "done", over > MOST_OVER_T
        verdict: Verdict = "holds" if fitted.all() else "inconclusive"
        if slow.any() or (~fitted & (cells["reason"] != "step limit")).any():
            verdict = "fails"
        reached = f"{int(fitted.sum())} of {len(cells)} cells reach ε"
        if not fitted.any():
            return Measurement.without_value(verdict, f"{reached}.")
        steps, over = cells["steps"][fitted], over[fitted]
        least, most = float(over.min()), float(over.max())
        return Measurement(
            verdict,
            most,
            least,
            most,
            f"{reached}, after {steps.min():.3g} to {steps.max():.3g} steps: {least:.3g} to "
            f"{most:.3g} times T with a constant of 1."
            f"{_by_strong_noise(cells[fitted], over) if side == 'harmful' else ''}",
            "least and most of the cells",
        )

    return judge


def _predicted(cells: pd.DataFrame, side: Regime) -> list[float]:
    settings = (of_row(BenignVitParameters, row) for _, row in cells.iterrows())
    return [predicted_steps(one, one.output_scale, side) for one in settings]


def _by_strong_noise(cells: pd.DataFrame, over: pd.Series[float]) -> str:
    """Steps over T with σ̃_p for σ_p: a harmful cell fits its samples by their token 2."""
    strong = over * (cells["sigma_p_tilde"] / cells["sigma_p"]) ** 2
    return f" With σ̃_p in the place of σ_p it is {strong.min():.2f} to {strong.max():.2f} times."


def _powers(side: Regime) -> Judge:
    """Whether steps go with each parameter as T does."""

    def judge(regime: InRegime) -> Measurement:
        cells, laws = regime.sides[side], STEP_LAWS[side]
        found = fitted_powers(cells, "steps", needed=("snr", "epsilon", "n"))
        if isinstance(found, Measurement):
            return found
        verdicts = {within(power, laws[name]) for name, power in found.items()}
        words = ", ".join(
            f"{SYMBOLS[name]}^{one.value:.2f} [{one.low:.2f}, {one.high:.2f}] "
            f"({laws[name]:g} in the theorem)"
            for name, one in found.items()
        )
        return Measurement(
            worst(verdicts),
            max(abs(one.value - laws[name]) for name, one in found.items()),
            None,
            None,
            f"In {len(cells)} cells steps go with {words}.",
        )

    return judge


def _loss(side: Regime) -> Judge:
    """Whether the test loss goes to zero with ε, or stays of order one."""

    def judge(regime: InRegime) -> Measurement:
        cells = regime.sides[side]
        found = fitted_powers(cells, "test_loss", needed=("epsilon",))
        if isinstance(found, Measurement):
            return found
        power, least, most = found["epsilon"], cells["test_loss"].min(), cells["test_loss"].max()
        if side == "benign":
            level = most <= FIGURE_1_THRESHOLD
            verdict = between(power.low, power.high, TOLERANCE, math.inf)
        else:
            level, verdict = least >= HARMFUL_LOSS, within(power, 0.0)
        errors = cells["test_error"]
        return Measurement(
            verdict if level else "fails",
            power.value,
            power.low,
            power.high,
            f"In {len(cells)} cells the test loss is {least:.3f} to {most:.3f} and goes with "
            f"ε^{power.value:.2f} [{power.low:.2f}, {power.high:.2f}]; the test error is "
            f"{errors.min():.0%} to {errors.max():.0%}, {errors.mean():.1%} in the mean.",
            "95 % t over seeds",
        )

    return judge


def _claims(side: Regime, loss: str, accepted: str) -> tuple[Claim, Claim, Claim]:
    theorem = f"Jiang et al. 2024, Theorem {THEOREMS[side]}"
    where = f"Where Condition 4.1 holds and overfitting is {side}, "
    return (
        Claim(
            name=f"theorem-{side}-steps",
            source=f"{theorem}.1",
            statement=f"{where}the training loss reaches ε in at most the order of T steps.",
            accepted=f"every cell reaches ε in at most {MOST_OVER_T:g} T, with T's constant 1",
            measure=judged(_steps(side)),
        ),
        Claim(
            name=f"theorem-{side}-powers",
            source=f"{theorem}, its T",
            statement=f"{where}the number of steps goes with ‖μ‖, ε and N as T does.",
            accepted=f"each power's 95 % interval lies within {TOLERANCE:g} of T's; the number is "
            "the largest difference",
            measure=judged(_powers(side)),
        ),
        Claim(
            name=f"theorem-{side}-test-loss",
            source=f"{theorem}.2",
            statement=f"{where}the test loss {loss}.",
            accepted=accepted,
            measure=judged(_loss(side)),
        ),
    )


THEOREM = (
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
)
