"""Claims on the stages of training: lemmas of section 5, propositions of appendices D and E.

They are judged on logged steps, at the worst sample, token and key (see `stages.py`). The cells
meet items 1 and 3 to 10 of Condition 4.1, and on the benign side what Lemma 5.2 and stage 3 require
too: a test computes it. The lemmas leave constants open but for those of T₁, so that powers, ratios
and orders of magnitude are judged, on every seed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from overfit_cli.claims.papers import Claims, on
from overfit_cli.studies.benign_vit.claims.theorems import (
    BENIGN_SIDE,
    CONDITION,
    CONDITION_41,
    HARMFUL_SIDE,
    MAY_VARY,
    PROBABILITY,
    SMALL_ERROR,
    always,
)
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.stages import numbers, until_stage_2_ends
from overfit_cli.studies.benign_vit.theory import BALANCE, BALANCE_IN_WORDS

jiang = Claims("", "Jiang et al. 2024", BenignVitParameters, figure="dynamics")

SIDES: Mapping[str, Mapping[str, Any]] = {
    side: {
        "on": on(f"theorem-dynamics-{side}", alike=MAY_VARY),
        "hypotheses": f"{required}; {PROBABILITY}",
        "reads": "trajectories",
    }
    for side, required in (("benign", BENIGN_SIDE), ("harmful", HARMFUL_SIDE))
}
BENIGN, HARMFUL = SIDES.values()
STAGE_3 = {**BENIGN, "hypotheses": f"{BENIGN['hypotheses']}; {SMALL_ERROR}"}
ROUNDING = "1e-14"
"""How far a score may seem to move the other way, over the largest one.

