"""Claims of the proofs in appendices D and E: products, values, attention (Jiang et al. 2024).

The cells are those of section 5's lemmas: see `lemmas.py`. `every_token.py` has the others.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import is_unknown
from overfit_cli.claims.parts import Margin, Part
from overfit_cli.claims.rules import THEOREM_RULE, judge, judge_theorem
from overfit_cli.core.claim import Claim, Measurement
from overfit_cli.studies.benign_vit import lemma_numbers as numbers
from overfit_cli.studies.benign_vit.claims.condition import (
    SMALL_ERROR,
    SMALL_TEST_ERROR,
    hypotheses_of,
    numbers_of,
    require_condition,
    vacuous,
    whole_design,
    with_large_product,
    with_small_error,
    with_small_test_error,
)
from overfit_cli.studies.benign_vit.claims.lemmas import (
    NEAR_ONE,
    QUADRATIC,
    by_seed,
    chosen_steps,
    judge_number,
    lemma_claim,
)
from overfit_cli.studies.benign_vit.parameters import TOKEN_CLASSES, BenignVitParameters
from overfit_cli.studies.benign_vit.theory import Regime, harmful_attention_error

STILL_EVEN = Margin(most=0.5, because="our reading of o(1): half of 1/M", fewest_seeds=5)

WORDS = {"signal": "the signal", "noise": "token 2", "rest": "tokens 3 to M"}
"""The classes of tokens."""

SMALL_HARMFUL_ERROR = (
    "the error log(6N²M²/δ)³/(SNR²‖w_O‖²√d_h) of (169), with its logarithms and a constant of 1, "
    "is below 1"
)


def _even(steps: pd.DataFrame, side: Regime) -> Measurement:
    """Measure how far attention is from 1/M up to T₁; M − 1, all on one token, is the most."""
    chosen = chosen_steps(steps, side, has_small_error=False)
    of_query = {
        source: by_seed(chosen, partial(numbers.attention_gone_at_t1, side=side, source=source))
        for source in TOKEN_CLASSES
    }
    gone = pd.DataFrame(of_query).max(axis=1)
    return judge(
        [Part.of(gone, STILL_EVEN, within=(0.0, float(chosen["tokens"].iloc[0]) - 1))],
        note="The most of the three classes of query.",
        details={
            f"off 1/M times M, {WORDS[source]}": float(of_seeds.mean())
            for source, of_seeds in of_query.items()
        },
    )


def _harmful_attention(steps: pd.DataFrame) -> Measurement:
    """Measure the attention of each class of token on token 2 when training ends."""
    cells = steps.drop_duplicates("key")
    errors = numbers_of(cells, harmful_attention_error)
    small = cells.loc[errors < 1, "key"]
    if small.empty:
        raise vacuous(
            f"By (169) training attention may miss 1 by {errors.min():.3g} or more.",
            {"error of (169), least": float(errors.min())},
        )
    chosen = chosen_steps(steps[steps["key"].isin(small)], "harmful", has_small_error=False)

    def last(of_cell: pd.DataFrame, parameters: BenignVitParameters, source: str) -> float:
        return float(of_cell[f"attention_{source}_noise"].iloc[-1])

    return judge(
        [
            Part.of(
                by_seed(chosen, partial(last, source=source)),
                NEAR_ONE,
                within=(0.0, 1.0),
                called=f"attention of {WORDS[source]} on token 2",
            )
            for source in TOKEN_CLASSES
        ],
        note="When training ends, mean over seeds.",
    )


def _stage_3_design(cells: pd.DataFrame) -> pd.DataFrame:
    chosen = require_condition(cells, "benign", "theorem-benign-stage3")
    for need in (with_large_product, with_small_error, with_small_test_error):
        chosen = need(chosen)
    return whole_design(chosen)


def _own_attention(cells: pd.DataFrame) -> Measurement:
    """Judge whether a test sample's signal ever pays itself less than 1/(2M)."""
    design = _stage_3_design(cells)
    least = design["test_signal_attention_min"].astype(float)
    return judge_theorem(
        least < 1 / (2 * design["tokens"]),
        design["seed"],
        unknown=is_unknown(design) | least.isna(),
        details={"attention of the signal on itself, least": float(least.min())},
    )


def _fresh_values(cells: pd.DataFrame) -> Measurement:
    """Judge whether the value of a test sample's noise token ever passes 1."""
    design = _stage_3_design(cells)
    largest = design["test_noise_value_max"].astype(float)
    return judge_theorem(
        largest > 1,
        design["seed"],
        unknown=is_unknown(design) | largest.isna(),
        decades_over=largest.map(np.log10),
        details={"value of a new noise token, most": float(largest.max())},
    )


def _of(number: Callable[..., float], side: Regime) -> Callable[..., float]:
    return partial(number, side=side)


_EVEN: dict[Regime, str] = {"benign": "proof of Lemma D.5", "harmful": "proof of Lemma E.3"}


def _of_side(side: Regime) -> tuple[Claim, ...]:
    return (
        lemma_claim(
            f"even-attention-until-t1-{side}",
            _EVEN[side],
            "At this d_h, T₁ with its printed constants is still so early that the attention of "
            "every class of query is 1/M ± o(1) up to it.",
            STILL_EVEN.in_words(
                "the most by which attention differs from 1/M up to T₁, times M, of the class of "
                "query that differs most,"
            ),
            partial(_even, side=side),
            side=side,
            kind="sharp",
        ),
    )


PROPOSITIONS = (
    *_of_side("benign"),
    *_of_side("harmful"),
    lemma_claim(
        "harmful-noise-products",
        "proposition L(t) of E.2, (160) to (164)",
        "Where overfitting is harmful, exp(⟨q, k₂⟩ − ⟨q, k₊⟩) of token 2's query grows in stage 2 "
        "at least as the square of the steps since stage 1 ended.",
        QUADRATIC.in_words("the power of the steps since then"),
        judge_number(
            partial(numbers.stage_2_products, query="noise", side="harmful"),
            QUADRATIC,
            note="Fitted to the second half of stage 2.",
            side="harmful",
        ),
        side="harmful",
    ),
    lemma_claim(
        "harmful-attention",
        "E.3, (169) and (170)",
        "Where overfitting is harmful, the attention of all tokens on token 2 ends nearly at 1.",
        NEAR_ONE.in_words("the attention of each class of token"),
        _harmful_attention,
        side="harmful",
        further=[SMALL_HARMFUL_ERROR],
    ),
    *(
        Claim(
            name=name,
            kind="paper",
            source=f"Jiang et al. 2024, {lemma}",
            statement=statement,
            hypotheses="; ".join([hypotheses_of("benign"), SMALL_ERROR, SMALL_TEST_ERROR]),
            holds_where=THEOREM_RULE,
            measure=measure,
            preset="theorem-benign-stage3",
        )
        for name, lemma, statement, measure in (
            (
                "lemma-d8-attention",
                "Lemma D.8",
                "When training ends, a test sample's signal pays itself at least 1/(2M) of its "
                "attention.",
                _own_attention,
            ),
            (
                "lemma-d9-values",
                "Lemma D.9",
                "When training ends, the value of a new noise token is at most 1.",
                _fresh_values,
            ),
        )
    ),
)
