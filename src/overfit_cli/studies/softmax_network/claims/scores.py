"""Claims on section 6 of Cao et al. 2024: estimated scores, and samples that are drawn with them.

Ratios of errors have heavy tails, and are averaged on logarithms. Squared errors of the score are
weighted by 1 and by 4 sinh² t.
"""

from __future__ import annotations

from overfit_cli.claims.papers import Claims, on
from overfit_cli.studies.softmax_network import NAMES
from overfit_cli.studies.softmax_network.diffusion.study import COLUMNS, SoftmaxDiffusionParameters

cao = Claims("diffusion", "Cao et al. 2024", SoftmaxDiffusionParameters, COLUMNS, "score")

SCORES, DIGITS, DESCENT = (
    on(f"softmax-scores{end}", alike=("m", "training_steps", "samples"))  # as profiles differ
    for end in ("", "-digits", "-gd")
)


def both(sentence: str) -> str:
    """Return a sentence about the score error of both weightings."""
    return "; ".join(sentence.format(column) for column in ("score_error", "denoiser_error"))


def ratio(over: str, under: str, says: str) -> str:
    """Return the sentence about the ratio of both errors of two models at the largest n."""
    models = f"{{0}}[model={over}] / {{0}}[model={under}]"
    return both(f"geometric mean of {models} {says}") + " where n is largest"


cao.ours(
    "falls",
    "section 6",
    "The score error of networks with softmax, exp and ReLU falls with n, up to the largest n.",
    both("mean of power of n in {0} < 0 throughout"),
    on={NAMES[model]: SCORES.where(model=model) for model in NAMES},
)
cao.ours(
    "alike",
    "section 6",
    "Softmax networks learn the score as exp networks do, and as ReLU networks do, up to a factor "
    "of two.",
    {
        NAMES[rival]: ratio("softmax", rival, "is 1 within a factor of 2")
        for rival in ("exp", "relu")
    },
    on=SCORES.where(model=tuple(NAMES)),
)
cao.ours(
    "posterior",
    "section 6",
    "A fitted softmax network's score is nearer to the true one than that of the exact posterior "
    "over the training points.",
    ratio("softmax", "posterior", "< 1"),
    on=SCORES.where(model=("softmax", "posterior")),
)
cao.ours(
    "samples",
    "section 6",
    "Samples drawn with a fitted softmax network are as near to the target as those drawn with the "
    "true score, up to a factor of two.",
    "geometric mean of sliced_wasserstein[model=softmax] / sliced_wasserstein[model=true] is 1 "
    "within a factor of 2 where n is largest",
    on=SCORES.where(model=("softmax", "true")),
    figure="samples",
)
cao.ours(
    "gd",
    "section 6",
    "Gradient descent at the paper's scale learns the score as well as Adam with outputs over √m "
    "does, up to a factor of two.",
    both(
        "geometric mean of {0}[optimiser=gd, output_scale=paper] / "
        "{0}[optimiser=adam, output_scale=root] is 1 within a factor of 2"
    )
    + " where n is largest",
    on=DESCENT,
    figure="curves",
)
cao.ours(
    "copies-softmax",
    "section 6",
    "Samples drawn with a softmax network lie as near to its training digits as fresh draws do, up "
    "to a tenth of the way to noised copies of these digits.",
    "mean of memorised is 0 within 0.1 where n is smallest",
    on=DIGITS.where(model="softmax"),
    figure="samples",
)
cao.sharp(
    "theorem66",
    "Theorem 6.6",
    "The score error, weighted by λ(t), is O(1/(λ√n) + ε(n, T̂) + d A² + d A + √(d A Γ) + Γ); the "
    "first term, which alone has a number, suffices.",
    "bound_over_error >= 0 on all seeds if width_missing <= 0 and step_size_beyond <= 0",
    on=DESCENT.where(optimiser="gd", output_scale="paper"),
    figure="curves",
    hypotheses="m and η are as stated, with 1 for the constants of Ω(·) and O(·), C = 10 and δ = "
    "0.05. Assumptions 6.3 and 6.4 are met, and 6.1 but for the tails of the points. 6.2 isn't "
    "where n times the outputs is above (m/2)(d + 1), the largest rank that H* can have, as from n "
    "= 300 on: there λ is 0, and that of infinitely many units stands in for it. Networks stop "
    "early by a validation draw; whether that meets 6.5, and whether R_H is large enough, isn't "
    "known",
)
CLAIMS = cao.claims
