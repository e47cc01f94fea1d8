"""The figures `curves` and `best-curves`: logged steps, by cell or as means over seeds.

Columns that span many decades have means of their logarithms: a plain mean is its largest value's.
`best-curves` shows each setting at the step size that is best for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import matplotlib.axes
import numpy as np
import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from matplotlib.typing import ColorType, LineStyleType

from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.study import AnyStudy, FigureData
from overfit_cli.core.text import BadValue, UserError, nearest, plural
from overfit_cli.figures.inputs import checked_scale, checked_threshold, is_log, value_is_log
from overfit_cli.figures.labels import (
    axis_label,
    heading,
    parameter_values,
    plain,
    short_settings,
    split_by,
    varying_parameters,
    wrapped,
)
from overfit_cli.figures.panels import Panel, panels, panels_for_lines
from overfit_cli.figures.picture import Picture, new_panels, styled, title_panels
from overfit_cli.figures.style import (
    HIGH,
    PALETTE,
    THRESHOLD,
    Legend,
    colours_of_map,
    legend_below,
    log_ticks,
    named_of,
)
from overfit_cli.stats.pairs import best_of_sweep

WIDE_SPAN = 1e6
"""The factor from which on a mean is geometric."""


def spans_widely(numbers: pd.Series[float]) -> bool:
    """Whether numbers, none negative, span more than a factor of a million; zeros don't count."""
    finite = numbers[np.isfinite(numbers)]
    positive = finite[finite > 0]
    if positive.empty or finite.min() < 0:
        return False
    return bool(positive.max() / positive.min() > WIDE_SPAN)


def logarithms(numbers: pd.Series[float]) -> pd.Series[float]:
    """Return the logarithms of one setting's numbers; nan everywhere where none is positive.

    Zeros, where a loss is down to nothing, count as the setting's smallest positive number.
    """
    positive = numbers[numbers > 0]
    if positive.empty:
        return numbers * np.nan
    return numbers.clip(lower=positive.min()).map(np.log)


BAND = 3
"""Seeds from which on a setting is a mean with a band."""

Middle = Literal["mean", "geometric mean", "median"]
"""What stands for all seeds of a setting."""


@dataclass(frozen=True)
class Curve:
    """One setting of the parameters.

    Attributes:
        text: the values that tell it from the other curves; empty where it is the only one.
        mean: the middle over seeds: one row per step (the index), one column per logged column.
        low, high: of the same shape: a standard deviation below and above a mean, or the quartiles
            beside a median; for a single cell they say nothing.
    """

    text: str
    mean: pd.DataFrame
    low: pd.DataFrame
    high: pd.DataFrame


@dataclass(frozen=True)
class Gathered:
    """Curves, and what holds for all of them.

    Attributes:
        curves: of each part.
        kind: what a curve and its band are.
        heading: of a legend: the parameters whose values are words in the curves' texts.
    """

    curves: list[list[Curve]]
    kind: str
    heading: str


def gather_curves(
    parts: Sequence[FigureData],
    columns: list[str],
    *,
    few: int,
    middle: Middle = "mean",
    each_seed: bool = False,
) -> Gathered:
    """Return each part's curves in the order of their parameters.

    Args:
        parts: with logged steps; a part with no number to draw has no curve.
        columns: the logged columns to gather.
        few: where every part has up to so many cells, and no setting three seeds, each is a curve;
            else they are averaged over seeds, without those that failed, as far as all of a
            setting's cells go; between its logged steps a cell is taken as straight.
        middle: how: for a geometric mean the deviation is that of the logarithm, too.
        each_seed: whether each cell is a curve in any case, called as the others of its setting.

    Raises:
        UserError: if there is no number to draw in any part.
    """
    parts = [_logged_only(part) for part in parts]
    everything = pd.concat([part.cells for part in parts])
    varying = {name for part in parts for name in varying_parameters(part)}
    names = [name for name in parameter_values(parts[0]) if name in varying]
    seeds = everything.groupby(["study", *names])["seed"].nunique()
    averaged = not each_seed and (
        seeds.max() >= BAND or any(len(part.cells) > few for part in parts)
    )
    if averaged:
        parts = [replace(part, cells=part.cells[part.cells["status"] == "done"]) for part in parts]
    elif everything["seed"].nunique() > 1:
        names = [*names, "seed"]
    shown = [name for name in names if not (each_seed and name == "seed")]
    found = [_curves(part, names, shown, columns, middle) for part in parts]
    if not any(found):
        raise BadValue("value", columns[0], "no cell that is done has a number logged there.")
    several = each_seed and seeds.max() > 1
    kind = "a line for each seed" if several else _in_words(everything, averaged, middle)
    return Gathered(found, kind, heading(parts[0].study, shown))


