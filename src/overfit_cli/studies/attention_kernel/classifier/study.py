"""What both classification studies do alike; each says which task its cells train on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import cast

from overfit_cli.claim import Claim
from overfit_cli.figure import Figure
from overfit_cli.studies.attention_kernel.classifier import batching
from overfit_cli.studies.attention_kernel.classifier.columns import MEASUREMENTS, TRAJECTORY
from overfit_cli.studies.attention_kernel.classifier.parameters import ClassifierParameters
from overfit_cli.studies.attention_kernel.classifier.task import Task
from overfit_cli.study import Cell, CellResult, Execution, Study


class ClassifierStudy(Study, ABC):
    """A transformer trained to tell two classes apart; see `Study` for the members."""

    paper = "Song et al. 2024"
    columns = MEASUREMENTS
    trajectory_columns = TRAJECTORY
    headline = "mean_test_loss"
    watched = ("train_loss", "test_loss", "test_accuracy", "silent_head")

    @abstractmethod
    def task(self, parameters: ClassifierParameters, seed: int) -> Task:
        """Return what a cell trains on."""

    @abstractmethod
    def length(self, parameters: ClassifierParameters) -> int:
        """Return the number of tokens of a sample."""

    @abstractmethod
    def figures(self) -> Mapping[str, Figure]:
        """Return the figures by name."""

    @abstractmethod
    def claims(self) -> Sequence[Claim]:
        """Return the claims of section 5.3."""

    @abstractmethod
    def from_outside(self, parameters: ClassifierParameters) -> object:
        """Return what cells share that read the same data from outside; None if they read none."""

    def prepare(self, cells: Sequence[Cell]) -> Mapping[str, str]:
        """Read once what cells need from outside: what is missing is said before a sweep runs."""
        first = {self.from_outside(_of(cell)): cell for cell in reversed(cells)}
        found: dict[str, str] = {}
        for key, cell in first.items():
            if key is not None:
                found |= self.task(_of(cell), cell.seed).collections
        return found

    def batches(self, cells: Sequence[Cell], device: str) -> list[list[Cell]]:
        """Give each cell a batch of its own, the costliest first: it takes seconds to minutes."""
        return [[cell] for cell in sorted(cells, key=lambda cell: (-self.cost(cell), cell.seed))]

    def cost(self, cell: Cell) -> float:
        """Return the multiplications of a cell, roughly."""
        parameters = _of(cell)
        return batching.cost(parameters, self.length(parameters))

    def probe(self, cell: Cell) -> Cell:
        """Return the cell with a few steps on a few samples."""
        parameters = _of(cell)
        few = {"n": 256, "training_steps": 10, "test_samples": 64}
        shortened = {name: min(most, getattr(parameters, name)) for name, most in few.items()}
        return replace(cell, parameters=parameters.model_copy(update=shortened))

    def memory(self, cell: Cell) -> float:
        """Return the bytes that a cell takes, roughly."""
        parameters = _of(cell)
        return batching.memory(parameters, self.length(parameters))

    def train(self, batch: Sequence[Cell], execution: Execution) -> Iterator[CellResult]:
        """Train cells one after another."""
        from overfit_cli.studies.attention_kernel.classifier.training import train_cell

        for cell in batch:
            parameters = _of(cell)
            yield train_cell(cell, parameters, self.task(parameters, cell.seed), execution)

    def conclusion(self, result: CellResult) -> str:
        """Say how far the accuracy came, beside the shortcut's, and whether the head is dead."""
        got = result.measurements
        if result.status == "failed":
            return f"The training {result.reason} at step {result.steps}."
        sentence = f"Test accuracy {got['test_accuracy']:.1%} after {result.steps} steps"
        if "shortcut_accuracy" in got:
            sentence += f"; the shortcut rule has {got['shortcut_accuracy']:.1%}"
        if got["silent_head"] == 1:
            sentence += ". The head is dead: all its units are zero on every test sample"
        return sentence + "."


def _of(cell: Cell) -> ClassifierParameters:
    return cast(ClassifierParameters, cell.parameters)
