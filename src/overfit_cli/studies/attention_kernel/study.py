"""The study `kernel-regression`: Theorems 1 to 3 of Song et al. 2024."""

from __future__ import annotations

from functools import partial

from overfit_cli.core.cell import CellResult, Column
from overfit_cli.core.figure import CURVES, CUTOFF, LINES, lazily
from overfit_cli.core.study import Study
from overfit_cli.core.text import plural
from overfit_cli.core.training import BYTES_OF_LIBRARIES, Together
from overfit_cli.studies.attention_kernel import PAPER
from overfit_cli.studies.attention_kernel.parameters import (
    LAYERS,
    KernelRegressionParameters,
    RegressionCell,
)

P = KernelRegressionParameters
_LOSS = Column("train_loss", "loss", "f", diverges=True)
_GRADIENT = Column("gradient", "gradient in what is trained", r"\|\nabla f\|")
_FLOOR = Column("floor", "closed-form floor of the loss")  # where W_Q alone is trained
COLUMNS = (
    Column("relative_loss", "final / initial loss", diverges=True),
    Column("start_loss", "loss at the start", "f(M_0)"),
    _LOSS,
    _FLOOR,
    Column("steps_to_millionth", "steps to 10⁻⁶ of start loss", kind="int", reached=False),
    Column("steps_to_trillionth", "steps to 10⁻¹² of start loss", kind="int", reached=False),
    Column("gradient_query_start", "gradient in W_Q at the start", r"\|\nabla_{W^Q} f\|"),
    Column("gradient_key_start", "gradient in W_K at the start", r"\|\nabla_{W^K} f\|"),
    _GRADIENT,
    Column("delta", "smallest singular value of ∂C/∂W_Q", r"\delta", "smallest singular value"),
    Column("lambda_b", "smallest singular value of B at the start", r"\underline{\lambda}^B"),
    Column("stability", "step size times the largest curvature in W_V at the start"),
    Column("rate_paper", "rate of Theorem 1 or 2 with the paper's constant", r"\alpha"),
    Column("rate_corrected", "that rate with the corrected constant"),
    Column(
        "rate_margin",
        "twice the least curvature in W_V over the paper's rate, which is too fast below 1",
        r"2\lambda_{\min}(K)/\|W^O\|^2(\underline{\lambda}^B)^2",
        "slowest rate over paper's",
    ),
    Column("violations_paper", "steps above the bound of the paper's rate", kind="int"),
    Column("violations_corrected", "steps above the bound of the corrected rate", kind="int"),
    Column("violations_gamma", "steps above the bound of Theorem 3's rate", kind="int"),
    Column("pl_ratio_min", "smallest squared gradient over twice the loss, at logged steps"),
    Column("descent", "fall of the loss over η times the squared gradients so far, least"),
    Column("lemma_gradients", "Lemma 2 (4, 5) or 7 (4), left over right side, most"),
    Column("lemma_outputs", "Lemma 3 (1) or 8 (1), left over right side, most"),
    Column("lemma_change", "Lemma 3 (2) or 8 (2), left over right side, most"),
    Column(
        "tangent_trace",
        "trace of tangent kernel in W_Q",
        r"\mathrm{tr}\,\Theta",
        "trace of tangent kernel",
    ),
    Column("tangent_small", "its mean as σ_W goes to 0", label="formula at small weights"),
    Column("tangent_steps", "steps to 10⁻⁶ predicted by Θ", label="predicted steps"),
    Column("log10_gamma", "decimal logarithm of Theorem 3's rate", r"\log_{10}\gamma"),
    Column("condition_8", "decades by which condition (8) fails", decades=True),
    Column("condition_46", "decades by which (46) fails, of Theorem 2's proof", decades=True),
    Column("condition_12", "decades by which condition (12) fails", decades=True),
)
LOGGED = (
    _LOSS,
    _FLOOR,
    Column("bound_paper", "theorem's bound, the paper's constant", label="paper's bound"),
    Column("bound_corrected", "theorem's bound, corrected constant", label="corrected bound"),
    _GRADIENT,
)

MOST_ROWS = 4096
"""Beyond so many rows no singular values are computed."""

_DEMO_BYTES = 8.0 * (16 * 68 + 16 * 64 + 384 + 64 * 192)
_PANELS = "target,heads,value_gap,trained"


