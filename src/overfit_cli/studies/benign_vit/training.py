"""From cells to results: groups cells, trains them in token space and measures them."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, cast

import torch
from torch import Tensor

from overfit_cli.studies.benign_vit.assembly import token_space
from overfit_cli.studies.benign_vit.dynamics import logged
from overfit_cli.studies.benign_vit.engine import Pass, TokenSpace, descend_until_fitted
from overfit_cli.studies.benign_vit.evaluation import evaluate, signal_values
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.start import Start, start_of
from overfit_cli.study import Cell, CellResult, Execution


def train_batch(batch: Sequence[Cell], execution: Execution) -> Iterator[CellResult]:
    """Train a batch: on a CPU any cells, on a GPU cells of one shape.

    On a CPU one cell at a time is faster than many (they fall out of cache), and so is a logged
    run, which measures at every step; on a GPU all train together. On one thread whatever the
    number of jobs, because more would sum in another order and change the last bits.
    """
    torch.set_num_threads(1)
    together = execution.device != "cpu" and not execution.trajectories
    with torch.inference_mode():
        if together:
            yield from train_together(batch, execution)
        else:
            for cell in batch:
                yield from train_together([cell], execution)


def train_together(cells: Sequence[Cell], execution: Execution) -> Iterator[CellResult]:
    """Train cells of one shape as one tensor; each gives its result at the step where it stops."""
    began = time.perf_counter()
    settings = [cast(BenignVitParameters, cell.parameters) for cell in cells]
    starts = [
        start_of(setting, cell.seed, execution.device)
        for setting, cell in zip(settings, cells, strict=True)
    ]
    trajectory: dict[str, list[float]] = {}
    passes = descend_until_fitted(token_space(settings, starts))
    for updates, (state, now, stops) in enumerate(passes):
        if execution.trajectories:
            _log(trajectory, execution, state, now, starts[0])
        if bool(stops.any()):
            stopped, last = state.select(stops), now.select(stops)
            places = stopped.which.tolist()
            own_starts = [starts[place] for place in places]
            test, values = evaluate(stopped, own_starts), final_values(stopped, own_starts)
            seconds = (time.perf_counter() - began) / len(cells)
            for row, place in enumerate(places):
                own = {name: float(column[row]) for name, column in values.items()}
                own["label_imbalance"] = abs(float(stopped.labels[row].mean()))
                own["updates"] = float(updates)
                steps = int(stopped.steps[row])
                yield _result(cells[place], steps, seconds, row, own, last, test, trajectory)


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


def _log(
    trajectory: dict[str, list[float]],
    execution: Execution,
    state: TokenSpace,
    now: Pass,
    start: Start,
) -> None:
    row = {"step": float(state.steps[0]), **logged(state, now, evaluate(state, [start]), start)}
    for name, value in row.items():
        trajectory.setdefault(name, []).append(value)
    if execution.on_step is not None:
        execution.on_step(row)


def _result(
    cell: Cell,
    steps: int,
    seconds: float,
    row: int,
    own: Mapping[str, float],
    train: Pass,
    test: Pass,
    trajectory: Mapping[str, Sequence[float]],
) -> CellResult:
    """Read the measurements of the cell in place `row` of the two passes; `own` are the others."""
    settings = cast(BenignVitParameters, cell.parameters)
    train_loss = float(train.loss[row])
    reason = "" if train_loss <= settings.epsilon else "step limit"
    if not math.isfinite(train_loss):
        reason = "diverged"
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
    status: Literal["done", "failed"] = "failed" if reason else "done"
    return CellResult(cell, status, reason, steps, seconds, measurements, trajectory)
