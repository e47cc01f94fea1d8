"""The figures of `benign-vit-images`: figure 2 of Jiang et al. 2024."""

from __future__ import annotations

from dataclasses import replace

from overfit_cli.figure import Figure, FigureOptions, drawn_by
from overfit_cli.standard_figures import CURVES, HEATMAP, by_name

FIGURES = by_name(
    replace(
        HEATMAP,
        title="Test loss over samples and signal-to-noise ratio",
        source="Jiang et al. 2024, figure 2c",
        options=FigureOptions(x="snr", y="n", value="test_loss"),
    ),
    Figure(
        name="images",
        title="Training images at the least and the greatest signal-to-noise ratio",
        source="Jiang et al. 2024, figures 2a and 2b",
        reads="cells",
        draw=drawn_by("overfit_cli.studies.benign_vit.images.samples_figure:draw_images"),
    ),
    replace(CURVES, title="Training and test loss against gradient steps"),
)
