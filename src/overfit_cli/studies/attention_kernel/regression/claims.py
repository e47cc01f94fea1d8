"""The claims of Theorems 1 to 3 and of section 4.2.2's example.

A theorem says that a step size exists: each is judged at the step size that serves it best, and
the sentence says how the others did.
"""

from __future__ import annotations

from overfit_cli.claim import Claim
from overfit_cli.studies.attention_kernel.regression import convergence, example, rates
from overfit_cli.studies.attention_kernel.regression.selection import SOURCE, ZERO

_EXAMPLE = f"{SOURCE}, section 4.2.2, example"

CLAIMS = (
    rates.rate_claim("paper", "value"),
    rates.rate_claim("corrected", "value"),
    rates.rate_claim("paper", "all"),
    rates.rate_claim("corrected", "all"),
    Claim(
        name="theorem2-zero",
        source=f"{SOURCE}, Theorem 2",
        statement="With W_Q, W_K and W_V trained, softmax attention reaches zero loss.",
        accepted=f"at some step size all seeds fall below {ZERO:g} of their starting loss",
        measure=rates.all_zero,
    ),
    rates.condition_claim("8", 2, {"kernel": "softmax", "trained": "all"}),
    *(convergence.gaussian_zero(target) for target in ("below", "inside", "mixed-sign")),
    *(convergence.softmax_stops(target) for target in ("below", "inside", "mixed-sign")),
    Claim(
        name="theorem3-rate",
        source=f"{SOURCE}, Theorem 3 (1), appendix 1.5",
        statement="Gaussian attention's squared gradient is at least γ times twice the loss.",
        accepted="at every logged step of every cell at the step sizes that reach zero loss: at "
        "least 0 decades",
        measure=convergence.polyak,
    ),
    rates.condition_claim("12", 3, {"kernel": "gaussian", "trained": "query"}),
    Claim(
        name="example-gradient",
        source=_EXAMPLE,
        statement="Where both token values are equal, softmax attention's gradient in W_Q and W_K "
        "is zero at a loss above zero.",
        accepted="the gradients are exactly 0 in every cell, and the loss stays at exactly 1",
        measure=example.vanishing,
    ),
    Claim(
        name="example-gaussian",
        source=_EXAMPLE,
        statement="There Gaussian attention's gradient in W_Q is not zero.",
        accepted="above 0 in every cell",
        measure=example.gaussian_moves,
    ),
    Claim(
        name="example-escape",
        source=f"{_EXAMPLE}; ours",
        statement="Token values of 3 ± ε let softmax attention escape.",
        accepted="with ε > 0 every cell has a gradient above 0, and its loss falls",
        measure=example.escape,
    ),
)
