"""What is measured of a cell, once and at logged steps (Song et al. 2024, section 4 and appendix).

Norms are Frobenius norms in the weights. A count of violations runs over all steps at which the
bound is above 1e-20 of the starting loss: below, it is round-off that is measured.
"""

from __future__ import annotations

from overfit_cli.study import Column

MEASUREMENTS = (
    Column("relative_loss", "final loss over the starting loss"),
    Column("start_loss", "loss at the start", symbol="f(M_0)"),
    Column("train_loss", "final loss", symbol="f(M_t)"),
    Column("floor", "closed-form lower bound of the loss, where W_Q alone is trained"),
    Column("floor_ratio", "final loss over that floor, where it isn't 0"),
    Column("steps_to_millionth", "steps until the loss is 1e-6 of its start", kind="int"),
    Column("gradient_query_start", "gradient in W_Q at the start", symbol=r"\|\nabla_{W^Q} f\|"),
    Column("gradient_key_start", "gradient in W_K at the start", symbol=r"\|\nabla_{W^K} f\|"),
    Column("gradient_value_start", "gradient in W_V at the start", symbol=r"\|\nabla_{W^V} f\|"),
    Column("gradient", "final gradient in what is trained"),
    Column("smallest_attention", "smallest attention at the end", symbol=r"\min S"),
    Column("delta", "smallest singular value of ∂C/∂W_Q at the start", symbol=r"\delta"),
    Column(
        "lambda_b", "smallest singular value of B at the start", symbol=r"\underline{\lambda}^B"
    ),
    Column("stability", "step size times the largest curvature in W_V at the start"),
    Column("rate_paper", "rate of Theorem 1 or 2 with the paper's constant", symbol=r"\alpha"),
    Column("rate_corrected", "that rate with the corrected constant"),
    Column("violations_paper", "steps above the bound of the paper's rate", kind="int"),
    Column("violations_corrected", "steps above the bound of the corrected rate", kind="int"),
    Column("pl_ratio_min", "smallest squared gradient over twice the loss, at logged steps"),
    Column("log10_gamma", "decimal logarithm of Theorem 3's rate", symbol=r"\log_{10}\gamma"),
    Column("condition_8", "decades by which condition (8) fails; negative where it holds"),
    Column("condition_12", "decades by which condition (12) fails; negative where it holds"),
)

TRAJECTORY = (
    Column("train_loss", "loss", symbol="f"),
    Column("floor", "closed-form floor"),
    Column("bound_paper", "theorem's bound, the paper's constant"),
    Column("bound_corrected", "theorem's bound, corrected constant"),
    Column("gradient_query", "gradient in W_Q", symbol=r"\|\nabla_{W^Q} f\|"),
    Column("gradient_key", "gradient in W_K", symbol=r"\|\nabla_{W^K} f\|"),
    Column("gradient_value", "gradient in W_V", symbol=r"\|\nabla_{W^V} f\|"),
    Column("delta", "smallest singular value of ∂C/∂W_Q", symbol=r"\delta"),
    Column("lambda_b", "smallest singular value of B", symbol=r"\lambda^B"),
    Column("pl_ratio", "squared gradient over twice the loss"),
    Column("pl_bound", "lower bound of that ratio here, from δ and S, or from B"),
    Column("smallest_attention", "smallest attention", symbol=r"\min S"),
)
