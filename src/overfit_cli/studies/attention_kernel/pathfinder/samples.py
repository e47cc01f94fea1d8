"""A picture of the task: images whose discs are connected, over images whose discs aren't."""

from __future__ import annotations

import matplotlib.figure
import numpy as np

from overfit_cli.figures.style import COLUMN, styled
from overfit_cli.studies.attention_kernel.pathfinder.data import images
from overfit_cli.studies.attention_kernel.pathfinder.drawing import CHUNK
from overfit_cli.studies.attention_kernel.pathfinder.settings import PathfinderSettings

ACROSS = 5
ROWS = {1: "connected", 0: "not connected"}


@styled
def draw_samples(settings: PathfinderSettings, seed: int) -> matplotlib.figure.Figure:
    """Draw the first training images of a seed, five of each label, in a paper's column.

    Strokes thinner than a pixel are dim, so white begins at a grey level of two thirds.
    """
    shown = images(settings, seed, "train", CHUNK)
    figure = matplotlib.figure.Figure(figsize=(COLUMN, 1.5))
    grid = figure.subplots(len(ROWS), ACROSS)
    for axes_of_row, (label, name) in zip(grid, ROWS.items(), strict=True):
        axes_of_row[0].set_ylabel(name, fontsize="small")
        chosen = np.flatnonzero(shown.labels == label)[:ACROSS]
        for axes, which in zip(axes_of_row, chosen, strict=False):
            axes.imshow(shown.pixels[which], cmap="gray", vmin=0, vmax=170)
        for axes in axes_of_row:
            axes.set(xticks=[], yticks=[])
    return figure
