"""Rows of sample images, each with a name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from numpy.typing import ArrayLike

from overfit_cli.figures.picture import Picture, styled
from overfit_cli.figures.style import COLUMN


@dataclass(frozen=True)
class ImageRow:
    """Images beside each other, in grey.

    Attributes:
        name: what stands before them.
        images: each of shape (height, width); those beyond the row's places aren't shown.
        black, white: the levels that are shown so.
    """

    name: str
    images: Sequence[ArrayLike]
    black: float
    white: float


@styled
def draw_image_rows(rows: Sequence[ImageRow], across: int) -> Picture:
    """Draw rows of images, so many in each, as wide as a paper's column."""
    height = 0.15 + 0.95 * COLUMN / across * len(rows)
    figure = Picture(COLUMN, height)
    grid = figure.subplots(len(rows), across, squeeze=False)
    for axes_of_row, row in zip(grid, rows, strict=True):
        axes_of_row[0].set_ylabel(row.name, fontsize="small")
        for axes, image in zip(axes_of_row, row.images, strict=False):
            axes.imshow(image, cmap="gray", vmin=row.black, vmax=row.white)
        for axes in axes_of_row:
            axes.set(xticks=[], yticks=[])
    return figure
