"""What both classification studies do alike; each says which task its cells train on."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from overfit_cli.claim import Claim
from overfit_cli.figure import Figure
from overfit_cli.studies.attention_kernel.classifier import batching
from overfit_cli.studies.attention_kernel.classifier.columns import MEASUREMENTS, TRAJECTORY
from overfit_cli.studies.attention_kernel.classifier.parameters import ClassifierParameters
from overfit_cli.studies.attention_kernel.classifier.task import Task
from overfit_cli.study import Cell, CellResult, Cells, Results, Study
from overfit_cli.training import Training

P = TypeVar("P", bound=ClassifierParameters)


class ClassifierStudy(Study[P]):
    """A transformer trained to tell two classes apart; see `Study` for the members."""

    paper = "Song et al. 2024"
    columns = MEASUREMENTS
    trajectory_columns = TRAJECTORY
    headline = "mean_test_loss"

    @abstractmethod
    def task(self, parameters: P, seed: int) -> Task:
        """Return what a cell trains on."""

    @abstractmethod
    def length(self, parameters: P) -> int:
        """Return the number of tokens of a sample."""

    @abstractmethod
    def figures(self) -> Mapping[str, Figure]:
        """Return the figures by name."""

    @abstractmethod
    def claims(self) -> Sequence[Claim]:
        """Return the claims of section 5.3."""

    @abstractmethod
    def from_outside(self, parameters: P) -> object:
        """Return what cells share that read the same data from outside; None if they read none."""

    def prepare(self, cells: Cells[P]) -> Mapping[str, str]:
        """Read once what cells need from outside: what is missing is said before a sweep runs."""
        first = {self.from_outside(cell.parameters): cell for cell in reversed(cells)}
        found: dict[str, str] = {}
        for key, cell in first.items():
            if key is not None:
                found |= self.task(cell.parameters, cell.seed).collections
        return found

    def cost(self, cell: Cell[P]) -> float:
        """Return the multiplications of a cell, roughly."""
        parameters = cell.parameters
        return batching.cost(parameters, self.length(parameters))

    def probe(self, cell: Cell[P]) -> Cell[P]:
        """Return the cell with a few steps on a few samples."""
        parameters = cell.parameters
        few = {"n": 256, "training_steps": 10, "test_samples": 64}
        shortened = {name: min(most, getattr(parameters, name)) for name, most in few.items()}
        return replace(cell, parameters=parameters.model_copy(update=shortened))

    def memory(self, cell: Cell[P]) -> float:
        """Return the bytes that a cell takes, roughly."""
        parameters = cell.parameters
        return batching.memory(parameters, self.length(parameters))

    def train(self, batch: Cells[P], training: Training) -> Results[P]:
        """Train cells one after another."""
        from overfit_cli.studies.attention_kernel.classifier.training import train_cell

        for cell in batch:
            yield train_cell(cell, self.task(cell.parameters, cell.seed), training)

    def summary(self, result: CellResult[P]) -> str:
        """Say how far the accuracy came, beside the shortcut's, and whether the head is dead."""
        got = result.measurements
        if result.reason:
            return f"The training {result.reason} at step {result.steps}."
        sentence = f"Test accuracy {got['test_accuracy']:.1%} after {result.steps} steps"
        if "shortcut_accuracy" in got:
            sentence += f"; the shortcut rule has {got['shortcut_accuracy']:.1%}"
        if got["silent_head"] == 1:
            sentence += ". The head is dead: all its units are zero on every test sample"
        return sentence + "."
