"""Training of a RoBERTa on minibatches of sentences, with evaluations on the way.

The loss is the mean cross-entropy −log softmax(logits)_y, lowered by AdamW, as in figure 6 of
Deora et al. 2024.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from overfit_cli.core.cell import Cell, CellResult
from overfit_cli.core.classification import (
    Examples,
    Rows,
    Task,
    gradient_steps,
    loss_and_accuracy,
    minibatches,
    move_to_device,
    train_with_evaluations,
)
from overfit_cli.core.training import Training, named_rng
from overfit_cli.studies.multihead.sst2.data import sst2_folder
from overfit_cli.studies.multihead.sst2.engine import build_model, torch_draws
from overfit_cli.studies.multihead.sst2.parameters import MultiheadSst2Parameters

P = MultiheadSst2Parameters
AT_A_TIME = 64
"""Test sentences that are evaluated together: more are slower, as caches are small."""

Sst2Cell = Cell[P]
Sst2Result = CellResult[P]


def train_cell(cell: Sst2Cell, task: Task, training: Training) -> Sst2Result:
    """Train one cell, with an evaluation every `evaluate_every` steps and after the last one."""
    settings, device = cell.parameters, training.device
    model = build_model(settings, task.vocabulary, cell.seed, sst2_folder()).to(device)
    rate, decay = settings.learning_rate, settings.weight_decay
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=decay, fused=True)
    draws = named_rng(cell.seed, "train", "dropout")

    def loss_of(rows: Rows) -> Tensor:
        model.train()
        batch = task.train.take(rows)
        with torch_draws(draws, device):
            logits = logits_of(model, batch, device)  # (minibatch, 2)
        labels = torch.from_numpy(batch.labels).to(device)  # 0 or 1, (minibatch,)
        return functional.cross_entropy(logits, labels)

    def evaluate() -> dict[str, float]:
        model.eval()
        logits = partial(logits_of, model, device=device)
        loss, accuracy = loss_and_accuracy(logits, task.test, AT_A_TIME)
        return {"test_loss": loss, "test_accuracy": accuracy}

    rows = minibatches(len(task.train.labels), settings.batch_size, cell.seed)
    steps = gradient_steps(optimiser, loss_of, rows)
    length = settings.training_steps, settings.evaluate_every
    course = train_with_evaluations(steps, evaluate, *length, partial(training.log, cell))
    measured = {"shortcut_accuracy": task.shortcut}
    if not course.reason:
        measured |= course.measured() | {"mean_train_loss": course.mean_train_loss()}
    return CellResult(cell, measured, course.steps, course.reason)


def logits_of(model: nn.Module, examples: Examples, device: str) -> Tensor:
    """Return a RoBERTa's logits, shape (sentences, classes)."""
    longest = int(examples.row_lengths.max())  # padding beyond it would only cost time
    cut = Examples(examples.tokens[:, :longest], examples.labels, examples.lengths)
    tokens, _, mask = move_to_device(cut, device)  # tokens and mask: (sentences, longest)
    logits: Tensor = model(input_ids=tokens, attention_mask=mask).logits  # (sentences, 2)
    return logits
