"""Training of a transformer on minibatches, with evaluations on the way (section 5.2)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from overfit_cli.minibatches import Rows, gradient_steps, minibatches
from overfit_cli.studies.attention_kernel.classifier.model import Shape, Transformer
from overfit_cli.studies.attention_kernel.classifier.parameters import ClassifierParameters
from overfit_cli.studies.attention_kernel.classifier.task import Examples, Task
from overfit_cli.study import Cell, CellResult
from overfit_cli.training import Training, failure

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


def on_device(examples: Examples, device: str) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return tokens, labels and mask as tensors; the mask is None where nothing is padding."""
    tokens = torch.from_numpy(examples.tokens.astype(np.int64)).to(device)
    labels = torch.from_numpy(examples.labels).to(device)
    if examples.lengths is None:
        return tokens, labels, None
    places = np.arange(examples.tokens.shape[1])
    mask = torch.from_numpy(places < examples.lengths[:, None]).to(device)
    return tokens, labels, mask


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
    at_a_time = max(1, EVALUATED_TOKENS // test.tokens.shape[1])
    loss, correct, active = 0.0, 0, torch.zeros(1, dtype=torch.bool, device=device)
    with torch.inference_mode():
        for start in range(0, len(test.labels), at_a_time):
            part = test.take(np.arange(start, min(start + at_a_time, len(test.labels))))
            tokens, labels, mask = on_device(part, device)
            hidden = model.hidden(tokens, mask)  # (samples, hidden)
            logits = model.classes(hidden)  # (samples, classes)
            loss += float(functional.cross_entropy(logits, labels, reduction="sum"))
            correct += int((logits.argmax(1) == labels).sum())
            active = active | (hidden > 0).any(0)
    count = len(test.labels)
    return Evaluation(loss / count, correct / count, float((~active).double().mean()))


def train_cell(cell: Cell[P], task: Task, training: Training) -> CellResult[P]:
    """Train one cell, with an evaluation every `evaluate_every` steps and after the last one.

    A loss that isn't finite ends it as diverged.
    """
    parameters, device = cell.parameters, training.device
    model = build_model(parameters, task, cell.seed, device)
    rows = minibatches(len(task.train.labels), parameters.batch_size, cell.seed)
    steps = training_steps(model, parameters, task.train, rows, device)
    evaluated = {0: evaluate(model, task.test, device)}
    row = _row(math.nan, evaluated[0])
    training.log(cell, 0, row)
    losses: list[Tensor] = []
    for step in range(1, parameters.training_steps + 1):
        losses.append(next(steps))
        if step % parameters.evaluate_every == 0 or step == parameters.training_steps:
            evaluated[step] = evaluate(model, task.test, device)
            row = _row(float(torch.stack(losses).mean()), evaluated[step])
            if failure(row["train_loss"] + row["test_loss"]):
                return CellResult(cell, _known(shortcut_accuracy=task.shortcut), step, "diverged")
            training.log(cell, step, row)
            losses.clear()
    measured = _known(
        **row,
        shortcut_accuracy=task.shortcut,
        mean_test_loss=_mean_over_steps({step: one.loss for step, one in evaluated.items()}),
        best_accuracy=max(one.accuracy for one in evaluated.values()),
    )
    return CellResult(cell, measured, parameters.training_steps)


def _row(train_loss: float, found: Evaluation) -> dict[str, float]:
    return {
        "train_loss": train_loss,
        "test_loss": found.loss,
        "test_accuracy": found.accuracy,
        "silent_head": found.silent,
    }


def _mean_over_steps(losses: Mapping[int, float]) -> float:
    """The mean of a loss that is linear between the steps at which it is known."""
    steps = list(losses)
    return float(np.trapezoid(list(losses.values()), steps) / steps[-1])


def _known(**measured: float) -> dict[str, float]:
    """Leave out what is nan: a task may have no shortcut."""
    return {name: value for name, value in measured.items() if not math.isnan(value)}
