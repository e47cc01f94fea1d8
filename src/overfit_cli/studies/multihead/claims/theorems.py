"""Sections 3, 4 and 6: Theorems 1 and 2 and their lemmas, conditions met.

Proposition 1 and Corollary 1 hold of all θ by algebra, and are tests and no claims. Conditions on
H and η are those of the corrected version of the paper, with θ at a distance that is chosen so that
they can be met ("fix any θ"). Each lemma is held to its own conditions: those of Lemmas 8 to 10 are
met by larger steps than Theorem 1 allows. A bound on the loss above log 2, that at the start, is
kept by descent alone: it is not judged.
"""

from overfit_cli.claims.papers import Claims, on
from overfit_cli.studies.multihead.parameters import (
    MultiheadMixtureParameters,
    MultiheadPathsParameters,
)
from overfit_cli.studies.multihead.study import mixture as dm1
from overfit_cli.studies.multihead.study import paths as study

mixture = Claims(
    "mixture", "Deora et al. 2024", MultiheadMixtureParameters, dm1.columns, figure="bounds"
)

mixture.paper(
    "concavity-falls",
    "section 3, after Corollary 1",
    "As the number of heads H increases, the least eigenvalue of ∇²L̂ becomes less negative.",
    "power of heads in concavity < 0 throughout; log(concavity) falls along heads "
    "with at least 10 seeds",
    on=on("heads-concavity", alike=("test_samples", "learning_rate", "sigma_init")),
    figure="concavity",
    hypotheses="heads of one size: U_h and W_h are N(0, 1/4)",
)
mixture.ours(
    "least-heads-condition",
    "Theorem 1",
    "With figure 2's steps and θ the last of 1000, the second inequality of (4) is met from one "
    "head on, and the condition of Theorem 1 on H requires at least 9.5 decades more heads.",
    "required_heads[heads is largest] >= 9.5; mean_train_loss <= theorem1_bound on all seeds",
    on=on("heads-least", alike=("certify", "test_samples"), learning_rate=1.0),
    figure="least-heads",
    hypotheses="the condition is that of the corrected version; half of the decades that are "
    "scanned, whose end is the largest H that 64 bits count",
)

DESCENT = on("heads-descent", alike=("test_samples",))
REGRET = on("heads-regret", alike=("test_samples",))
THEOREM = on("heads-theorem1", alike=("test_samples", "learning_rate"))
TARGET = "θ is W = 0 with the linear part's widest margin, at a distance of {} from zero"
CONDITIONS = f"the appendix's on H and η, with the β₃ and ρ of the corrected version; {TARGET}"
SMALL_STEPS = "learning_rate <= 10**theorem_step_size"
MEETS_1 = f"10**theorem1_heads <= heads and {SMALL_STEPS} and theorem1_bound <= log(2)"

paths = Claims(
    "paths", "Deora et al. 2024", MultiheadPathsParameters, study.columns, figure="descent"
)

paths.paper(
    "descent",
    "Lemma 7",
    "Each step of gradient descent with η ≤ 1/ρ_k, ρ_k = β₂(θ_k) ∨ β₂(θ_{k+1}), lowers the "
    "training loss by η/2 ‖∇L̂(θ_k)‖² or more.",
    "descent_allowed >= 0.999999 on all seeds if descent_share > 0",
    on=DESCENT,
    hypotheses="β₂ of the print of April 2024 with the norm of U, the smaller one: more steps meet "
    "it; a share of 10⁻⁶ is left to round-off",
)
LARGEST = on("heads-largest-step", alike=("test_samples",))
TWENTY = (
    "DM1 with the sizes of appendix G, 20 steps of gradient descent from zero, H from 1 to 50; "
    "between steps of the grid it is interpolated"
)

