"""A landscape's points evaluated together against a loop over points, one thread.

The loop sets the first layer's weights and evaluates the network on the fixed batch, once as it is
most often written, with gradients on, and once without. By how many tokens the fixed batch has.
The three take turns, and what is printed are medians over rounds, and of a round's ratios.
"""

from __future__ import annotations

from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from benchmarks.timing import timed
from overfit_cli.core.classification import move_to_device
from overfit_cli.studies.attention_kernel.classifier import Layer, Transformer, build_model
from overfit_cli.studies.attention_kernel.classifier_parameters import KernelLandscapeParameters
from overfit_cli.studies.attention_kernel.classifiers import landscape as study
from overfit_cli.studies.attention_kernel.plane import (
    Directions,
    Plane,
    draw_directions,
    fixed_batch,
    grid,
    offsets,
)

SIZES = ((16, 4), (16, 16), (64, 4), (64, 16), (64, 64), (64, 256))
"""Tokens of a sample, and samples of the fixed batch."""

POINTS, ROUNDS = 30, 7

Batch = tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]
Floats = NDArray[np.float64]


def loop(
    model: Transformer, directions: Directions, batch: Batch, points: Floats, *, gradients: bool
) -> Floats:
    """Evaluate the loss at each point by setting the weights there."""
    layer = cast("Layer", model.layers[0])
    weights = layer.query.weight, layer.key.weight
    centre = [weight.detach().clone() for weight in weights]
    tokens, labels, mask = batch
    found = []
    for a, b in points:
        with torch.no_grad():
            weights[0].copy_(centre[0] + a * directions.query)
            weights[1].copy_(centre[1] + b * directions.key)
        with torch.set_grad_enabled(gradients):
            found.append(functional.cross_entropy(model(tokens, mask), labels).item())
    with torch.no_grad():
        for weight, value in zip(weights, centre, strict=True):
            weight.copy_(value)
    return np.array(found)


def measure(tokens: int, samples: int, points: Floats) -> str:
    """Evaluate the points together and in both loops, and say how long each took."""
    parameters = KernelLandscapeParameters.model_validate(
        {"tokens": tokens, "loss_samples": samples, "n": 1000}
    )
    task = study.task(parameters, 0)
    model = build_model(parameters, task, 0, "cpu").eval()
    batch = move_to_device(fixed_batch(parameters, task, 0), "cpu")
    directions = draw_directions(model, "filter", 0, 0)
    plane = Plane(model, directions, *batch)
    ways = (
        lambda: plane.losses(torch.from_numpy(points).float()).numpy(),
        lambda: loop(model, directions, batch, points, gradients=True),
        lambda: loop(model, directions, batch, points, gradients=False),
    )
    losses = [way() for way in ways]  # warm
    times = np.array([[timed(way)[0] for way in ways] for _ in range(ROUNDS)])  # (rounds, ways)
    each = 1e3 * np.median(times, axis=0) / len(points)
    usual, bare = np.median(times[:, 1:] / times[:, :1], axis=0)
    return (
        f"{tokens:3d} tokens × {samples:3d} samples: {each[0]:6.2f} ms a point together; loop "
        f"{each[1]:6.2f} ({usual:.2f} times), without gradients {each[2]:6.2f} "
        f"({bare:.2f} times); within {np.abs(losses[0] - losses[1]).max():.1e}"
    )


def main() -> None:
    """Print a line a size."""
    torch.set_num_threads(1)
    every = grid(offsets(50, 0.02))
    points = every[np.random.default_rng(0).choice(len(every), POINTS, replace=False)]
    for tokens, samples in SIZES:
        print(measure(tokens, samples, points))


if __name__ == "__main__":
    main()
