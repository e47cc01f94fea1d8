"""The figures of both classification studies: figures 2 and 3 of Song et al. 2024."""

from __future__ import annotations

from dataclasses import replace

from overfit_cli.figure import Figure, FigureOptions, drawn_by
from overfit_cli.standard_figures import CURVES, LINES, by_name


def classifier_figures(source: str) -> dict[str, Figure]:
    """Return the figures that both studies have; `source` is the paper's figure."""
    return by_name(
        replace(
            CURVES,
            title="Test loss and accuracy against steps, each kernel at its best step size",
            source=source,
            draw=drawn_by("overfit_cli.studies.attention_kernel.drawing:draw_loss_and_accuracy"),
        ),
        replace(
            LINES,
            name="learning-rates",
            title="Test loss, averaged over the steps, against the step size, for each kernel",
            options=FigureOptions(x="learning_rate", value="mean_test_loss"),
            axes=0,
        ),
    )
