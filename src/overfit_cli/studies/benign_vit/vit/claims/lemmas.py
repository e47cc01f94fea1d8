"""Claims of section 5's lemmas on training dynamics, judged on logged steps (Jiang et al. 2024).

The cells meet Condition 4.1, as the lemmas require. Their constants are open, and so are logarithms
that they hide: powers and orders of magnitude are judged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import pandas as pd

from overfit_cli.claims.cells import one_setting
from overfit_cli.claims.rules import (
    Margin,
    exponentiate,
    factor_margin,
    judge_estimate,
    judge_estimates,
    mark_vacuous,
)
from overfit_cli.core.claim import Claim, Measurement, inconclusive, not_run
from overfit_cli.core.parameters import parameters_from_row
from overfit_cli.stats.intervals import Estimate, level_of_each, mean_estimate
from overfit_cli.studies.benign_vit.vit import theory
from overfit_cli.studies.benign_vit.vit.claims.steps import (
    MAY_VARY,
    cells_of_side,
    meeting_the_condition,
)
from overfit_cli.studies.benign_vit.vit.claims.theorem_regime import NEAR_ONE
from overfit_cli.studies.benign_vit.vit.parameters import TOKEN_CLASSES, BenignVitParameters
from overfit_cli.studies.benign_vit.vit.theory import Regime

SAME = factor_margin(1.0, 1.25, "means over samples stand for samples", 5)
AT_MOST = Margin(most=1.5, because="‖ξ‖² is at most 3/2 of σ̃_p² d, lemma C.4", fewest_seeds=5)
LEAD = Margin(least=1.0, because="the lemma's", fewest_seeds=5)
LINEAR = Margin(least=0.9, because="the lemma's 1, less a tenth", fewest_seeds=5)
QUADRATIC = Margin(least=1.9, because="the lemma's 2, less a tenth", fewest_seeds=5)

_ALIKE = [name for name in BenignVitParameters.model_fields if name not in MAY_VARY]

OfCell = Callable[[pd.DataFrame, BenignVitParameters], float]
"""A number of one cell: from its logged steps, in order, and its parameters."""


def _number_by_cell(steps: pd.DataFrame, side: Regime, number: OfCell) -> pd.Series[float]:
    """Return a number for each seed and cell that meets the lemmas' conditions; nan untold."""
    chosen = cells_of_side(meeting_the_condition(steps.drop_duplicates("key")), side)
    if chosen.empty:
        raise not_run(
            "It needs logged steps of cells with initialisation=condition that meet Condition 4.1, "
            f"as in `overfit sweep theorem-dynamics-{side}`."
        )
    chosen = one_setting(chosen, _ALIKE)
    if (failed := int((chosen["status"] != "done").sum())) > 0:
        raise inconclusive(f"{failed} of {len(chosen)} cells failed before they were fitted.")
    by_cell = {}
    for key, of_cell in steps[steps["key"].isin(chosen["key"])].groupby("key"):
        ordered = of_cell.sort_values("step")
        if ordered["step"].iloc[-1] != ordered["steps"].iloc[-1]:
            raise inconclusive("Some cells weren't logged to the end.")
        row = ordered.iloc[0]
        by_cell[int(row["seed"]), key] = number(
            ordered, parameters_from_row(BenignVitParameters, row)
        )
    return pd.Series(by_cell)


def _means(numbers: pd.Series[float]) -> pd.Series[float]:
    """The mean over each seed's cells; open where a cell's steps don't tell."""
    if (unknown := int(numbers.isna().sum())) > 0:
        raise inconclusive(f"The logged steps of {unknown} of {len(numbers)} cells don't tell.")
    return numbers.groupby(level=0).mean()


def _mean_detail(name: str, numbers: pd.Series[float]) -> dict[str, float]:
    """A detail: the mean over the cells that tell, and how many don't."""
    unknown = int(numbers.isna().sum())
    never = {f"cells without {name}": float(unknown)} if unknown else {}
    return {f"{name}, mean": float(numbers.mean()), **never}


def _judge(
    number: OfCell,
    margin: Margin,
    side: Regime = "benign",
    *,
    note: str,
    logs: bool = False,
    details: Mapping[str, OfCell] | None = None,
) -> Callable[[pd.DataFrame], Measurement]:
    """Return what measures a number's mean over seeds; with `logs` that of its logarithm."""

    def measure(steps: pd.DataFrame) -> Measurement:
        mean = mean_estimate(_means(_number_by_cell(steps, side, number)))
        values: dict[str, float] = {}
        for name, detail in (details or {}).items():
            values |= _mean_detail(name, _number_by_cell(steps, side, detail))
        return judge_estimate(
            exponentiate(mean) if logs else mean, margin, note=note, details=values
        )

    return measure