def _logged_only(part: FigureData) -> FigureData:
    """The cells with logged steps; what they don't vary, a plan doesn't either."""
    cells = part.cells[part.cells["key"].isin(part.trajectories["key"])]
    return replace(part, cells=cells, planned=part.planned.iloc[:0])


def _in_words(cells: pd.DataFrame, averaged: bool, middle: Middle) -> str:
    """What a curve is."""
    if not averaged:
        return "a single cell" if len(cells) == 1 else "single cells"
    done = cells["status"] == "done"
    band = "the middle half" if middle == "median" else "one standard deviation"
    seeds = cells.loc[done, "seed"].nunique()
    failed = int((~done).sum())
    left_out = f"; {plural(failed, 'failed cell')} left out" if failed else ""
    if seeds == 1:
        return f"one seed{left_out}"
    return f"{middle} of {seeds} seeds, band of {band}{left_out}"


def _curves(
    part: FigureData, names: list[str], shown: list[str], columns: list[str], middle: Middle
) -> list[Curve]:
    """A curve for each setting of the parameters `names`, of which some are told."""
    steps = part.trajectories.merge(part.cells[["key", "status"]], on="key")
    steps[columns] = steps[columns].astype(np.float64).replace([np.inf, -np.inf], np.nan)
    if not steps[columns].notna().any(axis=None):
        return []
    found = []
    for values, cells in split_by(part, names):
        text = short_settings(part.study, {name: values[name] for name in shown})
        of_setting = steps[steps["key"].isin(cells["key"])]
        found.append(_curve(text, of_setting, columns, middle))
    return found


def _curve(text: str, steps: pd.DataFrame, columns: list[str], middle: Middle) -> Curve:
    if (steps["status"] == "failed").all():
        text = f"{text} (failed)".strip()
    logs = middle == "geometric mean"
    if logs:
        steps = steps.assign(**{name: logarithms(steps[name]) for name in columns})
    found = {name: _summary(_by_cell(steps, name), middle) for name in columns}
    ends = [pd.DataFrame({name: one[place] for name, one in found.items()}) for place in range(3)]
    return Curve(text, *(end.map(np.exp) if logs else end for end in ends))


def _summary(table: pd.DataFrame, middle: Middle) -> list[pd.Series[float]]:
    """The middle over the cells of each step, and both ends of its band."""
    if middle == "median":
        return [table.quantile(share, axis=1) for share in (0.5, 0.25, 0.75)]
    mean, deviation = table.mean(axis=1), table.std(axis=1)
    return [mean, mean - deviation, mean + deviation]


def _by_cell(steps: pd.DataFrame, column: str) -> pd.DataFrame:
    """One row per step, one column per cell, as far as all cells that have numbers go.

    Cells needn't be logged at the same steps: what is missing between two is interpolated. What
    was logged and is no number stays none.
    """
    table = steps.pivot(index="step", columns="key", values=column).dropna(axis=1, how="all")
    logged = steps.pivot(index="step", columns="key", values="status")[table.columns].notna()
    between = table.interpolate(method="index", limit_area="inside")
    return table.where(logged, between).dropna()


DASHES: tuple[LineStyleType, ...] = ("-", "--", ":", "-.")


