"""The base of `multihead-mixture` and `multihead-planted`: columns, figures, batches and cost."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from overfit_cli.core.cell import Batch, Batches, Cell, CellResult, Column, Results
from overfit_cli.core.figure import (
    CURVES,
    HEATMAP,
    LINES,
    Figure,
    FigureOptions,
    collect_figures,
    defaults_but,
)
from overfit_cli.core.study import Study
from overfit_cli.core.text import percent, plural
from overfit_cli.core.training import BYTES_OF_LIBRARIES, Training, group_cells, shared_values
from overfit_cli.studies.multihead import PAPER
from overfit_cli.studies.multihead.parameters import MultiheadParameters, Problem

if TYPE_CHECKING:
    from overfit_cli.core.cells import Cells

P = TypeVar("P", bound=MultiheadParameters)

APART = frozenset({"heads", "learning_rate", "step_rule", "momentum"})
"""Parameters in which cells that are trained together may differ."""

_LARGEST_BATCH = {"cpu": 1e6, "cuda": 2e8}
"""The most products of tokens, samples and classes in a batch: what is measured of all at once."""

_STEP_OVERHEAD = 1e5
"""A step's fixed cost, in products of two tokens' features."""

_PROBED_STEPS = 200
OPTIMISERS_OF_FIGURES = ("gd", "momentum", "adam")
"""The optimisers of figures 2 to 5."""

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
    Column(
        "concavity",
        "least eigenvalue of the training loss's Hessian with its sign changed, most",
        symbol=r"-\lambda_{\min}(\nabla^2 \hat L)",
        label="concavity",
    ),
)
_MEASURED = (
    Column("test_loss", "test loss", symbol="L", diverges=True),
    Column(
        "test_error", "share of test samples of the wrong sign", label="test error", diverges=True
    ),
    Column(
        "train_error",
        "share of training samples of the wrong sign",
        label="training error",
        diverges=True,
    ),
    Column(
        "norm_w", "mean norm of W over heads", symbol=r"\frac{1}{H}\sum \|W_h\|", label="norm of W"
    ),
    Column(
        "norm_u",
        "norms of U over heads, their sum over √H",
        symbol=r"H^{-1/2}\sum \|U_h\|",
        label="norm of U",
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
)


def cell_columns(*special: Column) -> tuple[Column, ...]:
    """Return the columns of a study's cells, its own after what all have."""
    return (
        Column("train_loss", "final training loss", symbol=r"\hat L", diverges=True),
        Column(
            "log10_train_loss",
            "its decimal logarithm, which doesn't underflow",
            label="log₁₀ training loss",
            diverges=True,
        ),
        Column(
            "mean_train_loss",
            "mean training loss over all steps",
            symbol=r"\frac{1}{K}\sum \hat L",
            label="mean training loss",
            diverges=True,
        ),
        Column(
            "steps_to_target",
            "steps until the training loss is below the target",
            kind="int",
            label="steps to the target loss",
            reached=False,
        ),
        *_MEASURED,
        *special,
        Column(
            "margin_share",
            "least margin over the norm of all U, over γ_attn",
            label="share of attention's margin",
        ),
        *CERTIFICATES,
        Column(
            "theorem1_bound",
            "Theorem 1's bound on the mean training loss, θ the last step",
            symbol=r"B_1",
            label="Theorem 1's bound",
        ),
        Column(
            "theorem1_heads",
            "decimal logarithm of the heads that Theorem 1 requires in the print of April 2024",
            symbol=r"\log_{10} H_1",
            label="log₁₀ heads of Theorem 1",
        ),
        Column(
            "theorem2_bound",
            "Theorem 2's bound on test less training loss",
            label="Theorem 2's bound",
        ),
        Column(
            "theorem2_heads",
            "decimal logarithm of the heads that Theorem 2 requires in the print of April 2024",
            label="log₁₀ heads of Theorem 2",
        ),
        Column(
            "theorem_step_size",
            "decimal logarithm of the largest step size of both, in that print",
            label="log₁₀ largest step size",
        ),
    )


def step_columns(*special: Column) -> tuple[Column, ...]:
    """Return the columns of a study's logged steps, its own after what all have."""
    return (
        Column("train_loss", "training loss", symbol=r"\hat L", diverges=True),
        Column(
            "log10_train_loss", "its decimal logarithm", label="log₁₀ training loss", diverges=True
        ),
        *_MEASURED,
        *special,
        Column("loss_times_step", "training loss times the step"),
    )


