"""The studies `kernel-text`, `kernel-pathfinder` and `kernel-landscape`: figures 2 to 4."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TypeVar

from overfit_cli.core.cell import Batch, Batches, Cell, CellResult, Column, Results
from overfit_cli.core.claim import Claim
from overfit_cli.core.classification import COLUMNS, TRAJECTORY_COLUMNS, Task
from overfit_cli.core.figure import drawn_in, learning_figures
from overfit_cli.core.study import Study
from overfit_cli.core.text import percent, plural
from overfit_cli.core.training import BYTES_OF_LIBRARIES, Training
from overfit_cli.studies.attention_kernel import PAPER
from overfit_cli.studies.attention_kernel.classifier_parameters import (
    ClassifierParameters,
    KernelLandscapeParameters,
    KernelPathfinderParameters,
    KernelTextParameters,
)

P = TypeVar("P", bound=ClassifierParameters)
L = KernelLandscapeParameters


class Classifier(Study[P]):
    """A study that trains a transformer to tell two classes apart, on a task of its own."""

    paper = PAPER
    headline = "mean_test_loss"
    columns: tuple[Column, ...] = COLUMNS
    trajectory_columns: tuple[Column, ...] = TRAJECTORY_COLUMNS
    trained_in = ".classifier"
    probed: Mapping[str, float] = {"n": 256, "training_steps": 10, "test_samples": 64}

    @abstractmethod
    def task(self, parameters: P, seed: int) -> Task:
        """Return the samples that a cell trains on."""

    @abstractmethod
    def sample_length(self, parameters: P) -> int:
        """Return the number of tokens of a sample."""

    def train(self, batch: Batch[P], training: Training) -> Results[P]:
        train_cell = self._module(self.trained_in).train_cell
        for cell in batch:
            training.say("Drawing the samples, or reading them from the cache")
            yield train_cell(cell, self.task(cell.parameters, cell.seed), training)

    def claims(self) -> Sequence[Claim]:
        claims: Mapping[str, Sequence[Claim]] = self._module(".claims.section_5").CLAIMS
        return claims[self.name.removeprefix("kernel-")]

    def prepare(self, cells: Batch[P]) -> Mapping[str, str]:
        """Read each collection of data once, so that what is missing is said before a sweep."""
        read = ("task", "source", "tokens", "difficulty", "size", "n", "test_samples")
        first = {
            tuple(getattr(cell.parameters, name, None) for name in read): cell
            for cell in reversed(cells)
            if getattr(cell.parameters, "source", "generated") != "generated"
        }
        fingerprints: dict[str, str] = {}
        for cell in first.values():
            fingerprints |= self.task(cell.parameters, cell.seed).collections
        return fingerprints

    def layer_cost(self, p: P) -> float:
        """Return the multiplications of a layer on one sample; exponentials count as some."""
        length = self.sample_length(p)
        linear, attention = 4 * p.d**2 + 2 * p.d * p.hidden, length * (2 * p.d + 8 * p.heads)
        return length * (linear + attention)

    def cost(self, cell: Cell[P]) -> float:
        p = cell.parameters
        evaluated = (p.training_steps / p.evaluate_every + 2) * p.test_samples
        samples = 3 * p.training_steps * p.batch_size + evaluated
        return samples * p.layers * self.layer_cost(p)

    def memory(self, cell: Cell[P]) -> float:
        p, length = cell.parameters, self.sample_length(cell.parameters)
        kept = 14 * p.d + 6 * p.hidden + 6 * p.heads * length  # of a token in a layer
        data = (p.n + p.test_samples) * length * 2
        return 8.0 * p.layers * p.batch_size * length * kept + data + BYTES_OF_LIBRARIES

    def summary(self, result: CellResult[P]) -> str:
        measured = result.measurements
        if result.reason:
            return f"The training {result.reason} at step {result.steps}."
        accuracy = percent(measured["test_accuracy"], 1)
        sentence = f"Test accuracy {accuracy} after {plural(result.steps, 'step')}"
        if "shortcut_accuracy" in measured:
            sentence += f"; the shortcut rule has {percent(measured['shortcut_accuracy'], 1)}"
        return f"{sentence}."


class KernelText(Classifier[KernelTextParameters]):
    """Sentiment of reviews, generated or IMDb's."""

    name, version = "kernel-text", 2
    title = "Softmax against Gaussian attention on text: generated reviews, or IMDb"
    paper_data = "IMDb"
    parameters = KernelTextParameters
    drawn = (*learning_figures("each kernel", "Song et al. 2024, figure 2").values(),)

    def stand_in(self, parameters: KernelTextParameters) -> str:
        generated = parameters.source == "generated"
        return "Generated reviews stand in for IMDb's." if generated else ""

    def task(self, parameters: KernelTextParameters, seed: int) -> Task:
        task: Task = self._module(".reviews").text_task(parameters, seed)
        return task

    def sample_length(self, parameters: KernelTextParameters) -> int:
        return parameters.tokens


