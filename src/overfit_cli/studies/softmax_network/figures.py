"""The figures `lambda`, steps and widths against eigenvalues, and `samples` of each denoiser."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from overfit_cli.core.cells import Cells
from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.text import plural
from overfit_cli.figures import labels, style
from overfit_cli.figures.axes import legend_below, log_ticks
from overfit_cli.figures.picture import Picture, label_outer, new_panels, title_panels
from overfit_cli.studies.softmax_network.claims.table1 import (
    SETTING,
    sufficient_widths,
    table1_steps,
    widest,
)
from overfit_cli.studies.softmax_network.data import digit_components
from overfit_cli.studies.softmax_network.diffusion.data import mixture
from overfit_cli.studies.softmax_network.diffusion.study import SoftmaxDiffusionParameters

T, MARKS = "steps_to_epsilon", {"sphere": "o", "ball": "s", "digits": "^"}


def has_lambda(data: Cells) -> bool:
    """Return whether several settings of networks and their data took steps."""
    trained = data.trained[data.trained[T] > 0]
    return bool(trained.groupby(SETTING).ngroups >= 6)


def draw_lambda(data: Cells, options: FigureOptions) -> Picture:
    """Draw steps and widths against eigenvalues, a point for each activation, data, d and n.

    At the paper's step size they are T and T λ²/(n² log(n/ε)) against λ; at 1/(m λ_max) they are T
    of the widest networks against κ, and the sufficient width against λ. A dotted line has the
    power that is stated, and goes through the middle of the points.
    """
    wide = widest(data.trained)
    wide = wide.assign(over=wide[T].astype(float) / table1_steps(wide))
    if (wide["step_rule"] == "paper").all():
        over = r"$T\lambda^2/(n^2\log(n/\epsilon))$"
        sides = [("lambda_start", T, -2, "steps $T$"), ("lambda_start", "over", 0, over)]
    else:
        widths = sufficient_widths(data.trained)[[*SETTING, "seed", "width"]]
        wide = wide.merge(widths, on=[*SETTING, "seed"])
        sides = [("kappa", T, 1, "steps $T$"), ("lambda_start", "width", -2, "sufficient $m$")]
    figure = Picture(style.PAGE, 2.8, least=4.5)
    both = figure.subplots(1, 2).tolist()
    ends = data.trained["m"].min(), data.trained["m"].max()
    for axes, (x, y, power, label) in zip(both, sides, strict=True):
        medians = wide.groupby(SETTING)[[x, y]].quantile(interpolation="lower").astype(float)
        limits = ends if y == "width" else (0.0, np.inf)
        _draw_points(axes, data, medians.dropna().rename(columns={x: "x", y: "y"}), limits, power)
        axes.set(xlabel=labels.axis_label(data.schema, x), ylabel=label)
    title_panels(both, ["", ""])
    seeds = plural(data.trained["seed"].nunique(), "seed")
    figure.facts.append(
        f"A point for each activation, data, d and n: medians of {seeds}, at m = {ends[1]}. "
        f"Dotted: powers of {sides[0][2]} and {sides[1][2]}."
    )
    if y == "width":
        below, above = ((wide["width"] == end).sum() for end in (0, np.inf))
        figure.facts.append(
            f"Of {len(wide)} widths {below} lie below the sweep and {above} above it: open markers "
            "at its ends."
        )
    legend: style.Legend = []
    for values, _ in data.settings(["activation"]):
        line = Line2D([], [], color=_colour(data, values["activation"]))
        legend.append((line, labels.short_settings(data.schema, values)))
    shapes = [name for name in MARKS if (data.trained["data"] == name).any()]
    grey: dict[str, Any] = {"color": "0.4", "linestyle": ""}
    legend += [(Line2D([], [], marker=MARKS[name], **grey), name) for name in shapes]
    legend_below(figure, legend, columns=6)
    return figure


def _colour(data: Cells, activation: Any) -> Any:
    return style.value_colours(data.study, "activation", [activation])[0]


def _draw_points(
    axes: Axes, data: Cells, medians: pd.DataFrame, ends: tuple[float, float], power: float
) -> None:
    for (activation, kind), rows in medians.groupby(level=["activation", "data"]):
        look: dict[str, Any] = {"marker": MARKS[str(kind)], "color": _colour(data, activation)}
        inside = rows["y"].between(*ends)
        for shown, face in ((inside, look["color"]), (~inside, "none")):
            y = rows["y"][shown].clip(*ends)
            axes.plot(rows["x"][shown], y, linestyle="", mfc=face, markersize=3, **look)
    axes.set(xscale="log", yscale="log")
    axes.set_ylim(axes.get_ylim())
    within = medians[medians["y"].between(*ends)]
    centre, x = np.exp(np.log(within).mean()), np.sort(within["x"])[[0, -1]]
    axes.plot(x, centre["y"] * (x / centre["x"]) ** power, **style.BOUND | {"linestyle": ":"})
    for axis, limits in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        log_ticks(axis, *limits)


def has_samples(data: Cells) -> bool:
    """Return whether points have two coordinates, and nothing varies but the model and n."""
    return set(data.varying()) <= {"model", "n"} and bool((data.trained["d"] > 1).all())


def draw_samples(data: Cells, options: FigureOptions) -> Picture:
    """Draw samples of each model, at the largest n and of one seed, from the worst to the best."""
    cells = data.where("n is largest", "seed is smallest").trained
    cells = cells.sort_values("sliced_wasserstein", ascending=False)
    figure, panels = new_panels(len(cells), height=2.6)
    samples = data.steps.dropna(subset=["sample_1"]).set_index("key")
    for axes, (_, cell) in zip(panels, cells.iterrows(), strict=True):
        [colour] = style.value_colours(data.study, "model", [cell["model"]])
        _draw_target(axes, cell)
        points = samples.loc[cell["key"]]
        axes.plot(points["sample_1"], points["sample_2"], ".", color=colour, markersize=1.5)
        axes.set(aspect="equal", xlabel="first coordinate", ylabel="second coordinate")
    names = [labels.value_label(data.schema, "model", name) for name in cells["model"]]
    distances = cells["sliced_wasserstein"]
    title_panels(panels, [f"{n}: {far:.3f}" for n, far in zip(names, distances, strict=True)])
    label_outer(panels)
    first = cells.iloc[0]
    figure.facts.append(
        f"Samples at n = {first['n']}, seed {first['seed']}, over all digits or the target's "
        "density, with their sliced Wasserstein distance to fresh draws; other fresh draws: "
        f"{first['wasserstein_fresh']:.3f}."
    )
    return figure


def _draw_target(axes: Axes, cell: pd.Series[Any]) -> None:
    p = SoftmaxDiffusionParameters(**cell[list(SoftmaxDiffusionParameters.model_fields)])
    if p.target == "digits":
        axes.plot(*digit_components(p.d)[0][:, :2].T, ".", color="0.8", markersize=1.5)
        return
    flat, time = mixture(p.model_copy(update={"d": 2})), np.array([p.first_time])
    reach = p.radius + 4 * flat.total_variance(time)[0, 0] ** 0.5
    across = np.linspace(-reach, reach, 80)
    points = np.stack(np.meshgrid(across, across), axis=-1).reshape(-1, 2)  # (6400, 2)
    density = flat.density(points, np.repeat(time, len(points)))  # (6400,)
    axes.contourf(across, across, density.reshape(80, 80), 8, cmap="Greys", alpha=0.6)
