"""Columns of a cell of `softmax-convergence`, and of its logged steps (Cao et al. 2024)."""

from __future__ import annotations

from overfit_cli.core.study import Column

AT_STEPS = (
    Column("train_loss", "training loss, ½‖F − Y‖²", symbol="L", label="training loss"),
    Column(
        "ntk_loss",
        "the same of regression with the tangent kernel",
        symbol=r"L_{\mathrm{ntk}}",
        label="tangent kernel's loss",
    ),
    Column(
        "lambda_min",
        "smallest eigenvalue of the Gram matrix",
        symbol=r"\lambda_{\mathrm{min}}(H)",
        label="smallest eigenvalue",
    ),
    Column(
        "lambda_max",
        "largest eigenvalue of the Gram matrix",
        symbol=r"\lambda_{\mathrm{max}}(H)",
        label="largest eigenvalue",
    ),
    Column(
        "movement",
        "farthest that a hidden unit's weights have moved",
        symbol="R",
        label="largest weight movement",
    ),
    Column("kernel_drift", "change of the Gram matrix", symbol=r"\|H - H^*\|_F"),
    Column(
        "test_drift",
        "change of the kernel at a test input, most",
        symbol=r"\epsilon_{\mathrm{test}}",
        label="kernel change at test inputs",
    ),
    Column(
        "train_gap",
        "network less kernel regression by (24), over the labels' norm",
        label="training gap",
    ),
    Column(
        "gradient_gap",
        "the same with the gradient of (23), step size η / (m λ_max)",
        label="training gap by (23)",
    ),
    Column(
        "test_gap",
        "network less kernel regression at test inputs, root mean square",
        label="test gap",
    ),
    Column("test_gap_most", "the same at the worst test input", label="largest test gap"),
)

MEASUREMENTS = (
    Column(
        "steps_to_epsilon",
        "steps until ‖F − Y‖² is ε",
        kind="int",
        label="steps until convergence",
    ),
    Column(
        "ntk_steps",
        "the same of regression with the tangent kernel",
        kind="int",
        label="tangent kernel's steps",
    ),
    Column(
        "limit_steps",
        "the same with that of infinitely many hidden units",
        kind="int",
        label="steps at infinite width",
    ),
    Column(
        "steps_over_ntk",
        "steps over those of the tangent kernel",
        label="steps over tangent kernel's",
    ),
    Column(
        "steps_over_limit",
        "steps over those of infinitely many hidden units",
        label="steps over infinite width's",
    ),
    *AT_STEPS,
    Column(
        "lambda_start",
        "smallest eigenvalue at the start",
        symbol=r"\lambda",
        label="smallest initial eigenvalue",
    ),
    Column(
        "kappa",
        "condition number at the start",
        symbol=r"\kappa",
        label="initial condition number",
    ),
    Column(
        "lambda_limit",
        "smallest eigenvalue for infinitely many hidden units",
        label="eigenvalue at infinite width",
    ),
    Column(
        "kappa_limit",
        "condition number for infinitely many hidden units",
        label="condition at infinite width",
    ),
    Column("step_size", "step size", symbol=r"\eta"),
    Column(
        "rate_ratio",
        "‖F − Y‖² over what Theorem 4.2's rate leaves of it, most",
        label="error over Theorem 4.2's",
    ),
    Column(
        "contraction",
        "mean contraction of log ‖F − Y‖² over that of the stated rate",
        label="contraction over stated rate",
    ),
    Column(
        "gradient_growth",
        "decades by which a step along the gradient of (23) grows",
        label="decades of growth by (23)",
    ),
    Column(
        "gram_error",
        "JJᵀ by autograd less mH, over its largest entry",
        label="error of the Gram matrix",
    ),
    Column("start_output", "largest output before the first step", label="largest initial output"),
    Column(
        "shift_change",
        "change of outputs where all hidden units move alike",
        label="output change under a shift",
    ),
    Column(
        "width_missing",
        "decades of hidden units that Theorem 4.2 lacks",
        label="decades of width missing",
    ),
    Column(
        "step_size_beyond",
        "decades by which the step size is above Theorem 4.2's",
        label="decades of excess step size",
    ),
    Column(
        "drift_share",
        "change of the Gram matrix over R n outputs",
        label="drift over R n outputs",
    ),
    Column(
        "drift_over_bound",
        "decades of the change of the Gram matrix over Lemma 5.1's bound",
        label="log₁₀ drift over bound",
    ),
    Column(
        "movement_over_bound",
        "decades of the movement over Lemma 5.3's bound",
        label="log₁₀ movement over bound",
    ),
    Column(
        "gap_over_bound",
        "worst test gap over Theorem F.2's bound, its O taken for 1",
        label="largest test gap over bound",
    ),
)
