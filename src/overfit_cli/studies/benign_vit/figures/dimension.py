"""The boundary against the dimension: its constant, its exponent, and the test loss across it."""

from __future__ import annotations

from overfit_cli.core.figure import FigureData, FigureOptions
from overfit_cli.core.text import UserError
from overfit_cli.figures.boundary_numbers import BoundaryWords, draw_boundary_numbers
from overfit_cli.figures.inputs import checked_threshold
from overfit_cli.figures.picture import Picture, styled
from overfit_cli.studies.benign_vit.theory.boundaries import (
    boundaries,
    loss_curves,
    why_no_boundary,
)
from overfit_cli.studies.benign_vit.theory.predictions import (
    FIGURE_1_CONSTANT,
    FIGURE_1_EXPONENT,
    FIGURE_1_THRESHOLD,
)

_WORDS = BoundaryWords(
    product=r"$N \cdot \mathrm{SNR}^2$",
    equation=r"$N \cdot \mathrm{SNR}^p = C$",
    value="test loss",
    constant=FIGURE_1_CONSTANT,
    exponent=FIGURE_1_EXPONENT,
    expected_constant="figure 1: 1000",
    expected_exponent="theorems: 2",
)


def has_dimensions(data: FigureData) -> bool:
    """Whether d is an axis, with grids over N and the signal-to-noise ratio."""
    return data.cells["d"].nunique() > 1 and why_no_boundary(data.cells, "d") is None


@styled
def draw_dimension(data: FigureData, options: FigureOptions) -> Picture:
    """Draw the boundary's constant C and exponent p against d, and the test loss against N · SNR².

    Raises:
        UserError: if d doesn't take several values, or something but N and the ratio varies too.
    """
    chosen = checked_threshold(options.threshold)
    threshold = FIGURE_1_THRESHOLD if chosen is None else chosen
    few = "d takes one value only" if data.cells["d"].nunique() < 2 else None
    if why := few or why_no_boundary(data.cells, "d"):
        raise UserError(
            f"The figure `dimension` shows where overfitting turns benign over d, as in `overfit "
            f"sweep dimension`; in these cells that can't be found: {why}."
        )
    found = boundaries(data.cells, "d", threshold)
    return draw_boundary_numbers(data, found, "d", loss_curves(threshold), _WORDS)
