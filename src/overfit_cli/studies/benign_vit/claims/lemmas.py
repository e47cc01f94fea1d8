"""Claims of section 5's lemmas on training dynamics, judged on logged steps (Jiang et al. 2024).

The cells meet Condition 4.1 and, on the benign side, what Lemma 5.2 asks of N·SNR². Constants of
the lemmas are open but for those of T₁: powers and orders of magnitude are judged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import one_setting
from overfit_cli.claims.parts import Margin, Part
from overfit_cli.claims.rules import judge
from overfit_cli.core.claim import Claim, Measurement, inconclusive
from overfit_cli.core.parameters import parameters_from_row
from overfit_cli.studies.benign_vit import lemma_numbers as numbers
from overfit_cli.studies.benign_vit.claims.condition import (
    MAY_VARY,
    SMALL_ERROR,
    hypotheses_of,
    require_condition,
    vacuous,
    with_large_product,
    with_small_error,
)
from overfit_cli.studies.benign_vit.parameters import TOKEN_CLASSES, BenignVitParameters
from overfit_cli.studies.benign_vit.theory import Regime, stage_ends

if TYPE_CHECKING:
    from overfit_cli.core.claim import Kind

LEAD = Margin(least=1.0, because="the lemma's", fewest_seeds=5)
NEAR_ONE = Margin(least=0.9, because="nearly 1: nine tenths of all attention", target=1.0)
LINEAR = Margin(least=0.9, because="the lemma's 1, less a tenth", target=1.0)
QUADRATIC = Margin(least=1.9, because="the lemma's 2, less a tenth", target=2.0)

_ALIKE = [name for name in BenignVitParameters.model_fields if name not in MAY_VARY]

OfCell = Callable[[pd.DataFrame, BenignVitParameters], float]
"""A number of one cell: from its logged steps, in order, and its parameters."""


def chosen_steps(steps: pd.DataFrame, side: Regime, has_small_error: bool) -> pd.DataFrame:
    """Return the logged steps of the cells that meet a lemma's hypotheses, at one setting."""
    cells = require_condition(steps.drop_duplicates("key"), side, f"theorem-dynamics-{side}")
    if side == "benign":
        cells = with_large_product(cells)
    if has_small_error:
        cells = with_small_error(cells)
    cells = one_setting(cells, _ALIKE)
    if (failed := int((cells["status"] != "done").sum())) > 0:
        raise inconclusive(f"{failed} of {len(cells)} cells failed before they were fitted.")
    return steps[steps["key"].isin(cells["key"])].sort_values("step")


def by_seed(steps: pd.DataFrame, number: OfCell) -> pd.Series[float]:
    """Return the mean of a number over each seed's cells; open where a cell's steps don't tell."""
    by_cell = {}
    for key, of_cell in steps.groupby("key"):
        if of_cell["step"].iloc[-1] != of_cell["steps"].iloc[-1]:
            raise inconclusive("Some cells weren't logged to the end.")
        row = of_cell.iloc[0]
        by_cell[int(row["seed"]), key] = number(
            of_cell, parameters_from_row(BenignVitParameters, row)
        )
    values = pd.Series(by_cell)
    if (unknown := int(values.isna().sum())) > 0:
        raise inconclusive(f"The logged steps of {unknown} of {len(values)} cells don't tell.")
    return values.groupby(level=0).mean()


def judge_number(
    number: OfCell,
    margin: Margin,
    *,
    note: str,
    has_small_error: bool = False,
    side: Regime = "benign",
) -> Callable[[pd.DataFrame], Measurement]:
    """Return what measures a number's mean over seeds, on one side."""

    def measure(steps: pd.DataFrame) -> Measurement:
        chosen = chosen_steps(steps, side, has_small_error)
        parts = [Part.of(by_seed(chosen, number), margin)]
        return judge(parts, note=note, details=_stages(chosen, side))

    return measure


def _lead(steps: pd.DataFrame, side: Regime) -> Measurement:
    """Measure the least lead from T₁ to the end of stage 2, over 3M: its geometric mean over seeds.

    Cells in which T₁ comes after stage 2 are outside of the lemma, which places it in stage 1.
    """
    chosen = _with_t1_in_time(chosen_steps(steps, side, has_small_error=False), side)
    logs = by_seed(chosen, partial(numbers.lead_at_t1, side=side))
    return judge(
        [Part.of(np.exp(logs), LEAD, "geometric mean")],
        note="The least lead from T₁ on, over 3M.",
        details=_stages(chosen, side) | {"least of a seed": float(np.exp(logs.min()))},
    )