@styled
def draw_curves(data: FigureData, options: FigureOptions) -> Picture:
    """Draw logged columns against the step, a panel for each value of the parameter `by`.

    The columns are `options.value`, with commas between; by default the study's losses
    (`..._loss`), its headline, or what is logged first. Up to eight cells, with fewer than three
    seeds of a setting, are a curve each. More are averaged over seeds, with a band of one standard
    deviation, up to the last step that all seeds of a curve have reached, unless the user wants
    each seed's own; means are geometric where the column spans a factor of a million. More settings
    than colours get panels, if those of one parameter suffice, else shades of the colour map.

    Raises:
        UserError: if nothing was logged, a column or `by` is unknown, or the threshold isn't
            finite.
    """
    chosen = _columns(data, options.value)
    data = _with_rows_of(data, chosen)
    by = options.by or panels_for_lines(data, varying_parameters(data), len(PALETTE))
    return draw_panels(panels(data, by), options)


def draw_panels(parts: Sequence[Panel], options: FigureOptions) -> Picture:
    """Draw curves as `draw_curves` does, in panels that are cut already; call it `styled`."""
    study = parts[0].data.study
    columns = _columns(parts[0].data, options.value)
    threshold = checked_threshold(options.threshold)
    geometric = spans_widely(_drawn(parts, columns[0]))
    gathered = gather_curves(
        [part.data for part in parts],
        columns,
        few=len(PALETTE),
        middle="geometric mean" if geometric else "mean",
        each_seed=bool(options.each_seed),
    )
    curves = [curve for of_panel in gathered.curves for curve in of_panel]
    columns = [name for name in columns if any(curve.mean[name].notna().any() for curve in curves)]
    figure, all_axes = new_panels(len(parts), height=2.8, share_y=False)
    texts = list(dict.fromkeys(curve.text for curve in curves))
    thin = bool(options.each_seed)
    for axes, of_panel in zip(all_axes, gathered.curves, strict=True):
        _scale(axes, of_panel or curves, columns, options)
        _draw(axes, of_panel, columns, texts, thin=thin)
    legend = _legend(study, columns, texts)
    if threshold is not None:
        lines = [axes.axhline(threshold, **THRESHOLD) for axes in all_axes]
        legend.append((lines[0], f"threshold {plain(threshold)}"))
    of_losses = "loss" if all(name.endswith("loss") for name in columns) else ""
    ylabel = axis_label(study, columns[0], logged=True) if len(columns) == 1 else of_losses
    all_axes[0].set_ylabel(wrapped(ylabel, HIGH))
    for axes in all_axes:
        axes.set_xlabel(study.step)
    title_panels(all_axes, [part.title for part in parts])
    figure.facts.append(_fact(study, columns, gathered.kind))
    legend_below(figure, legend, 2 * len(parts), gathered.heading)
    return figure


def draw_columns(part: Panel, columns: Sequence[str]) -> Picture:
    """Draw the same cells' columns as `draw_curves` does, a panel a column; call it `styled`."""
    study = part.data.study
    chosen = _columns(part.data, ",".join(columns))
    gathered = gather_curves([part.data], chosen, few=len(PALETTE))
    [curves] = gathered.curves
    texts = list(dict.fromkeys(curve.text for curve in curves))
    figure, all_axes = new_panels(len(chosen), height=2.8, share_y=False)
    for axes, name in zip(all_axes, chosen, strict=True):
        _scale(axes, curves, [name], FigureOptions())
        _draw(axes, curves, [name], texts, thin=False)
        axes.set(xlabel=study.step, ylabel=wrapped(axis_label(study, name, logged=True), HIGH))
    figure.facts.append(_fact(study, chosen, gathered.kind))
    legend = _legend(study, chosen[:1], texts)
    legend_below(figure, legend, 2 * len(chosen), gathered.heading)
    return figure


