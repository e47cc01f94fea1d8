"""The figures of step sizes: curves of each setting at its best one, and differences by seed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from matplotlib.lines import Line2D

from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.study import FigureData
from overfit_cli.figures.best_step_sizes import RATE, at_best_step_sizes
from overfit_cli.figures.curve_data import CurveSet, gather_curves
from overfit_cli.figures.curve_scale import ROUND_OFF, curve_scale
from overfit_cli.figures.curves import (
    curve_looks,
    curves_legend,
    draw_curve,
    draw_panels,
    logged_columns,
)
from overfit_cli.figures.inputs import BAND, averaging
from overfit_cli.figures.labels import (
    axis_label,
    label_with_note,
    opening,
    short_settings,
    split_settings,
    symbols_in_words,
    varying_parameters,
)
from overfit_cli.figures.lines import draw_lines
from overfit_cli.figures.panels import panels
from overfit_cli.figures.picture import Picture, new_panels, styled, title_panels
from overfit_cli.figures.style import HIGH, PALETTE, THRESHOLD, legend_below
from overfit_cli.stats.bands import MEAN

GUESS = {"loss": math.log(2), "accuracy": 0.5}
"""What guessing one of two classes gives, by the last word of a column's name."""


@styled
def draw_best_curves(data: FigureData, options: FigureOptions) -> Picture:
    """Draw logged columns against the step, each setting at its best step size.

    The caption tells it, and how it is chosen: see `at_best_step_sizes`. Panels of the step size
    show all of them.
    """
    if options.by == RATE:
        return draw_panels(panels(data, options.by), options)
    best, words = at_best_step_sizes(data, logged_columns(data, options.value)[0])
    figure = draw_panels(panels(best, options.by), options, least_share=ROUND_OFF)
    told = [name for name in varying_parameters(data) if name != RATE]
    figure.facts += [*symbols_in_words(data.study, told), *words]
    return figure


@styled
def draw_learning(data: FigureData, options: FigureOptions) -> Picture:
    """Draw a classifier's logged columns side by side, each setting at its best step size.

    Below them stand the differences to the first setting, seed by seed. With panels or several
    runs, or another statistic, it draws as `draw_best_curves`.
    """
    if any((options.theory, options.by, options.mean, options.band, data.runs)):
        return draw_best_curves(data, options)
    columns = logged_columns(data, options.value)
    best, words = at_best_step_sizes(data, columns[0])
    over_seeds = averaging(options, BAND)
    gathered = gather_curves([best], columns, most_single=len(PALETTE), over_seeds=over_seeds)
    less, first = _less_first(best, columns)
    differences = None
    if less is not None:
        differences = gather_curves([less], columns, most_single=len(PALETTE), over_seeds=MEAN)
    figure = _draw_columns(best, columns, gathered, differences, first, options)
    figure.facts += words
    return figure


def _less_first(data: FigureData, columns: Sequence[str]) -> tuple[FigureData | None, str]:
    """Each setting's columns less those of the first one, seed by seed, and the first's name.

    There is none without a second setting, or with fewer than three seeds that all have.
    """
    names = varying_parameters(data)
    [(values, first), *others] = split_settings(data, names)
    seeds = set(first["seed"]).intersection(*(cells["seed"] for _, cells in others))
    if not others or len(seeds) < BAND or first["seed"].duplicated().any():
        return None, ""
    cells = data.cells[data.cells["seed"].isin(seeds)]
    steps = data.trajectories.merge(cells[["key", "seed"]], on="key")
    subtrahend = steps.loc[steps["key"].isin(first["key"]), ["seed", "step", *columns]]
    pairs = steps.merge(subtrahend, on=["seed", "step"], suffixes=("", "_of_first"))
    lessened = {name: pairs[name] - pairs[f"{name}_of_first"] for name in columns}
    logged = pairs[["key", "step"]].assign(**lessened)
    less = replace(data, cells=cells, trajectories=logged)
    return less, short_settings(data.study, values)


def _draw_columns(
    data: FigureData,
    columns: Sequence[str],
    gathered: CurveSet,
    differences: CurveSet | None,
    first: str,
    options: FigureOptions,
) -> Picture:
    study = data.study
    [curves], differing = gathered.curves, [] if differences is None else differences.curves[0]
    looks = curve_looks(study, curves)
    rows = 2 if differing else 1
    figure, all_axes = new_panels(rows * len(columns), height=2.6, share_y=False)
    for axes, name in zip(all_axes, columns, strict=False):
        curve_scale(curves, [name], [], options).dress(axes)
        for curve in curves:
            draw_curve(axes, curve, {name: ""}, looks, 0.0, thin=False, banded=rows == 1)
        if (guess := _guess(name)) is not None:
            axes.axhline(guess, **THRESHOLD)
        note = gathered.label if rows == 1 else gathered.label.partition(",")[0]
        axes.set_ylabel(label_with_note(axis_label(study, name, logged=True), note, HIGH))
    of_first = f" minus {first}'s" if first.isalpha() else f"\nminus that of {first}"
    for axes, name in zip(all_axes[len(columns) :], columns, strict=False):
        for curve in differing:
            draw_curve(axes, curve, {name: ""}, looks, 0.0, thin=False)
        note = differences.label if differences else ""
        difference = f"{axis_label(study, name, logged=True)}{of_first}"
        axes.set_ylabel(label_with_note(difference, note, HIGH))
    for axes in all_axes:
        place = axes.get_subplotspec()
        axes.set_xlabel(study.step if place is None or place.is_last_row() else "")
    title_panels(all_axes, [""] * len(all_axes))
    labels = ", ".join(axis_label(study, name, logged=True) for name in columns)
    kind = gathered.kind if rows == 1 else gathered.kind.partition(",")[0]
    figure.facts.append(f"{opening(labels)} against {study.step}: {kind}.")
    if differences is not None:
        figure.facts.append(f"Below, minus that of {first} seed by seed: {differences.kind}.")
    legend = curves_legend(study, columns[:1], looks, curves)
    legend.append((Line2D([], [], **THRESHOLD), "guessing"))
    legend_below(figure, legend, 2 * len(columns), gathered.heading)
    return figure


def _guess(column: str) -> float | None:
    return GUESS.get(column.rpartition("_")[2])


@styled
def draw_learning_rates(data: FigureData, options: FigureOptions) -> Picture:
    """Draw lines as `draw_lines`, with what guessing one of two classes gives where it is near."""
    figure = draw_lines(data, options)
    guess = _guess(options.value or data.study.headline)
    if guess is None or data.less:
        return figure
    for axes in figure.axes:
        low, high = axes.get_ylim()
        if not 1.4 * low - 0.4 * high < guess < 1.4 * high - 0.4 * low:
            continue
        margin = 0.08 * (high - low)
        axes.set_ylim(min(low, guess - margin), max(high, guess + margin))
        axes.axhline(guess, **THRESHOLD)
        clear: dict[str, Any] = {"xytext": (0, 2), "textcoords": "offset points"}  # of descenders
        across = axes.get_yaxis_transform()
        axes.annotate(
            "guessing", (0.01, guess), **clear, xycoords=across, size="small", va="bottom"
        )
    return figure
