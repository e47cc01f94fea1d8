"""From cells to results: a network in two stages, and its surface on a fixed batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from overfit_cli.cache import cache_folder
from overfit_cli.rng import named_rng
from overfit_cli.studies.attention_kernel.classifier.model import Transformer
from overfit_cli.studies.attention_kernel.classifier.task import Examples, Task
from overfit_cli.studies.attention_kernel.classifier.training import evaluate, on_device
from overfit_cli.studies.attention_kernel.landscape import metrics
from overfit_cli.studies.attention_kernel.landscape.keys import data_fingerprint
from overfit_cli.studies.attention_kernel.landscape.metrics import Floats
from overfit_cli.studies.attention_kernel.landscape.networks import trained_network
from overfit_cli.studies.attention_kernel.landscape.parameters import KernelLandscapeParameters
from overfit_cli.studies.attention_kernel.landscape.plane import Plane, draw_directions
from overfit_cli.studies.attention_kernel.landscape.progress import KeptLosses
from overfit_cli.studies.attention_kernel.landscape.tasks import landscape_task
from overfit_cli.study import Cell as AnyCell
from overfit_cli.study import CellResult, Results
from overfit_cli.training import Training, failure

Cell = AnyCell[KernelLandscapeParameters]


def train_batch(batch: Sequence[Cell], training: Training) -> Results[KernelLandscapeParameters]:
    """Train and measure cells one after another; those of one network train it once."""
    for cell in batch:
        yield _train_one(cell, training)


def _train_one(cell: Cell, training: Training) -> CellResult[KernelLandscapeParameters]:
    parameters, device = cell.parameters, training.device
    task = landscape_task(parameters, cell.seed)
    first, model = (trained_network(parameters, task, cell.seed, k, device) for k in (1, 2))
    batch = fixed_batch(parameters, task, cell.seed)
    centre = evaluate(model, batch, device).loss
    steps = parameters.training_steps + parameters.second_steps
    if reason := failure(centre):
        return CellResult(cell, {}, steps, reason)
    at = metrics.offsets(parameters.points, parameters.spacing)
    surface = surface_around(model, parameters, cell, batch, data_fingerprint(task), device)
    measured = {
        "first_stage_loss": evaluate(first, batch, device).loss,
        **measure(surface, at, centre, parameters.spacing),
    }
    points = zip(*(axis.ravel().tolist() for axis in (*_mesh(at), surface)), strict=True)
    for step, (a, b, loss) in enumerate(points):
        training.log(cell, step, {"a": a, "b": b, "loss": loss})
    return CellResult(cell, measured, steps)


def fixed_batch(parameters: KernelLandscapeParameters, task: Task, seed: int) -> Examples:
    """Return the training samples on which the loss is taken, the same at every point."""
    order = named_rng(seed, "loss batch").permutation(len(task.train.labels))
    return task.train.take(order[: parameters.loss_samples])


def surface_around(
    model: Transformer,
    parameters: KernelLandscapeParameters,
    cell: Cell,
    batch: Examples,
    fingerprint: str,
    device: str,
) -> Floats:
    """Return the surface around a network, (points, points); what a kill left is gone on with."""
    directions = draw_directions(model, parameters.directions, cell.seed, parameters.pair)
    plane = Plane(model, directions, *on_device(batch, device))
    dtype = getattr(torch, parameters.dtype)

    def losses(points: Floats) -> Floats:
        found = plane.losses(torch.from_numpy(points).to(device, dtype))
        return found.to("cpu", torch.float64).numpy()

    name = f"{cell.key}-{fingerprint}-{device}.npz"
    kept = KeptLosses(losses, cache_folder() / "surfaces" / name)
    at = metrics.offsets(parameters.points, parameters.spacing)
    surface = kept(np.stack(_mesh(at), -1).reshape(-1, 2)).reshape(len(at), len(at))
    kept.forget()
    return surface


def measure(surface: Floats, at: Floats, centre: float, spacing: float) -> dict[str, float]:
    """Return the numbers that say how rough a surface is."""
    return {
        "rms_laplacian": metrics.rms_laplacian(surface, spacing),
        "interior_minima": metrics.interior_minima(surface),
        "quadratic_residual": metrics.quadratic_residual(surface, at),
        "sharpness": metrics.sharpness(surface, centre),
        "centre_loss": centre,
        "lowest_loss": float(surface.min()),
        "highest_loss": float(surface.max()),
    }


def _mesh(at: Floats) -> tuple[Floats, Floats]:
    a, b = np.meshgrid(at, at, indexing="ij")
    return a, b
