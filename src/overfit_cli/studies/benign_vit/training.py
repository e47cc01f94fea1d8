"""From cells to results: groups cells, trains them in token space and measures them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from overfit_cli.studies.benign_vit.assembly import token_space
from overfit_cli.studies.benign_vit.dynamics import logged
from overfit_cli.studies.benign_vit.engine import Pass, TokenSpace, descend_until_fitted
from overfit_cli.studies.benign_vit.evaluation import evaluate, signal_values
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.start import Start, start_of
from overfit_cli.study import Cell as AnyCell
from overfit_cli.study import CellResult, Results
from overfit_cli.training import Training, failure

Cell = AnyCell[BenignVitParameters]


def train_batch(batch: Sequence[Cell], training: Training) -> Results[BenignVitParameters]:
    """Train a batch: on a CPU any cells, on a GPU cells of one shape.

    On a CPU one cell at a time is faster than many (they fall out of cache), and so is a logged
    run, which measures at every step; on a GPU all train together.
    """
    together = training.device != "cpu" and not training.logs
    with torch.inference_mode():
        for part in [batch] if together else [[cell] for cell in batch]:
            yield from train_together(part, training)


def train_together(cells: Sequence[Cell], training: Training) -> Results[BenignVitParameters]:
    """Train cells of one shape as one tensor; each gives its result at the step where it stops."""
    settings = [cell.parameters for cell in cells]
    starts = [start_of(cell.parameters, cell.seed, training.device) for cell in cells]
    passes = descend_until_fitted(token_space(settings, starts))
    for updates, (state, now, stops) in enumerate(passes):
        if training.logs:
            row = logged(state, now, evaluate(state, [starts[0]]), starts[0])
            training.log(cells[0], float(state.steps[0]), row)
        if bool(stops.any()):
            stopped, last = state.select(stops), now.select(stops)
            places = stopped.which.tolist()
            own_starts = [starts[place] for place in places]
            test, values = evaluate(stopped, own_starts), final_values(stopped, own_starts)
            for row_of, place in enumerate(places):
                own = {name: float(column[row_of]) for name, column in values.items()}
                own["label_imbalance"] = abs(float(stopped.labels[row_of].mean()))
                own["updates"] = float(updates)
                steps = int(stopped.steps[row_of])
                yield _result(cells[place], steps, row_of, own, last, test)


def final_values(state: TokenSpace, starts: Sequence[Start]) -> dict[str, Tensor]:
    """Return the values of the signals and of the noise, and ‖w_O‖, each of shape (cells,)."""
    samples, tokens = state.labels.shape[1], state.scales.shape[1]
    signal = signal_values(state, starts)
    noise = state.scales[:, 1:2] * state.value.view(-1, samples, tokens)[:, :, 1]
    return {
        "value_plus": signal[:, 0],
        "value_minus": signal[:, 1],
        "value_noise": noise.abs().mean(1),
        "output_norm": state.value_gain.sqrt(),
    }


def _result(
    cell: Cell, steps: int, row: int, own: Mapping[str, float], train: Pass, test: Pass
) -> CellResult[BenignVitParameters]:
    """Read the measurements of the cell in place `row` of the two passes; `own` are the others."""
    train_loss = float(train.loss[row])
    on_train, on_test = train.attention[row].mean((0, 1)), test.attention[row].mean((0, 1))
    measurements = {
        "train_loss": train_loss,
        "test_loss": float(test.loss[row]),
        "test_error": float((test.margins[row] <= 0).double().mean()),
        "train_margin": float(train.margins[row].mean()),
        "train_margin_min": float(train.margins[row].min()),
        "test_margin": float(test.margins[row].mean()),
        "train_attention_signal": float(on_train[0]),
        "train_attention_noise": float(on_train[1]),
        "test_attention_signal": float(on_test[0]),
        "test_attention_noise": float(on_test[1]),
        **own,
    }
    return CellResult(cell, measurements, steps, failure(train_loss, cell.parameters.epsilon))
