"""The study `softmax-convergence`: after Table 1, Theorem 4.2 and section 5 of Cao et al. 2024."""

from __future__ import annotations

from overfit_cli.core.cell import Cell, Column
from overfit_cli.core.figure import (
    BOUNDARY,
    CURVES,
    HEATMAP,
    LINES,
    bounds_figure,
    drawn_in,
)
from overfit_cli.core.study import Study
from overfit_cli.core.training import BYTES_OF_LIBRARIES, Together
from overfit_cli.studies.softmax_network import PAPER
from overfit_cli.studies.softmax_network.parameters import SoftmaxConvergenceParameters

P = SoftmaxConvergenceParameters

AT_STEPS = (
    Column("train_loss", "training loss, ½‖F − Y‖²", "L", "training loss", diverges=True),
    Column(
        "ntk_loss",
        "the same of regression with the tangent kernel",
        r"L_{\mathrm{ntk}}",
        "tangent kernel's loss",
    ),
    Column("movement", "farthest that the weights of a hidden unit have moved", "R"),
    Column("kernel_drift", "change of the Gram matrix", r"\|H - H^*\|_F"),
    Column("test_gap", "network less kernel regression at test inputs, root mean square"),
)

COLUMNS = (
    Column("steps_to_epsilon", "steps until ‖F − Y‖² is ε", "T", kind="int", reached=False),
    Column(
        "steps_over_limit",
        "steps over those of infinitely many hidden units",
        label="steps over infinite width's",
        reached=False,
    ),
    *AT_STEPS,
    Column("lambda_start", "smallest initial eigenvalue", r"\lambda"),  # empty where round-off
    Column("kappa", "initial condition number", r"\kappa"),
    Column("step_size", "step size", r"\eta"),
    Column("rate_ratio", "‖F − Y‖² over what Lemma E.2's rate leaves of it, most"),
    Column("c0_over_bound", "|C₀| over Lemma E.3's bound, 0.1 m η λ ‖F − Y‖², most"),
    Column("c1", "C₁ of Lemma E.1 over m η vᵀHv with v = F − Y, most; softmax alone"),
    Column("step_length", "most of η max ‖Δw_r‖", r"\eta\,\mathrm{max}_r\|\Delta w_r\|"),
    Column("lambda_lost", "share of λ that the Gram matrix loses, most"),
    Column("train_gap", "network less kernel regression by (24), over the labels' norm"),
    Column("gradient_gap", "the same with the gradient of (23), step size η / (m λ_max)"),
    Column("test_gap_most", "largest test gap"),
    Column(
        "test_drift", "largest change of the kernel at a test input", r"\epsilon_{\mathrm{test}}"
    ),
    Column(
        "worst_drift",
        "largest change of the Gram matrix within R = 0.001, over R n outputs",
        r"\|\Delta H\|/(R\,n\,d)",
        "worst drift",
    ),
    Column("worst_drift_far", "the same within R = 0.009"),
    Column("width_missing", "decades of hidden units that Theorem 4.2 lacks", decades=True),
    Column("step_size_beyond", "decades of the step size over Theorem 4.2's", decades=True),
    Column("drift_share", "change of the Gram matrix over R n outputs"),
    Column("drift_over_bound", "change of the Gram matrix over Lemma 5.1's bound", decades=True),
    Column("movement_over_bound", "movement over Lemma 5.3's bound", decades=True),
    Column("gap_over_bound", "largest test gap over Theorem F.2's bound, its O taken for 1"),
)

SMALL, MOVED = "where sigma <= 0.03", "movement <= 0.01"
BOUNDS = {
    "‖F − Y‖² over\nLemma E.2's rate": "rate_ratio <= 1",
    "‖H − H*‖ over R n d": "drift_share <= 1",
    "‖H − H*‖ over Lemma\n5.1's R n d e$^{10B}$": f"drift_over_bound <= 0 if {MOVED} {SMALL}",
    "movement over\nLemma 5.3's D": f"movement_over_bound <= 0 if {MOVED} "
    f"and rate_ratio <= 1 {SMALL}",
    "largest test gap over\n10 times Theorem F.2's": f"gap_over_bound <= 10 {SMALL}",
}
"""Bounds by what they are called; those with a power of e^B where B is 1 alone, its least value."""

