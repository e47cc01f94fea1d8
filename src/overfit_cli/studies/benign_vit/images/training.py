"""The training of a cell on minibatches, with Adam, until all training samples are fitted.

The loss is the mean cross-entropy −log softmax(logits)_y of the training samples (section 6 of
Jiang et al. 2024). Training ends after the first pass at whose end it is at most ε.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn import functional

from overfit_cli.core.cell import Cell, CellResult
from overfit_cli.core.classification import Rows, gradient_steps, minibatches
from overfit_cli.core.training import Training, failure, known_numbers
from overfit_cli.studies.benign_vit.images.data import image_task
from overfit_cli.studies.benign_vit.images.digits import Digits
from overfit_cli.studies.benign_vit.images.engine import ImageTransformer
from overfit_cli.studies.benign_vit.images.parameters import BenignVitImagesParameters

P = BenignVitImagesParameters
NEAR = 3.0
"""The mean loss of a pass's minibatches, over ε, from which on the training loss is measured."""

_EVALUATED = 1000


class _OnDevice:
    def __init__(self, digits: Digits, dtype: torch.dtype, device: str) -> None:
        pixels, labels = torch.from_numpy(digits.pixels), torch.from_numpy(digits.labels)
        self.pixels = pixels.to(device=device, dtype=dtype)  # (samples, 28, 28)
        self.labels = labels.to(device)  # 0 to 9, (samples,)


def train_cell(cell: Cell[P], training: Training) -> CellResult[P]:
    """Train one cell; the training loss is measured after a pass, when it may be small enough."""
    parameters, device = cell.parameters, training.device
    task, dtype = image_task(parameters, cell.seed), getattr(torch, parameters.dtype)
    train, test = (_OnDevice(digits, dtype, device) for digits in (task.train, task.test))
    model = ImageTransformer(parameters, cell.seed).to(device, dtype)
    if training.logs:
        training.log(cell, 0, _measure(model, train, test))
    steps = epoch = 0
    reason = ""
    for epoch, mean_loss in enumerate(_passes(model, parameters, train, cell.seed), start=1):
        steps += -(-parameters.n // parameters.batch_size)
        reason = failure(mean_loss)
        if reason:
            break
        if training.logs:
            training.log(cell, steps, _measure(model, train, test))
        near = mean_loss <= NEAR * parameters.epsilon or epoch == parameters.max_epochs
        reason = failure(evaluate(model, train)[0], parameters.epsilon) if near else "step limit"
        if not reason or epoch == parameters.max_epochs:
            break
    measured = {**_measure(model, train, test), "epochs": float(epoch)}
    return CellResult(cell, known_numbers(measured), steps, reason)


def _measure(model: ImageTransformer, train: _OnDevice, test: _OnDevice) -> dict[str, float]:
    train_loss, train_error = evaluate(model, train)
    test_loss, test_error = evaluate(model, test)
    return {
        "train_loss": train_loss,
        "test_loss": test_loss,
        "train_error": train_error,
        "test_error": test_error,
    }


def _passes(model: ImageTransformer, parameters: P, train: _OnDevice, seed: int) -> Iterator[float]:
    """Go through all samples once when the next loss is wanted: the mean of the minibatches'."""
    n, size, device = parameters.n, parameters.batch_size, train.labels.device
    optimiser = torch.optim.Adam(model.parameters(), lr=parameters.learning_rate, fused=True)

    def loss_of(rows: Rows) -> Tensor:
        chosen = torch.from_numpy(rows).to(device)  # (minibatch,)
        logits = model(train.pixels[chosen])  # (minibatch, 10)
        return functional.cross_entropy(logits, train.labels[chosen])

    losses = gradient_steps(optimiser, loss_of, minibatches(n, size, seed, equal=False))
    while True:
        total = torch.zeros((), device=device)  # Σ over samples of their loss
        for first in range(0, n, size):
            total += next(losses) * min(size, n - first)
        yield float(total) / n


def evaluate(model: ImageTransformer, samples: _OnDevice) -> tuple[float, float]:
    """Return the mean cross-entropy and the share that is wrong."""
    loss, wrong = 0.0, 0
    with torch.inference_mode():
        for first in range(0, len(samples.labels), _EVALUATED):
            labels = samples.labels[first : first + _EVALUATED]  # (part,)
            logits: Tensor = model(samples.pixels[first : first + _EVALUATED])  # (part, 10)
            loss += float(functional.cross_entropy(logits, labels, reduction="sum"))
            wrong += int((logits.argmax(1) != labels).sum())
    return loss / len(samples.labels), wrong / len(samples.labels)
