"""The study `in-context-regression`: Lu et al. 2025."""

from __future__ import annotations

from typing import Any

from overfit_cli.core.cell import Cell, Column
from overfit_cli.core.figure import HEATMAP, LINES, Figure
from overfit_cli.core.study import Study
from overfit_cli.core.training import BYTES_OF_LIBRARIES
from overfit_cli.studies.linear_attention import PAPER
from overfit_cli.studies.linear_attention.parameters import Parameters

COLUMNS = (
    Column("icl_error", "error on new tasks", r"e_{\mathrm{ICL}}"),
    Column("idg_error", "error on pretraining tasks", r"e_{\mathrm{IDG}}"),
    Column("task_gap", "error on new tasks less that on pretraining tasks", label="task gap"),
    Column("theory_icl_error", "error on new tasks for d → ∞", label="limit on new tasks"),
    Column("theory_idg_error", "error on pretraining tasks for d → ∞", label="limit on old tasks"),
    Column("theory_task_gap", "task gap for d → ∞", label="limit of the task gap"),
    Column(
        "best_alpha",
        "α of the least error on new tasks for d → ∞, from 0.01 to a million",
        r"\alpha_\ast",
        "context of the least error",
        reached=False,
    ),
    Column("posterior_gap", "task gap of the posterior mean", label="posterior mean's task gap"),
)


def _figure(name: str, title: str, number: int, kind: Figure = LINES, **options: Any) -> Figure:
    """Return a figure of the paper on logarithmic axes; lines have e_ICL, with its limit."""
    lines: dict[str, Any] = {"value": "icl_error", "theory": "theory_icl_error"}
    given = {**(lines if kind is LINES else {}), **options}
    log = frozenset({"x", "y", "value"} if kind is HEATMAP else {"x", "value"})
    source = f"{PAPER}, Figure {number}"
    return kind.showing(name, title, source=source, axes=0, log=log, **given)


class InContextRegression(Study[Parameters]):
    """Linear attention that learns regression in context, pretrained by ridge regression."""

    name, version = "in-context-regression", 1
    title = "In-context learning of regression by linear attention"
    paper, parameters, columns = PAPER, Parameters, COLUMNS
    claims_in = ".claims"
    shows = (
        "The error is {icl_error:.3g} on new tasks and {idg_error:.3g} on those of pretraining; "
        "many features would give {theory_icl_error:.3g} and {theory_idg_error:.3g}."
    )
    drawn = (
        _figure("descent", "Errors on new tasks against sequences, by context", 1, x="tau"),
        _figure("context", "Errors on new tasks against the context", 2, x="alpha", by="tau"),
        _figure(
            "region",
            "The context of the least error on new tasks in the limit, over tasks and noise",
            3,
            HEATMAP,
            x="kappa",
            y="rho",
            by="tau",
            value="best_alpha",
        ),
        _figure(
            "gap",
            "The task gap against the number of tasks",
            4,
            x="kappa",
            by="d",
            value="task_gap",
            theory="theory_task_gap",
        ),
        _figure(
            "posterior",
            "The task gap of the posterior mean against the number of tasks",
            4,
            x="kappa",
            by="d",
            value="posterior_gap",
            theory=None,
        ),
        LINES.showing(
            "sizes",
            "How far above the limit errors on new tasks are, against d",
            labels={"icl_error / theory_icl_error - 1": "error over its limit, less 1"},
            axes=0,
            x="d",
            by="tau",
            value="icl_error / theory_icl_error - 1",
            mean="arithmetic",
            log=frozenset({"x", "value"}),
        ),
        HEATMAP,
        LINES,
    )

    def cost(self, cell: Cell[Parameters]) -> float:
        p = cell.parameters
        if p.sampling == "theory":
            return 1e6
        tokens = p.n * p.d * (p.context if p.sampling == "direct" else 1)
        posterior = p.test_contexts * p.d**2 * (p.k + 20.0)
        return 1e6 + 20.0 * tokens + 100.0 * p.n * p.d**2 + posterior

    def memory(self, cell: Cell[Parameters]) -> float:
        p = cell.parameters
        features = p.d * (p.d + 1)
        matrix = min(p.n, 2 * features) ** 2 if p.n < 2 * features else 0
        contexts = min(64, p.test_contexts) * p.d * max(p.k, p.d)
        return BYTES_OF_LIBRARIES + 8.0 * (6 * p.n * p.d + 2 * matrix + 3 * contexts)


study = InContextRegression()
