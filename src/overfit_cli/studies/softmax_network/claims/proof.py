"""Theorem 4.2, its lemmas and Theorem F.2 as they are stated, with their constants."""

from __future__ import annotations

from functools import partial

from overfit_cli.claims.cells import require_values
from overfit_cli.claims.papers import Claims, on
from overfit_cli.studies.softmax_network.parameters import SoftmaxConvergenceParameters
from overfit_cli.studies.softmax_network.study import COLUMNS

cao = Claims("softmax", "Cao et al. 2024", SoftmaxConvergenceParameters, COLUMNS, "bounds")

SMALL = on("softmax-small-weights")  # σ so small that B = 1, its least value
WIDE = on("softmax-drift", activation="softmax", initialisation="symmetric")
SEVERAL = on("softmax-outputs")  # 3 and 8 outputs
WORST = on("softmax-perturbation", "m >= 1024")
EVERY = on("softmax-perturbation", activation="softmax")
AT_BOTH_N = partial(require_values, n=(4, 16))
ASCENT = (
    "W is the worst that ascent over directions finds, so that a fail is certain, and a hold isn't"
)

RATE = "‖F − Y‖² falls by 1 − m η λ/2 at every step"
CONSTANTS = "C = 10, the end of C > 10; δ = 0.05; d outside B is the number of outputs"
WITHOUT = (
    "the lemma also requires Theorem 4.2's m and η and D < R = λ/(2nd e^(10B)), which are not met; "
    f"its proof uses only the rate and R < 0.01; {CONSTANTS}"
)

cao.paper(
    "theorem42",
    "Corollary 4.3 (Theorem 4.2 with one output) and Lemma E.2",
    f"With m and η as stated, {RATE}, with probability 1 − δ; that T̂ steps then bring it to ε is "
    "algebra.",
    "rate_ratio <= 1 on 95 % of seeds if width_missing <= 0 and step_size_beyond <= 0",
    on=SMALL,
    hypotheses=f"m and η are as stated, with 1 for the constant of Ω(·); {CONSTANTS}",
)
cao.paper(
    "lemma51-bound",
    "Lemma 5.1",
    "With probability 1 − δ, ‖H(W) − H(W̃)‖_F is at most R n d e^(10B) for every W within R, with R "
    "of 0.001 and 0.009.",
    "worst_drift <= exp(10) on all seeds; worst_drift_far <= exp(10) on all seeds",
    on=EVERY.where(sigma=0.03),
    cells=AT_BOTH_N,
    figure="worst-drift",
    hypotheses=f"softmax and one output; ‖x_i‖ ≤ 1; {ASCENT}; C = 10 and δ = 0.002, at which B is "
    "1 with σ = 0.03, 8 features and 4 or 16 samples",
)
cao.ours(
    "lemma51-worst",
    "Lemma 5.1",
    "‖H(W) − H(W̃)‖_F is at most 10 R n for every W within R of 0.001 and 0.009, so that the factor "
    "e^(10B), 22,000 or more, is not needed.",
    "worst_drift <= 10 on all seeds; worst_drift_far <= 10 on all seeds",
    on=EVERY,
    cells=AT_BOTH_N,
    because="10 was chosen after cells of earlier seeds were seen",
    figure="worst-drift",
    hypotheses=f"softmax and one output, σ of 0.03 and 1, n of 4 and 16; {ASCENT}",
)
for several, stated, trained in (
    ("", SMALL, WIDE.where("m >= 512")),
    ("-outputs", SEVERAL.where(sigma=0.03), SEVERAL),
):
    cao.ours(
        f"linear-rate{several}",
        "Lemma E.2",
        f"{RATE}, also where Theorem 4.2's m and η are not met.",
        "rate_ratio <= 1 on all seeds",
        on=trained,
    )
    cao.ours(
        f"lemma51{several}",
        "Lemma 5.1",
        "‖H − H*‖_F is at most R n d, without the factor e^(10B), in gradient descent from the "
        "symmetric start. There the first order cancels between the units of a pair, as it need "
        "not for every W.",
        "drift_share <= 1 on all seeds",
        on=trained,
    )
    cao.ours(
        f"lemma53-bound{several}",
        "Lemma 5.3 (Lemma C.2)",
        f"Where {RATE} and weights move by less than 0.01, they move by at most D = 4 e^(3B) √(nd) "
        "‖F(0) − Y‖ / (m λ), with probability 1 − δ.",
        "movement_over_bound <= 0 on 95 % of seeds if movement <= 0.01 and rate_ratio <= 1",
        on=stated,
        hypotheses=WITHOUT,
    )