FIGURES = (
    HEATMAP.showing(
        title="Steps over those of infinite width, with the widths that suffice",
        x="n",
        y="m",
        value="steps_over_limit",
        threshold=2,
        by="activation",
    ),
    BOUNDARY.showing(
        title="Widths that suffice for twice the steps of infinite width, against n",
        x="m",
        y="n",
        value="steps_over_limit",
        threshold=2,
        by="activation",
        source="Cao et al. 2024, Table 1",
    ),
    LINES.showing(
        "kernel-drift",
        "How far the Gram matrix moves against m, and Lemma 5.1 without e^(10B)",
        x="m",
        value="kernel_drift",
        by="initialisation",
        theory="movement * n * outputs",
        labels={"movement * n * outputs": "$R\\,n\\,d$"},
        source="Cao et al. 2024, Lemma 5.1",
    ),
    LINES.showing(
        "ntk-gap",
        "Networks less kernel regression at test inputs, against m",
        x="m",
        value="test_gap",
        by="initialisation",
        source="Cao et al. 2024, Theorem F.2",
    ),
    LINES.showing(
        "worst-drift",
        "Largest changes of the Gram matrix within R, over R n, against m",
        x="m",
        value="worst_drift",
        by="n",
        mean="arithmetic",
        law=("softmax: worst_drift = 1", "exp: worst_drift = 3", "ReLU: worst_drift = 2"),
        source="Cao et al. 2024, the text after Lemma 5.1",
        fits=lambda data: data.trained.get("worst_drift", data.trained["seed"] * 0).any(),
    ),
    drawn_in(
        f"{__package__}.figures",
        "lambda",
        "Steps against λ or κ, and over Table 1's or sufficient widths against λ",
        "softmax-lambda-steps",
        source="Cao et al. 2024, Table 1",
    ),
    bounds_figure(BOUNDS, ("outputs", "sigma"), source="Cao et al. 2024, sections 4, 5 and F"),
    LINES.showing(value="steps_to_epsilon"),
    CURVES.showing(value="train_loss,ntk_loss", by="activation", log=frozenset({"x", "value"})),
)


class SoftmaxConvergence(Study[P]):
    """Two-layer networks beside regression with their tangent kernels.

    Movement, drifts and gaps of a cell are the largest of its logged steps.
    """

    name, version = "softmax-convergence", 2
    title = "Two-layer softmax, exponential and ReLU networks in the kernel regime"
    paper, parameters = PAPER, SoftmaxConvergenceParameters
    headline = "steps_to_epsilon"
    stop = "Training ends where the loss comes to ε"
    columns, trajectory_columns = COLUMNS, AT_STEPS
    drawn, claims_in = FIGURES, ".claims"
    together = Together[P](
        {"seed", "sigma", "data", "initialisation", "step_rule", "step_factor"},
        size=lambda p: float(p.n * p.m),  # more leave a processor's cache
        cpu=2e5,
        cuda=2e8,
    )
    shows = (
        "{m} {activation} units brought ½‖F − Y‖² to {train_loss:.3g} in {steps}. The Gram matrix "
        "has moved by {kernel_drift:.2g}."
    )

    def cost(self, cell: Cell[P]) -> float:
        p = cell.parameters  # multiplications of a step, and its share of calls
        return p.n * p.m * (20.0 + 2 * p.d) + 1e4

    def memory(self, cell: Cell[P]) -> float:
        p = cell.parameters
        rows = p.outputs * (p.n + p.test_samples)
        features = max(2e5 / p.n, float(p.m)) * rows
        return BYTES_OF_LIBRARIES + 8.0 * (6 * features + 3 * rows**2)


study = SoftmaxConvergence()