A score is rounded by up to 4e-16 of the largest one, as a test measures, and what is judged is made
of up to six scores; four times that allows for other orders of summation.
"""

T1 = "T₁ comes before stage 2 ends, as the lemma has it in stage 1"
SMALL_HARMFUL_ERROR = (
    "the error log(6N²M²/δ)³/(SNR²‖w_O‖²√d_h) of (169), with its logarithms and a constant of 1, "
    "is below 1"
)
LEAD = {"number": "the least lead over 3M, at the worst sample,"}
POWER = "the power of the steps since the stage began"
LINEAR: dict[str, Any] = {"number": POWER, "because": "1, up to a tenth", "target": 1.0}
QUADRATIC: dict[str, Any] = {"number": POWER, "because": "2, less a tenth", "target": 2.0}
HARMFUL_WINS = "Where overfitting is harmful,"

# Values

for name, place, statement, cells in (
    (
        "lemma52-lead",
        "Lemmas 5.2 and 5.3",
        "From T₁ = 10M(3M+1)N/(η d_h^¼ (N‖μ‖² − 60M²C_p²σ_p²d) ‖w_O‖²) until stage 2 ends, the "
        "signal's value is at least 3M times any other of its sample.",
        BENIGN,
    ),
    (
        "lemma-e3-lead",
        "Lemma E.3 and J(t) of E.2",
        f"{HARMFUL_WINS} token 2's value is at least 3M times any other of its sample from "
        "T₁ = 4M(3M+1)N/(η d_h^¼ (C_p² − 24M) σ_p²d ‖w_O‖²) until stage 2 ends.",
        HARMFUL,
    ),
):
    jiang.paper(
        name,
        place,
        statement,
        always("lead", ">= 1", "geometric mean"),
        cells=until_stage_2_ends,
        **LEAD,
        **{**cells, "hypotheses": f"{cells['hypotheses']}; {T1}"},
    )
jiang.ours(
    "lemma53-values",
    "Lemma 5.3 and proposition B(t) of D.2",
    "In stage 2 the signals' values grow linearly in the steps since stage 1 ended, by their local "
    "power in its second half: the slower one at least so, and the faster one at most so. The "
    "coefficient is open, and isn't asked.",
    {
        "slower signal": always("slower_value", ">= 0.9"),
        "faster signal": always("faster_value", "<= 1.1"),
    },
    cells=numbers("slower_value", "faster_value"),
    **LINEAR,
    **BENIGN,
)
jiang.ours(
    "harmful-values",
    "proposition J(t) of E.2",
    f"{HARMFUL_WINS} token 2's value, the mean over samples, grows linearly in stage 2 in the "
    "steps since stage 1 ended, by its local power in the second half: at least so, and at most "
    "so. The coefficient isn't asked.",
    {
        "at least linear": always("slower_value", ">= 0.9"),
        "at most linear": always("faster_value", "<= 1.1"),
    },
    cells=numbers("slower_value", "faster_value"),
    **LINEAR,
    **HARMFUL,
)
for side, place, token in (
    ("benign", "proposition F(t) of D.3", "signal's"),
    ("harmful", "proposition N(t) of E.3", "strong noise token's"),
):
    jiang.paper(
        f"stage3-lead-{side}",
        place,
        f"In stage 3 the {token} value stays at least 3M times any other of its sample.",
        always("stage_3_lead", ">= 1", "geometric mean"),
        cells=numbers("stage_3_lead"),
        **LEAD,
        **SIDES[side],
    )
jiang.paper(
    "lemma54-values",
    "Lemma 5.4",
    "In stage 3 the exponential of either signal's value grows at least linearly in the steps "
    "since T₂, by its local power in the second half. The coefficient is open, and isn't asked.",
    always("stage_3_value", ">= 0.9"),
    cells=numbers("stage_3_value"),
    **LINEAR,
    **STAGE_3,
)
jiang.paper(
    "harmful-values-stage3",
    "proposition N(t) of E.3",
    f"{HARMFUL_WINS} exp of token 2's value, the least over samples, grows in stage 3 at least "
    "linearly in the steps since T₂, by its local power in the second half. The coefficient isn't "
    "asked.",
    always("stage_3_value", ">= 0.9"),
    cells=numbers("stage_3_value"),
    **LINEAR,
    **HARMFUL,
)
jiang.paper(
    "harmful-largest-values",
    "proposition N(t) of E.3",
    f"{HARMFUL_WINS} no noise token's value ever passes 2 log(C/ε), with C = 1.",
    "value_over_bound <= 1 on all seeds",
    cells=numbers("value_over_bound"),
    **HARMFUL,
)
for side, place in (("benign", "Lemmas C.2 and D.3"), ("harmful", "Lemmas C.2 and E.1")):
    jiang.paper(
        f"values-until-t0-{side}",
        place,
        "Up to T₀ every value is O(d_h^(−1/4)): at most its tail at initialisation and what is "
        "learned by T₀.",
        always("first_value", "<= 1"),
        cells=numbers("first_value"),
        number="the largest value over 2σ_V‖w_O‖s √(log(2NM/δ)) + d_h^(−1/4)",
        because="the tail in the proof of Lemma C.2, and T₀'s constant is 1",
        **SIDES[side],
    )

# Scores ⟨q, k⟩, and attention

jiang.ours(
    "lemma53-every-product",
    "Lemma 5.3 and proposition D(t) of D.2",
    "In stage 2 exp(Λ), Λ = ⟨q, k₊⟩ − ⟨q, k_n,j⟩ (or with k₋), grows at least as the square of the "
    "steps since stage 1 ended, by its local power in the second half, for the query of every "
    "token and every noise key, and so does exp(⟨q, k₊⟩ − ⟨q, k_n,2⟩) in the mean over samples, of "
    "the + signal's and of token 2's query.",
    {
        "every token": always("every_query", ">= 1.9"),
        "signal's query": always("signal_query", ">= 1.9"),
        "token 2's query": always("noise_query", ">= 1.9"),
    },
    cells=numbers("every_query", "signal_query", "noise_query"),
    **QUADRATIC,
    **BENIGN,
)
jiang.ours(
    "harmful-every-product",
    "proposition L(t) of E.2, (160) to (164)",
    f"{HARMFUL_WINS} exp(Ψ), Ψ = ⟨q, k_n,2⟩ − ⟨q, k⟩, grows in stage 2 at least as the square of "
    "the steps since stage 1 ended, by its local power in the second half, for the query of every "
    "token and every other key, and so does exp(⟨q, k_n,2⟩ − ⟨q, k₊⟩) in the mean over samples, of "
    "the + signal's query.",
    {
        "every token": always("every_query", ">= 1.9"),
        "signal's query": always("signal_query", ">= 1.9"),
    },
    cells=numbers("every_query", "signal_query"),
    **QUADRATIC,
    **HARMFUL,
)
jiang.ours(
    "harmful-noise-products",
    "proposition L(t) of E.2, (160) to (164), which is about each sample",
    f"{HARMFUL_WINS} exp(⟨q, k_n,2⟩ − ⟨q, k₊⟩) of token 2's query, in the mean over samples, grows "
    "in stage 2 at least as the square of the steps since stage 1 ended, by its local power in the "
    "second half, on average over draws.",
    "mean of noise_query >= 1.9",
    cells=numbers("noise_query"),
    **QUADRATIC,
    **{**HARMFUL, "hypotheses": HARMFUL_SIDE},
)
jiang.ours(
    "stage3-attention",
    "section 5.3, stage 3, (108) to (111)",
    "From the beginning of stage 3 on the attention of every class of token on the signal, in the "
    "mean over samples, is nearly 1, at least nine tenths. The paper leaves open how near, and "
    "which constant its T₂ has.",
    always("stage_3_attention", ">= 0.9"),
    cells=numbers("stage_3_attention"),
    number="the least attention of a class of query on the signal in stage 3",
    **STAGE_3,
)
jiang.ours(
    "harmful-attention",
    "E.3, (169) and (170)",
    f"{HARMFUL_WINS} the attention of every class of token on token 2, in the mean over samples, "
    "is nearly 1 from the beginning of stage 3 on, at least nine tenths.",
    always("stage_3_attention", ">= 0.9"),
    cells=numbers("stage_3_attention"),
    number="the least attention of a class of query on token 2 in stage 3",
    **{**HARMFUL, "hypotheses": f"{HARMFUL['hypotheses']}; {SMALL_HARMFUL_ERROR}"},
)
for side, place, required in (
    ("benign", "proof of Lemma D.5", BENIGN_SIDE),
    ("harmful", "proof of Lemma E.3", HARMFUL_SIDE),
):
    jiang.sharp(
        f"even-attention-until-t1-{side}",
        place,
        "At this d_h and N·SNR², T₁ with its printed constants is still so early that the "
        "attention of every class of query is 1/M ± o(1) up to it.",
        "mean of attention_off <= 0.5",
        cells=numbers("attention_off"),
        number="the most by which a class's attention differs from 1/M up to T₁, times M,",
        because="our reading of o(1): half of 1/M",
        **{**SIDES[side], "hypotheses": required},
    )

jiang.ours(
    "first-stage-width",
    "section 5.3 and the proofs of Lemmas D.5 and E.3",
    "Wider heads don't bring stage 1 about: the step at which the attention of a class of query is "
    "first half of 1/M off 1/M scales with d_h as T₁ does, on either side.",
    "mean of power of d_h in leaving is 0 within 0.02",
    on=on(
        "theorem-first-stage",
        *CONDITION_41,
        f"(n * snr**2 - 60 * (tokens * sigma_p_tilde / sigma_p)**2) * (n * snr**2 - {BALANCE} / 4) "
        ">= 0",
        alike=MAY_VARY,
    ),
    cells=numbers("leaving"),
    number="the power of d_h in that step over T₁",
    because="0.25 would be another law; over d_h from 10¹⁴ to 10¹⁸ 0.02 is a factor of 1.2",
    hypotheses=f"{CONDITION}; N·SNR² is above 60 M² C_p², or at most a quarter of "
    f"{BALANCE_IN_WORDS}; N, SNR and M are those of one setting on each side",
    reads="trajectories",
)

# Without exception, of every sample, token and step

for side, place, statement in (
    (
        "benign",
        "propositions D(t) and H(t) of D.2 and D.3",
        "From T₁ on, every score with the signal's key rises, and every score with noise's falls, "
        "at every sample, from each logged step to the next.",
    ),
    (
        "harmful",
        "propositions L(t) and P(t) of E.2 and E.3",
        "From T₁ on, every score with token 2's key rises, by twice what any other of its query "
        "does, at every sample, from each logged step to the next.",
    ),
):
    jiang.paper(
        f"scores-rise-{side}",
        place,
        statement,
        f"rise >= -{ROUNDING} on all seeds",
        cells=numbers("rise"),
        **SIDES[side],
    )
for side, place in (
    ("benign", "Lemma D.4, propositions C(t) and G(t) of D.2 and D.3"),
    ("harmful", "Lemma E.2, propositions K(t) and O(t) of E.2 and E.3"),
):
    jiang.paper(
        f"norms-stay-{side}",
        place,
        "‖q‖² and ‖k‖² of every token stay Θ(s² σ_h² d_h) in all of training: up to any logged "
        "step they grow or shrink by less than a factor of 2.",
        "norm_change <= 1 on all seeds",
        cells=numbers("norm_change"),
        **SIDES[side],
    )
for side, place in (
    ("benign", "propositions C(t), E(t), G(t) and I(t) of D.2 and D.3"),
    ("harmful", "propositions K(t), M(t), O(t) and Q(t) of E.2 and E.3"),
):
    jiang.paper(
        f"stray-products-{side}",
        place,
        "Training moves no product of two queries, of two keys, or of a query and a key that meet "
        "in no sample by more than o(1), which is below 1, up to any logged step.",
        "move <= 1 on all seeds",
        cells=numbers("move"),
        **SIDES[side],
    )
for side, place, bounded in (
    ("benign", "propositions E(t) and I(t) of D.2 and D.3", "score"),
    ("harmful", "propositions M(t) and Q(t) of E.2 and E.3", "difference Ψ of two scores"),
):
    jiang.paper(
        f"largest-scores-{side}",
        place,
        f"No {bounded} passes log(√d_h) in stage 2, or log(√d_h/ε) after it.",
        "score_over_bound <= 1 on all seeds",
        cells=numbers("score_over_bound"),
        **SIDES[side],
    )
