"""The study `kernel-regression`: Theorems 1 to 3 of Song et al. 2024."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from overfit_cli.core.cell import Batch, Batches, CellResult, Column, Results
from overfit_cli.core.claim import Claim
from overfit_cli.core.figure import (
    CURVES,
    CUTOFF,
    LINES,
    Figure,
    FigureOptions,
    collect_figures,
    lazily,
)
from overfit_cli.core.study import Study
from overfit_cli.core.text import plural
from overfit_cli.core.training import BYTES_OF_LIBRARIES, Training, group_cells
from overfit_cli.studies.attention_kernel import PAPER
from overfit_cli.studies.attention_kernel.regression.parameters import (
    LARGEST_SPECTRUM,
    LAYERS,
    KernelRegressionParameters,
    RegressionCell,
)

P = KernelRegressionParameters
MEASUREMENTS = (
    Column(
        "relative_loss",
        "final loss over the starting loss",
        label="final / initial loss",
        diverges=True,
    ),
    Column("start_loss", "loss at the start", symbol="f(M_0)"),
    Column("train_loss", "final loss", symbol="f(M_t)", diverges=True),
    Column(
        "floor",
        "closed-form lower bound of the loss, where W_Q alone is trained",
        label="closed-form floor",
    ),
    Column(
        "steps_to_millionth",
        "steps until the loss is 1e-6 of its start",
        kind="int",
        label="steps to 10⁻⁶ of start loss",
        reached=False,
    ),
    Column(
        "steps_to_trillionth",
        "steps until the loss is 1e-12 of its start",
        kind="int",
        label="steps to 10⁻¹² of start loss",
        reached=False,
    ),
    Column("gradient_query_start", "gradient in W_Q at the start", symbol=r"\|\nabla_{W^Q} f\|"),
    Column("gradient_key_start", "gradient in W_K at the start", symbol=r"\|\nabla_{W^K} f\|"),
    Column("gradient", "final gradient in what is trained", label="final gradient"),
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
        "rate_margin",
        "twice the least curvature in W_V over the paper's rate; below 1 that rate is too fast",
        symbol=r"2\lambda_{\min}(K)/\|W^O\|^2(\underline{\lambda}^B)^2",
        label="slowest rate over paper's",
    ),
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
        "violations_gamma",
        "steps above the bound of Theorem 3's rate",
        kind="int",
        label="steps above Theorem 3's rate",
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
        "lemma_gradients",
        "Lemma 2 (4, 5) or 7 (4), left over right side, most",
        label="gradient over upper bound",
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
        "tangent_trace",
        "trace of the tangent kernel in W_Q at the start",
        symbol=r"\mathrm{tr}\,\Theta",
        label="trace of tangent kernel",
    ),
    Column(
        "tangent_small",
        "mean of that trace over W_Q and W_K, as σ_W goes to 0",
        label="formula at small weights",
    ),
    Column(
        "tangent_steps",
        "steps to 1e-6 of the start that the tangent kernel predicts",
        label="predicted steps",
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
        "condition_46",
        "decades by which (46) fails, of Theorem 2's proof; negative where it holds",
        label="decades to condition (46)",
    ),
    Column(
        "condition_12",
        "decades by which condition (12) fails; negative where it holds",
        label="decades to condition (12)",
    ),
)

TRAJECTORY = (
    Column("train_loss", "loss", symbol="f", diverges=True),
    Column("floor", "closed-form lower bound of the loss", label="closed-form floor"),
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

LARGEST_BATCH = {"cpu": 128, "cuda": 4096}
"""Cells of the demo's size that are trained together: beyond, a CPU gains nothing."""

_STEP_OVERHEAD = 2e4
_DEMO_BYTES = 8.0 * (16 * 68 + 16 * 64 + 384 + 64 * 192)
_PANELS = "target,heads,value_gap,trained"
_FIGURES = "overfit_cli.studies.attention_kernel.regression.figures"
_RATES = "overfit_cli.studies.attention_kernel.regression.rate_figures"

