"""Figures of score errors, and of samples beside their target."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.axes
import numpy as np
import pandas as pd

from overfit_cli.core.errors import UserError
from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.study import FigureData
from overfit_cli.figures.labels import varying_parameters
from overfit_cli.figures.picture import Picture, new_panels, styled, title_panels
from overfit_cli.figures.style import PALETTE, legend_below
from overfit_cli.studies.softmax_network.diffusion.data import mixture
from overfit_cli.studies.softmax_network.diffusion.parameters import (
    MODEL_LABELS,
    SoftmaxDiffusionParameters,
)
from overfit_cli.studies.softmax_network.figures import (
    NETWORKS,
    Look,
    done_cells,
    draw_series,
    legend_of,
    new_grid,
    say_how_averaged,
)
from overfit_cli.studies.softmax_network.paper import digit_components

LOOKS: Mapping[str, Look] = {
    **NETWORKS,
    "posterior": Look(MODEL_LABELS["posterior"], PALETTE[3], "v"),
    "constant": Look("constant", PALETTE[7], "d"),
    "true": Look(MODEL_LABELS["true"], PALETTE[6], "P"),
}

_AXES = ("model", "n")
_ERRORS = {
    "score_error": r"$\Vert s - \nabla \log p_t \Vert^2$",
    "denoiser_error": r"weighted by $4\,\sinh^2 t$",
}
_LOSS = {"denoising_loss": r"$\Vert F - x(0) \Vert^2$, test points"}
_GRID = 80


def has_errors(data: FigureData) -> bool:
    """Return whether nothing varies but the model and n, and a model isn't the truth itself."""
    return _only_models_vary(data) and bool((data.cells["model"] != "true").any())


def has_planes(data: FigureData) -> bool:
    """Return whether nothing varies but the model and n, and points have two coordinates."""
    return _only_models_vary(data) and bool((data.cells["d"] > 1).all())


@styled
def draw_score(data: FigureData, options: FigureOptions) -> Picture:
    """Draw errors against t at the largest n, and their means over t against n, for each model.

    Rows are the two weightings; of digits, whose score isn't known, the loss on test points.

    Raises:
        UserError: if another parameter varies, no cell is done, no step was logged, or there is
            the true score alone.
    """
    cells, steps = _cells_and_steps(data)
    if (cells["model"] == "true").all():
        raise UserError("The true score has no error; a figure of errors takes another model too.")
    rows = _ERRORS if (cells["target"] == "mixture").all() else _LOSS
    several = cells["n"].nunique() > 1
    largest = cells["n"].max()
    at_times = steps[steps["time"].notna() & (steps["n"] == largest)]
    figure, grid = new_grid(len(rows), 1 + several, one_y=False)
    for axes, (value, label) in zip(grid, rows.items(), strict=True):
        draw_series(axes[0], at_times, "time", value, by="model", looks=LOOKS, marker=False)
        axes[0].set_ylabel(label)
        if several:
            draw_series(axes[1], cells, "n", value, by="model", looks=LOOKS)
    grid[0, 0].set_title(f"$n$ = {largest}")
    grid[-1, 0].set_xlabel("time $t$")
    if several:
        grid[0, 1].set_title("mean over $t$")
        grid[-1, 1].set_xlabel("training points $n$")
    say_how_averaged(figure, cells)
    drawn = cells[cells[list(rows)].gt(0).any(axis=1)]
    legend_below(figure, legend_of(drawn, by="model", looks=LOOKS), columns=3)
    return figure


@styled
def draw_samples(data: FigureData, options: FigureOptions) -> Picture:
    """Draw samples of each model, at the largest n and the first seed, over the target.

    In grey stands the density of x(T₀), or all digits. Two coordinates are drawn, the first ones.

    Raises:
        UserError: if another parameter varies, no cell is done, points have one coordinate, or no
            sample was logged.
    """
    cells, steps = _cells_and_steps(data)
    if (cells["d"] < 2).any():
        raise UserError("Points have one coordinate here (d=1), and this figure draws two.")
    cells = cells[cells["n"] == cells["n"].max()]
    cells = cells[cells["seed"] == cells["seed"].min()].set_index("model", drop=False)
    drawn = [model for model in LOOKS if model in cells.index]
    samples = steps[steps["sample_1"].notna()]
    figure, panels = new_panels(len(drawn), height=3.1)
    titles = []
    for axes, model in zip(panels, drawn, strict=True):
        drawn_samples = samples[samples["key"] == cells["key"][model]]
        _draw_target(axes, cells.loc[model])
        axes.plot(
            drawn_samples["sample_1"],
            drawn_samples["sample_2"],
            ".",
            color=LOOKS[model].colour,
            markersize=1.5,
        )
        axes.set_aspect("equal")
        distance = float(cells["sliced_wasserstein"][model])
        titles.append(f"{LOOKS[model].name}: {distance:.3f}")
    first = cells.iloc[0]
    title_panels(panels, titles)
    figure.facts.append(
        f"Samples at n = {first['n']}, seed {first['seed']}, with their sliced Wasserstein distance"
        f" to fresh draws; other fresh draws: {first['wasserstein_fresh']:.3f}."
    )
    figure.supxlabel("first coordinate", fontsize=8)
    figure.supylabel("second coordinate", fontsize=8)
    return figure


def _draw_target(axes: matplotlib.axes.Axes, cell: pd.Series) -> None:
    """Draw in grey what samples should look like."""
    names = list(SoftmaxDiffusionParameters.model_fields)
    settings = SoftmaxDiffusionParameters.model_validate(cell[names].to_dict())
    if settings.target == "digits":
        points, _ = digit_components(settings.d)
        axes.plot(points[:, 0], points[:, 1], ".", color="0.8", markersize=1.5)
        return
    target = mixture(settings)
    flat = type(target)(target.means[:, :2], target.deviation)
    reach = settings.radius + 4 * flat.total_variance(np.array([settings.first_time]))[0, 0] ** 0.5
    across = np.linspace(-reach, reach, _GRID)
    points = np.stack(np.meshgrid(across, across), axis=-1).reshape(-1, 2)
    density = flat.density(points, np.full(len(points), settings.first_time))
    axes.contourf(across, across, density.reshape(_GRID, _GRID), 8, cmap="Greys", alpha=0.6)


def _cells_and_steps(data: FigureData) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The cells that are done, and what was logged of them."""
    cells = done_cells(data, _AXES)
    if data.trajectories.empty:
        raise UserError("No steps were logged here; `overfit sweep softmax-scores` logs them.")
    return cells, data.trajectories.merge(cells[["key", "model", "n", "seed"]], on="key")


def _only_models_vary(data: FigureData) -> bool:
    return set(varying_parameters(data)) <= set(_AXES)
