"""Claims of the propositions for every token, sample and key (Jiang et al. 2024, appendices D, E).

The cells are those of section 5's lemmas: see `lemmas.py`. What is judged is the worst over all n,
i and j: see `vit/every_token.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from overfit_cli.claims.parts import Margin, Part
from overfit_cli.claims.rules import THEOREM_RULE, judge, judge_theorem
from overfit_cli.claims.stated import joined
from overfit_cli.core.claim import Claim, Measurement
from overfit_cli.studies.benign_vit import lemma_numbers as numbers
from overfit_cli.studies.benign_vit.claims.lemmas import (
    LEAD,
    LINEAR,
    QUADRATIC,
    by_seed,
    chosen_steps,
    judge_number,
    lemma_claim,
)
from overfit_cli.studies.benign_vit.theory import Regime

ROUNDING = 1e-14
"""How far a score may seem to move the other way, over the largest one.

A score is rounded by up to 4e-16 of the largest one, as a test measures, and what is judged is made
of up to six scores; four times that allows for other orders of summation.
"""

AT_MOST_LINEAR = Margin(most=1.1, because="the lemma's 1, and a tenth", target=1.0)
WITHIN_TAIL = Margin(
    most=1.0, because="the tail in the proof of Lemma C.2, and T₀'s constant is 1", fewest_seeds=5
)
SAME_MAGNITUDE = 2.0
"""The factor by which a norm that keeps its magnitude may change: Lemma C.3 allows 3/2 and 1/2."""

SMALL = 1.0
"""What o(1) is below, with a constant of 1."""

PROPOSITIONS_OF: dict[str, dict[Regime, str]] = {
    "rises": {
        "benign": "propositions D(t) and H(t) of D.2 and D.3",
        "harmful": "propositions L(t) and P(t) of E.2 and E.3",
    },
    "norms": {
        "benign": "Lemma D.4, propositions C(t) and G(t) of D.2 and D.3",
        "harmful": "Lemma E.2, propositions K(t) and O(t) of E.2 and E.3",
    },
    "stray": {
        "benign": "propositions C(t), E(t), G(t) and I(t) of D.2 and D.3",
        "harmful": "propositions K(t), M(t), O(t) and Q(t) of E.2 and E.3",
    },
    "scores": {
        "benign": "propositions E(t) and I(t) of D.2 and D.3",
        "harmful": "propositions M(t) and Q(t) of E.2 and E.3",
    },
    "lead": {"benign": "proposition F(t) of D.3", "harmful": "proposition N(t) of E.3"},
    "t0": {"benign": "Lemmas C.2 and D.3", "harmful": "Lemmas C.2 and E.1"},
}
RISES: dict[Regime, str] = {
    "benign": "every score with the signal's key rises, and every score with noise's falls",
    "harmful": "every score with token 2's key rises, by twice what any other of its query does",
}
BOUNDED: dict[Regime, str] = {"benign": "score", "harmful": "difference Ψ of two scores"}


def _without_exception(
    steps: pd.DataFrame, side: Regime, number: Callable[..., float], bound: float, words: str
) -> Measurement:
    of_seeds = by_seed(chosen_steps(steps, side, has_small_error=False), number)
    return judge_theorem(
        of_seeds > bound,
        pd.Series(of_seeds.index, index=of_seeds.index),
        decades_over=(of_seeds / bound).map(np.log10),
        details={f"{words}, most": float(of_seeds.max())},
    )


def _rises(steps: pd.DataFrame, side: Regime) -> Measurement:
    chosen = chosen_steps(steps, side, has_small_error=False)
    least = by_seed(chosen, partial(numbers.least_rise, side=side))
    return judge_theorem(
        least < -ROUNDING,
        pd.Series(least.index, index=least.index),
        details={"least between logged steps, over the largest score": float(least.min())},
    )


def _lead(steps: pd.DataFrame, side: Regime) -> Measurement:
    chosen = chosen_steps(steps, side, has_small_error=False)
    logs = by_seed(chosen, partial(numbers.stage_3_lead, side=side))
    return judge(
        [Part.of(np.exp(logs), LEAD, "geometric mean")], note="The least lead in stage 3, over 3M."
    )


def _of(number: Callable[..., float], side: Regime) -> Callable[..., float]:
    return partial(number, side=side)


def _joined(
    name: str,
    source: str,
    statement: str,
    holds_where: str,
    parts: Mapping[str, Callable[[pd.DataFrame], Measurement]],
    side: Regime,
) -> Claim:
    [first, *_] = parts.values()
    claim = lemma_claim(name, source, statement, holds_where, first, side=side)
    return joined({label: replace(claim, measure=measure) for label, measure in parts.items()})


def _power(
    number: Callable[..., float], margin: Margin, side: Regime
) -> Callable[[pd.DataFrame], Measurement]:
    return judge_number(number, margin, note="Fitted to the second half of stage 2.", side=side)


def _every_product(side: Regime) -> Callable[[pd.DataFrame], Measurement]:
    """The power of the gap at the worst sample, token and key."""
    return _power(_of(numbers.least_products_power, side), QUADRATIC, side)


def _mean_product(query: str, side: Regime) -> Callable[[pd.DataFrame], Measurement]:
    """The power of a query's mean gap over samples."""
    return _power(partial(numbers.stage_2_products, query=query, side=side), QUADRATIC, side)