class MultiheadStudy(Study[P]):
    """One layer of multi-head attention on one kind of data, which `draw` gives."""

    paper = PAPER
    progress_columns: tuple[str, ...] = ("train_loss", "test_loss", "norm_u", "margin")

    @abstractmethod
    def draw(self, parameters: P, seed: int) -> Problem:
        """Draw the problem of a seed's cells."""

    def figures(self) -> Mapping[str, Figure]:
        return collect_figures(
            replace(
                CURVES,
                name="heads",
                title="Losses, norms, attention and margins against the step, a line for each H",
                source=self.source_of_heads,
                reproduces=self._reproduces_heads,
                options=FigureOptions(value=self.rows_of_heads),
                labels={self.share: r"margin over $\gamma_{\mathrm{attn}}$"},
            ),
            replace(
                HEATMAP,
                title="Steps until the training loss is below the target, over two parameters",
                options=FigureOptions(x="heads", y="learning_rate", value="steps_to_target"),
            ),
            replace(LINES, options=FigureOptions(x="heads", value="steps_to_target")),
            CURVES,
        )

    rows_of_heads: str
    share: str = ""
    source_of_heads: str = ""
    """The figures of the paper that show its training."""

    def _reproduces_heads(self, data: Cells) -> bool:
        free = ("heads", "optimiser", "learning_rate", "step_rule", "momentum", "certify")
        is_known = data.trained["optimiser"].isin(OPTIMISERS_OF_FIGURES).all()
        return bool(is_known) and defaults_but(*free)(data)

    def batches(self, cells: Batch[P], device: str) -> Batches[P]:
        """Group cells of a seed that share their draws and shapes; costliest first."""
        by_heads = sorted(cells, key=lambda cell: cell.parameters.heads)
        return group_cells(by_heads, _shape, _pairs, _LARGEST_BATCH[device], self.cost)

    def cost(self, cell: Cell[P]) -> float:
        """Return about how many products of two tokens' features a cell computes."""
        settings = cell.parameters
        return settings.training_steps * (_pairs(cell) + _STEP_OVERHEAD / 10)

    def probe(self, cell: Cell[P]) -> Cell[P]:
        steps = min(cell.parameters.training_steps, _PROBED_STEPS)
        parameters = cell.parameters.model_copy(update={"training_steps": steps, "epsilon": 0.0})
        return replace(cell, parameters=parameters)

    def memory(self, cell: Cell[P]) -> float:
        settings = cell.parameters
        arrays = 3 + 2 * (1 + settings.d) / settings.tokens
        trained = arrays * max(_LARGEST_BATCH["cpu"], _pairs(cell))
        tested = 4 * settings.tokens * settings.d * settings.test_samples
        return BYTES_OF_LIBRARIES + 8.0 * (trained + tested)

    def train(self, batch: Batch[P], training: Training) -> Results[P]:
        from overfit_cli.studies.multihead.training import train_batch

        problem = self.draw(batch[0].parameters, batch[0].seed)
        return train_batch(batch, problem, training)

    def summary(self, result: CellResult[P]) -> str:
        if result.reason == "diverged":
            return f"The loss diverged at step {result.steps}; a smaller step size may not."
        measured, settings = result.measurements, result.cell.parameters
        heads = f"{settings.heads} head{'s' if settings.heads > 1 else ''}"
        loss = (
            f"{measured['train_loss']:.3g}"
            if measured["train_loss"]
            else f"1e{measured['log10_train_loss']:.0f}"
        )
        sentence = (
            f"{heads.capitalize()} brought the training loss to {loss} in "
            f"{plural(result.steps, 'step')}, with a test loss of {measured['test_loss']:.3g} and "
            f"a test error of {percent(measured['test_error'], 1)}."
        )
        if measured.get("margin_share", 0) > 0:
            sentence += f" The least margin is {percent(measured['margin_share'], 0)} of γ_attn."
        return sentence


def _pairs(cell: Cell[P]) -> float:
    settings = cell.parameters
    return float(settings.classes * settings.n * settings.tokens**2)


def _shape(cell: Cell[P]) -> tuple[object, ...]:
    """What cells that are trained together share.

    Training with heads of width d/H amplifies round-off, which depends on what else a product of
    matrices contains: each such cell is trained by itself, so that its numbers are its own.
    """
    settings = cell.parameters
    apart = APART if settings.head_width == "full" else frozenset()
    return (cell.seed, settings.classes, *shared_values(cell, apart))
