"""The path from cells to results: projections, gradient descent in token space, measurements."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from overfit_cli.core.study import CellResult, Cells, Results
from overfit_cli.core.training import Training, failure
from overfit_cli.studies.benign_vit.engine.dynamics import logged
from overfit_cli.studies.benign_vit.engine.projections import projections_of
from overfit_cli.studies.benign_vit.engine.token_space import ForwardPass, TokenSpace, initial_state
from overfit_cli.studies.benign_vit.engine.true_scale import TrueScaleTokens
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters


def train_batch(
    batch: Cells[BenignVitParameters], training: Training
) -> Results[BenignVitParameters]:
    """Train a batch: on a CPU any cells, on a GPU cells of one shape.

    On a CPU one cell at a time is faster than many (they fall out of cache), and so is a logged
    run, which measures at every step; on a GPU all train together.
    """
    together = training.device != "cpu" and not training.logs
    with torch.inference_mode():
        for part in [batch] if together else [[cell] for cell in batch]:
            yield from train_together(part, training)


def train_together(
    cells: Cells[BenignVitParameters], training: Training
) -> Results[BenignVitParameters]:
    """Train cells of one shape as one tensor; each gives its result at the step where it stops."""
    projections = [projections_of(cell.parameters, cell.seed, training.device) for cell in cells]
    initial = initial_state([cell.parameters for cell in cells], projections)
    for updates, (state, now, stops) in enumerate(descend_until_fitted(initial)):
        if training.logs:
            row = logged(TrueScaleTokens(state, projections), now)
            training.log(cells[0], float(state.steps[0]), row)
        if bool(stops.any()):
            stopped = state.select(stops)
            places = stopped.which.tolist()
            tokens = TrueScaleTokens(stopped, [projections[place] for place in places])
            rows = measured(tokens, now.select(stops))
            for place, steps, row in zip(places, stopped.steps.tolist(), rows, strict=True):
                reason = failure(row["train_loss"], cells[place].parameters.epsilon)
                yield CellResult(cells[place], {**row, "updates": updates}, int(steps), reason)


def descend_until_fitted(state: TokenSpace) -> Iterator[tuple[TokenSpace, ForwardPass, Tensor]]:
    """Train all cells; after each stride give (state, forward pass, which of them stop here).

    A cell stops when its training loss is at most its ε, isn't finite, or its steps are spent. The
    state is changed in place by the next stride.
    """
    leaps = bool((state.leap > 0).any())
    now = state.forward()
    while True:
        stops = (now.loss <= state.epsilon) | ~now.loss.isfinite()
        stops |= state.steps >= state.max_steps
        yield state, now, stops
        if bool(stops.any()):
            if bool(stops.all()):
                return
            state, now = state.select(~stops), now.select(~stops)
        state.descend(now)
        before, now = now, state.forward()
        if leaps:
            state.choose_stride(before, now)


def measured(tokens: TrueScaleTokens, train: ForwardPass) -> Iterator[dict[str, float]]:
    """Give the measurements of each cell in turn, but for the number of its updates.

    Args:
        tokens: of the cells.
        train: their forward pass over the training samples.
    """
    test, signal_values = tokens.test_pass(), tokens.signal_values()
    noise_values = tokens.values()[:, :, 1].abs().mean(1)  # (cells,)
    for cell, labels in enumerate(tokens.labels):
        on_train, on_test = (one.attention[cell].mean((0, 1)) for one in (train, test))  # (tokens,)
        yield {
            "train_loss": float(train.loss[cell]),
            "test_loss": float(test.loss[cell]),
            "test_error": float((test.margins[cell] <= 0).double().mean()),
            "train_margin": float(train.margins[cell].mean()),
            "train_margin_min": float(train.margins[cell].min()),
            "test_margin": float(test.margins[cell].mean()),
            "train_attention_signal": float(on_train[0]),
            "train_attention_noise": float(on_train[1]),
            "test_attention_signal": float(on_test[0]),
            "test_attention_noise": float(on_test[1]),
            "value_plus": float(signal_values[cell, 0]),
            "value_minus": float(signal_values[cell, 1]),
            "value_noise": float(noise_values[cell]),
            "output_norm": float(tokens.output_norm()[cell]),
            "label_imbalance": abs(float(labels.mean())),
        }
