"""The study `kernel-regression`: the theorems of Song et al. 2024. Torch is imported to train."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from overfit_cli.claim import Claim
from overfit_cli.figure import Figure
from overfit_cli.studies.attention_kernel.regression.columns import MEASUREMENTS, TRAJECTORY
from overfit_cli.studies.attention_kernel.regression.parameters import KernelRegressionParameters
from overfit_cli.study import Batches, Cell, CellResult, Cells, Results, Study
from overfit_cli.training import Training


class KernelRegression(Study[KernelRegressionParameters]):
    """One attention layer that fits a label a token; see `Study` for the members."""

    name = "kernel-regression"
    version = 1
    title = "Softmax against Gaussian attention on a regression problem"
    paper = "Song et al. 2024"
    parameters = KernelRegressionParameters
    columns = MEASUREMENTS
    trajectory_columns = TRAJECTORY
    headline = "relative_loss"
    progress_columns = (
        "train_loss",
        "gradient_query",
        "gradient_value",
        "pl_ratio",
        "smallest_attention",
    )

    def figures(self) -> Mapping[str, Figure]:
        """Return the figures by name."""
        from overfit_cli.studies.attention_kernel.regression.figures import FIGURES

        return FIGURES

    def claims(self) -> Sequence[Claim]:
        """Return the claims of the theorems and of the example."""
        from overfit_cli.studies.attention_kernel.regression.claims import CLAIMS

        return CLAIMS

    def batches(
        self, cells: Cells[KernelRegressionParameters], device: str
    ) -> Batches[KernelRegressionParameters]:
        """Group cells of one shape."""
        from overfit_cli.studies.attention_kernel.regression import batching

        return batching.batches(cells, device)

    def cost(self, cell: Cell[KernelRegressionParameters]) -> float:
        """Return the multiplications of a cell, roughly."""
        from overfit_cli.studies.attention_kernel.regression import batching

        return batching.cost(cell)

    def memory(self, cell: Cell[KernelRegressionParameters]) -> float:
        """Return the bytes that a cell takes, roughly."""
        from overfit_cli.studies.attention_kernel.regression import batching

        return batching.memory(cell)

    def train(
        self, batch: Cells[KernelRegressionParameters], training: Training
    ) -> Results[KernelRegressionParameters]:
        """Train a batch by hand-derived gradients."""
        from overfit_cli.studies.attention_kernel.regression.training import train_batch

        return train_batch(batch, training)

    def summary(self, result: CellResult[KernelRegressionParameters]) -> str:
        """Say how far the loss fell, and how far it could have."""
        settings = result.cell.parameters
        got = result.measurements
        if result.reason:
            return f"The loss {result.reason} at step {result.steps}; a smaller step size may not."
        sentence = (
            f"The {settings.kernel} kernel brought the loss from {got['start_loss']:.3g} to "
            f"{got['train_loss']:.3g} in {result.steps} steps."
        )
        floor = got.get("floor", math.nan)
        if floor > 0:
            sentence += f" With W_V fixed it can't get below {floor:.3g}: the hull of the values."
        return sentence


study = KernelRegression()