cao.ours(
    "theorem-f2-bound",
    "Theorem F.2, with a constant for its O(·)",
    "At every step the network differs from kernel regression by at most 10 times √(nd) ε_test/λ + "
    "√(nd) log²(nd/(ε_H m λ)) ε_H/λ².",
    "gap_over_bound <= 10 on all seeds if 2 * kernel_drift <= lambda_start "
    "and kernel_drift * m * lambda_start <= n * outputs",
    on=SMALL,
    hypotheses="‖H − H*‖_F ≤ ε_H ≤ λ/2 and ‖K − K*‖_F ≤ ε_test on the way; ε_H m λ ≤ nd",
)
cao.ours(
    "step-bounds",
    "Lemmas E.3 and E.4, Claim E.5 and Lemma 5.3 (Lemma D.2)",
    "With 512 hidden units or more, at every logged step: |C₀| is at most 0.1 m η λ ‖F − Y‖², C₁ "
    "at most −1.6 m η vᵀ H(τ) v with v = F − Y, η ‖Δw_r‖ at most 0.01, and λ_min(H(τ)) at least "
    "λ/2.",
    {
        "C₀": "c0_over_bound <= 1 on all seeds",
        "C₁": "c1 <= -1.6 on all seeds",
        "λ_min(H)": "lambda_lost <= 0.5 on all seeds",
        "η ‖Δw_r‖": "step_length <= 0.01 on all seeds",
    },
    on=WIDE.where("m >= 512"),
    hypotheses="Theorem 4.2's m and η and D < R = λ/(2nd e^(10B)) are not met; the step size is "
    "1/(m λ_max), far larger than the theorem's. At the symmetric start C₁ is −2 of it by "
    "algebra, which decides nothing: later steps can break it",
)

LIMIT = f"{ASCENT}; n^o(1) is a limit, and a number at one n isn't about it"
LARGEST = "‖H(W) − H(W̃)‖_F is at most"
WITHIN = "R n for every W within R = 0.001, without n^o(1), at σ = 1 and m of 1024 or more"

for n in (4, 16):
    cao.sharp(
        f"drift-constant-softmax-{n}",
        "the text after Lemma 5.1",
        f"softmax, n = {n}: {LARGEST} {WITHIN}.",
        "worst_drift <= 1 on all seeds",
        on=WORST.where(activation="softmax", sigma=1.0, n=n),
        figure="worst-drift",
        hypotheses=LIMIT,
    )
cao.sharp(
    "drift-constant-exp",
    "the text after Lemma 5.1",
    f"exp, n = 4 and n = 16: {LARGEST} 3 {WITHIN}.",
    "worst_drift <= 3 on all seeds",
    on={f"n = {n}": WORST.where(activation="exp", sigma=1.0, n=n) for n in (4, 16)},
    figure="worst-drift",
    hypotheses=LIMIT,
)
cao.ours(
    "lemma51-linear",
    "Lemma 5.1",
    "The largest change of H is linear in R up to 0.009, at fixed width.",
    "geometric mean of worst_drift_far / worst_drift is 1 within a factor of 1.1 "
    "with at least 10 seeds",
    on=WORST.where(activation="softmax"),
    because="a tenth",
    figure="worst-drift",
)
cao.ours(
    "equation-24",
    "equation 24",
    "With 512 hidden units or more, kernel regression by the update (24) as it is printed tracks "
    "the network up to a twentieth of the labels' norm.",
    "mean of train_gap <= 0.05 at worst with at least 10 seeds",
    on=WIDE.where("m >= 512"),
    target=0.0,
    because="a twentieth of the labels' norm",
    figure="curves",
)
