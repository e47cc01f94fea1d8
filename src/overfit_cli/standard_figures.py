"""Figures that any grid can have; a study gives them its title, source and choices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from overfit_cli.figure import Figure, FigureOptions, drawn_by

_GRID = frozenset({"x", "y", "value", "threshold", "law", "log", "from"})
_LINES = frozenset({"value", "threshold", "by", "log", "each_seed", "from"})

HEATMAP = Figure(
    name="heatmap",
    title="The headline over two parameters, averaged over seeds",
    reads="cells",
    draw=drawn_by("overfit_cli.figures.heatmap:draw_heatmap"),
    accepts=_GRID | {"by", "cmap", "minus"},
    axes=2,
)
CUTOFF = replace(
    HEATMAP,
    name="cutoff",
    accepts=_GRID | {"by"},
    title="Which side of a threshold the headline is on, over two parameters",
    draw=drawn_by("overfit_cli.figures.cutoff:draw_cutoff"),
)
BOUNDARY = Figure(
    name="boundary",
    title="Where the headline crosses a threshold, and the power law fitted to it",
    reads="cells",
    draw=drawn_by("overfit_cli.figures.boundary:draw_boundary"),
    accepts=_GRID | {"by"},
    axes=2,
)
LINES = Figure(
    name="lines",
    title="A measured column against a parameter, a line for each setting of the others",
    reads="cells",
    draw=drawn_by("overfit_cli.figures.lines:draw_lines"),
    accepts=_LINES | {"x", "minus"},
    axes=1,
)
CURVES = Figure(
    name="curves",
    title="Logged columns against the step of training",
    reads="trajectories",
    draw=drawn_by("overfit_cli.figures.curves:draw_curves"),
    accepts=_LINES | {"cmap"},
)


def any_grid(threshold: float | None = None) -> Mapping[str, Figure]:
    """Return the figures of a study that names none.

    Args:
        threshold: the value of the headline at which a cell changes sides; None where the middle of
            what was measured is taken.
    """
    cut = FigureOptions(threshold=threshold)
    return by_name(
        HEATMAP, replace(CUTOFF, options=cut), replace(BOUNDARY, options=cut), LINES, CURVES
    )


def learning_figures(each: str, source: str) -> Mapping[str, Figure]:
    """Return the figures of a classifier's training: curves at best step sizes, and the sweep.

    Args:
        each: what is compared, such as `each kernel`.
        source: the paper's figure that the curves stand for.
    """
    return by_name(
        replace(
            CURVES,
            title=f"Test loss and accuracy against steps, {each} at its best step size",
            source=source,
            draw=drawn_by("overfit_cli.figures.best_curves:draw_loss_and_accuracy"),
        ),
        replace(
            LINES,
            name="learning-rates",
            title=f"Test loss, averaged over the steps, against the step size, for {each}",
            options=FigureOptions(x="learning_rate", value="mean_test_loss"),
            axes=0,
        ),
    )


def by_name(*figures: Figure) -> dict[str, Figure]:
    """Return figures by their names."""
    return {figure.name: figure for figure in figures}
