"""The base of `kernel-text` and `kernel-pathfinder`: columns, figures, cost and training."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TypeVar

from overfit_cli.core.cell import Batch, Cell, CellResult, Column, Results
from overfit_cli.core.classification import COLUMNS, TRAJECTORY_COLUMNS, Task
from overfit_cli.core.figure import Figure, learning_figures
from overfit_cli.core.study import Study
from overfit_cli.core.text import percent, plural
from overfit_cli.core.training import BYTES_OF_LIBRARIES, Training
from overfit_cli.studies.attention_kernel import PAPER
from overfit_cli.studies.attention_kernel.parameters import ClassifierParameters

P = TypeVar("P", bound=ClassifierParameters)

DRAWING = "Drawing the samples, or reading them from the cache"

_SILENT_HEAD = Column(
    "silent_head",
    "share of the head's units that are zero on every test sample",
    label="share of silent head units",
)


class TransformerStudy(Study[P]):
    """A study that trains a transformer to tell two classes apart, on a task of its own."""

    paper = PAPER

    @abstractmethod
    def task(self, parameters: P, seed: int) -> Task:
        """Return the samples that a cell trains on."""

    @abstractmethod
    def sample_length(self, parameters: P) -> int:
        """Return the number of tokens of a sample."""

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

    def layer_cost(self, parameters: P) -> float:
        """Return the multiplications of a layer on one sample; exponentials count as some."""
        length = self.sample_length(parameters)
        linear = 4 * parameters.d**2 + 2 * parameters.d * parameters.hidden
        attention = length * (2 * parameters.d + 8 * parameters.heads)
        return length * (linear + attention)

    def cost(self, cell: Cell[P]) -> float:
        parameters = cell.parameters
        evaluations = parameters.training_steps / parameters.evaluate_every + 2
        samples = 3 * parameters.training_steps * parameters.batch_size
        samples_forward = samples + evaluations * parameters.test_samples
        return samples_forward * parameters.layers * self.layer_cost(parameters)

    def memory(self, cell: Cell[P]) -> float:
        parameters = cell.parameters
        length = self.sample_length(parameters)
        tokens = parameters.batch_size * length
        kept = (
            parameters.layers
            * tokens
            * (14 * parameters.d + 6 * parameters.hidden + 6 * parameters.heads * length)
        )
        data = (parameters.n + parameters.test_samples) * length * 2
        return 8.0 * kept + data + BYTES_OF_LIBRARIES


class ClassifierStudy(TransformerStudy[P]):
    """A study of the classifier itself, as in figures 2 and 3 of the paper."""

    headline = "mean_test_loss"
    columns = (*COLUMNS, _SILENT_HEAD)
    trajectory_columns = (*TRAJECTORY_COLUMNS, _SILENT_HEAD)
    source_of_curves: str

    def figures(self) -> Mapping[str, Figure]:
        return learning_figures("each kernel", self.source_of_curves)

    def probe(self, cell: Cell[P]) -> Cell[P]:
        return cell.with_at_most(n=256, training_steps=10, test_samples=64)

    def train(self, batch: Batch[P], training: Training) -> Results[P]:
        from overfit_cli.studies.attention_kernel.classifier import train_cell

        for cell in batch:
            training.say(DRAWING)
            yield train_cell(cell, self.task(cell.parameters, cell.seed), training)

    def summary(self, result: CellResult[P]) -> str:
        measured = result.measurements
        if result.reason:
            return f"The training {result.reason} at step {result.steps}."
        accuracy = percent(measured["test_accuracy"], 1)
        sentence = f"Test accuracy {accuracy} after {plural(result.steps, 'step')}"
        if "shortcut_accuracy" in measured:
            sentence += f"; the shortcut rule has {percent(measured['shortcut_accuracy'], 1)}"
        if measured["silent_head"] == 1:
            sentence += ". The head is dead: all its units are zero on every test sample"
        return sentence + "."
