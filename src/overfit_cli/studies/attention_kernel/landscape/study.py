"""The study `kernel-landscape`: figure 4 of Song et al. 2024."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from overfit_cli.core.cell import Batch, Batches, Cell, CellResult, Column, Results
from overfit_cli.core.claim import Claim
from overfit_cli.core.classification import Task
from overfit_cli.core.figure import Figure, collect_figures, lazily
from overfit_cli.core.training import Training
from overfit_cli.studies.attention_kernel.classifier_study import DRAWING, TransformerStudy
from overfit_cli.studies.attention_kernel.landscape.parameters import KernelLandscapeParameters
from overfit_cli.studies.attention_kernel.landscape.theory import MEASURES

P = KernelLandscapeParameters
LANDSCAPE = Figure(
    name="landscape",
    title="The loss around a network under each kernel, as a surface and as contours",
    source="Song et al. 2024, figure 4",
    reads="trajectories",
    draw=lazily("overfit_cli.studies.attention_kernel.landscape.figures:draw_landscape"),
)


class KernelLandscape(TransformerStudy[P]):
    """The loss around a trained classifier, under each kernel."""

    name = "kernel-landscape"
    version = 2
    title = "Loss landscapes of softmax and of Gaussian attention: generated data, or the paper's"
    paper_data = "IMDb and Pathfinder of the Long Range Arena"
    parameters = KernelLandscapeParameters
    headline = "rms_laplacian"
    columns = MEASURES
    trajectory_columns = (
        Column(
            "a", "step along the direction in W_Q", symbol="d_1", label="step along W_Q's direction"
        ),
        Column(
            "b", "step along the direction in W_K", symbol="d_2", label="step along W_K's direction"
        ),
        Column("loss", "loss"),
    )
    progress_columns = ()

    def stand_in(self, parameters: P) -> str:
        if parameters.source != "generated":
            return ""
        if parameters.task == "text":
            return "Generated reviews stand in for IMDb's."
        size = parameters.size
        return f"Generated images of {size} × {size} pixels stand in for Pathfinder's of LRA."

    def figures(self) -> Mapping[str, Figure]:
        return collect_figures(LANDSCAPE)

    def claims(self) -> Sequence[Claim]:
        from overfit_cli.studies.attention_kernel.landscape.claims import CLAIMS

        return CLAIMS

    def task(self, parameters: P, seed: int) -> Task:
        from overfit_cli.studies.attention_kernel.pathfinder.data import pathfinder_task
        from overfit_cli.studies.attention_kernel.text.data import text_task

        return (text_task if parameters.task == "text" else pathfinder_task)(parameters, seed)

    def sample_length(self, parameters: P) -> int:
        return parameters.tokens if parameters.task == "text" else parameters.size**2

    def batches(self, cells: Batch[P], device: str) -> Batches[P]:
        """Give each cell a batch of its own; neighbours are cells of different networks."""

        def order(cell: Cell[P]) -> tuple[float, int, str, int]:
            return -self.cost(cell), cell.parameters.pair, cell.parameters.kernel, cell.seed

        return [[cell] for cell in sorted(cells, key=order)]

    def cost(self, cell: Cell[P]) -> float:
        """Return about how many multiplications a cell costs; pairs share a network's training."""
        parameters = cell.parameters
        surface = parameters.points**2 * parameters.loss_samples * parameters.layers
        return super().cost(cell) / 4 + surface * self.layer_cost(parameters)

    def probe(self, cell: Cell[P]) -> Cell[P]:
        samples = max(256, cell.parameters.loss_samples)
        short = cell.with_at_most(training_steps=10, second_steps=2, points=5)
        return short.with_at_most(n=samples, test_samples=64)

    def train(self, batch: Batch[P], training: Training) -> Results[P]:
        from overfit_cli.studies.attention_kernel.landscape.engine import train_cell

        for cell in batch:
            training.say(DRAWING)
            yield train_cell(cell, self.task(cell.parameters, cell.seed), training)

    def summary(self, result: CellResult[P]) -> str:
        measured = result.measurements
        if result.reason:
            return f"The training {result.reason}: there is no surface."
        return (
            f"The surface goes from {measured['lowest_loss']:.4f} to "
            f"{measured['highest_loss']:.4f} around {measured['centre_loss']:.4f}: "
            f"{int(measured['interior_minima'])} interior minima, rms Laplacian "
            f"{measured['rms_laplacian']:.3g}, quadratic residual "
            f"{measured['quadratic_residual']:.3g}."
        )


study = KernelLandscape()