def _bytes_of_tensors(p: P) -> float:
    rows = p.n * p.tokens
    heads = p.heads * rows * (6 * p.d_h + 5 * p.tokens)
    scores = rows * p.tokens
    singular = scores * max(p.d * p.d_h, p.heads * p.tokens**2) if scores <= MOST_ROWS else 0
    weights = 2 * p.heads * p.d * p.d_h
    return 8.0 * (heads + rows * (rows + p.d * (1 + p.heads)) + weights + singular)


class KernelRegression(Study[P]):
    """One attention layer that fits one label per token.

    Norms are Frobenius norms in the weights. A count of violations runs over all steps at which the
    bound is above 1e-20 of the starting loss: below, the loss is round-off. Lemmas 2 and 7 are
    measured at the initial weights, 3 and 8 from logged steps to the next ones.
    """

    name, version = "kernel-regression", 2
    title = "Softmax against Gaussian attention on a regression problem"
    paper, parameters = PAPER, KernelRegressionParameters
    headline = "relative_loss"
    columns = COLUMNS
    trajectory_columns = LOGGED
    claims_in = ".claims"
    together = Together[P](
        apart={
            "seed",
            "target",
            "instance",
            "value_gap",
            "label",
            "weights",
            "sigma_w",
            "learning_rate",
            "balance",
            "distance",
        },
        size=_bytes_of_tensors,
        cpu=128 * _DEMO_BYTES,  # beyond 128 cells of the demo's size, a CPU gains nothing
        cuda=4096 * _DEMO_BYTES,
    )
    drawn = (
        CURVES.showing(
            title="Loss against steps at each kernel's best step size, with floors and bounds",
            value="train_loss",
            theory="bound_paper,bound_corrected,floor",
            by=_PANELS,
            draw=lazily("overfit_cli.figures.lines:draw_best_curves"),
        ),
        LINES.showing(
            "learning-rates",
            "Final loss against the step size, for each kernel",
            x="learning_rate",
            value="relative_loss",
            by=_PANELS,
            axes=0,
            draw=partial(lazily("overfit_cli.figures.lines:draw_lines"), floor=1e-12),  # round-off
        ),
        LINES.showing(
            "eigenvalue",
            "Slowest rate over the paper's, against the number of heads",
            x="heads",
            value="rate_margin",
            by="d",
            log=frozenset({"x", "value"}),
            law=("in the mean at most: rate_margin = 2 / heads", "too fast below: rate_margin = 1"),
            axes=0,
        ),
        LINES.showing(
            "tangent",
            "Trace of the tangent kernel in W_Q against the tokens, with its formula",
            x="tokens",
            value="tangent_trace",
            by="sigma_w",
            theory="tangent_small",
            log=frozenset({"x", "value"}),
            axes=0,
        ),
        LINES.showing(
            "tangent-steps",
            "Steps to a millionth of the loss against the step size, with those predicted",
            x="learning_rate",
            value="steps_to_millionth",
            theory="tangent_steps",
            log=frozenset({"x", "value"}),
            axes=0,
        ),
        CUTOFF.showing(
            "ranks",
            "Where δ of softmax is above zero, over the widths of heads and tokens",
            x="d_h",
            y="d",
            value="delta",
            threshold=1e-10,
            by="n",
            log=frozenset(),
            law=(  # the derivations have their origin
                "d_h = tokens",
                "d_h * d = n * tokens**2",
                "d = 2 * tokens",
                "d * (d + 1) = n * tokens * (tokens + 1)",
            ),
            axes=0,
            draw=lazily(f"{__package__}.figures:draw_ranks"),
        ),
    )

    def cost(self, cell: RegressionCell) -> float:
        p = cell.parameters
        rows = p.n * p.tokens
        trained = {"query": 1, "value": 0}.get(p.trained, 2) + (p.trained in LAYERS)
        step = p.heads * rows * p.d_h * (2 * p.tokens + trained * (rows + p.tokens))
        return 2.0 * p.training_steps * (step + 2e4)

    def memory(self, cell: RegressionCell) -> float:
        return BYTES_OF_LIBRARIES + max(_bytes_of_tensors(cell.parameters), 128 * _DEMO_BYTES)

    def summary(self, result: CellResult[P]) -> str:
        measured = result.measurements
        if result.reason:
            return f"The loss {result.reason} at step {result.steps}; a smaller step size may not."
        sentence = (
            f"The {result.cell.parameters.kernel} kernel brought the loss from "
            f"{measured['start_loss']:.3g} to {measured['train_loss']:.3g} in "
            f"{plural(result.steps, 'step')}."
        )
        if (floor := measured.get("floor", 0.0)) > 0:
            sentence += f" With W_V fixed it can't get below {floor:.3g}: the hull of the values."
        return sentence


study = KernelRegression()