FIGURES = collect_figures(
    replace(
        CURVES,
        title="Loss against steps at each kernel's best step size, with floors and bounds",
        options=FigureOptions(
            value="train_loss", theory="bound_paper,bound_corrected,floor", by=_PANELS
        ),
        draw=lazily(f"{_FIGURES}:draw_losses"),
    ),
    replace(
        LINES,
        name="learning-rates",
        title="Final loss against the step size, for each kernel",
        options=FigureOptions(x="learning_rate", value="relative_loss", by=_PANELS),
        axes=0,
        draw=lazily(f"{_FIGURES}:draw_final_losses"),
    ),
    replace(
        LINES,
        name="eigenvalue",
        title="Slowest rate over the paper's, against the number of heads",
        accepts=frozenset(),
        axes=0,
        draw=lazily(f"{_RATES}:draw_eigenvalue"),
    ),
    replace(
        LINES,
        name="tangent",
        title="Trace of the tangent kernel in W_Q against the tokens, with its formula",
        options=FigureOptions(
            x="tokens",
            value="tangent_trace",
            by="sigma_w",
            theory="tangent_small",
            log=frozenset({"x", "value"}),
        ),
        axes=0,
        draw=lazily(f"{_FIGURES}:draw_lines"),
    ),
    replace(
        LINES,
        name="tangent-steps",
        title="Steps to a millionth of the loss against the step size, with those predicted",
        accepts=frozenset(),
        axes=0,
        draw=lazily(f"{_RATES}:draw_tangent_steps"),
    ),
    replace(
        CUTOFF,
        name="ranks",
        title="Where δ of softmax is above zero, over the widths of heads and tokens",
        options=FigureOptions(
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
        ),
        axes=0,
        draw=lazily(f"{_FIGURES}:draw_ranks"),
    ),
)


class KernelRegression(Study[P]):
    """One attention layer that fits one label per token.

    Norms are Frobenius norms in the weights. A count of violations runs over all steps at which the
    bound is above 1e-20 of the starting loss: below, the loss is round-off. Lemmas 2 and 7 are
    measured at the initial weights, 3 and 8 from logged steps to the next ones.
    """

    name = "kernel-regression"
    version = 2
    title = "Softmax against Gaussian attention on a regression problem"
    paper = PAPER
    parameters = KernelRegressionParameters
    headline = "relative_loss"
    columns = MEASUREMENTS
    trajectory_columns = TRAJECTORY
    progress_columns = (
        "train_loss",
        "gradient_query",
        "gradient_value",
        "pl_ratio",
        "smallest_attention",
    )

    def figures(self) -> Mapping[str, Figure]:
        return FIGURES

    def claims(self) -> Sequence[Claim]:
        from overfit_cli.studies.attention_kernel.regression.claims import CLAIMS

        return CLAIMS

    def batches(self, cells: Batch[P], device: str) -> Batches[P]:
        """Group cells of one shape, whatever their seed, target and step size; costliest first."""
        by_seed = sorted(cells, key=lambda cell: cell.seed)
        largest = LARGEST_BATCH[device] * _DEMO_BYTES
        return group_cells(by_seed, _shape, _bytes_of_tensors, largest, self.cost)

    def cost(self, cell: RegressionCell) -> float:
        settings = cell.parameters
        rows = settings.n * settings.tokens
        trained = {"query": 1, "value": 0}.get(settings.trained, 2) + (settings.trained in LAYERS)
        attention = 2 * rows * settings.tokens * settings.d_h
        gradients = trained * rows * (rows + settings.tokens) * settings.d_h
        step = settings.heads * (attention + gradients)
        return 2.0 * settings.training_steps * (step + _STEP_OVERHEAD)

    def memory(self, cell: RegressionCell) -> float:
        tensors = max(_bytes_of_tensors(cell), LARGEST_BATCH["cpu"] * _DEMO_BYTES)
        return BYTES_OF_LIBRARIES + tensors

    def train(self, batch: Batch[P], training: Training) -> Results[P]:
        from overfit_cli.studies.attention_kernel.regression.training import train_batch

        return train_batch(batch, training)

    def summary(self, result: CellResult[P]) -> str:
        settings = result.cell.parameters
        measured = result.measurements
        if result.reason:
            return f"The loss {result.reason} at step {result.steps}; a smaller step size may not."
        sentence = (
            f"The {settings.kernel} kernel brought the loss from {measured['start_loss']:.3g} to "
            f"{measured['train_loss']:.3g} in {plural(result.steps, 'step')}."
        )
        floor = measured.get("floor", math.nan)
        if floor > 0:
            sentence += f" With W_V fixed it can't get below {floor:.3g}: the hull of the values."
        return sentence


def _shape(cell: RegressionCell) -> tuple[object, ...]:
    settings = cell.parameters
    sizes = (settings.n, settings.tokens, settings.d, settings.d_h, settings.heads)
    return (settings.kernel, settings.trained, settings.training_steps, settings.dtype, *sizes)


def _bytes_of_tensors(cell: RegressionCell) -> float:
    settings = cell.parameters
    rows = settings.n * settings.tokens
    heads = settings.heads * rows * (6 * settings.d_h + 5 * settings.tokens)
    scores = rows * settings.tokens
    wide = max(settings.d * settings.d_h, settings.heads * settings.tokens**2)
    singular = scores * wide if scores <= LARGEST_SPECTRUM else 0
    weights = 2 * settings.heads * settings.d * settings.d_h
    return 8.0 * (heads + rows * (rows + settings.d * (1 + settings.heads)) + weights + singular)


study = KernelRegression()