GROWTH = (
    _joined(
        "lemma53-every-product",
        "Lemma 5.3 and proposition D(t) of D.2",
        "In stage 2 exp(Λ) grows at least as the square of the steps since stage 1 ended, for the "
        "query of every token and every key, and in the mean over samples exp(⟨q, k₊⟩ − ⟨q, k₂⟩) "
        "of the + signal's and of token 2's query does. Λ is a score with the signal less one with "
        "noise.",
        QUADRATIC.in_words(
            "the power of the steps since then, of the worst class of query, of the signal's and "
            "of token 2's,"
        ),
        {
            "every token": _every_product("benign"),
            "signal's query": _mean_product("signal", "benign"),
            "token 2's query": _mean_product("noise", "benign"),
        },
        "benign",
    ),
    _joined(
        "harmful-every-product",
        "proposition L(t) of E.2, (160) to (164)",
        "Where overfitting is harmful, exp(Ψ) grows in stage 2 at least as the square of the steps "
        "since stage 1 ended, for the query of every token and every key, and in the mean over "
        "samples exp(⟨q, k₂⟩ − ⟨q, k₊⟩) of the signal's query does. Ψ is a score with token 2 less "
        "any other.",
        QUADRATIC.in_words(
            "the power of the steps since then, of the worst class of query and of the signal's,"
        ),
        {
            "every token": _every_product("harmful"),
            "signal's query": _mean_product("signal", "harmful"),
        },
        "harmful",
    ),
    _joined(
        "lemma53-values",
        "Lemma 5.3 and proposition B(t) of D.2",
        "In stage 2 the signals' values grow linearly in the steps since stage 1 ended: the slower "
        "one at least so, and the faster one at most so.",
        f"{LINEAR.in_words('the power of the steps since then, of the slower signal,')}; and "
        f"{AT_MOST_LINEAR.in_words('that of the faster one')}",
        {
            "slower signal": _power(numbers.stage_2_value, LINEAR, "benign"),
            "faster signal": _power(numbers.stage_2_value_most, AT_MOST_LINEAR, "benign"),
        },
        "benign",
    ),
    _joined(
        "harmful-values",
        "proposition J(t) of E.2",
        "Where overfitting is harmful, token 2's value, the mean over samples, grows linearly in "
        "stage 2 in the steps since stage 1 ended: at least so, and at most so.",
        f"{LINEAR.in_words('the power of the steps since then')}; and "
        f"{AT_MOST_LINEAR.in_words('it')}",
        {
            "at least linear": _power(numbers.stage_2_noise_value, LINEAR, "harmful"),
            "at most linear": _power(numbers.stage_2_noise_value, AT_MOST_LINEAR, "harmful"),
        },
        "harmful",
    ),
)


