"""The figures of `kernel-pathfinder`: figure 3 of Song et al. 2024, step sizes, and the images."""

from __future__ import annotations

from overfit_cli.figure import Figure, drawn_by
from overfit_cli.studies.attention_kernel.classifier.figures import classifier_figures

FIGURES = {
    **classifier_figures("Song et al. 2024, figure 3"),
    "samples": Figure(
        name="samples",
        title="Images of both labels",
        reads="cells",
        draw=drawn_by("overfit_cli.studies.attention_kernel.pathfinder.samples:draw_samples"),
    ),
}