def _lead_of_signal(steps: pd.DataFrame) -> Measurement:
    """Measure lemma 5.2's lead; it is vacuous where the lemma's T₁ isn't positive."""
    measured = _judge(
        partial(theory.lead, side="benign"),
        LEAD,
        logs=True,
        note="The largest lead until stage 2 ends, over 3M; T₁ is taken as where N·SNR² is large.",
        details={
            "steps until the lead is 3M": partial(theory.steps_to_lead, side="benign"),
            "those over T₁": theory.steps_over_t1,
        },
    )(steps)
    short = float(_number_by_cell(steps, "benign", theory.decades_short).mean())
    if short <= 0:
        return measured
    why = "As the lemma has it, T₁ is positive only where N·SNR² is above 60 M² C_p²."
    return mark_vacuous(measured, why, {"decades by which N·SNR² is below 60 M² C_p²": short})


def _stage_3_attention(steps: pd.DataFrame) -> Measurement:
    """Measure the attention of each class of token on the signal when training ends."""
    level = level_of_each(len(TOKEN_CLASSES))

    def final_attention(source: str) -> Estimate:
        def last(of_cell: pd.DataFrame, parameters: BenignVitParameters) -> float:
            return float(of_cell[f"attention_{source}_signal"].iloc[-1])

        of_seeds = _means(_number_by_cell(steps, "benign", last))
        return mean_estimate(of_seeds, level, within=(0.0, 1.0))

    words = {"signal": "the signal", "noise": "token 2", "rest": "tokens 3 to M"}
    return judge_estimates(
        {
            f"attention of {words[source]} on the signal": (final_attention(source), NEAR_ONE)
            for source in TOKEN_CLASSES
        },
        note="When training ends, mean over seeds.",
    )


def _claim(
    name: str,
    source: str,
    statement: str,
    holds_where: str,
    measure: Callable[[pd.DataFrame], Measurement],
    side: Regime = "benign",
) -> Claim:
    return Claim(
        name=name,
        source=f"Jiang et al. 2024, {source}",
        statement=statement,
        holds_where=holds_where,
        measure=measure,
        figure="dynamics",
        preset=f"theorem-dynamics-{side}",
        reads="trajectories",
    )


LEMMAS = (
    _claim(
        "lemma51-signal",
        "Lemma 5.1 (B.2)",
        "A step adds η‖μ‖²/(NM) Σ −ℓ′ Σ_s softmax(⟨q_s, k_±⟩) to the signal's value: −ℓ′ and the "
        "attention on the signal decide how fast it is learned.",
        SAME.in_words("what a step adds to γ₊ − γ₋ over that, the median over steps,"),
        _judge(theory.signal_update, SAME, logs=True, note="The median over logged steps."),
    ),
    _claim(
        "lemma51-noise",
        "Lemma 5.1 (B.2)",
        "The median step adds at most η 3/2 σ̃_p² d/(NM) (−ℓ′) Σ_s softmax(⟨q_s, k_2⟩) to token 2's "
        "value.",
        AT_MOST.in_words("what a step adds to y ρ over that, the median over steps,"),
        _judge(theory.noise_update, AT_MOST, logs=True, note="The median over logged steps."),
    ),
    _claim(
        "lemma52-lead",
        "Lemma 5.2",
        "By the end of stage 2 the signal's value is 3M times any other of its sample.",
        LEAD.in_words("the lead over 3M, at the worst sample,"),
        _lead_of_signal,
    ),
    _claim(
        "lemma-e3-lead",
        "Lemma E.3",
        "Where overfitting is harmful, token 2's value is 3M times any other of its sample by the "
        "end of stage 2.",
        LEAD.in_words("the lead over 3M, at the worst sample,"),
        _judge(
            partial(theory.lead, side="harmful"),
            LEAD,
            "harmful",
            logs=True,
            note="The largest lead until stage 2 ends, over 3M.",
            details={"steps until the lead is 3M": partial(theory.steps_to_lead, side="harmful")},
        ),
        "harmful",
    ),
    _claim(
        "lemma53-values",
        "Lemma 5.3",
        "In stage 2 the signal's value grows at least linearly in the steps since T₁.",
        LINEAR.in_words("the power of t − T₁"),
        _judge(theory.stage_2_value, LINEAR, note="Fitted to the second half of stage 2."),
    ),
    _claim(
        "lemma53-products",
        "Lemma 5.3",
        "In stage 2 exp(⟨q₊, k₊⟩ − ⟨q₊, k₂⟩) grows at least as the square of the steps since T₁.",
        QUADRATIC.in_words("the power of t − T₁"),
        _judge(theory.stage_2_products, QUADRATIC, note="Fitted to the second half of stage 2."),
    ),
    _claim(
        "stage3-attention",
        "section 5.3, stage 3",
        "In stage 3 the attention of all tokens on the signal is nearly 1.",
        NEAR_ONE.in_words("the attention of each class of token"),
        _stage_3_attention,
    ),
    _claim(
        "lemma54-values",
        "Lemma 5.4",
        "In stage 3 the exponential of the signal's value grows at least linearly in the steps "
        "since T₂.",
        LINEAR.in_words("the power of t − T₂"),
        _judge(theory.stage_3_value, LINEAR, note="Fitted to the second half of stage 3."),
    ),
)
