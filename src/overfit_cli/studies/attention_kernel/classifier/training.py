"""Training of a transformer on minibatches, with evaluations on the way (section 5.2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import torch
from torch import Tensor
from torch.nn import functional

from overfit_cli.core.classification import (
    Examples,
    Rows,
    Task,
    gradient_steps,
    known,
    loss_and_accuracy,
    minibatches,
    on_device,
    train_with_evaluations,
)
from overfit_cli.core.study import Cell, CellResult
from overfit_cli.core.training import Training
from overfit_cli.studies.attention_kernel.classifier.model import Shape, Transformer
from overfit_cli.studies.attention_kernel.classifier.parameters import ClassifierParameters

P = TypeVar("P", bound=ClassifierParameters)

EVALUATED_TOKENS = 2**17
"""Tokens that are evaluated at a time."""


@dataclass(frozen=True)
class Evaluation:
    """Measurements on the test samples.

    Attributes:
        loss: mean cross-entropy.
        accuracy: the share that is right.
        silent: the share of the head's units that are zero on every test sample.
    """

    loss: float
    accuracy: float
    silent: float


def build_model(
    parameters: ClassifierParameters, task: Task, seed: int, device: str
) -> Transformer:
    """Return the transformer with a cell's initial weights."""
    shape = Shape(
        vocabulary=task.vocabulary,
        length=task.train.tokens.shape[1],
        layers=parameters.layers,
        heads=parameters.heads,
        d=parameters.d,
        hidden=parameters.hidden,
    )
    dtype = getattr(torch, parameters.dtype)
    return Transformer(shape, parameters.kernel, parameters.dropout, seed, dtype).to(device)


def make_optimiser(model: Transformer, parameters: ClassifierParameters) -> torch.optim.Optimizer:
    """Return the optimiser that the parameters name, with PyTorch's defaults for the rest."""
    rate = parameters.learning_rate
    if parameters.optimiser == "sgd":
        return torch.optim.SGD(model.parameters(), lr=rate)
    if parameters.optimiser == "adam":
        return torch.optim.Adam(model.parameters(), lr=rate, fused=True)
    decay = parameters.weight_decay
    return torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=decay, fused=True)


def training_steps(
    model: Transformer,
    parameters: ClassifierParameters,
    train: Examples,
    minibatch_rows: Iterator[Rows],
    device: str,
) -> Iterator[Tensor]:
    """Take a gradient step whenever the next loss, on that step's minibatch, is asked for."""

    def loss_of(rows: Rows) -> Tensor:
        model.train()
        tokens, labels, mask = on_device(train.take(rows), device)
        return functional.cross_entropy(model(tokens, mask), labels)

    return gradient_steps(make_optimiser(model, parameters), loss_of, minibatch_rows)


def evaluate(model: Transformer, test: Examples, device: str) -> Evaluation:
    """Measure the model on all test samples, without dropout."""
    model.eval()
    active = torch.zeros(1, dtype=torch.bool, device=device)

    def logits_of(part: Examples) -> Tensor:
        nonlocal active
        tokens, _, mask = on_device(part, device)
        hidden = model.hidden(tokens, mask)  # (samples, hidden)
        active = active | (hidden > 0).any(0)
        logits: Tensor = model.classes(hidden)  # (samples, classes)
        return logits

    at_a_time = max(1, EVALUATED_TOKENS // test.tokens.shape[1])
    loss, accuracy = loss_and_accuracy(logits_of, test, at_a_time)
    return Evaluation(loss, accuracy, float((~active).double().mean()))


def train_cell(cell: Cell[P], task: Task, training: Training) -> CellResult[P]:
    """Train one cell, with an evaluation every `evaluate_every` steps and after the last one."""
    parameters, device = cell.parameters, training.device
    model = build_model(parameters, task, cell.seed, device)
    rows = minibatches(len(task.train.labels), parameters.batch_size, cell.seed)
    course = train_with_evaluations(
        training_steps(model, parameters, task.train, rows, device),
        lambda: _row(evaluate(model, task.test, device)),
        parameters.training_steps,
        parameters.evaluate_every,
        partial(training.log, cell),
    )
    measured = {} if course.reason else course.measured()
    found = known(**measured, shortcut_accuracy=task.shortcut)
    return CellResult(cell, found, course.steps, course.reason)


def _row(found: Evaluation) -> dict[str, float]:
    return {
        "test_loss": found.loss,
        "test_accuracy": found.accuracy,
        "silent_head": found.silent,
    }
