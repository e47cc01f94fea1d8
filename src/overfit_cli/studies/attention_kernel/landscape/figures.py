"""The figures of `kernel-landscape`: figure 4 of Song et al. 2024."""

from __future__ import annotations

from overfit_cli.figure import Figure, drawn_by

FIGURES = {
    figure.name: figure
    for figure in (
        Figure(
            name="landscape",
            title="The loss around a network under each kernel, as a surface and as contours",
            source="Song et al. 2024, figure 4",
            reads="trajectories",
            draw=drawn_by("overfit_cli.studies.attention_kernel.landscape.drawing:draw_landscape"),
        ),
    )
}
