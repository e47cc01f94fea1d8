"""Training of a cell: a network in two stages, and the surface of its loss on a fixed batch."""

from __future__ import annotations

import numpy as np
import torch

from overfit_cli.analysis import surfaces
from overfit_cli.analysis.surfaces import Floats
from overfit_cli.cache import cache_folder
from overfit_cli.rng import named_rng
from overfit_cli.saved_losses import SavedLosses
from overfit_cli.studies.attention_kernel.classifier.model import Transformer
from overfit_cli.studies.attention_kernel.classifier.task import Examples, Task
from overfit_cli.studies.attention_kernel.classifier.training import evaluate, on_device
from overfit_cli.studies.attention_kernel.landscape.networks import (
    data_fingerprint,
    trained_network,
)
from overfit_cli.studies.attention_kernel.landscape.parameters import KernelLandscapeParameters
from overfit_cli.studies.attention_kernel.landscape.plane import Plane, draw_directions
from overfit_cli.study import Cell, CellResult
from overfit_cli.training import Training, failure

LandscapeCell = Cell[KernelLandscapeParameters]
LandscapeResult = CellResult[KernelLandscapeParameters]


def train_cell(cell: LandscapeCell, task: Task, training: Training) -> LandscapeResult:
    """Train a cell's network, evaluate the surface around it, and measure its roughness.

    The points of the surface are logged in place of steps.
    """
    parameters, device = cell.parameters, training.device
    first, model = (trained_network(parameters, task, cell.seed, k, device) for k in (1, 2))
    batch = fixed_batch(parameters, task, cell.seed)
    centre = evaluate(model, batch, device).loss
    steps = parameters.training_steps + parameters.second_steps
    if reason := failure(centre):
        return CellResult(cell, {}, steps, reason)
    at = offsets(parameters.points, parameters.spacing)
    name = f"{cell.key}-{data_fingerprint(task)}-{device}.npz"
    surface = surface_around(model, cell, batch, name, device)  # (points, points)
    measured = {
        "first_stage_loss": evaluate(first, batch, device).loss,
        "rms_laplacian": surfaces.rms_laplacian(surface, parameters.spacing),
        "interior_minima": surfaces.interior_minima(surface),
        "quadratic_residual": surfaces.quadratic_residual(surface, at),
        "sharpness": surfaces.sharpness(surface, centre),
        "centre_loss": centre,
        "lowest_loss": float(surface.min()),
        "highest_loss": float(surface.max()),
    }
    rows = np.column_stack([grid(at), surface.ravel()]).tolist()
    for step, (a, b, loss) in enumerate(rows):
        training.log(cell, step, {"a": a, "b": b, "loss": loss})
    return CellResult(cell, measured, steps)


def offsets(points: int, spacing: float) -> Floats:
    """Return where the points lie along a direction: spacing · (r − points/2), r = 1, 2, ...

    With 50 points of spacing 0.02 these are section 5.2's, from −0.48 to 0.5.
    """
    return spacing * (np.arange(1, points + 1, dtype=np.float64) - points // 2)


def grid(at: Floats) -> Floats:
    """Return all points of the plane whose coordinates are among `at`, (points · points, 2)."""
    return np.stack(np.meshgrid(at, at, indexing="ij"), -1).reshape(-1, 2)


def fixed_batch(parameters: KernelLandscapeParameters, task: Task, seed: int) -> Examples:
    """Return the training samples on which the loss is taken, the same at every point."""
    order = named_rng(seed, "loss batch").permutation(len(task.train.labels))
    return task.train.take(order[: parameters.loss_samples])


def surface_around(
    model: Transformer, cell: LandscapeCell, batch: Examples, name: str, device: str
) -> Floats:
    """Return the losses around a network, (points, points).

    Args:
        model: the network.
        cell: its parameters say where the points lie.
        batch: the samples on which the loss is taken.
        name: of the file in the cache folder that keeps losses while the surface isn't done.
        device: where to evaluate.
    """
    parameters = cell.parameters
    directions = draw_directions(model, parameters.directions, cell.seed, parameters.pair)
    plane = Plane(model, directions, *on_device(batch, device))
    dtype = getattr(torch, parameters.dtype)

    def losses(points: Floats) -> Floats:
        found = plane.losses(torch.from_numpy(points).to(device, dtype))
        return found.to("cpu", torch.float64).numpy()

    saved = SavedLosses(losses, cache_folder() / "surfaces" / name)
    at = offsets(parameters.points, parameters.spacing)
    surface = saved(grid(at)).reshape(len(at), len(at))
    saved.delete()
    return surface