class KernelPathfinder(Classifier[KernelPathfinderParameters]):
    """Whether a contour connects two discs, in images drawn here or LRA's."""

    name, version = "kernel-pathfinder", 3
    title = "Softmax against Gaussian attention on Pathfinder: generated images, or LRA's"
    paper_data = "Pathfinder of the Long Range Arena"
    parameters = KernelPathfinderParameters
    drawn = (*learning_figures("each kernel", "Song et al. 2024, figure 3").values(),)

    def stand_in(self, parameters: KernelPathfinderParameters) -> str:
        if parameters.source != "generated":
            return ""
        size = parameters.size
        return f"Generated images of {size} × {size} pixels stand in for Pathfinder's of LRA."

    def task(self, parameters: KernelPathfinderParameters, seed: int) -> Task:
        task: Task = self._module(".images").pathfinder_task(parameters, seed)
        return task

    def sample_length(self, parameters: KernelPathfinderParameters) -> int:
        return parameters.size**2


class KernelLandscape(Classifier[L]):
    """The loss around a trained classifier, under each kernel."""

    name, version = "kernel-landscape", 2
    title = "Loss landscapes of softmax and of Gaussian attention: generated data, or the paper's"
    paper_data = "IMDb and Pathfinder of the Long Range Arena"
    parameters = KernelLandscapeParameters
    headline = "rms_laplacian"
    columns = (
        Column("rms_laplacian", "root mean square Laplacian"),
        Column("interior_minima", "interior minima", kind="int"),
        Column("centre_loss", "loss at the centre", diverges=True),
    )
    trajectory_columns = (
        Column("a", "step along W_Q's direction", "d_1"),
        Column("b", "step along W_K's direction", "d_2"),
        Column("loss", "loss"),
    )
    progress_columns = ()
    trained_in = ".plane"
    drawn = (
        drawn_in(
            f"{__package__}.figures",
            "landscape",
            "The loss around a network under each kernel, as a surface and as contours",
            source="Song et al. 2024, figure 4",
            reads="trajectories",
        ),
    )

    def _task_study(self, parameters: L) -> KernelText | KernelPathfinder:
        return text if parameters.task == "text" else pathfinder

    def stand_in(self, parameters: L) -> str:
        return self._task_study(parameters).stand_in(parameters)

    def task(self, parameters: L, seed: int) -> Task:
        return self._task_study(parameters).task(parameters, seed)

    def sample_length(self, parameters: L) -> int:
        return self._task_study(parameters).sample_length(parameters)

    def batches(self, cells: Batch[L], device: str) -> Batches[L]:
        """Give each cell a batch of its own; neighbours are cells of different networks."""

        def order(cell: Cell[L]) -> tuple[float, int, str, int]:
            return -self.cost(cell), cell.parameters.pair, cell.parameters.kernel, cell.seed

        return [[cell] for cell in sorted(cells, key=order)]

    def cost(self, cell: Cell[L]) -> float:
        """Return about how many multiplications a cell costs; pairs share a network's training."""
        p = cell.parameters
        surface = p.points**2 * p.loss_samples * p.layers
        return super().cost(cell) / 4 + surface * self.layer_cost(p)

    def probe(self, cell: Cell[L]) -> Cell[L]:
        samples = max(256, cell.parameters.loss_samples)
        short = cell.with_at_most(training_steps=10, second_steps=2, points=5)
        return short.with_at_most(n=samples, test_samples=64)

    def summary(self, result: CellResult[L]) -> str:
        measured = result.measurements
        if result.reason:
            return f"The training {result.reason}: there is no surface."
        return (
            f"The surface around a loss of {measured['centre_loss']:.4f} has "
            f"an rms Laplacian of {measured['rms_laplacian']:.3g}; interior minima: "
            f"{int(measured['interior_minima'])}."
        )


text, pathfinder, landscape = KernelText(), KernelPathfinder(), KernelLandscape()
