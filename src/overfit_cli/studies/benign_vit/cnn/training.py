"""Training of `benign-cnn`: the CNN here, the Vision Transformer as `benign-vit` trains it."""

from __future__ import annotations

import itertools

import torch

from overfit_cli.core.cell import Batch, Cell, CellResult, Results
from overfit_cli.core.training import Training, failure, known_numbers, logged_steps
from overfit_cli.studies.benign_vit.cnn.engine import Filters, ForwardPass
from overfit_cli.studies.benign_vit.cnn.parameters import BenignCnnParameters, is_cnn
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.training import train_batch as train_vits

P = BenignVitParameters


def train_batch(batch: Batch[P], training: Training) -> Results[P]:
    """Train a batch: CNNs one by one, Vision Transformers as `benign-vit` does."""
    for cell in batch:
        if is_cnn(cell.parameters):
            with torch.inference_mode():
                result = train_cnn(cell, cell.parameters, training)
            yield result
    yield from train_vits([cell for cell in batch if not is_cnn(cell.parameters)], training)


def train_cnn(cell: Cell[P], p: BenignCnnParameters, training: Training) -> CellResult[P]:
    """Train a CNN until its training loss is at most ε, isn't finite, or its steps are spent."""
    filters = Filters(p, cell.seed, training.device)
    logged = frozenset(logged_steps(p.max_steps) if training.logs else ())
    for step in itertools.count():
        training.check_time()
        now = filters.forward()
        loss = float(now.loss)
        reason = failure(loss, p.epsilon)
        ends = reason != "step limit" or step == p.max_steps
        if training.logs and (ends or step in logged):
            training.log(cell, step, known_numbers(_measure(filters, now)))
        if ends:
            break
        filters.step(now)
    measured = {
        **_measure(filters, now),
        "test_margin": float(filters.test().margins.mean()),
        "label_imbalance": abs(float(filters.y.mean())),
        "updates": step,
    }
    return CellResult(cell, known_numbers(measured), step, reason)


def _measure(filters: Filters, now: ForwardPass) -> dict[str, float]:
    test = filters.test()
    return {
        "train_loss": float(now.loss),
        "test_loss": float(test.loss),
        "test_error": float((test.margins <= 0).double().mean()),
        "train_margin": float(now.margins.mean()),
        "train_margin_min": float(now.margins.min()),
    }
