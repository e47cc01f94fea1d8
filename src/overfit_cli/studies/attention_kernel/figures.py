"""The figure of `kernel-regression` that no general one draws as it is."""

from __future__ import annotations

from overfit_cli.core.cells import Cells
from overfit_cli.core.figure import FigureOptions
from overfit_cli.figures.map import draw_cutoff
from overfit_cli.figures.picture import Picture


def draw_ranks(data: Cells, options: FigureOptions) -> Picture:
    """Draw where δ is above zero with softmax, of which the lines say what is necessary."""
    figure = draw_cutoff(data.where("kernel = softmax"), options)
    figure.facts.append(
        "δ can be above zero only right of and above all lines; D·d ≥ N·n² is Remark 4's, and the "
        "others are ours."
    )
    return figure
