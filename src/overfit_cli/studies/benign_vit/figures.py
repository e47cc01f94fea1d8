"""The figures of `benign-vit`: figures 1, 3 and 4 of Jiang et al. 2024, and our own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from overfit_cli.figure import Figure, FigureData, FigureOptions, drawn_by, fitted_by
from overfit_cli.studies.benign_vit.theory import (
    FIGURE_1_THRESHOLD,
    predicted_boundary,
)


def law_of(data: FigureData) -> str | None:
    """Return the curve on either side of which a regime is predicted; None where it varies."""
    strong_noise = data.cells["sigma_p_tilde"] / data.cells["sigma_p"]
    constants = np.unique(predicted_boundary(strong_noise, data.cells["tokens"]))
    return f"n * snr**2 = {constants[0]:.4g}" if len(constants) == 1 else None


_PANELS = "label_flip,epsilon,sigma_p_tilde,d"
_GRID = FigureOptions(x="snr", y="n", value="test_loss", by=_PANELS)
_CUT = FigureOptions(x="snr", y="n", value="test_loss", threshold=FIGURE_1_THRESHOLD)
_EVERY = frozenset({"x", "y", "value", "threshold", "law"})

FIGURES = {
    figure.name: figure
    for figure in (
        Figure(
            name="heatmap",
            title="Test loss over samples and signal-to-noise ratio",
            source="Jiang et al. 2024, figure 1a",
            reads="cells",
            options=_GRID,
            accepts=_EVERY | {"by"},
            draw=drawn_by("overfit_cli.figures.heatmap:draw_heatmap"),
            law_of=law_of,
        ),
        Figure(
            name="cutoff",
            title="Test loss above and below the threshold",
            source="Jiang et al. 2024, figure 1b",
            reads="cells",
            options=replace(_CUT, by=_PANELS),
            accepts=_EVERY | {"by"},
            draw=drawn_by("overfit_cli.figures.heatmap:draw_heatmap"),
            law_of=law_of,
        ),
        Figure(
            name="boundary",
            title="Where the test loss crosses the threshold, and the law fitted to it",
            source="",
            reads="cells",
            options=_CUT,
            accepts=_EVERY,
            draw=drawn_by("overfit_cli.figures.boundary:draw_boundary"),
            law_of=law_of,
        ),
        Figure(
            name="dynamics",
            title="Attention, inner products and values against gradient steps",
            source="Jiang et al. 2024, figures 3 and 4",
            reads="trajectories",
            options=FigureOptions(),
            accepts=frozenset(),
            draw=drawn_by("overfit_cli.studies.benign_vit.dynamics_figure:draw_dynamics"),
            fits=fitted_by("overfit_cli.studies.benign_vit.dynamics_figure:has_dynamics"),
        ),
        Figure(
            name="scaling",
            title="Steps to fit against what the theorems' T depends on",
            source="Jiang et al. 2024, Theorems 4.1 and 4.2",
            reads="cells",
            options=FigureOptions(),
            accepts=frozenset(),
            draw=drawn_by("overfit_cli.studies.benign_vit.scaling_figure:draw_scaling"),
            fits=fitted_by("overfit_cli.studies.benign_vit.scaling_figure:has_laws"),
        ),
        Figure(
            name="dimension",
            title="The boundary's constant and exponent against the dimension",
            source="Jiang et al. 2024, Theorems 4.1 and 4.2, and figure 1b",
            reads="cells",
            options=FigureOptions(threshold=FIGURE_1_THRESHOLD),
            accepts=frozenset({"threshold"}),
            draw=drawn_by("overfit_cli.studies.benign_vit.dimension_figure:draw_dimension"),
            fits=fitted_by("overfit_cli.studies.benign_vit.dimension_figure:has_dimensions"),
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
