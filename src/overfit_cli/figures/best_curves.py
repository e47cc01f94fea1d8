"""The figures of step sizes: curves of each setting at its best one, and differences by seed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from matplotlib.lines import Line2D

from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.study import FigureData
from overfit_cli.figures.curve_data import CurveSet, gather_curves
from overfit_cli.figures.curve_scale import curve_scale
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
    parameter_values,
    short_settings,
    split_settings,
    varying_parameters,
)
from overfit_cli.figures.lines import draw_lines
from overfit_cli.figures.panels import Panel, panels
from overfit_cli.figures.picture import Picture, new_panels, styled, title_panels
from overfit_cli.figures.style import HIGH, PALETTE, THRESHOLD, legend_below
from overfit_cli.stats.bands import MEAN
from overfit_cli.stats.pairs import best_of_sweep

RATE = "learning_rate"

GUESS = {"loss": math.log(2), "accuracy": 0.5}
"""What guessing one of two classes gives, by the last word of a column's name."""


@styled
def draw_best_curves(data: FigureData, options: FigureOptions) -> Picture:
    """Draw logged columns against the step, each setting at its best step size.

    The best step size has the lowest mean of the study's headline over seeds, among those with the
    fewest failed seeds; the caption names it.
    """
    best = [_best_step_sizes(part) for part in panels(data, options.by)]
    figure = draw_panels([panel for panel, _ in best], options)
    figure.facts += [words for _, words in best if words]
    return figure


def _best_step_sizes(part: Panel) -> tuple[Panel, str]:
    """The part's cells at their best step sizes, and a sentence with these."""
    values = parameter_values(part.data)
    if len(values[RATE]) < 2:
        return part, ""
    grouping = [name for name in varying_parameters(part.data) if name != RATE]
    cells = best_of_sweep(part.data.cells, RATE, grouping, part.data.study.headline)
    relabelled = cells.assign(**{RATE: cells[RATE].iloc[0]})
    planned = part.data.planned.iloc[:0]
    words = _best_sentence(replace(part.data, cells=cells), grouping)
    sentence = f"{words.rstrip('.')} ({part.title})." if part.title else words
    return Panel(part.title, replace(part.data, cells=relabelled, planned=planned)), sentence


def _best_sentence(data: FigureData, grouping: list[str]) -> str:
    choices = [
        f"{cells[RATE].iloc[0]:g}" + (f" for {text}" if text else "")
        for values, cells in split_settings(data, grouping)
        for text in [short_settings(data.study, values)]
    ]
    return f"Best step size{'s' if len(choices) > 1 else ''}: {', '.join(choices)}."


@styled
def draw_learning(data: FigureData, options: FigureOptions) -> Picture:
    """Draw a classifier's logged columns side by side, each setting at its best step size.

    Below them stand the differences to the first setting, seed by seed. With panels or several
    runs, or another statistic, it draws as `draw_best_curves`.
    """
    if any((options.theory, options.by, options.mean, options.band, data.runs)):
        return draw_best_curves(data, options)
    panel, words = _best_step_sizes(Panel("", data))
    columns = logged_columns(panel.data, options.value)
    over_seeds = averaging(options, BAND)
    gathered = gather_curves([panel.data], columns, most_single=len(PALETTE), over_seeds=over_seeds)
    less, first = _less_first(panel.data, columns)
    differences = None
    if less is not None:
        differences = gather_curves([less], columns, most_single=len(PALETTE), over_seeds=MEAN)
    figure = _draw_columns(panel.data, columns, gathered, differences, first, options)
    figure.facts += [words] if words else []
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
    """Draw a panel for each column, with the medians' bands unless differences stand below."""
    study = data.study
    [curves], differing = gathered.curves, [] if differences is None else differences.curves[0]
    looks = curve_looks(study, curves)
    rows = 2 if differing else 1
    figure, all_axes = new_panels(rows * len(columns), height=2.6, share_y=False)
    for axes, name in zip(all_axes, columns, strict=False):
        curve_scale([curve.mean for curve in curves], [name], [], options).dress(axes)
        for curve in curves:
            draw_curve(axes, curve, [name], looks, 0.0, thin=False, banded=rows == 1)
        if (guess := _guess(name)) is not None:
            axes.axhline(guess, **THRESHOLD)
        note = gathered.label if rows == 1 else gathered.label.partition(",")[0]
        axes.set_ylabel(label_with_note(axis_label(study, name, logged=True), note, HIGH))
    for axes, name in zip(all_axes[len(columns) :], columns, strict=False):
        for curve in differing:
            draw_curve(axes, curve, [name], looks, 0.0, thin=False)
        note = differences.label if differences else ""
        axes.set_ylabel(label_with_note(f"less that of {first}", note, HIGH))
    for axes in all_axes:
        place = axes.get_subplotspec()
        axes.set_xlabel(study.step if place is None or place.is_last_row() else "")
    title_panels(all_axes, [""] * len(all_axes))
    labels = ", ".join(axis_label(study, name, logged=True) for name in columns)
    kind = gathered.kind if rows == 1 else gathered.kind.partition(",")[0]
    figure.facts.append(f"{opening(labels)} against {study.step}: {kind}.")
    if differences is not None:
        figure.facts.append(f"Below, less that of {first} seed by seed: {differences.kind}.")
    legend = curves_legend(study, columns[:1], looks, curves)
    legend.append((Line2D([], [], **THRESHOLD), "guessing"))
    legend_below(figure, legend, 2 * len(columns), gathered.heading)
    return figure


def _guess(column: str) -> float | None:
    """What guessing one of two classes gives; None of another column."""
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
        above = {"size": "small", "va": "bottom"}
        axes.text(0.01, guess, "guessing", above, transform=axes.get_yaxis_transform())
    return figure
