"""Training of a cell: a network in two stages, and the surface of its loss on a fixed batch."""

from __future__ import annotations

import torch

from overfit_cli.core.cell import Cell, CellResult
from overfit_cli.core.classification import Examples, Task, move_to_device
from overfit_cli.core.training import Training, failure, named_rng
from overfit_cli.studies.attention_kernel.classifier import Transformer, evaluate
from overfit_cli.studies.attention_kernel.landscape.engine import (
    Plane,
    data_fingerprint,
    draw_directions,
    trained_network,
)
from overfit_cli.studies.attention_kernel.landscape.parameters import KernelLandscapeParameters
from overfit_cli.studies.attention_kernel.landscape.theory import Floats, Losses, measure_landscape

LandscapeCell = Cell[KernelLandscapeParameters]
LandscapeResult = CellResult[KernelLandscapeParameters]


def train_cell(cell: LandscapeCell, task: Task, training: Training) -> LandscapeResult:
    """Train a cell's network, evaluate the surface around it, and measure its roughness.

    With 50 points of spacing 0.02 the surface is section 5.2's, from −0.48 to 0.5.
    """
    parameters, device = cell.parameters, training.device
    first, model = (trained_network(parameters, task, cell.seed, k, device) for k in (1, 2))
    batch = fixed_batch(parameters, task, cell.seed)
    centre = evaluate(model, batch, device).loss
    steps = parameters.training_steps + parameters.second_steps
    if reason := failure(centre):
        return CellResult(cell, {}, steps, reason)
    name = f"{cell.key}-{data_fingerprint(task)}-{device}.npz"
    losses = losses_around(model, cell, batch, device)
    points = parameters.points, parameters.spacing
    measured = measure_landscape(losses, points, centre, cell, training, name)
    measured["first_stage_loss"] = evaluate(first, batch, device).loss
    return CellResult(cell, measured, steps)


def fixed_batch(parameters: KernelLandscapeParameters, task: Task, seed: int) -> Examples:
    """Return the training samples on which the loss is taken, the same at every point."""
    order = named_rng(seed, "loss batch").permutation(len(task.train.labels))
    return task.train.take(order[: parameters.loss_samples])


def losses_around(model: Transformer, cell: LandscapeCell, batch: Examples, device: str) -> Losses:
    """Return what evaluates the loss around a network, on some samples."""
    parameters = cell.parameters
    directions = draw_directions(model, parameters.directions, cell.seed, parameters.pair)
    plane = Plane(model, directions, *move_to_device(batch, device))
    dtype = getattr(torch, parameters.dtype)

    def losses(points: Floats) -> Floats:
        found = plane.losses(torch.from_numpy(points).to(device, dtype))
        return found.to("cpu", torch.float64).numpy()

    return losses