def _of_side(side: Regime) -> tuple[Claim, ...]:
    return (
        lemma_claim(
            f"scores-rise-{side}",
            PROPOSITIONS_OF["rises"][side],
            f"From T₁ on, {RISES[side]}, at every sample and step.",
            f"{THEOREM_RULE}; a move the other way by {ROUNDING:g} of the largest score is "
            "rounding",
            partial(_rises, side=side),
            side=side,
        ),
        lemma_claim(
            f"norms-stay-{side}",
            PROPOSITIONS_OF["norms"][side],
            "‖q‖² and ‖k‖² of every token stay Θ(s² σ_h² d_h) in all of training.",
            f"{THEOREM_RULE}; a factor of {SAME_MAGNITUDE:g} keeps the magnitude",
            partial(
                _without_exception,
                side=side,
                number=numbers.norm_change,
                bound=SAME_MAGNITUDE - 1,
                words="change of a norm's square over its first",
            ),
            side=side,
        ),
        lemma_claim(
            f"stray-products-{side}",
            PROPOSITIONS_OF["stray"][side],
            "Training moves no product of two queries, of two keys, or of a query and a key that "
            "meet in no sample by more than o(1): drawn small, they stay small.",
            f"{THEOREM_RULE}; o(1) is below {SMALL:g}",
            partial(
                _without_exception,
                side=side,
                number=numbers.largest_move,
                bound=SMALL,
                words="move of a product",
            ),
            side=side,
        ),
        lemma_claim(
            f"largest-scores-{side}",
            PROPOSITIONS_OF["scores"][side],
            f"No {BOUNDED[side]} passes log(√d_h) in stage 2, or log(√d_h/ε) after it.",
            THEOREM_RULE,
            partial(
                _without_exception,
                side=side,
                number=_of(numbers.scores_over_bound, side),
                bound=1.0,
                words="over the bound",
            ),
            side=side,
        ),
        lemma_claim(
            f"stage3-lead-{side}",
            PROPOSITIONS_OF["lead"][side],
            "In stage 3 the value of what wins stays at least 3M times any other of its sample.",
            LEAD.in_words("the least lead over 3M, at the worst sample,"),
            partial(_lead, side=side),
            side=side,
        ),
        lemma_claim(
            f"values-until-t0-{side}",
            PROPOSITIONS_OF["t0"][side],
            "Up to T₀ every value is O(d_h^(−1/4)): at most its tail at initialisation and what is "
            "learned by T₀.",
            WITHIN_TAIL.in_words("the largest value over 2σ_V‖w_O‖s √(log(2NM/δ)) + d_h^(−1/4)"),
            judge_number(
                _of(numbers.values_until_t0, side),
                WITHIN_TAIL,
                note="s is the length of the longest token, and T₀ has σ̃_p² on the harmful side.",
                side=side,
            ),
            side=side,
        ),
    )


EVERY_TOKEN = (
    *GROWTH,
    *_of_side("benign"),
    *_of_side("harmful"),
    lemma_claim(
        "harmful-values-stage3",
        "proposition N(t) of E.3",
        "Where overfitting is harmful, exp of token 2's value grows in stage 3 at least "
        "linearly in the steps since T₂, in every sample.",
        LINEAR.in_words("the power of t − T₂, at the worst sample,"),
        judge_number(
            numbers.stage_3_noise_value,
            LINEAR,
            note="Fitted to the second half of stage 3.",
            side="harmful",
        ),
        side="harmful",
    ),
    lemma_claim(
        "harmful-largest-values",
        "proposition N(t) of E.3",
        "Where overfitting is harmful, no noise token's value ever passes 2 log(C/ε), with C = 1.",
        THEOREM_RULE,
        partial(
            _without_exception,
            side="harmful",
            number=numbers.largest_value,
            bound=1.0,
            words="value over 2 log(1/ε)",
        ),
        side="harmful",
    ),
)
