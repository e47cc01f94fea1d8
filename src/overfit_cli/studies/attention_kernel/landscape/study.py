"""The study `kernel-landscape`: figure 4 of Song et al. 2024. Torch is imported to train."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from overfit_cli.claim import Claim
from overfit_cli.figure import Figure
from overfit_cli.studies.attention_kernel.classifier import batching
from overfit_cli.studies.attention_kernel.landscape.columns import MEASUREMENTS, TRAJECTORY
from overfit_cli.studies.attention_kernel.landscape.parameters import (
    KernelLandscapeParameters,
    sample_length,
)
from overfit_cli.study import Batches, Cell, CellResult, Cells, Results, Study
from overfit_cli.training import Training


class KernelLandscape(Study[KernelLandscapeParameters]):
    """The loss around a trained classifier, under either kernel; see `Study` for the members."""

    name = "kernel-landscape"
    version = 1
    title = "Loss landscapes of softmax and of Gaussian attention"
    paper = "Song et al. 2024"
    parameters = KernelLandscapeParameters
    columns = MEASUREMENTS
    trajectory_columns = TRAJECTORY
    headline = "rms_laplacian"
    progress_columns = ()

    def figures(self) -> Mapping[str, Figure]:
        """Return the figures by name."""
        from overfit_cli.studies.attention_kernel.landscape.figures import FIGURES

        return FIGURES

    def claims(self) -> Sequence[Claim]:
        """Return the claims of section 5.3.2."""
        from overfit_cli.studies.attention_kernel.landscape.claims import CLAIMS

        return CLAIMS

    def prepare(self, cells: Cells[KernelLandscapeParameters]) -> Mapping[str, str]:
        """Read once what cells need from outside: what is missing is said before a sweep runs."""
        from overfit_cli.studies.attention_kernel.landscape.tasks import landscape_task

        read = ("source", "tokens", "difficulty", "size", "n", "test_samples")
        first = {
            tuple(getattr(cell.parameters, name) for name in read): cell for cell in reversed(cells)
        }
        found: dict[str, str] = {}
        for cell in first.values():
            if cell.parameters.source != "generated":
                found |= landscape_task(cell.parameters, cell.seed).collections
        return found

    def batches(
        self, cells: Cells[KernelLandscapeParameters], device: str
    ) -> Batches[KernelLandscapeParameters]:
        """Give each cell a batch of its own; neighbours are of different networks.

        Cells of one network share it through the cache folder, and wait while another trains it.
        """

        def order(cell: Cell[KernelLandscapeParameters]) -> tuple[float, int, str, int]:
            return -self.cost(cell), cell.parameters.pair, cell.parameters.kernel, cell.seed

        return [[cell] for cell in sorted(cells, key=order)]

    def cost(self, cell: Cell[KernelLandscapeParameters]) -> float:
        """Return the multiplications of a cell, roughly; pairs of a network share its training."""
        parameters = cell.parameters
        length = sample_length(parameters)
        surface = parameters.points**2 * parameters.loss_samples * parameters.layers
        return batching.cost(parameters, length) / 4 + surface * batching.layer(parameters, length)

    def probe(self, cell: Cell[KernelLandscapeParameters]) -> Cell[KernelLandscapeParameters]:
        """Return the cell with a few steps on a few samples, and a few points."""
        parameters = cell.parameters
        few = {"training_steps": 10, "second_steps": 2, "test_samples": 64, "points": 5}
        shortened = {name: min(most, getattr(parameters, name)) for name, most in few.items()}
        shortened["n"] = min(parameters.n, max(256, parameters.loss_samples))
        return replace(cell, parameters=parameters.model_copy(update=shortened))

    def memory(self, cell: Cell[KernelLandscapeParameters]) -> float:
        """Return the bytes that a cell takes, roughly."""
        parameters = cell.parameters
        return batching.memory(parameters, sample_length(parameters))

    def train(
        self, batch: Cells[KernelLandscapeParameters], training: Training
    ) -> Results[KernelLandscapeParameters]:
        """Train networks in two stages and evaluate their surfaces."""
        from overfit_cli.studies.attention_kernel.landscape.training import train_batch

        return train_batch(batch, training)

    def summary(self, result: CellResult[KernelLandscapeParameters]) -> str:
        """Say what the surface is like."""
        got = result.measurements
        if result.reason:
            return f"The training {result.reason}: there is no surface."
        return (
            f"The surface goes from {got['lowest_loss']:.4f} to {got['highest_loss']:.4f} around "
            f"{got['centre_loss']:.4f}: {int(got['interior_minima'])} interior minima, rms "
            f"Laplacian {got['rms_laplacian']:.3g}, quadratic residual "
            f"{got['quadratic_residual']:.3g}."
        )


study = KernelLandscape()
