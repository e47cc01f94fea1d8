"""Training of a classifier step by step, with evaluations on the test samples on the way."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from overfit_cli.classification.task import Examples
from overfit_cli.training import Row, failure


def on_device(examples: Examples, device: str) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return tokens, labels and mask as tensors; the mask is None where nothing is padding."""
    tokens = torch.from_numpy(examples.tokens.astype(np.int64)).to(device)
    labels = torch.from_numpy(examples.labels).to(device)
    if examples.lengths is None:
        return tokens, labels, None
    places = np.arange(examples.tokens.shape[1])
    mask = torch.from_numpy(places < examples.lengths[:, None]).to(device)
    return tokens, labels, mask


def loss_and_accuracy(
    logits_of: Callable[[Examples], Tensor], samples: Examples, at_a_time: int
) -> tuple[float, float]:
    """Return the mean cross-entropy on samples, and the share of them that is right.

    Args:
        logits_of: from some of the samples to their logits, shape (samples, classes).
        samples: all of them.
        at_a_time: how many are evaluated together, which bounds the memory.
    """
    count = len(samples.labels)
    loss, correct = 0.0, 0
    with torch.inference_mode():
        for start in range(0, count, at_a_time):
            part = samples.take(np.arange(start, min(start + at_a_time, count)))
            logits = logits_of(part)
            labels = torch.from_numpy(part.labels).to(logits.device)
            loss += float(functional.cross_entropy(logits, labels, reduction="sum"))
            correct += int((logits.argmax(1) == labels).sum())
    return loss / count, correct / count


@dataclass(frozen=True)
class Course:
    """How a training went.

    Attributes:
        rows: what each evaluation found, by its step from 0 on: `train_loss`, since the evaluation
            before and nan at step 0, `test_loss`, `test_accuracy`, and whatever else is evaluated.
        steps: gradient steps taken.
        reason: why it failed; empty where it hasn't.
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
        steps = list(self.rows)
        losses = [row["train_loss"] for row in self.rows.values()]
        return float(np.average(losses[1:], weights=np.diff(steps)))

    def steps_to(self, train_loss: float) -> float:
        """Return the step of the first evaluation at which it is below that; nan without any."""
        below = (step for step, row in self.rows.items() if row["train_loss"] < train_loss)
        return next(below, math.nan)


def train_with_evaluations(
    losses: Iterator[Tensor],
    evaluate: Callable[[], Row],
    count: int,
    every: int,
    log: Callable[[int, Row], None],
) -> Course:
    """Take gradient steps, and evaluate before the first, every so many, and after the last.

    A loss that isn't finite ends the training as diverged.

    Args:
        losses: takes a step whenever its next loss is asked for.
        evaluate: measures `test_loss`, `test_accuracy`, and what else there is.
        count: of steps.
        every: steps between two evaluations.
        log: takes each evaluation's step and row.
    """
    rows: dict[int, Row] = {0: {"train_loss": math.nan, **evaluate()}}
    log(0, rows[0])
    since: list[Tensor] = []
    for step in range(1, count + 1):
        since.append(next(losses))
        if step % every == 0 or step == count:
            row = {"train_loss": float(torch.stack(since).mean()), **evaluate()}
            if reason := failure(row["train_loss"] + row["test_loss"]):
                return Course(rows, step, reason)
            rows[step] = row
            log(step, row)
            since.clear()
    return Course(rows, count)


def known(**measured: float) -> dict[str, float]:
    """Leave out what is nan: what a cell doesn't have."""
    return {name: value for name, value in measured.items() if not math.isnan(value)}
