"""The figures of `kernel-pathfinder`: figure 3 of Song et al. 2024, step sizes, and the images."""

from __future__ import annotations

from overfit_cli.figure import Figure, FigureOptions, drawn_by
from overfit_cli.studies.attention_kernel.classifier.figures import classifier_figures

FIGURES = {
    **classifier_figures("Song et al. 2024, figure 3"),
    "samples": Figure(
        name="samples",
        title="Images of both labels",
        source="",
        reads="cells",
        options=FigureOptions(),
        accepts=frozenset(),
        draw=drawn_by("overfit_cli.studies.attention_kernel.pathfinder.samples:draw_samples"),
    ),
}
