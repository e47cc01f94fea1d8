"""The study `softmax-convergence`: after Table 1, Theorem 4.2 and section 5 of Cao et al. 2024."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from overfit_cli.core.cell import Batch, Batches, CellResult, Column, Results
from overfit_cli.core.claim import Claim
from overfit_cli.core.figure import (
    BOUNDARY,
    CURVES,
    HEATMAP,
    LINES,
    Figure,
    FigureOptions,
    bounds_figure,
    collect_figures,
    lazily,
)
from overfit_cli.core.study import Study
from overfit_cli.core.text import plural
from overfit_cli.core.training import BYTES_OF_LIBRARIES, Training, group_cells, shared_values
from overfit_cli.studies.softmax_network.convergence.parameters import (
    ConvergenceCell,
    SoftmaxConvergenceParameters,
)
from overfit_cli.studies.softmax_network.paper import PAPER

P = SoftmaxConvergenceParameters
AT_STEPS = (
    Column(
        "train_loss", "training loss, ½‖F − Y‖²", symbol="L", label="training loss", diverges=True
    ),
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
    Column(
        "c1",
        "Lemma E.1's C₁ of the next step over m η vᵀHv with v = F − Y; softmax alone",
        symbol=r"C_1/(m\eta v^T H v)",
        label="part of a step's change",
    ),
)

MEASUREMENTS = (
    Column(
        "steps_to_epsilon",
        "steps until ‖F − Y‖² is ε",
        kind="int",
        label="steps until convergence",
        reached=False,
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
        "steps_over_limit",
        "steps over those of infinitely many hidden units",
        label="steps over infinite width's",
        reached=False,
    ),
    *AT_STEPS,
    Column(
        "lambda_start",
        "smallest eigenvalue at the start; empty where it is round-off",
        symbol=r"\lambda",
        label="smallest initial eigenvalue",
    ),
    Column(
        "kappa",
        "condition number at the start; empty where λ is round-off",
        symbol=r"\kappa",
        label="initial condition number",
    ),
    Column("step_size", "step size", symbol=r"\eta"),
    Column(
        "rate_ratio",
        "‖F − Y‖² over what Lemma E.2's rate leaves of it, most",
        label="error over Lemma E.2's",
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
        "worst_drift",
        "largest change of the Gram matrix found where weights move by R = 0.001, over R n outputs",
        label="worst drift over R n",
    ),
    Column(
        "worst_drift_far",
        "the same where they move by R = 0.009",
        label="worst drift at R = 0.009",
    ),
    Column(
        "c0_over_bound",
        "|C₀| over Lemma E.3's bound, 0.1 m η λ ‖F − Y‖², most",
        label="C₀ over its bound",
    ),
    Column(
        "gradient_over_bound",
        "decades of max ‖Δw_r‖ over Lemma D.1's bound, most",
        label="log₁₀ gradient over bound",
    ),
    Column(
        "step_length",
        "η max ‖Δw_r‖, most",
        symbol=r"\eta\,\mathrm{max}_r\|\Delta w_r\|",
        label="largest step of a unit",
    ),
    Column(
        "lambda_lost",
        "share of λ that the smallest eigenvalue of the Gram matrix loses, most",
        label="lost share of λ",
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
        "drift_share", "change of the Gram matrix over R n outputs", label="drift over R n outputs"
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

BOUNDS = {
    "$\\Vert F-Y\\Vert^2$ over\nLemma E.2's rate": "rate_ratio <= 1",
    "$\\Vert H-H^*\\Vert_F$ over\n$R\\,n\\,d$": "drift_share <= 1",
    "the same over Lemma 5.1's\n$R\\,n\\,d\\,e^{10B}$": "drift_over_bound <= 0 if movement <= 0.01 "
    "where sigma <= 0.03",
    "movement over\nLemma 5.3's $D$": "movement_over_bound <= 0 if movement <= 0.01 "
    "and rate_ratio <= 1 where sigma <= 0.03",
    "$\\max_r\\Vert\\Delta w_r\\Vert$ over\nLemma D.1's bound": "gradient_over_bound <= 0 "
    "if movement <= 0.01 where sigma <= 0.03",
    "worst test gap over\n10 times Theorem F.2's": "gap_over_bound <= 10 where sigma <= 0.03",
}
"""Bounds by what they are called; those with a power of e^B where B is 1 alone, its least value."""

APART = frozenset({"sigma", "data", "initialisation", "step_rule", "step_factor"})
"""Parameters in which cells that are trained together may differ."""

_LARGEST_BATCH = {"cpu": 2e5, "cuda": 2e8}
"""The most products of samples and hidden units in a batch; more leave a processor's cache."""

_STEP_OVERHEAD = 1e4


