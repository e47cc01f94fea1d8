"""Figures of score errors, and of samples beside their target."""

from __future__ import annotations

import matplotlib.axes
import numpy as np
import pandas as pd
from matplotlib.lines import Line2D

from overfit_cli.core.cells import Cells
from overfit_cli.core.errors import UserError
from overfit_cli.core.figure import FigureOptions
from overfit_cli.figures.axes import legend_below
from overfit_cli.figures.picture import Picture
from overfit_cli.figures.style import Legend
from overfit_cli.studies.softmax_network.diffusion.data import mixture
from overfit_cli.studies.softmax_network.diffusion.parameters import SoftmaxDiffusionParameters
from overfit_cli.studies.softmax_network.figures import (
    done_cells,
    draw_series,
    legend_of,
    letter_panels,
    looks_of,
    new_grid,
    say_how_averaged,
)
from overfit_cli.studies.softmax_network.paper import digit_components

LOOKS = looks_of(SoftmaxDiffusionParameters, "model")

_AXES = ("model", "n")
_ERRORS = {
    "score_error": r"$\Vert s - \nabla \log p_t \Vert^2$",
    "denoiser_error": r"weighted by $4\,\sinh^2 t$",
}
_LOSS = {"denoising_loss": r"$\Vert F - x(0) \Vert^2$, test points"}
_GRID = 80


def has_errors(data: Cells) -> bool:
    """Return whether nothing varies but the model and n, and a model isn't the truth itself."""
    return _only_models_vary(data) and bool((data.trained["model"] != "true").any())


def has_planes(data: Cells) -> bool:
    """Return whether nothing varies but the model and n, and points have two coordinates."""
    return _only_models_vary(data) and bool((data.trained["d"] > 1).all())


def draw_score(data: Cells, options: FigureOptions) -> Picture:
    """Draw errors against t at the largest n, and their means over t against n, for each model."""
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
    letter_panels(grid.flat)
    say_how_averaged(figure, cells)
    drawn = cells[cells[list(rows)].gt(0).any(axis=1)]
    legend_below(figure, legend_of(drawn, by="model", looks=LOOKS), columns=3)
    return figure


def draw_samples(data: Cells, options: FigureOptions) -> Picture:
    """Draw samples of each model, at the largest n and of one seed, from the worst to the best."""
    cells, steps = _cells_and_steps(data)
    if (cells["d"] < 2).any():
        raise UserError("Points have one coordinate here (d=1), and this figure requires two.")
    cells = cells[cells["n"] == cells["n"].max()]
    cells = cells[cells["seed"] == cells["seed"].min()].set_index("model", drop=False)
    cells = cells.sort_values("sliced_wasserstein", ascending=False)
    samples = steps[steps["sample_1"].notna()]
    across = min(len(cells), _ACROSS)
    rows = -(-len(cells) // across)
    figure = Picture(2.0 * across, 2.15 * rows + 0.7, least=1.5 * across)
    grid = figure.subplots(rows, across, sharex=True, sharey=True, squeeze=False)
    for spare in grid.flat[len(cells) :]:
        spare.remove()
    for axes, (model, cell) in zip(grid.flat, cells.iterrows(), strict=False):
        look = LOOKS[str(model)]
        points = samples[samples["key"] == cell["key"]]
        _draw_target(axes, cell)
        axes.plot(points["sample_1"], points["sample_2"], ".", color=look.colour, markersize=1.5)
        axes.set_aspect("equal")
        axes.set_title(f"{look.name}\ndistance {cell['sliced_wasserstein']:.3f}")
    letter_panels(grid.flat[: len(cells)])
    for axes in grid[:, 0]:
        axes.set_ylabel("second coordinate")
    for axes in grid.flat[max(0, len(cells) - across) : len(cells)]:
        axes.set_xlabel("first coordinate")
        axes.tick_params(labelbottom=True)
    _explain_samples(figure, cells.iloc[0])
    return figure


_ACROSS = 3


def _explain_samples(figure: Picture, cell: pd.Series) -> None:
    fresh = f"{cell['wasserstein_fresh']:.3f}"
    figure.facts.append(
        f"Samples at n = {cell['n']}, seed {cell['seed']}, from the worst to the best, with their "
        f"sliced Wasserstein distance to fresh draws; other fresh draws: {fresh}."
    )
    is_digits = cell["target"] == "digits"
    target = "all digits" if is_digits else "density of the target"
    grey = Line2D([], [], color="0.7", marker="." if is_digits else "s", linestyle="")
    coloured = Line2D([], [], color="C0", marker=".", linestyle="")
    legend: Legend = [(coloured, "samples, one seed"), (grey, target)]
    heading = f"distance: sliced Wasserstein to fresh draws; of fresh draws themselves {fresh}"
    legend_below(figure, legend, columns=2, heading=heading)


def _draw_target(axes: matplotlib.axes.Axes, cell: pd.Series) -> None:
    names = list(SoftmaxDiffusionParameters.model_fields)
    parameters = SoftmaxDiffusionParameters.model_validate(cell[names].to_dict())
    if parameters.target == "digits":
        points, _ = digit_components(parameters.d)
        axes.plot(points[:, 0], points[:, 1], ".", color="0.8", markersize=1.5)
        return
    target = mixture(parameters)
    flat = type(target)(target.means[:, :2], target.deviation)
    variance = flat.total_variance(np.array([parameters.first_time]))[0, 0]
    reach = parameters.radius + 4 * variance**0.5
    across = np.linspace(-reach, reach, _GRID)
    points = np.stack(np.meshgrid(across, across), axis=-1).reshape(-1, 2)
    density = flat.density(points, np.full(len(points), parameters.first_time))
    axes.contourf(across, across, density.reshape(_GRID, _GRID), 8, cmap="Greys", alpha=0.6)


def _cells_and_steps(data: Cells) -> tuple[pd.DataFrame, pd.DataFrame]:
    cells = done_cells(data, _AXES)
    if data.steps.empty:
        raise UserError("No steps were logged here; `overfit sweep softmax-scores` logs them.")
    return cells, data.steps.merge(cells[["key", "model", "n", "seed"]], on="key")


def _only_models_vary(data: Cells) -> bool:
    return set(data.varying()) <= set(_AXES)
