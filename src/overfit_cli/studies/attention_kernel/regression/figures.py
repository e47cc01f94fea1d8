"""The figures of `kernel-regression`: loss curves with what the theorems say, and step sizes."""

from __future__ import annotations

from overfit_cli.figure import Figure, FigureOptions, drawn_by

_PANELS = "target,heads,value_gap,trained"
_LOSS_AND_BOUNDS = "train_loss,floor,bound_paper,bound_corrected"

FIGURES = {
    figure.name: figure
    for figure in (
        Figure(
            name="curves",
            title="Loss against steps at each kernel's best step size, with floors and bounds",
            source="",
            reads="trajectories",
            options=FigureOptions(value=_LOSS_AND_BOUNDS, by=_PANELS),
            accepts=frozenset({"value", "threshold", "by"}),
            draw=drawn_by("overfit_cli.studies.attention_kernel.drawing:draw_best_curves"),
        ),
        Figure(
            name="learning-rates",
            title="Final loss against the step size, for each kernel",
            source="",
            reads="cells",
            options=FigureOptions(x="learning_rate", value="relative_loss", by=_PANELS),
            accepts=frozenset({"x", "value", "threshold", "by"}),
            draw=drawn_by("overfit_cli.figures.lines:draw_lines"),
        ),
    )
}
