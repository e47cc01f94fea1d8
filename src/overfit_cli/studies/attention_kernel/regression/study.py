"""The study `kernel-regression`: Theorems 1 to 3 of Song et al. 2024."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import groupby

from overfit_cli.core.figure import CURVES, LINES, Figure, FigureOptions, by_name, drawn_by
from overfit_cli.core.study import Batches, CellResult, Cells, Results, Study
from overfit_cli.core.text import plural
from overfit_cli.core.training import Training
from overfit_cli.studies.attention_kernel.paper import PAPER
from overfit_cli.studies.attention_kernel.regression.columns import MEASUREMENTS, TRAJECTORY
from overfit_cli.studies.attention_kernel.regression.parameters import (
    LARGEST_SPECTRUM,
    KernelRegressionParameters,
    RegressionCell,
)

LARGEST_BATCH = {"cpu": 128, "cuda": 4096}
"""Cells of the demo's size that are trained together: beyond, a CPU gains nothing."""

BYTES_OF_LIBRARIES = 3e8
_STEP_OVERHEAD = 2e4
_DEMO_BYTES = 8.0 * (16 * 68 + 16 * 64 + 384 + 64 * 192)
_PANELS = "target,heads,value_gap,trained"

FIGURES = by_name(
    replace(
        CURVES,
        title="Loss against steps at each kernel's best step size, with floors and bounds",
        options=FigureOptions(value="train_loss,floor,bound_paper,bound_corrected", by=_PANELS),
        draw=drawn_by("overfit_cli.figures.curves:draw_best_curves"),
    ),
    replace(
        LINES,
        name="learning-rates",
        title="Final loss against the step size, for each kernel",
        options=FigureOptions(x="learning_rate", value="relative_loss", by=_PANELS),
        axes=0,
    ),
)


class KernelRegression(Study[KernelRegressionParameters]):
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
    claims_in = "overfit_cli.studies.attention_kernel.regression.claims"
    worlds_in = "overfit_cli.studies.attention_kernel.regression.claims.worlds"
    progress_columns = (
        "train_loss",
        "gradient_query",
        "gradient_value",
        "pl_ratio",
        "smallest_attention",
    )

    def figures(self) -> Mapping[str, Figure]:
        """Return the figures by name."""
        return FIGURES

    def batches(
        self, cells: Cells[KernelRegressionParameters], device: str
    ) -> Batches[KernelRegressionParameters]:
        """Group cells of one shape, whatever their seed, target and step size; costliest first."""
        found = []
        for _, group in groupby(sorted(cells, key=_shape), key=_shape):
            alike = sorted(group, key=lambda cell: cell.seed)
            most = max(1, int(LARGEST_BATCH[device] * _DEMO_BYTES / _bytes_of_tensors(alike[0])))
            found += [alike[at : at + most] for at in range(0, len(alike), most)]
        return sorted(found, key=lambda batch: -self.cost(batch[0]) * len(batch))

    def cost(self, cell: RegressionCell) -> float:
        """Return about how many multiplications a cell costs."""
        settings = cell.parameters
        rows = settings.n * settings.tokens
        trained = {"query": 1, "value": 0, "all": 2}[settings.trained]
        attention = 2 * rows * settings.tokens * settings.d_h
        gradients = trained * rows * (rows + settings.tokens) * settings.d_h
        step = settings.heads * (attention + gradients)
        return 2.0 * settings.training_steps * (step + _STEP_OVERHEAD)

    def memory(self, cell: RegressionCell) -> float:
        """Return about how many bytes a batch of such cells takes, PyTorch among them."""
        together = max(_bytes_of_tensors(cell), LARGEST_BATCH["cpu"] * _DEMO_BYTES)
        return BYTES_OF_LIBRARIES + together

    def train(
        self, batch: Cells[KernelRegressionParameters], training: Training
    ) -> Results[KernelRegressionParameters]:
        """Train a batch by hand-derived gradients."""
        from overfit_cli.studies.attention_kernel.regression.training import train_batch

        return train_batch(batch, training)

    def summary(self, result: CellResult[KernelRegressionParameters]) -> str:
        """Give the loss at the start and at the end, and the floor below which it can't come."""
        settings = result.cell.parameters
        got = result.measurements
        if result.reason:
            return f"The loss {result.reason} at step {result.steps}; a smaller step size may not."
        sentence = (
            f"The {settings.kernel} kernel brought the loss from {got['start_loss']:.3g} to "
            f"{got['train_loss']:.3g} in {plural(result.steps, 'step')}."
        )
        floor = got.get("floor", math.nan)
        if floor > 0:
            sentence += f" With W_V fixed it can't get below {floor:.3g}: the hull of the values."
        return sentence


def _shape(cell: RegressionCell) -> tuple[object, ...]:
    """What cells that are trained together share."""
    settings = cell.parameters
    sizes = (settings.n, settings.tokens, settings.d, settings.d_h, settings.heads)
    return (settings.kernel, settings.trained, settings.training_steps, settings.dtype, *sizes)


def _bytes_of_tensors(cell: RegressionCell) -> float:
    """The bytes of a cell's tensors, some of which exist a few times."""
    settings = cell.parameters
    rows = settings.n * settings.tokens
    heads = settings.heads * rows * (6 * settings.d_h + 5 * settings.tokens)
    scores = rows * settings.tokens
    wide = max(settings.d * settings.d_h, settings.heads * settings.tokens**2)
    singular = scores * wide if scores <= LARGEST_SPECTRUM else 0
    weights = 2 * settings.heads * settings.d * settings.d_h
    return 8.0 * (heads + rows * (rows + settings.d * (1 + settings.heads)) + weights + singular)


study = KernelRegression()
