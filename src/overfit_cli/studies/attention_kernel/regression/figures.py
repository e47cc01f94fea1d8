"""The figures of `kernel-regression`: loss curves with what the theorems say, and step sizes."""

from __future__ import annotations

from dataclasses import replace

from overfit_cli.figure import FigureOptions, drawn_by
from overfit_cli.standard_figures import CURVES, LINES, by_name

_PANELS = "target,heads,value_gap,trained"
_LOSS_AND_BOUNDS = "train_loss,floor,bound_paper,bound_corrected"

FIGURES = by_name(
    replace(
        CURVES,
        title="Loss against steps at each kernel's best step size, with floors and bounds",
        options=FigureOptions(value=_LOSS_AND_BOUNDS, by=_PANELS),
        draw=drawn_by("overfit_cli.studies.attention_kernel.drawing:draw_best_curves"),
    ),
    replace(
        LINES,
        name="learning-rates",
        title="Final loss against the step size, for each kernel",
        options=FigureOptions(x="learning_rate", value="relative_loss", by=_PANELS),
        axes=0,
    ),
)
