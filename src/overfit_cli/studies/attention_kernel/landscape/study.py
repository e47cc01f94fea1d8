"""The study `kernel-landscape`: figure 4 of Song et al. 2024. Torch is imported to train."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import cast

from overfit_cli.claim import Claim
from overfit_cli.figure import Figure
from overfit_cli.studies.attention_kernel.classifier import batching
from overfit_cli.studies.attention_kernel.landscape.columns import MEASUREMENTS, TRAJECTORY
from overfit_cli.studies.attention_kernel.landscape.parameters import (
    KernelLandscapeParameters,
    sample_length,
)
from overfit_cli.study import Cell, CellResult, Execution, Study


class KernelLandscape(Study):
    """The loss around a trained classifier, under either kernel; see `Study` for the members."""

    name = "kernel-landscape"
    version = 1
    title = "Loss landscapes of softmax and of Gaussian attention"
    paper = "Song et al. 2024"
    parameters = KernelLandscapeParameters
    columns = MEASUREMENTS
    trajectory_columns = TRAJECTORY
    headline = "rms_laplacian"
    watched = ("loss",)

    def figures(self) -> Mapping[str, Figure]:
        """Return the figures by name."""
        from overfit_cli.studies.attention_kernel.landscape.figures import FIGURES

        return FIGURES

    def claims(self) -> Sequence[Claim]:
        """Return the claims of section 5.3.2."""
        from overfit_cli.studies.attention_kernel.landscape.claims import CLAIMS

        return CLAIMS

    def prepare(self, cells: Sequence[Cell]) -> Mapping[str, str]:
        """Read once what cells need from outside: what is missing is said before a sweep runs."""
        from overfit_cli.studies.attention_kernel.landscape.tasks import landscape_task

        read = ("source", "tokens", "difficulty", "size", "n", "test_samples")
        first = {tuple(getattr(_of(cell), name) for name in read): cell for cell in reversed(cells)}
        found: dict[str, str] = {}
        for cell in first.values():
            if _of(cell).source != "generated":
                found |= landscape_task(_of(cell), cell.seed).collections
        return found

    def batches(self, cells: Sequence[Cell], device: str) -> list[list[Cell]]:
        """Give each cell a batch of its own; neighbours are of different networks.

        Cells of one network share it through the cache folder, and wait while another trains it.
        """

        def order(cell: Cell) -> tuple[float, int, str, int]:
            return -self.cost(cell), _of(cell).pair, _of(cell).kernel, cell.seed

        return [[cell] for cell in sorted(cells, key=order)]

    def cost(self, cell: Cell) -> float:
        """Return the multiplications of a cell, roughly; pairs of a network share its training."""
        parameters = _of(cell)
        length = sample_length(parameters)
        surface = parameters.points**2 * parameters.loss_samples * parameters.layers
        return batching.cost(parameters, length) / 4 + surface * batching.layer(parameters, length)

    def probe(self, cell: Cell) -> Cell:
        """Return the cell with a few steps on a few samples, and a few points."""
        parameters = _of(cell)
        few = {"training_steps": 10, "second_steps": 2, "test_samples": 64, "points": 5}
        shortened = {name: min(most, getattr(parameters, name)) for name, most in few.items()}
        shortened["n"] = min(parameters.n, max(256, parameters.loss_samples))
        return replace(cell, parameters=parameters.model_copy(update=shortened))

    def memory(self, cell: Cell) -> float:
        """Return the bytes that a cell takes, roughly."""
        parameters = _of(cell)
        return batching.memory(parameters, sample_length(parameters))

    def train(self, batch: Sequence[Cell], execution: Execution) -> Iterator[CellResult]:
        """Train networks in two stages and evaluate their surfaces."""
        from overfit_cli.studies.attention_kernel.landscape.training import train_batch

        return train_batch(batch, execution)

    def conclusion(self, result: CellResult) -> str:
        """Say what the surface is like."""
        got = result.measurements
        if result.status == "failed":
            return f"The training {result.reason}: there is no surface."
        return (
            f"The surface goes from {got['lowest_loss']:.4f} to {got['highest_loss']:.4f} around "
            f"{got['centre_loss']:.4f}: {int(got['interior_minima'])} interior minima, rms "
            f"Laplacian {got['rms_laplacian']:.3g}, quadratic residual "
            f"{got['quadratic_residual']:.3g}."
        )


def _of(cell: Cell) -> KernelLandscapeParameters:
    return cast(KernelLandscapeParameters, cell.parameters)


study = KernelLandscape()