paths.ours(
    "largest-step",
    "Lemma 7",
    "The largest step with which the loss never rises does not depend on H: it goes as H⁰.",
    "mean of power of heads in learning_rate at descent = 0 is 0 within 0.1 with at least 10 seeds",
    on=LARGEST,
    number="the power of H in it",
    because="a fifth of √H, figure 3's steps",
    figure="largest-step",
    hypotheses=TWENTY,
)
paths.ours(
    "largest-step-range",
    "Lemma 7",
    "At each H the largest step with which the loss never rises lies between 0.4 and 3, and "
    "1/ρ_k of each step is below 0.04, a tenth of it.",
    {
        "0.4": "descent >= 0 on all seeds if learning_rate <= 0.4",
        "3": "descent <= 0 on all seeds if learning_rate >= 3",
        "1/ρ": "descent_share <= 0 on all seeds if learning_rate >= 0.04",
    },
    on=LARGEST,
    figure="largest-step",
    hypotheses=f"{TWENTY}. β₂ is that of the print of April 2024 with the norm of U; 1/ρ_k grows "
    "with H by its formula; 0.4, 3 and 0.04 were chosen after cells of other seeds were seen",
)
paths.paper(
    "quasi-convexity",
    "Propositions 4 and 6",
    "On a segment with 2 (β₃(θ₁) ∨ β₃(θ₂)) ‖θ₁ − θ₂‖² ≤ √H the loss is at most 4/3 of that at its "
    "worse end.",
    "segment_rise <= 1 on all seeds",
    on=DESCENT,
    hypotheses="segments as long as that, with the β₃ in print: from steps towards the target, and "
    "around steps in the direction in which the loss is most concave",
)
paths.paper(
    "lemma8",
    "Lemma 8",
    "If each step descends by η/2 ‖∇L̂‖², the mean training loss is at most L̂(θ) + ‖θ − θ₀‖² / "
    "(2 η K) + 1/(2K) Σ τ_k ‖θ − θ_k‖².",
    "lemma8 <= 1 on all seeds if descent >= 1 and mean_train_loss / lemma8 <= log(2)",
    on=DESCENT,
    hypotheses=f"{TARGET.format(0.5)}; the largest loss in τ_k is that of nine points",
)
paths.paper(
    "lemma9",
    "Lemma 9",
    "If in addition √H ≥ 2 (β₃(θ) ∨ β₃(θ_k)) ‖θ − θ_k‖² at each step, the mean training loss is at "
    "most 2 L̂(θ) + 3 ‖θ − θ₀‖² / (4 η K) + L̂(θ₀) / (2K).",
    "lemma9 <= 1 on all seeds if descent >= 1 and d**2 * 10**lemma9_heads <= heads "
    "and mean_train_loss / lemma9 <= log(2)",
    on=REGRET,
    figure="regret",
    hypotheses=f"{TARGET.format('4 or 6')}; β₃ of the corrected version",
)
paths.paper(
    "lemma10",
    "Lemma 10",
    "If each step descends by η/2 ‖∇L̂‖², ‖θ − θ₀‖² is at least η K L̂(θ) and η L̂(θ₀), and H meets "
    "(74), no iterate is further from θ than 3 ‖θ − θ₀‖.",
    "lemma10 <= 1 on all seeds if descent >= 1 and 10**theorem1_heads <= heads "
    "and learning_rate * training_steps * target_loss <= target_distance**2 "
    "and learning_rate * log(2) <= target_distance**2 "
    "and 2 * target_distance <= sqrt(2 * learning_rate * training_steps * log(2))",
    on=REGRET,
    figure="regret",
    hypotheses=f"{TARGET.format('4 or 6')}; (74) is that of the corrected version. The last "
    "condition: K steps that descend lead √(2 η K log 2) away at most, and the bound is 2 ‖θ − θ₀‖ "
    "away from the start at least",
)
paths.paper(
    "theorem1",
    "Theorems 1 and 3",
    "The last training loss is at most the mean over all steps, and that at most 2 L̂(θ) + "
    "5 ‖θ − θ₀‖² / (4 η K).",
    {
        "the mean": f"mean_train_loss <= theorem1_bound on all seeds if {MEETS_1}",
        "the last": f"train_loss <= 1.000001 * mean_train_loss on all seeds if {MEETS_1}",
    },
    on=THEOREM,
    figure="lines",
    hypotheses=CONDITIONS.format(0.4),
)


paths.paper(
    "theorem2",
    "Theorems 2 and 4",
    "The test loss less the training loss is in expectation at most 4/n E[2 K L̂(θ) + 9 ‖θ − θ₀‖² / "
    "(4 η)].",
    "test_loss - train_loss <= theorem2_bound on all seeds if 10**theorem2_heads <= heads "
    f"and {SMALL_STEPS}",
    on=THEOREM,
    figure="lines",
    hypotheses=f"{CONDITIONS.format(0.4)}; judged seed by seed",
)
paths.paper(
    "lemma3",
    "Lemma 3",
    "The test loss less the training loss is in expectation at most 2 G times the mean distance of "
    "the leave-one-out copies.",
    "mean of test_loss - train_loss < lemma3_bound with at least 10 seeds",
    on=THEOREM,
    figure="lines",
    hypotheses="G is β₁ at the largest ‖U_h‖ of the model and its copies",
)
