"""Columns of a cell of `kernel-regression`, and of its trajectory (Song et al. 2024)."""

from __future__ import annotations

from overfit_cli.core.study import Column

MEASUREMENTS = (
    Column("relative_loss", "final loss over the starting loss", label="final over starting loss"),
    Column("start_loss", "loss at the start", symbol="f(M_0)"),
    Column("train_loss", "final loss", symbol="f(M_t)"),
    Column(
        "floor",
        "closed-form lower bound of the loss, where W_Q alone is trained",
        label="closed-form floor",
    ),
    Column(
        "floor_ratio",
        "final loss over that floor, where it isn't 0",
        label="final loss over the floor",
    ),
    Column(
        "steps_to_millionth",
        "steps until the loss is 1e-6 of its start",
        kind="int",
        label="steps to 10⁻⁶ of start loss",
    ),
    Column("gradient_query_start", "gradient in W_Q at the start", symbol=r"\|\nabla_{W^Q} f\|"),
    Column("gradient_key_start", "gradient in W_K at the start", symbol=r"\|\nabla_{W^K} f\|"),
    Column("gradient_value_start", "gradient in W_V at the start", symbol=r"\|\nabla_{W^V} f\|"),
    Column("gradient", "final gradient in what is trained", label="final gradient"),
    Column(
        "smallest_attention",
        "smallest attention at the end",
        symbol=r"\min S",
        label="final smallest attention",
    ),
    Column(
        "delta",
        "smallest singular value of ∂C/∂W_Q at the start",
        symbol=r"\delta",
        label="smallest singular value",
    ),
    Column(
        "lambda_b",
        "smallest singular value of B at the start",
        symbol=r"\underline{\lambda}^B",
        label="smallest singular value of B",
    ),
    Column(
        "stability",
        "step size times the largest curvature in W_V at the start",
        label="step size times curvature",
    ),
    Column(
        "rate_paper",
        "rate of Theorem 1 or 2 with the paper's constant",
        symbol=r"\alpha",
        label="paper's rate",
    ),
    Column("rate_corrected", "that rate with the corrected constant", label="corrected rate"),
    Column(
        "violations_paper",
        "steps above the bound of the paper's rate",
        kind="int",
        label="steps above paper's bound",
    ),
    Column(
        "violations_corrected",
        "steps above the bound of the corrected rate",
        kind="int",
        label="steps above corrected bound",
    ),
    Column(
        "pl_ratio_min",
        "smallest squared gradient over twice the loss, at logged steps",
        label="smallest PL ratio",
    ),
    Column(
        "descent",
        "fall of the loss over η times the squared gradients so far, least",
        label="least descent ratio",
    ),
    Column(
        "lipschitz_outputs",
        "change of the outputs over that of the weights, most",
        label="Lipschitz ratio of outputs",
    ),
    Column(
        "lipschitz_gradients",
        "change of the gradient over that of the weights, most",
        label="Lipschitz ratio of gradient",
    ),
    Column(
        "lemma_scores",
        "Lemma 2 (1, 2) or 7 (1, 2), left over right side, most",
        label="score change over bound",
    ),
    Column(
        "lemma_gradients",
        "Lemma 2 (4, 5) or 7 (4), left over right side, most",
        label="gradient over upper bound",
    ),
    Column(
        "lemma_least",
        "Lemma 7 (3), left over right side, least",
        label="gradient over lower bound",
    ),
    Column(
        "lemma_outputs",
        "Lemma 3 (1) or 8 (1), left over right side, most",
        label="output change over bound",
    ),
    Column(
        "lemma_change",
        "Lemma 3 (2) or 8 (2), left over right side, most",
        label="gradient change over bound",
    ),
    Column(
        "log10_gamma",
        "decimal logarithm of Theorem 3's rate",
        symbol=r"\log_{10}\gamma",
        label="Theorem 3's rate",
    ),
    Column(
        "condition_8",
        "decades by which condition (8) fails; negative where it holds",
        label="decades to condition (8)",
    ),
    Column(
        "condition_12",
        "decades by which condition (12) fails; negative where it holds",
        label="decades to condition (12)",
    ),
)

TRAJECTORY = (
    Column("train_loss", "loss", symbol="f"),
    Column("floor", "closed-form floor"),
    Column("bound_paper", "theorem's bound, the paper's constant", label="paper's bound"),
    Column("bound_corrected", "theorem's bound, corrected constant", label="corrected bound"),
    Column("gradient_query", "gradient in W_Q", symbol=r"\|\nabla_{W^Q} f\|"),
    Column("gradient_key", "gradient in W_K", symbol=r"\|\nabla_{W^K} f\|"),
    Column("gradient_value", "gradient in W_V", symbol=r"\|\nabla_{W^V} f\|"),
    Column(
        "delta",
        "smallest singular value of ∂C/∂W_Q",
        symbol=r"\delta",
        label="smallest singular value",
    ),
    Column("lambda_b", "smallest singular value of B", symbol=r"\lambda^B"),
    Column("pl_ratio", "squared gradient over twice the loss", label="PL ratio"),
    Column(
        "pl_bound",
        "lower bound of that ratio here, from δ and S, or from B",
        label="lower bound of PL ratio",
    ),
    Column("smallest_attention", "smallest attention", symbol=r"\min S"),
)
