"""Figure of the task: images whose discs are connected, over images whose discs aren't."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Circle

from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.parameters import parameters_from_row
from overfit_cli.core.study import FigureData
from overfit_cli.datasets.pathfinder.paddles import PathfinderSettings
from overfit_cli.datasets.pathfinder.samples import CHUNK, PathfinderImages, images
from overfit_cli.figures.panels import ImageRow, draw_image_rows
from overfit_cli.figures.picture import Picture
from overfit_cli.figures.style import HIGHLIGHT
from overfit_cli.studies.attention_kernel.pathfinder.data import pathfinder_task, stream_of
from overfit_cli.studies.attention_kernel.pathfinder.parameters import KernelPathfinderParameters

ACROSS = 5
ROWS = {1: "connected", 0: "unconnected"}
FULL = PathfinderSettings()
"""Images as LRA's hard ones, for beside smaller ones."""


def draw_samples(data: FigureData, options: FigureOptions) -> Picture:
    """Draw training images of the first cell, five of each label, in a paper's column.

    Below generated images that are smaller than LRA's stand some as large.
    """
    row = data.cells.sort_values("seed").iloc[0]
    parameters, seed = parameters_from_row(KernelPathfinderParameters, row), int(row["seed"])
    shown = [training_images(parameters, seed)]
    words = f"Training images of {parameters.size} × {parameters.size} pixels"
    if parameters.source == "generated" and parameters.size < FULL.size:
        shown.append(images(FULL, stream_of(seed, "train"), CHUNK))
        words += (
            f", and below them images of {FULL.size} × {FULL.size} pixels, drawn alike with the "
            "settings of LRA's hard ones, on which no network here is trained"
        )
    figure = draw_images(*shown)
    marks = " Orange circles mark the two discs." if parameters.source == "generated" else ""
    figure.facts.append(f"{words}. Does a contour connect the two discs?{marks}")
    return figure


def training_images(parameters: KernelPathfinderParameters, seed: int) -> PathfinderImages:
    """Return training images of a cell, enough to find five of each label among them."""
    if parameters.source == "lra":
        task = pathfinder_task(parameters, seed)
        levels = task.train.tokens.reshape(-1, parameters.size, parameters.size)
        pixels = (levels.astype(np.int64) * 256 // parameters.grey_levels).astype(np.uint8)
        unknown = np.full((len(pixels), 2), np.nan, dtype=np.complex64)
        return PathfinderImages(pixels, task.train.labels, unknown)
    return images(parameters.settings, stream_of(seed, "train"), CHUNK)


def draw_images(*collections: PathfinderImages) -> Picture:
    """Draw five images of each label of each collection, with circles around the known discs.

    Strokes thinner than a pixel are dim, so white begins at a grey level of two thirds.
    """
    rows, discs = [], []
    for shown in collections:
        size = shown.pixels.shape[-1]
        for label, name in ROWS.items():
            chosen = shown[np.flatnonzero(shown.labels == label)[:ACROSS]]
            rows.append(ImageRow(f"{size} × {size}\n{name}", list(chosen.pixels), 0, 170))
            discs.append(chosen.markers)
    figure = draw_image_rows(rows, ACROSS)
    for row, centres in enumerate(discs):
        for axes, pair in zip(figure.axes[row * ACROSS :], centres, strict=False):
            _circle(axes, pair)
    return figure


def _circle(axes: Axes, centres: Sequence[complex]) -> None:
    """Draw a circle around each disc; centres x + iy are in pixels from the image's corner."""
    for centre in centres:
        if np.isfinite(centre):
            place = (centre.real - 0.5, centre.imag - 0.5)  # as pixels are drawn around their index
            axes.add_patch(Circle(place, _ROOM, fill=False, color=HIGHLIGHT, linewidth=0.9))


_ROOM = 2.0
"""The radius of a circle around a disc, in pixels."""
