"""Trains a transformer on minibatches and measures it on the way (Song et al. 2024, 5.2)."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from overfit_cli.streams import stream
from overfit_cli.studies.attention_kernel.classifier.model import Shape, Transformer
from overfit_cli.studies.attention_kernel.classifier.parameters import ClassifierParameters
from overfit_cli.studies.attention_kernel.classifier.task import Examples, Task
from overfit_cli.study import Cell, CellResult, Execution

_EVALUATED = 2**17
"""Tokens that are evaluated at a time."""


@dataclass(frozen=True)
class Evaluation:
    """What is measured on the test samples.

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
    """Return the transformer that a cell starts from."""
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


def minibatches(samples: int, size: int, seed: int) -> Iterator[np.ndarray]:
    """Give rows of minibatches for ever: each sample once an epoch, in an order of its own."""
    order = stream(seed, "train", "order")
    rows = np.empty(0, dtype=np.int64)
    while True:
        while len(rows) < size:
            rows = np.concatenate([rows, order.permutation(samples)])
        yield rows[:size]
        rows = rows[size:]


def on_device(examples: Examples, device: str) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return tokens, labels and mask as tensors; the mask is None where nothing is padding."""
    tokens = torch.from_numpy(examples.tokens.astype(np.int64)).to(device)
    labels = torch.from_numpy(examples.labels).to(device)
    if examples.lengths is None:
        return tokens, labels, None
    places = np.arange(examples.tokens.shape[1])
    mask = torch.from_numpy(places < examples.lengths[:, None]).to(device)
    return tokens, labels, mask


def gradient_steps(
    model: Transformer,
    optimiser: torch.optim.Optimizer,
    train: Examples,
    rows: Iterator[np.ndarray],
    device: str,
) -> Iterator[Tensor]:
    """Take a gradient step whenever the next loss, on that step's minibatch, is asked for."""
    for chosen in rows:
        model.train()
        tokens, labels, mask = on_device(train.take(chosen), device)
        loss = functional.cross_entropy(model(tokens, mask), labels)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        yield loss.detach()


def evaluate(model: Transformer, test: Examples, device: str) -> Evaluation:
    """Measure the model on all test samples, without dropout."""
    model.eval()
    at_a_time = max(1, _EVALUATED // test.tokens.shape[1])
    loss, right, heard = 0.0, 0, torch.zeros(1, dtype=torch.bool, device=device)
    with torch.inference_mode():
        for start in range(0, len(test.labels), at_a_time):
            part = test.take(np.arange(start, min(start + at_a_time, len(test.labels))))
            tokens, labels, mask = on_device(part, device)
            hidden = model.hidden(tokens, mask)
            logits = model.classes(hidden)
            loss += float(functional.cross_entropy(logits, labels, reduction="sum"))
            right += int((logits.argmax(1) == labels).sum())
            heard = heard | (hidden > 0).any(0)
    count = len(test.labels)
    return Evaluation(loss / count, right / count, float((~heard).double().mean()))


def train_cell(
    cell: Cell, parameters: ClassifierParameters, task: Task, execution: Execution
) -> CellResult:
    """Train one cell, evaluating it as it goes. A loss that isn't finite ends it as diverged."""
    torch.set_num_threads(1)
    began = time.perf_counter()
    device = execution.device
    model = build_model(parameters, task, cell.seed, device)
    optimiser = make_optimiser(model, parameters)
    rows = minibatches(len(task.train.labels), parameters.batch_size, cell.seed)
    steps = gradient_steps(model, optimiser, task.train, rows, device)
    log = _Log(execution)
    log.add(0, math.nan, evaluate(model, task.test, device))
    losses: list[Tensor] = []
    for step in range(1, parameters.training_steps + 1):
        losses.append(next(steps))
        if step % parameters.evaluate_every == 0 or step == parameters.training_steps:
            train_loss = float(torch.stack(losses).mean())
            found = evaluate(model, task.test, device)
            if not math.isfinite(train_loss + found.loss):
                return log.result(cell, step, "diverged", task, time.perf_counter() - began)
            log.add(step, train_loss, found)
            losses.clear()
    return log.result(cell, parameters.training_steps, "", task, time.perf_counter() - began)


class _Log:
    """The evaluations of a cell, as its trajectory and as its measurements."""

    def __init__(self, execution: Execution) -> None:
        self._execution = execution
        self._rows: list[dict[str, float]] = []

    def add(self, step: int, train_loss: float, found: Evaluation) -> None:
        """Take in an evaluation, with the mean training loss since the last."""
        row = {
            "step": step,
            "train_loss": train_loss,
            "test_loss": found.loss,
            "test_accuracy": found.accuracy,
            "silent_head": found.silent,
        }
        self._rows.append(row)
        if self._execution.on_step is not None:
            self._execution.on_step(row)

    def result(self, cell: Cell, steps: int, reason: str, task: Task, seconds: float) -> CellResult:
        """Return the cell's result."""
        rows, last = self._rows, self._rows[-1]
        measured = {"shortcut_accuracy": task.shortcut}
        if not reason:
            measured |= {name: last[name] for name in last if name != "step"}
            measured["mean_test_loss"] = _mean_over_steps(rows, "test_loss")
            measured["best_accuracy"] = max(row["test_accuracy"] for row in rows)
        trajectory = {name: [row[name] for row in rows] for name in last}
        return CellResult(
            cell,
            "failed" if reason else "done",
            reason,
            steps,
            seconds,
            {name: value for name, value in measured.items() if not math.isnan(value)},
            trajectory if self._execution.trajectories else {},
        )


def _mean_over_steps(rows: list[dict[str, float]], name: str) -> float:
    """The mean of a logged column over the steps, by the trapezium rule."""
    at, values = [row["step"] for row in rows], [row[name] for row in rows]
    return float(np.trapezoid(values, at) / (at[-1] - at[0]))
