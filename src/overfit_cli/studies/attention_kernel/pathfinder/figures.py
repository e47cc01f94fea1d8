"""Figure of the task: images whose discs are connected, over images whose discs aren't."""

from __future__ import annotations

import numpy as np

from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.parameters import parameters_from_row
from overfit_cli.core.study import FigureData
from overfit_cli.datasets.pathfinder.samples import CHUNK, NO_MARKERS, PathfinderImages, images
from overfit_cli.figures.panels import ImageRow, draw_image_rows
from overfit_cli.figures.picture import Picture
from overfit_cli.studies.attention_kernel.pathfinder.data import pathfinder_task, stream_of
from overfit_cli.studies.attention_kernel.pathfinder.parameters import KernelPathfinderParameters

ACROSS = 5
ROWS = {1: "connected", 0: "not connected"}


def draw_samples(data: FigureData, options: FigureOptions) -> Picture:
    """Draw the first training images of the first cell, five of each label, in a paper's column.

    Raises:
        UserError: if the images come from LRA and aren't where they were.
    """
    row = data.cells.sort_values("seed").iloc[0]
    return draw_images(
        training_images(parameters_from_row(KernelPathfinderParameters, row), int(row["seed"]))
    )


def training_images(parameters: KernelPathfinderParameters, seed: int) -> PathfinderImages:
    """Return training images of a cell, enough to find five of each label among them."""
    if parameters.source == "lra":
        task = pathfinder_task(parameters, seed)
        levels = task.train.tokens.reshape(-1, parameters.size, parameters.size)
        pixels = (levels.astype(np.int64) * 256 // parameters.grey_levels).astype(np.uint8)
        return PathfinderImages(pixels, task.train.labels, NO_MARKERS)
    return images(parameters.settings, stream_of(seed, "train"), CHUNK)


def draw_images(shown: PathfinderImages) -> Picture:
    """Draw five images of each label.

    Strokes thinner than a pixel are dim, so white begins at a grey level of two thirds.
    """
    rows = [
        ImageRow(name, list(shown.pixels[np.flatnonzero(shown.labels == label)[:ACROSS]]), 0, 170)
        for label, name in ROWS.items()
    ]
    return draw_image_rows(rows, ACROSS)
