"""The figures `curves` and `best-curves`: logged steps, by cell or as means over seeds.

Columns that span many decades have geometric means: the largest values dominate an arithmetic mean.
`best-curves` shows each setting at its best step size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import matplotlib.axes
import numpy as np
import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from matplotlib.typing import ColorType, LineStyleType

from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.study import AnyStudy, FigureData
from overfit_cli.core.text import plural, suggestion
from overfit_cli.figures.inputs import (
    BAND,
    averaging,
    check_threshold,
    choose_scale,
    is_log,
    value_is_log,
)
from overfit_cli.figures.labels import (
    axis_label,
    heading,
    label_with_note,
    parameter_values,
    short_settings,
    split_settings,
    tick_number,
    varying_parameters,
)
from overfit_cli.figures.panels import Panel, panels, panels_for_lines
from overfit_cli.figures.picture import Picture, new_panels, styled, title_panels
from overfit_cli.figures.style import (
    HIGH,
    PALETTE,
    THRESHOLD,
    Legend,
    legend_below,
    line_colours,
    log_ticks,
    named_lines,
)
from overfit_cli.stats.bands import MEAN, MEANS, Averaging, natural_bounds
from overfit_cli.stats.pairs import best_of_sweep

WIDE_SPAN = 1e6
"""The span from which y is logarithmic although some numbers are 0."""


@dataclass(frozen=True)
class Curve:
    """The curve of a setting of the parameters.

    Attributes:
        text: the values that differ from other curves; empty where it is the only one.
        mean: the statistic over seeds: one row per step (the index), one column per logged column.
        low, high: of the same shape: the ends of its band; nan for a single cell.
    """

    text: str
    mean: pd.DataFrame
    low: pd.DataFrame
    high: pd.DataFrame


@dataclass(frozen=True)
class CurveSet:
    """The curves of several parts, with their description.

    Attributes:
        curves: the curves of each part.
        kind: the statistic and its band, in words.
        label: the same for an axis; empty where nothing is averaged.
        heading: the heading of the legend: the parameters whose values are words in the texts.
    """

    curves: list[list[Curve]]
    kind: str
    label: str
    heading: str


def gather_curves(
    parts: Sequence[FigureData],
    columns: list[str],
    *,
    most_single: int,
    over_seeds: Averaging = MEAN,
    each_seed: bool = False,
) -> CurveSet:
    """Return each part's curves in the order of their parameters.

    Args:
        parts: with logged steps; a part with no number to draw has no curve.
        columns: the logged columns to gather.
        most_single: the largest number of cells of a part that are a curve each, if no setting has
            three seeds. Otherwise cells that are done are averaged over seeds, up to the last step
            that all cells of a setting have; a cell is linear between its logged steps.
        over_seeds: the statistic over seeds, and its band.
        each_seed: whether each cell is a curve in any case, with the text of its setting.

    Raises:
        UserError: if there is no number to draw in any part.
    """
    count = sum(int((part.cells["status"] == "done").sum()) for part in parts)
    parts = [_logged_part(part) for part in parts]
    unlogged = count - sum(int((part.cells["status"] == "done").sum()) for part in parts)
    everything = pd.concat([part.cells for part in parts])
    varying = {name for part in parts for name in varying_parameters(part)}
    names = [name for name in parameter_values(parts[0]) if name in varying]
    seeds = everything.groupby(["study", *names])["seed"].nunique()
    averaged = not each_seed and (
        seeds.max() >= BAND or any(len(part.cells) > most_single for part in parts)
    )
    if averaged:
        parts = [replace(part, cells=part.cells[part.cells["status"] == "done"]) for part in parts]
    elif everything["seed"].nunique() > 1:
        names = [*names, "seed"]
    told = [name for name in names if not (each_seed and name == "seed")]
    curves = [_curves(part, names, told, columns, over_seeds) for part in parts]
    if not any(curves):
        raise BadValue("value", columns[0], "no cell that is done has a number logged there.")
    seed_lines = each_seed and seeds.max() > 1
    kind = _kind_of_curves(everything, averaged, over_seeds)
    kind = "a line for each seed" if seed_lines else kind
    steps = pd.concat([part.trajectories for part in parts])
    if averaged and steps.groupby("key")["step"].max().nunique() > 1:
        kind += "; each curve up to the last step that all its seeds have"
    kind += f"; {plural(unlogged, 'cell')} without logged steps left out" if unlogged else ""
    most_seeds = int(everything["seed"].nunique())
    label = over_seeds.label(most_seeds) if averaged and most_seeds > 1 else ""
    return CurveSet(curves, kind, label, heading(parts[0].study, told))


def _logged_part(part: FigureData) -> FigureData:
    """The cells with logged steps, without a plan: its further values have no steps."""
    cells = part.cells[part.cells["key"].isin(part.trajectories["key"])]
    return replace(part, cells=cells, planned=part.planned.iloc[:0])


def _kind_of_curves(cells: pd.DataFrame, averaged: bool, over_seeds: Averaging) -> str:
    """A curve and its band in words."""
    if not averaged:
        return "a single cell" if len(cells) == 1 else "single cells"
    is_done = cells["status"] == "done"
    seeds = cells.loc[is_done, "seed"].nunique()
    failed = int((~is_done).sum())
    left_out = f"; {plural(failed, 'failed cell')} left out" if failed else ""
    if seeds == 1:
        return f"one seed{left_out}"
    band = over_seeds.band_in_words(seeds)
    return f"{MEANS[over_seeds.mean]} of {seeds} seeds, band: {band}{left_out}"


def _curves(
    part: FigureData,
    names: list[str],
    told: list[str],
    columns: list[str],
    over_seeds: Averaging,
) -> list[Curve]:
    """A curve for each setting of the parameters `names`; the text has those of `told`."""
    steps = part.trajectories.merge(part.cells[["key", "status"]], on="key")
    steps[columns] = steps[columns].astype(np.float64).replace([np.inf, -np.inf], np.nan)
    if not steps[columns].notna().any(axis=None):
        return []
    bounds = {name: natural_bounds(steps[name].to_numpy(np.float64)) for name in columns}
    curves = []
    for values, cells in split_settings(part, names):
        text = short_settings(part.study, {name: values[name] for name in told})
        setting_steps = steps[steps["key"].isin(cells["key"])]
        curves.append(_curve(text, setting_steps, bounds, over_seeds))
    return curves


def _curve(
    text: str,
    steps: pd.DataFrame,
    bounds: Mapping[str, tuple[float, float]],
    over_seeds: Averaging,
) -> Curve:
    """The curve of some cells, of the columns that have bounds."""
    if (steps["status"] == "failed").all():
        text = f"{text} (failed)".strip()
    summaries: dict[str, list[pd.Series[float]]] = {}
    for name, ends in bounds.items():
        table = _cell_table(steps, name)
        summary = over_seeds.summarise(table.to_numpy(), ends)
        summaries[name] = [pd.Series(numbers, table.index) for numbers in summary]
    return Curve(text, *(pd.DataFrame({n: s[i] for n, s in summaries.items()}) for i in range(3)))


def _cell_table(steps: pd.DataFrame, column: str) -> pd.DataFrame:
    """A table with one row per step and one column per cell, up to the last common step.

    Cells may be logged at different steps: missing values between two steps are interpolated. A
    value that was logged as nan stays nan.
    """
    table = steps.pivot(index="step", columns="key", values=column).dropna(axis=1, how="all")
    logged = steps.pivot(index="step", columns="key", values="status")[table.columns].notna()
    interpolated = table.interpolate(method="index", limit_area="inside")
    return table.where(logged, interpolated).dropna()


DASHES: tuple[LineStyleType, ...] = ("-", "--", ":", "-.")


@styled
def draw_curves(data: FigureData, options: FigureOptions) -> Picture:
    """Draw logged columns against the step, a panel for each value of the parameter `by`.

    The columns are `options.value`, separated by commas; by default the study's losses
    (`..._loss`), its headline, or the first logged column. Up to eight cells, with fewer than three
    seeds of a setting, are a curve each. More cells are averaged over seeds, with the 95 % interval
    of the mean, up to the last step that all seeds of a curve have reached, unless the user wants
    another mean or band, or a curve of each seed. More settings than colours have panels, if those
    of one parameter suffice, or otherwise shades of the colour map. A theory's column is dashed.

    Raises:
        UserError: if no steps were logged, a column or `by` is unknown, or the threshold is not
            finite.
    """
    columns = _columns(data, options.value)
    data = _drop_other_cells(data, columns)
    panel_parameter = options.by or panels_for_lines(data, varying_parameters(data), len(PALETTE))
    return draw_panels(panels(data, panel_parameter), options)


def draw_panels(parts: Sequence[Panel], options: FigureOptions) -> Picture:
    """Draw curves as `draw_curves` does, in given panels; the caller is `styled`."""
    study = parts[0].data.study
    columns = _columns(parts[0].data, options.value)
    theory = _theory_column(parts[0].data, columns, options.theory)
    threshold = check_threshold(options.threshold)
    thin = options.band == "seeds"
    over_seeds = averaging(replace(options, band=options.band or "interval"), BAND)
    gathered = gather_curves(
        [part.data for part in parts],
        list(dict.fromkeys([*columns, *theory])),
        most_single=len(PALETTE),
        over_seeds=over_seeds,
        each_seed=thin,
    )
    curves = [curve for panel_curves in gathered.curves for curve in panel_curves]
    columns = [name for name in columns if any(curve.mean[name].notna().any() for curve in curves)]
    figure, all_axes = new_panels(len(parts), height=2.8)
    texts = list(dict.fromkeys(curve.text for curve in curves))
    for axes, panel_curves in zip(all_axes, gathered.curves, strict=True):
        _scale(axes, curves, columns, options)
        _draw(axes, panel_curves, columns, texts, thin=thin)
        _draw_theory(axes, panel_curves, theory, texts)
    legend = _legend(study, columns, texts)
    labels = [axis_label(study, name, logged=True) for name in theory]
    legend += [(Line2D([], [], color="0.3", linestyle="--"), label) for label in labels]
    if threshold is not None:
        lines = [axes.axhline(threshold, **THRESHOLD) for axes in all_axes]
        legend.append((lines[0], f"threshold {tick_number(threshold)}"))
    loss_label = "loss" if all(name.endswith("loss") for name in columns) else ""
    ylabel = axis_label(study, columns[0], logged=True) if len(columns) == 1 else loss_label
    all_axes[0].set_ylabel(label_with_note(ylabel, gathered.label, HIGH))
    for axes in all_axes:
        axes.set_xlabel(study.step)
    title_panels(all_axes, [part.title for part in parts])
    figure.facts.append(_fact(study, columns, gathered.kind))
    figure.facts += [f"Dashed: {label}." for label in labels]
    legend_below(figure, legend, 2 * len(parts), gathered.heading)
    return figure


def _theory_column(data: FigureData, columns: Sequence[str], theory: str | None) -> list[str]:
    """The column of a theory, if there is one.

    Raises:
        UserError: if it is unknown, or stands beside several columns.
    """
    if theory is None:
        return []
    if len(columns) > 1:
        raise BadValue("theory", theory, "it stands beside one column; name one as value.")
    named = _columns(data, theory, "theory")
    if len(named) > 1:
        raise BadValue("theory", theory, f"it takes one column, not {len(named)}.")
    return named


def _draw_theory(
    axes: matplotlib.axes.Axes, curves: list[Curve], theory: Sequence[str], texts: list[str]
) -> None:
    """Draw the column of a theory in the colours of the curves, without a band."""
    colours = dict(zip(texts, line_colours(len(texts)), strict=True))
    for curve in curves:
        for column in theory:
            mean = curve.mean[column].dropna()
            axes.plot(mean.index, mean, color=colours[curve.text], linestyle="--")


def draw_columns(part: Panel, columns: Sequence[str]) -> Picture:
    """Draw columns as `draw_curves` does, a panel for each column; the caller is `styled`."""
    study = part.data.study
    logged = _columns(part.data, ",".join(columns))
    gathered = gather_curves([part.data], logged, most_single=len(PALETTE))
    [curves] = gathered.curves
    texts = list(dict.fromkeys(curve.text for curve in curves))
    figure, all_axes = new_panels(len(logged), height=2.8, share_y=False)
    for axes, name in zip(all_axes, logged, strict=True):
        _scale(axes, curves, [name], FigureOptions())
        _draw(axes, curves, [name], texts, thin=False)
        label = label_with_note(axis_label(study, name, logged=True), gathered.label, HIGH)
        axes.set(xlabel=study.step, ylabel=label)
    figure.facts.append(_fact(study, logged, gathered.kind))
    legend = _legend(study, logged[:1], texts)
    legend_below(figure, legend, 2 * len(logged), gathered.heading)
    return figure


def _fact(study: AnyStudy, columns: Sequence[str], kind: str) -> str:
    """The sentence of the caption."""
    labels = ", ".join(axis_label(study, name, logged=True) for name in columns)
    return f"{labels[:1].upper()}{labels[1:]} against {study.step}: {kind}."


def _columns(data: FigureData, value: str | None, option: str = "value") -> list[str]:
    """The columns that `value` names with commas between, for the option of that name."""
    if data.trajectories.empty:
        raise UserError("No steps were logged here; `overfit train` logs a cell's steps.")
    names = [column.name for column in data.study.trajectory_columns]
    logged = [name for name in names if name in data.trajectories]
    losses = [name for name in logged if name.endswith("_loss") and not name.startswith("log")]
    requested = [] if value is None else [name.strip() for name in value.split(",")]
    if value is not None and not all(requested):
        raise BadValue(option, value, "it takes names of logged columns, commas between.")
    headline = [name for name in logged if name == data.study.headline]
    selected = list(dict.fromkeys(requested)) or losses or headline or logged[:1]
    for name in selected:
        if name not in logged:
            raise BadValue(
                option, name, f"{data.study.name} logs no {name!r}; {suggestion(name, logged)}"
            )
    if len(selected) > len(DASHES):
        raise BadValue("value", value, f"a figure of curves takes up to {len(DASHES)} columns.")
    return selected


def _drop_other_cells(data: FigureData, columns: list[str]) -> FigureData:
    """The data without the cells that logged only other columns."""
    steps = data.trajectories
    other_keys = set(steps["key"]) - set(steps["key"][steps[columns].notna().any(axis=1)])
    excluded = data.cells["key"].isin(other_keys)
    if not excluded.any():
        return data
    if data.planned.empty:
        return replace(data, cells=data.cells[~excluded])
    names = [name for name in data.planned if name in data.cells]
    marked = data.planned.merge(data.cells.loc[excluded, names], how="left", indicator=True)
    planned = marked[marked["_merge"] == "left_only"].drop(columns="_merge")
    return replace(data, cells=data.cells[~excluded], planned=planned)


def _scale(
    axes: matplotlib.axes.Axes, curves: list[Curve], columns: list[str], options: FigureOptions
) -> None:
    """Make y logarithmic where all numbers are positive and span more than a factor of 10.

    Zeros, such as an underflowed loss, don't prevent it where the others span `WIDE_SPAN`.

    The user's choice takes precedence, also of a logarithmic scale for the steps. Of several
    columns the first sets the limits: a bound outside them does not compress the measurements.
    """
    everything = np.concatenate([curve.mean.to_numpy().ravel() for curve in curves])
    first_column = np.concatenate([curve.mean[columns[0]].to_numpy() for curve in curves])
    level = np.nan if options.threshold is None else options.threshold
    low, high = np.nanmin([*first_column, level]), np.nanmax([*first_column, level])
    least = float(np.nanmin(everything))
    positive = first_column[first_column > 0]
    if least == 0 and positive.size and high / positive.min() > WIDE_SPAN:
        low = least = float(positive.min())  # numbers that are 0 lie below the axis
    extent = pd.Series([least, low, high])
    if choose_scale(value_is_log(options), extent, factor=10):
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
    """Draw the curves of a panel: a colour for each setting, a dash for each column."""
    if len(texts) == 1:
        for column, colour in zip(columns, PALETTE, strict=False):
            for curve in curves:
                _draw_curve(axes, curve, column, colour, "-", thin=thin)
        return
    colours = dict(zip(texts, line_colours(len(texts)), strict=True))
    for curve in curves:
        for column, dash in zip(columns, DASHES, strict=False):
            _draw_curve(axes, curve, column, colours[curve.text], dash, thin=thin)


def _legend(study: AnyStudy, columns: list[str], texts: list[str]) -> Legend:
    labels = [axis_label(study, column, logged=True) for column in columns]
    if len(texts) == 1:
        entries = list(zip(labels, PALETTE, strict=False)) if len(columns) > 1 else []
        return [(Line2D([], [], color=colour), label) for label, colour in entries]
    colours = line_colours(len(texts))
    dashes = zip(DASHES, labels, strict=False) if len(columns) > 1 else ()
    cells = [(Line2D([], [], color=colours[i]), texts[i]) for i in named_lines(len(texts))]
    columns_ = [(Line2D([], [], color="0.3", linestyle=dash), text) for dash, text in dashes]
    return [*columns_, *cells]


def _draw_curve(
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


RATE = "learning_rate"


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
def draw_loss_and_accuracy(data: FigureData, options: FigureOptions) -> Picture:
    """Draw test loss and test accuracy side by side, each setting at its best step size.

    With a column, panels or several runs in the options it draws these, as `draw_best_curves`.
    """
    if any((options.value, options.theory, options.by, options.mean, options.band, data.runs)):
        return draw_best_curves(data, options)
    panel, words = _best_step_sizes(Panel("", data))
    figure = draw_columns(panel, ("test_loss", "test_accuracy"))
    figure.facts += [words] if words else []
    return figure