def _fact(study: AnyStudy, columns: Sequence[str], kind: str) -> str:
    """What a caption says."""
    drawn = ", ".join(axis_label(study, name, logged=True) for name in columns)
    return f"{drawn[:1].upper()}{drawn[1:]} against {study.step}: {kind}."


def _columns(data: FigureData, value: str | None) -> list[str]:
    if data.trajectories.empty:
        raise UserError("No steps were logged here; `overfit train` logs a cell's steps.")
    names = [column.name for column in data.study.trajectory_columns]
    logged = [name for name in names if name in data.trajectories]
    losses = [name for name in logged if name.endswith("_loss") and not name.startswith("log")]
    asked = [] if value is None else [name.strip() for name in value.split(",")]
    if value is not None and not all(asked):
        raise BadValue("value", value, "it takes names of logged columns, commas between.")
    headline = [name for name in logged if name == data.study.headline]
    chosen = list(dict.fromkeys(asked)) or losses or headline or logged[:1]
    for name in chosen:
        if name not in logged:
            raise BadValue(
                "value", name, f"{data.study.name} logs no {name!r}; {nearest(name, logged)}"
            )
    if len(chosen) > len(DASHES):
        raise BadValue("value", value, f"a figure of curves takes up to {len(DASHES)} columns.")
    return chosen


def _with_rows_of(data: FigureData, columns: list[str]) -> FigureData:
    """The data without the cells that logged other columns alone."""
    steps = data.trajectories
    other = set(steps["key"]) - set(steps["key"][steps[columns].notna().any(axis=1)])
    without = data.cells["key"].isin(other)
    if not without.any():
        return data
    if data.planned.empty:
        return replace(data, cells=data.cells[~without])
    names = [name for name in data.planned if name in data.cells]
    marked = data.planned.merge(data.cells.loc[without, names], how="left", indicator=True)
    planned = marked[marked["_merge"] == "left_only"].drop(columns="_merge")
    return replace(data, cells=data.cells[~without], planned=planned)


def _drawn(parts: Sequence[Panel], column: str) -> pd.Series[float]:
    """All numbers of a column that any panel may draw; failed cells' only where all failed."""
    steps = parts[0].data.trajectories
    cells = pd.concat([part.data.cells for part in parts])
    done = cells["status"] == "done"
    keys = cells["key"][done] if done.any() else cells["key"]
    return steps.loc[steps["key"].isin(keys), column].astype(np.float64)


def _scale(
    axes: matplotlib.axes.Axes, curves: list[Curve], columns: list[str], options: FigureOptions
) -> None:
    """Make y logarithmic where all that is drawn is positive and spans more than a factor of 10.

    The user may want it otherwise, and the steps logarithmic.

    Where several columns are drawn, the first sets the limits: a bound that falls out of sight
    doesn't squeeze what is measured.
    """
    everything = np.concatenate([curve.mean.to_numpy().ravel() for curve in curves])
    drawn = np.concatenate([curve.mean[columns[0]].to_numpy() for curve in curves])
    level = np.nan if options.threshold is None else options.threshold
    low, high = np.nanmin([*drawn, level]), np.nanmax([*drawn, level])
    shown = pd.Series([float(np.nanmin(everything)), low, high])
    if checked_scale(value_is_log(options), shown, factor=10):
        axes.set_yscale("log")
        axes.set_ylim(low / 1.5, high * 1.3)
        log_ticks(axes.yaxis, low, high)
    axes.margins(x=0.02)
    if is_log(options, "x"):
        axes.set_xscale("symlog", linthresh=1)  # steps begin at 0
    else:
        axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True))


def _draw(
    axes: matplotlib.axes.Axes,
    curves: list[Curve],
    columns: list[str],
    texts: list[str],
    *,
    thin: bool,
) -> None:
    """Draw the curves of a panel: which cell by colour, which column by dash."""
    if len(texts) == 1:
        for column, own in zip(columns, PALETTE, strict=False):
            for curve in curves:
                _draw_one(axes, curve, column, own, "-", thin=thin)
        return
    colours = dict(zip(texts, _colours(len(texts)), strict=True))
    for curve in curves:
        for column, dash in zip(columns, DASHES, strict=False):
            _draw_one(axes, curve, column, colours[curve.text], dash, thin=thin)