class SoftmaxConvergence(Study[P]):
    """Two-layer networks beside regression with their tangent kernels.

    Movement, drifts and gaps of a cell are the largest of its logged steps.
    """

    name = "softmax-convergence"
    version = 2
    title = "Two-layer softmax, exponential and ReLU networks in the kernel regime"
    paper = PAPER
    parameters = SoftmaxConvergenceParameters
    headline = "steps_to_epsilon"
    stop = "Training ends where the loss comes to ε"
    columns = MEASUREMENTS
    trajectory_columns = AT_STEPS
    progress_columns = ("train_loss", "ntk_loss", "movement", "kernel_drift", "test_gap")

    def figures(self) -> Mapping[str, Figure]:
        networks, folder = "activation", "overfit_cli.studies.softmax_network.convergence.figures"
        return collect_figures(
            replace(
                HEATMAP,
                title="Steps to ε over n and m, with the widths that suffice",
                options=FigureOptions(x="n", y="m", value="steps_to_epsilon", by=networks),
                draw=lazily(f"{folder}.tables:draw_diagram"),
                fits=lazily(f"{folder}.tables:has_grid"),
            ),
            Figure(
                name="table1",
                title="Steps, sufficient width and condition number against n, by activation",
                reads="cells",
                draw=lazily(f"{folder}.tables:draw_table1"),
                fits=lazily(f"{folder}.tables:has_grid"),
                source="Cao et al. 2024, Table 1",
            ),
            Figure(
                name="kernel-drift",
                title="How far kernels and weights move, against m",
                reads="cells",
                draw=lazily(f"{folder}.drift:draw_kernel_drift"),
                fits=lazily(f"{folder}.drift:has_widths"),
                source="Cao et al. 2024, Lemmas 5.1 and 5.3",
            ),
            Figure(
                name="ntk-gap",
                title="Networks less kernel regression at test inputs, against m and over steps",
                reads="trajectories",
                draw=lazily(f"{folder}.drift:draw_ntk_gap"),
                fits=lazily(f"{folder}.drift:has_widths"),
                source="Cao et al. 2024, Theorem F.2",
            ),
            Figure(
                name="lambda",
                title="Steps against λ or κ, and over Table 1's or sufficient widths against λ",
                reads="cells",
                draw=lazily(f"{folder}.lambdas:draw_lambda"),
                fits=lazily(f"{folder}.lambdas:has_eigenvalues"),
                source="Cao et al. 2024, Table 1",
            ),
            Figure(
                name="worst-drift",
                title="Largest changes of the Gram matrix within R, over R n, against m",
                reads="cells",
                draw=lazily(f"{folder}.worst_drift:draw_worst_drift"),
                fits=lazily(f"{folder}.worst_drift:has_worst_drifts"),
                source="Cao et al. 2024, Lemma 5.1",
            ),
            bounds_figure(
                BOUNDS,
                ("outputs", "sigma"),
                source="Cao et al. 2024, Theorems 4.2 and F.2, Lemmas 5.1, 5.3 and D.1",
            ),
            replace(
                BOUNDARY,
                options=FigureOptions(
                    x="m", y="n", value="steps_over_limit", threshold=2, by="activation"
                ),
            ),
            replace(LINES, options=FigureOptions(value="steps_to_epsilon")),
            replace(
                CURVES,
                options=FigureOptions(
                    value="train_loss,ntk_loss", by=networks, log=frozenset({"x", "value"})
                ),
            ),
        )

    def claims(self) -> Sequence[Claim]:
        from overfit_cli.studies.softmax_network.convergence.claims import CLAIMS

        return CLAIMS

    def batches(self, cells: Batch[P], device: str) -> Batches[P]:
        """Group cells of one activation and one shape, whatever their seed; costliest first."""
        by_seed = sorted(cells, key=lambda cell: cell.seed)
        return group_cells(
            by_seed,
            partial(shared_values, apart=APART),
            _products,
            _LARGEST_BATCH[device],
            self.cost,
        )

    def cost(self, cell: ConvergenceCell) -> float:
        """Return about how many multiplications a step of a cell costs, with its share of calls."""
        settings = cell.parameters
        return _products(cell) * (20 + 2 * settings.d) + _STEP_OVERHEAD

    def memory(self, cell: ConvergenceCell) -> float:
        settings = cell.parameters
        rows = settings.outputs * (settings.n + settings.test_samples)
        features = max(_LARGEST_BATCH["cpu"] / settings.n, float(settings.m)) * rows
        return BYTES_OF_LIBRARIES + 8.0 * (6 * features + 3 * rows**2)

    def train(self, batch: Batch[P], training: Training) -> Results[P]:
        from overfit_cli.studies.softmax_network.convergence.training import train_batch

        return train_batch(batch, training)

    def summary(self, result: CellResult[P]) -> str:
        settings, measured = result.cell.parameters, result.measurements
        if result.reason == "diverged":
            return f"The loss diverged at step {result.steps}; a smaller step size may not."
        units = f"{settings.m} {settings.activation} units"
        steps = plural(result.steps, "step")
        sentence = f"{units} brought ‖F − Y‖² to {2 * measured['train_loss']:.3g} in {steps}."
        if "ntk_steps" in measured and not result.reason:
            sentence += f" Regression with their tangent kernel takes {measured['ntk_steps']:.0f}."
        return f"{sentence} The Gram matrix has moved by {measured['kernel_drift']:.2g}."


def _products(cell: ConvergenceCell) -> float:
    return float(cell.parameters.n * cell.parameters.m)


study = SoftmaxConvergence()
