"""Columns of a cell of multi-head attention, and of its logged steps (Deora et al. 2024)."""

from __future__ import annotations

from overfit_cli.core.study import Column

CERTIFICATES = (
    Column(
        "model_gradient",
        "a head's gradient over Proposition 1's bound, most",
        label="head gradient over its bound",
    ),
    Column(
        "model_hessian",
        "a head's Hessian over Proposition 1's bound, most",
        label="head Hessian over its bound",
    ),
    Column(
        "loss_gradient",
        "the loss's gradient over Corollary 1's bound, most",
        label="loss gradient over its bound",
    ),
    Column(
        "loss_hessian",
        "the loss's Hessian over Corollary 1's bound, most",
        label="loss Hessian over its bound",
    ),
    Column(
        "loss_concavity",
        "the loss's concavity over Corollary 1's bound, most",
        label="concavity over its bound",
    ),
)

_MEASURED = (
    Column("test_loss", "test loss", symbol="L"),
    Column("test_error", "share of test samples of the wrong sign", label="test error"),
    Column("train_error", "share of training samples of the wrong sign", label="training error"),
    Column("norm_w", "mean norm of W over heads", symbol=r"\frac{1}{H}\sum \|W_h\|"),
    Column(
        "norm_u",
        "norms of U over heads, their sum over √H",
        symbol=r"H^{-1/2}\sum \|U_h\|",
        label="averaged norm of U",
    ),
    Column(
        "margin",
        "least margin over the norm of all U",
        symbol=r"\min y\Phi / \|U\|",
        label="margin over the norm of U",
    ),
    Column(
        "margin_average",
        "least margin over the averaged norm of U",
        label="margin over averaged norm",
    ),
    Column(
        "head_spread",
        "distance of heads from their mean, over its length, most",
        label="spread of the heads",
    ),
)
MACHINE = (
    Column(
        "machine_cosine",
        "cosine of W with the attention SVM's solution, mean over heads",
        label="cosine with the SVM solution",
    ),
    Column(
        "machine_margin",
        "margin of that solution, least over heads; 0 where there is none",
        label="margin of the SVM solution",
    ),
)
MIXTURE_COLUMNS = (
    Column(
        "attention",
        "softmax on relevant tokens, mean over samples and heads",
        label="softmax on relevant tokens",
    ),
)
PLANTED_COLUMNS = (
    Column(
        "alignment_w",
        "cosine of W with the planted head's",
        symbol=r"\cos(W, W_*)",
        label="alignment of W",
    ),
    Column(
        "alignment_u",
        "cosine of U with the planted head's",
        symbol=r"\cos(U, U_*)",
        label="alignment of U",
    ),
)


def cell_columns(*own: Column) -> tuple[Column, ...]:
    """Return the columns of a study's cells, its own after what all have."""
    return (
        Column("train_loss", "final training loss", symbol=r"\hat L"),
        Column(
            "log10_train_loss",
            "its decimal logarithm, which doesn't underflow",
            label="log₁₀ training loss",
        ),
        Column(
            "mean_train_loss",
            "mean training loss over all steps",
            symbol=r"\frac{1}{K}\sum \hat L",
            label="mean training loss",
        ),
        Column(
            "steps_to_target",
            "steps until the training loss is below the target",
            kind="int",
            label="steps to the target loss",
        ),
        *_MEASURED,
        *own,
        Column(
            "margin_share",
            "least margin over the norm of all U, over γ_attn",
            label="share of attention's margin",
        ),
        *MACHINE,
        *CERTIFICATES,
        Column(
            "theorem1_bound",
            "Theorem 1's bound on the mean training loss, θ the last step",
            label="Theorem 1's bound",
        ),
        Column(
            "theorem1_heads",
            "decimal logarithm of the heads that Theorem 1 requires",
            label="log₁₀ heads of Theorem 1",
        ),
        Column(
            "theorem2_bound",
            "Theorem 2's bound on test less training loss",
            label="Theorem 2's bound",
        ),
        Column(
            "theorem2_heads",
            "decimal logarithm of the heads that Theorem 2 requires",
            label="log₁₀ heads of Theorem 2",
        ),
        Column(
            "theorem_step_size",
            "decimal logarithm of the largest step size of both",
            label="log₁₀ largest step size",
        ),
    )


def step_columns(*own: Column) -> tuple[Column, ...]:
    """Return the columns of a study's logged steps, its own after what all have."""
    return (
        Column("train_loss", "training loss", symbol=r"\hat L"),
        Column("log10_train_loss", "its decimal logarithm", label="log₁₀ training loss"),
        *_MEASURED,
        *own,
        Column("loss_times_step", "training loss times the step"),
        *MACHINE,
        *CERTIFICATES,
    )


FIRST_PHASE = (
    Column(
        "first_coefficient",
        "what the first phase puts on the oracle classifier, over ζ",
        label="oracle coefficient over ζ",
    ),
    Column(
        "first_deviation",
        "length of what it adds besides ζ/4 of it",
        symbol="P",
        label="first phase's deviation",
    ),
    Column("good_norm", "a head's norm over P1's bound, most", label="head norm over P1's bound"),
    Column(
        "good_output", "a sample's output over P2's bound, most", label="output over P2's bound"
    ),
    Column(
        "optimal_noise", "noise over what Proposition 3 allows", label="share of the allowed noise"
    ),
    Column(
        "optimal_missed",
        "softmax that θ_opt misses over Proposition 3's bound, most",
        label="missed softmax over bound",
    ),
    Column(
        "optimal_margin",
        "Proposition 3's bound over the least margin of θ_opt",
        label="bound over θ_opt's margin",
    ),
    Column(
        "ntk_margin",
        "largest margin of the tangent kernel",
        symbol=r"\gamma",
        label="tangent kernel's margin",
    ),
    Column(
        "ntk_margin_bound",
        "what that margin can't exceed, by duality",
        label="bound on the kernel's margin",
    ),
    Column("ntk_margin_constructed", "margin of section 5.2's θ⋆"),
    Column(
        "gamma_tangent",
        "the margin that equation (7) states",
        symbol=r"\gamma_*",
        label="margin of equation (7)",
    ),
    Column(
        "gamma_tangent_without",
        "what equation (7) would state were P zero",
        label="margin of (7) without P",
    ),
    Column(
        "tangent_heads",
        "decimal logarithm of the heads that Proposition 2's P3 takes",
        label="log₁₀ heads of Proposition 2",
    ),
    Column("gamma_linear", "the linear model's margin", symbol=r"\gamma_{\mathrm{lin}}"),
    Column("gamma_attention", "attention's margin", symbol=r"\gamma_{\mathrm{attn}}"),
)
"""What is measured after the first phase, where bounds are held to what is measured."""
