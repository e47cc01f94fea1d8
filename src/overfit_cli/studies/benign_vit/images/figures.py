"""The figures of `benign-vit-images`: figure 2 of Jiang et al. 2024."""

from __future__ import annotations

from overfit_cli.figure import Figure, FigureOptions, drawn_by

_GRID = FigureOptions(x="snr", y="n", value="test_loss")

FIGURES = {
    figure.name: figure
    for figure in (
        Figure(
            name="heatmap",
            title="Test loss over samples and signal-to-noise ratio",
            source="Jiang et al. 2024, figure 2c",
            reads="cells",
            options=_GRID,
            accepts=frozenset({"x", "y", "value", "threshold", "law", "by"}),
            draw=drawn_by("overfit_cli.figures.heatmap:draw_heatmap"),
        ),
        Figure(
            name="images",
            title="Training images at the least and the greatest signal-to-noise ratio",
            source="Jiang et al. 2024, figures 2a and 2b",
            reads="cells",
            options=FigureOptions(),
            accepts=frozenset(),
            draw=drawn_by("overfit_cli.studies.benign_vit.images.samples_figure:draw_images"),
        ),
        Figure(
            name="curves",
            title="Training and test loss against gradient steps",
            source="",
            reads="trajectories",
            options=FigureOptions(),
            accepts=frozenset({"value", "threshold", "by"}),
            draw=drawn_by("overfit_cli.figures.curves:draw_curves"),
        ),
    )
}