def _with_t1_in_time(steps: pd.DataFrame, side: Regime) -> pd.DataFrame:
    """Return the steps of cells in which T₁ isn't known to come after stage 2."""
    late = pd.Series(
        {
            key: numbers.t1_over_stage_2(
                of_cell, parameters_from_row(BenignVitParameters, of_cell.iloc[0]), side
            )
            for key, of_cell in steps.groupby("key")
        }
    )
    if (late > 1).all():
        raise vacuous(
            f"T₁ comes after stage 2, at {late.min():.3g} times its end or later: nothing lies in "
            "between.",
            {"T₁ over the end of stage 2, least": float(late.min())},
        )
    return steps[~steps["key"].isin(late.index[late > 1])]


def _stages(steps: pd.DataFrame, side: Regime) -> dict[str, float]:
    """Details: the ends of stages 1 and 2, and T₁, means over the cells in which they end."""
    parts = [
        (parameters_from_row(BenignVitParameters, of_cell.iloc[0]), of_cell)
        for _, of_cell in steps.groupby("key")
    ]
    ends = [stage_ends(of_cell, parameters.tokens, side) for parameters, of_cell in parts]
    means = {
        "steps until the lead is 3M": pd.Series([each.first for each in ends]),
        "steps until stage 2 ends": pd.Series([each.second for each in ends]),
        "T₁": pd.Series([numbers.t1(parameters, side) for parameters, _ in parts]),
    }
    return {f"{name}, mean": float(values.mean()) for name, values in means.items()}


def _stage_3_attention(steps: pd.DataFrame) -> Measurement:
    chosen = chosen_steps(steps, "benign", has_small_error=True)

    def final_attention(source: str) -> pd.Series[float]:
        def last(of_cell: pd.DataFrame, parameters: BenignVitParameters) -> float:
            ends = stage_ends(of_cell, parameters.tokens, "benign")
            has_ended = np.isfinite([ends.first, ends.second]).all()
            return float(of_cell[f"attention_{source}_signal"].iloc[-1]) if has_ended else np.nan

        return by_seed(chosen, last)

    words = {"signal": "the signal", "noise": "token 2", "rest": "tokens 3 to M"}
    return judge(
        [
            Part.of(
                final_attention(source),
                NEAR_ONE,
                within=(0.0, 1.0),
                called=f"attention of {words[source]} on the signal",
            )
            for source in TOKEN_CLASSES
        ],
        note="When training ends, mean over seeds.",
    )


def lemma_claim(
    name: str,
    source: str,
    statement: str,
    holds_where: str,
    measure: Callable[[pd.DataFrame], Measurement],
    *,
    side: Regime = "benign",
    kind: Kind = "paper",
    further: Sequence[str] = (),
) -> Claim:
    """Return a claim on logged steps where a side's hypotheses are met."""
    return Claim(
        name=name,
        kind=kind,
        source=f"Jiang et al. 2024, {source}",
        statement=statement,
        hypotheses="; ".join([hypotheses_of(side), *further]),
        holds_where=holds_where,
        measure=measure,
        figure="dynamics",
        preset=f"theorem-dynamics-{side}",
        reads="trajectories",
    )


T1_IN_TIME = "T₁ comes before stage 2 ends, as the lemma has it in stage 1"

LEMMAS = (
    lemma_claim(
        "lemma52-lead",
        "Lemmas 5.2 and 5.3",
        "From T₁ = 10M(3M+1)N/(η d_h^¼ (N‖μ‖² − 60M²C_p²σ_p²d) ‖w_O‖²) until stage 2 ends, the "
        "signal's value is at least 3M times any other of its sample.",
        LEAD.in_words("the least lead over 3M, at the worst sample,"),
        partial(_lead, side="benign"),
        further=[T1_IN_TIME],
    ),
    lemma_claim(
        "lemma-e3-lead",
        "Lemma E.3 and J(t) of E.2",
        "Where overfitting is harmful, token 2's value is at least 3M times any other of its "
        "sample from T₁ = 4M(3M+1)N/(η d_h^¼ (C_p² − 24M) σ_p²d ‖w_O‖²) until stage 2 ends.",
        LEAD.in_words("the least lead over 3M, at the worst sample,"),
        partial(_lead, side="harmful"),
        side="harmful",
        further=[T1_IN_TIME],
    ),
    lemma_claim(
        "stage3-attention",
        "section 5.3, stage 3, (108) to (111)",
        "In stage 3 the attention of all tokens on the signal is nearly 1.",
        NEAR_ONE.in_words("the attention of each class of token"),
        _stage_3_attention,
        further=[SMALL_ERROR],
    ),
    lemma_claim(
        "lemma54-values",
        "Lemma 5.4",
        "In stage 3 the exponential of either signal's value grows at least linearly in the steps "
        "since T₂.",
        LINEAR.in_words("the power of t − T₂, of the slower signal,"),
        judge_number(
            numbers.stage_3_value,
            LINEAR,
            note="Fitted to the second half of stage 3.",
            has_small_error=True,
        ),
        further=[SMALL_ERROR],
    ),
)
