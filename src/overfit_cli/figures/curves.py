"""Logged columns against the step of training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import matplotlib.axes
import numpy as np
import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from matplotlib.typing import ColorType, LineStyleType

from overfit_cli.errors import UserError, nearest
from overfit_cli.figure import FigureData, FigureOptions
from overfit_cli.figures.axis import varying_parameters
from overfit_cli.figures.gather import Curve, gather_curves
from overfit_cli.figures.geometric import spans_widely
from overfit_cli.figures.inputs import checked_scale, checked_threshold, is_log, value_is_log
from overfit_cli.figures.labels import axis_label
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
    plain,
    wrapped,
)
from overfit_cli.study import AnyStudy

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
        raise UserError(f"--value {value!r}: it takes names of logged columns, commas between.")
    headline = [name for name in logged if name == data.study.headline]
    chosen = list(dict.fromkeys(asked)) or losses or headline or logged[:1]
    for name in chosen:
        if name not in logged:
            raise UserError(
                f"--value {name}: {data.study.name} logs no {name!r}; {nearest(name, logged)}"
            )
    if len(chosen) > len(DASHES):
        raise UserError(f"--value {value}: a figure of curves takes up to {len(DASHES)} columns.")
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
