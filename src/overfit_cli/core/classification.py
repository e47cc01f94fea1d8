"""Classifiers: labelled samples, minibatches, training with evaluations, and its columns.

PyTorch is imported in the functions that compute with it: studies name the columns without it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from overfit_cli.core.cell import Column
from overfit_cli.core.training import Row, failure, named_rng

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Rows = NDArray[np.int64]


def minibatches(samples: int, size: int, seed: int, *, equal: bool = True) -> Iterator[Rows]:
    """Yield the rows of minibatches without end: each sample once an epoch, in a new order.

    The orders are drawn from the stream `train`, `order` of the cell's seed. If sizes are `equal`,
    the last minibatch of an epoch is filled up from the next one.
    """
    orders = named_rng(seed, "train", "order")
    rows = np.empty(0, dtype=np.int64)
    while True:
        while len(rows) < (size if equal else 1):
            rows = np.concatenate([rows, orders.permutation(samples)])
        yield rows[:size]
        rows = rows[size:]


def gradient_steps(
    optimiser: torch.optim.Optimizer,
    loss_of: Callable[[Rows], torch.Tensor],
    minibatches: Iterator[Rows],
) -> Iterator[torch.Tensor]:
    """Take a gradient step for each loss that the caller takes, on that step's minibatch."""
    for rows in minibatches:
        loss = loss_of(rows)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        yield loss.detach()


@dataclass(frozen=True, eq=False)
class Examples:
    """Labelled samples: tokens, shape (samples, tokens), and labels, 0 or 1.

    `lengths` are the numbers of tokens that are not padding, shape (samples,); None without
    padding.
    """

    tokens: NDArray[Any]
    labels: NDArray[np.int64]
    lengths: NDArray[np.int64] | None = None

    @property
    def row_lengths(self) -> NDArray[np.int64]:
        """The number of tokens of each sample that are not padding, shape (samples,)."""
        if self.lengths is not None:
            return self.lengths
        return np.full(len(self.tokens), self.tokens.shape[1])

    def take(self, rows: NDArray[np.int64]) -> Examples:
        """Return some of the samples."""
        lengths = None if self.lengths is None else self.lengths[rows]
        return Examples(self.tokens[rows], self.labels[rows], lengths)


@dataclass(frozen=True, eq=False)
class Task:
    """The data of a cell, with fingerprints of its collections.

    `shortcut` is the test accuracy of a rule that sees too little to solve the task; nan without.
    """

    train: Examples
    test: Examples
    vocabulary: int
    shortcut: float
    collections: Mapping[str, str] = field(default_factory=dict)


COLUMNS = (
    Column(
        "mean_test_loss",
        "test loss, averaged over the evaluations of a run: lower is faster",
        label="mean test loss over the run",
        diverges=True,
    ),
    Column("test_loss", "final test loss", diverges=True),
    Column("test_accuracy", "final test accuracy"),
    Column("best_accuracy", "best test accuracy at any evaluation", label="best test accuracy"),
    Column(
        "train_loss",
        "training loss since the last evaluation but one",
        label="final training loss",
        diverges=True,
    ),
    Column(
        "shortcut_accuracy", "test accuracy of the shortcut rule", label="shortcut's test accuracy"
    ),
)
"""The columns of a cell."""

TRAJECTORY_COLUMNS = (
    Column(
        "train_loss",
        "training loss since the evaluation before",
        label="training loss",
        diverges=True,
    ),
    Column("test_loss", "test loss", diverges=True),
    Column("test_accuracy", "test accuracy"),
)
"""The columns of an evaluation."""


def move_to_device(examples: Examples, device: str) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return tokens, labels and mask as tensors; the mask is None without padding."""
    import torch

    tokens = torch.from_numpy(examples.tokens.astype(np.int64)).to(device)
    labels = torch.from_numpy(examples.labels).to(device)
    if examples.lengths is None:
        return tokens, labels, None
    positions = np.arange(examples.tokens.shape[1])
    return tokens, labels, torch.from_numpy(positions < examples.lengths[:, None]).to(device)


def loss_and_accuracy(
    logits_of: Callable[[Examples], Tensor], samples: Examples, batch_size: int
) -> tuple[float, float]:
    """Return the mean cross-entropy on samples, and the share of correct predictions.

    So many samples are evaluated together, which bounds the memory.
    """
    import torch
    from torch.nn import functional

    count = len(samples.labels)
    loss, correct = 0.0, 0
    with torch.inference_mode():
        for start in range(0, count, batch_size):
            part = samples.take(np.arange(start, min(start + batch_size, count)))
            logits = logits_of(part)
            labels = torch.from_numpy(part.labels).to(logits.device)
            loss += float(functional.cross_entropy(logits, labels, reduction="sum"))
            correct += int((logits.argmax(1) == labels).sum())
    return loss / count, correct / count


@dataclass(frozen=True)
class Course:
    """The evaluations of a training, by their steps from 0 on.

    A row has `train_loss`, the mean since the evaluation before and nan at step 0, `test_loss`,
    `test_accuracy`, and further measurements.
    """

    rows: Mapping[int, Row]
    steps: int
    reason: str = ""

    def measured(self) -> dict[str, float]:
        """Return the last evaluation, the mean test loss over the steps, and the best accuracy.

        The test loss is taken to be linear between the steps at which it is known.
        """
        steps = list(self.rows)
        losses = [row["test_loss"] for row in self.rows.values()]
        return {
            **self.rows[steps[-1]],
            "mean_test_loss": float(np.trapezoid(losses, steps) / steps[-1]),
            "best_accuracy": max(row["test_accuracy"] for row in self.rows.values()),
        }

    def mean_train_loss(self) -> float:
        """Return the mean of the losses of all steps, each before the step was taken."""
        losses = [row["train_loss"] for row in self.rows.values()]
        return float(np.average(losses[1:], weights=np.diff(list(self.rows))))


def train_with_evaluations(
    losses: Iterator[Tensor],
    evaluate: Callable[[], Row],
    count: int,
    interval: int,
    log: Callable[[int, Row], None],
) -> Course:
    """Take gradient steps, and evaluate before the first, at an interval, and after the last.

    A step is taken for each loss that is taken from `losses`. One that is not finite ends the
    training as diverged.
    """
    import torch

    rows: dict[int, Row] = {0: {"train_loss": math.nan, **evaluate()}}
    log(0, rows[0])
    losses_since: list[Tensor] = []
    for step in range(1, count + 1):
        losses_since.append(next(losses))
        if step % interval == 0 or step == count:
            row = {"train_loss": float(torch.stack(losses_since).mean()), **evaluate()}
            if reason := failure(row["train_loss"] + row["test_loss"]):
                return Course(rows, step, reason)
            rows[step] = row
            log(step, row)
            losses_since.clear()
    return Course(rows, count)
