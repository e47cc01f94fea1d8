"""Trains a cell on minibatches, with Adam, until all training samples are fitted."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn import functional

from overfit_cli.streams import stream
from overfit_cli.studies.benign_vit.images.data import ImageTask
from overfit_cli.studies.benign_vit.images.digits import Digits
from overfit_cli.studies.benign_vit.images.model import ImageTransformer
from overfit_cli.studies.benign_vit.images.parameters import BenignVitImagesParameters
from overfit_cli.study import Cell, CellResult, Execution

NEAR = 3.0
"""The mean loss of a pass's minibatches, over ε, from which on the training loss is measured."""

_EVALUATED = 1000
"""Samples that are evaluated at a time."""


class _OnDevice:
    """Samples as tensors."""

    def __init__(self, digits: Digits, dtype: torch.dtype, device: str) -> None:
        self.pixels = torch.from_numpy(digits.pixels).to(device=device, dtype=dtype)
        self.labels = torch.from_numpy(digits.labels).to(device)


def train_cell(
    cell: Cell, parameters: BenignVitImagesParameters, task: ImageTask, execution: Execution
) -> CellResult:
    """Train one cell; the training loss is measured after a pass, when it may be small enough."""
    torch.set_num_threads(1)
    began = time.perf_counter()
    dtype = getattr(torch, parameters.dtype)
    train, test = (_OnDevice(one, dtype, execution.device) for one in (task.train, task.test))
    model = ImageTransformer(parameters, cell.seed).to(execution.device, dtype)
    log = _Log(execution, model, train, test)
    log.add(0)
    steps = epoch = 0
    reason = "step limit"
    for epoch, mean_loss in enumerate(_passes(model, parameters, train, cell.seed), start=1):
        steps += -(-parameters.n // parameters.batch_size)
        if not math.isfinite(mean_loss):
            reason = "diverged"
            break
        log.add(steps)
        near = mean_loss <= NEAR * parameters.epsilon or epoch == parameters.max_epochs
        if near and evaluate(model, train)[0] <= parameters.epsilon:
            reason = ""
            break
        if epoch == parameters.max_epochs:
            break
    return log.result(cell, steps, epoch, reason, time.perf_counter() - began)


def _passes(
    model: ImageTransformer, parameters: BenignVitImagesParameters, train: _OnDevice, seed: int
) -> Iterator[float]:
    """Go through all samples once whenever the next is asked for; give the minibatches' mean loss.

    Every pass has an order of its own. Its last minibatch has what is left.
    """
    rate = parameters.learning_rate
    optimiser = torch.optim.Adam(model.parameters(), lr=rate, fused=True)
    orders = stream(seed, "train", "order")
    while True:
        order = torch.from_numpy(orders.permutation(parameters.n)).to(train.labels.device)
        total = torch.zeros((), device=train.labels.device)
        for rows in torch.split(order, parameters.batch_size):
            loss = functional.cross_entropy(model(train.pixels[rows]), train.labels[rows])
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            total += loss.detach() * len(rows)
        yield float(total) / parameters.n


def evaluate(model: ImageTransformer, samples: _OnDevice) -> tuple[float, float]:
    """Return the mean cross-entropy and the share that is wrong."""
    loss, wrong = 0.0, 0
    with torch.inference_mode():
        for start in range(0, len(samples.labels), _EVALUATED):
            labels = samples.labels[start : start + _EVALUATED]
            logits: Tensor = model(samples.pixels[start : start + _EVALUATED])
            loss += float(functional.cross_entropy(logits, labels, reduction="sum"))
            wrong += int((logits.argmax(1) != labels).sum())
    return loss / len(samples.labels), wrong / len(samples.labels)


class _Log:
    """Evaluations after passes, where they are asked for, and the last one in any case."""

    def __init__(
        self, execution: Execution, model: ImageTransformer, train: _OnDevice, test: _OnDevice
    ) -> None:
        self._execution, self._model = execution, model
        self._train, self._test = train, test
        self._rows: list[dict[str, float]] = []

    def _now(self) -> dict[str, float]:
        train_loss, train_error = evaluate(self._model, self._train)
        test_loss, test_error = evaluate(self._model, self._test)
        return {
            "train_loss": train_loss,
            "test_loss": test_loss,
            "train_error": train_error,
            "test_error": test_error,
        }

    def add(self, steps: int) -> None:
        """Log a pass, if a trajectory is wanted."""
        if self._execution.trajectories:
            row = {"step": float(steps), **self._now()}
            self._rows.append(row)
            if self._execution.on_step is not None:
                self._execution.on_step(row)

    def result(
        self, cell: Cell, steps: int, epochs: int, reason: str, seconds: float
    ) -> CellResult:
        """Return the cell's result."""
        found = {**self._now(), "epochs": float(epochs)}
        rows = self._rows
        return CellResult(
            cell,
            "failed" if reason else "done",
            reason,
            steps,
            seconds,
            {name: value for name, value in found.items() if math.isfinite(value)},
            {name: [row[name] for row in rows] for name in rows[0]} if rows else {},
        )