def _legend(study: AnyStudy, columns: list[str], texts: list[str]) -> Legend:
    labels = [axis_label(study, column, logged=True) for column in columns]
    if len(texts) == 1:
        entries = list(zip(labels, PALETTE, strict=False)) if len(columns) > 1 else []
        return [(Line2D([], [], color=own), label) for label, own in entries]
    colours = _colours(len(texts))
    dashes = zip(DASHES, labels, strict=False) if len(columns) > 1 else ()
    cells = [(Line2D([], [], color=colours[i]), texts[i]) for i in named_of(len(texts))]
    columns_ = [(Line2D([], [], color="0.3", linestyle=dash), text) for dash, text in dashes]
    return [*columns_, *cells]


def _draw_one(
    axes: matplotlib.axes.Axes,
    curve: Curve,
    column: str,
    colour: ColorType,
    dash: LineStyleType,
    *,
    thin: bool,
) -> None:
    mean = curve.mean[column].dropna()
    look: dict[str, Any] = {"linewidth": 0.5, "alpha": 0.7} if thin else {}
    axes.plot(mean.index, mean, color=colour, linestyle=dash, **look)
    low, high = curve.low[column].dropna(), curve.high[column].dropna()
    axes.fill_between(low.index, low, high, color=colour, alpha=0.2, linewidth=0)


def _colours(count: int) -> list[ColorType]:
    if count <= len(PALETTE):
        return list(PALETTE[:count])
    return colours_of_map(np.linspace(0, 0.95, count).tolist())


RATE = "learning_rate"


@styled
def draw_best_curves(data: FigureData, options: FigureOptions) -> Picture:
    """Draw logged columns against the step, each setting at its best step size.

    Best is the lowest mean of the study's headline over seeds, among the step sizes at which no
    seed failed (or, if there are none, the fewest did); the caption says which.
    """
    best = [_at_best_step_sizes(part) for part in panels(data, options.by)]
    figure = draw_panels([panel for panel, _ in best], options)
    figure.facts += [words for _, words in best if words]
    return figure


def _at_best_step_sizes(part: Panel) -> tuple[Panel, str]:
    """The part's cells at their best step sizes, and which these are."""
    values = parameter_values(part.data)
    if len(values[RATE]) < 2:
        return part, ""
    others = [name for name in varying_parameters(part.data) if name != RATE]
    cells = best_of_sweep(part.data.cells, RATE, others, part.data.study.headline)
    # The caption names the step sizes, so that a setting has one colour in every panel.
    same = cells.assign(**{RATE: cells[RATE].iloc[0]})
    planned = part.data.planned.iloc[:0]
    words = _best_in_words(replace(part.data, cells=cells), others)
    said = f"{words.rstrip('.')} ({part.title})." if part.title else words
    return Panel(part.title, replace(part.data, cells=same, planned=planned)), said


def _best_in_words(data: FigureData, others: list[str]) -> str:
    each = [
        f"{cells[RATE].iloc[0]:g}" + (f" for {text}" if text else "")
        for values, cells in split_by(data, others)
        for text in [short_settings(data.study, values)]
    ]
    return f"Best step size{'s' if len(each) > 1 else ''}: {', '.join(each)}."


@styled
def draw_loss_and_accuracy(data: FigureData, options: FigureOptions) -> Picture:
    """Draw test loss and test accuracy side by side, each setting at its best step size.

    Where the user names a value or panels it draws these instead, as `draw_best_curves` does.
    """
    if options.value is not None or options.by is not None or options.each_seed or data.runs:
        return draw_best_curves(data, options)
    panel, words = _at_best_step_sizes(Panel("", data))
    figure = draw_columns(panel, ("test_loss", "test_accuracy"))
    figure.facts += [words] if words else []
    return figure
