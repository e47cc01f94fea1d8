"""Sections 3 and 4: the bounds on derivatives, and what Theorem 1 requires.

Bounds are those of the print of April 2024; R is at least 1 and the length of the longest token
that was drawn.
"""

from overfit_cli.claims.papers import Claims, on
from overfit_cli.studies.multihead.parameters import MultiheadMixtureParameters
from overfit_cli.studies.multihead.study import mixture as dm1

PRINT = "in the print of April 2024"
RANDOM = on("heads-random", sigma_init=(0.1, 1.0, 10.0, 100.0))

mixture = Claims(
    "mixture", "Deora et al. 2024", MultiheadMixtureParameters, dm1.columns, figure="bounds"
)

mixture.paper(
    "proposition1-random",
    f"Proposition 1 {PRINT}",
    "The gradient and the Hessian of a head's output are at most 2 ‖X‖²_{2,∞} Σ ‖X u_t‖_∞ + √T "
    "‖X‖_{2,∞} and 6d ‖X‖²_{2,∞} ‖X‖²_{1,∞} Σ ‖X u_t‖_∞ + 2 √(Td) ‖X‖²_{2,∞} ‖X‖_{1,∞}, at random "
    "weights of any size.",
    "model_gradient <= 1 on all seeds; model_hessian <= 1 on all seeds",
    on=RANDOM,
)
mixture.paper(
    "corollary1-gradient-random",
    f"Corollary 1 (1) {PRINT}",
    "The norm of the loss's gradient is at most β₁ L̂, at random weights of any size.",
    "loss_gradient <= 1 on all seeds",
    on=RANDOM,
)
mixture.paper(
    "corollary1-hessian-random",
    f"Corollary 1 (2) {PRINT}",
    "The norm of the loss's Hessian is at most β₂, at random weights of any size.",
    "loss_hessian <= 1 on all seeds",
    on=RANDOM,
)
mixture.paper(
    "corollary1-concavity",
    f"Corollary 1 (3) {PRINT}",
    "The loss's Hessian has no eigenvalue below −β₃ L̂/√H, with β₃ = 2 √(Td) R³ (3 √d R² max ‖U_h‖ "
    "+ 1), at every step of training.",
    "loss_concavity <= 1 on all seeds",
    on=on("heads-fig2", alike=("test_samples",)),
)
mixture.paper(
    "concavity-falls",
    "section 3, after Corollary 1",
    "As the number of heads H increases, the least eigenvalue of ∇²L̂ becomes less negative.",
    "power of heads in concavity < 0 with at least 10 seeds",
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
