"""The figures of `benign-vit`: figures 1, 3 and 4 of Jiang et al. 2024, and our own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from overfit_cli.core.figure import (
    BOUNDARY,
    CURVES,
    CUTOFF,
    HEATMAP,
    Figure,
    FigureData,
    FigureOptions,
    by_name,
    drawn_by,
    fitted_by,
)
from overfit_cli.studies.benign_vit.theory.predictions import FIGURE_1_THRESHOLD, predicted_boundary


def predicted_curve(data: FigureData) -> str | None:
    """Return the curve on either side of which a regime is predicted; None where it varies."""
    strong_noise = data.cells["sigma_p_tilde"] / data.cells["sigma_p"]
    constants = np.unique(predicted_boundary(strong_noise, data.cells["tokens"]))
    return f"n * snr**2 = {constants[0]:.4g}" if len(constants) == 1 else None


_PANELS = "label_flip,epsilon,sigma_p_tilde,d"
_GRID = FigureOptions(x="snr", y="n", value="test_loss")
_CUT = replace(_GRID, threshold=FIGURE_1_THRESHOLD)

FIGURES = by_name(
    replace(
        HEATMAP,
        title="Test loss over samples and signal-to-noise ratio",
        source="Jiang et al. 2024, figure 1a",
        options=replace(_GRID, by=_PANELS),
        equation_of=predicted_curve,
    ),
    replace(
        CUTOFF,
        title="Test loss above and below the threshold",
        source="Jiang et al. 2024, figure 1b",
        options=replace(_CUT, by=_PANELS),
        equation_of=predicted_curve,
    ),
    replace(
        BOUNDARY,
        title="Where the test loss crosses the threshold, and the power law fitted to it",
        options=_CUT,
        equation_of=predicted_curve,
    ),
    Figure(
        name="dynamics",
        title="Attention, inner products and values against gradient steps",
        source="Jiang et al. 2024, figures 3 and 4",
        reads="trajectories",
        draw=drawn_by("overfit_cli.studies.benign_vit.figures.dynamics:draw_dynamics"),
        fits=fitted_by("overfit_cli.studies.benign_vit.figures.dynamics:has_dynamics"),
    ),
    Figure(
        name="scaling",
        title="Steps to fit against what the theorems' T depends on",
        source="Jiang et al. 2024, Theorems 4.1 and 4.2",
        reads="cells",
        draw=drawn_by("overfit_cli.studies.benign_vit.figures.scaling:draw_scaling"),
        fits=fitted_by("overfit_cli.studies.benign_vit.figures.scaling:has_step_powers"),
    ),
    Figure(
        name="dimension",
        title="The boundary's constant and exponent against the dimension",
        source="Jiang et al. 2024, Theorems 4.1 and 4.2, and figure 1b",
        reads="cells",
        options=FigureOptions(threshold=FIGURE_1_THRESHOLD),
        accepts=frozenset({"threshold"}),
        draw=drawn_by("overfit_cli.studies.benign_vit.figures.dimension:draw_dimension"),
        fits=fitted_by("overfit_cli.studies.benign_vit.figures.dimension:has_dimensions"),
    ),
    replace(CURVES, title="Training and test loss against gradient steps"),
)
