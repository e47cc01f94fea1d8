"""The figures of both classification studies: figures 2 and 3 of Song et al. 2024."""

from __future__ import annotations

from overfit_cli.figure import Figure, FigureOptions, drawn_by


def classifier_figures(source: str) -> dict[str, Figure]:
    """Return the figures that both studies have; `source` is the paper's figure."""
    found = (
        Figure(
            name="curves",
            title="Test loss and accuracy against steps, each kernel at its best step size",
            source=source,
            reads="trajectories",
            options=FigureOptions(),
            accepts=frozenset({"value", "threshold", "by"}),
            draw=drawn_by("overfit_cli.studies.attention_kernel.drawing:draw_loss_and_accuracy"),
        ),
        Figure(
            name="learning-rates",
            title="Test loss, averaged over the steps, against the step size, for each kernel",
            source="",
            reads="cells",
            options=FigureOptions(x="learning_rate", value="mean_test_loss"),
            accepts=frozenset({"x", "value", "threshold", "by"}),
            draw=drawn_by("overfit_cli.figures.lines:draw_lines"),
        ),
    )
    return {figure.name: figure for figure in found}
