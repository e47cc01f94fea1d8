"""The figure `curves`: logged columns against the step, by cell or as medians over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import matplotlib.axes
import numpy as np
import pandas as pd
from matplotlib.lines import Line2D

from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.figure import MOST_PANELS, FigureOptions
from overfit_cli.core.parameters import Value
from overfit_cli.core.study import AnyStudy, FigureData
from overfit_cli.core.text import plural, suggestion
from overfit_cli.figures.curve_scale import curve_scale, shade_below
from overfit_cli.figures.inputs import (
    BAND,
    MISSES,
    averaging,
    check_threshold,
    misses_in_words,
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
from overfit_cli.figures.palette import DASHES, LineLook, colour_parameter, line_looks
from overfit_cli.figures.panels import Panel, panels, panels_for_lines
from overfit_cli.figures.picture import Picture, label_outer, new_panels, styled, title_panels
from overfit_cli.figures.style import (
    BOUND,
    HIGH,
    PALETTE,
    THRESHOLD,
    Legend,
    legend_below,
    named_lines,
)
from overfit_cli.stats.bands import MEAN, MEANS, Averaging, natural_bounds


@dataclass(frozen=True)
class Curve:
    """The curve of a setting of the parameters.

    Attributes:
        text: the values that differ from other curves; empty where it is the only one.
        mean: the statistic over seeds: one row per step (the index), one column per logged column.
        low, high: of the same shape: the ends of its band; nan for a single cell.
        settings: the values of the text by their parameters.
        ends_early: whether it ends with the first of several seeds that end apart.
    """

    text: str
    mean: pd.DataFrame
    low: pd.DataFrame
    high: pd.DataFrame
    settings: Mapping[str, Value] = field(default_factory=dict)
    ends_early: bool = False


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
        parts = [replace(part, cells=part.cells[_is_averaged(part.cells)]) for part in parts]
    elif everything["seed"].nunique() > 1:
        names = [*names, "seed"]
    told = [name for name in names if not (each_seed and name == "seed")]
    curves = [_curves(part, names, told, columns, over_seeds) for part in parts]
    if not any(curves):
        raise BadValue("value", columns[0], "no cell that is done has a number logged there.")
    seed_lines = each_seed and seeds.max() > 1
    kind = _kind_of_curves(everything, averaged, over_seeds)
    kind = "a line for each seed" if seed_lines else kind
    if averaged and any(curve.ends_early for part_curves in curves for curve in part_curves):
        kind += "; each curve up to the last step that all its seeds have"
    kind += f"; {plural(unlogged, 'cell')} without logged steps left out" if unlogged else ""
    most_seeds = int(everything["seed"].nunique())
    label = over_seeds.label(most_seeds) if averaged and most_seeds > 1 else ""
    return CurveSet(curves, kind, label, heading(parts[0].study, told))


def _logged_part(part: FigureData) -> FigureData:
    """The cells with logged steps, without a plan: its further values have no steps."""
    cells = part.cells[part.cells["key"].isin(part.trajectories["key"])]
    return replace(part, cells=cells, planned=part.planned.iloc[:0])


def _reasons(cells: pd.DataFrame) -> pd.Series[str]:
    """Why cells failed; empty for those that are done."""
    reasons = cells["reason"] if "reason" in cells else pd.Series("diverged", cells.index)
    return reasons.where(cells["status"] == "failed", "")


def _is_averaged(cells: pd.DataFrame) -> pd.Series[bool]:
    """Which cells are curves to their end: not those whose training was broken off."""
    return _reasons(cells).isin(["", *MISSES])


def _kind_of_curves(cells: pd.DataFrame, averaged: bool, over_seeds: Averaging) -> str:
    """A curve and its band in words."""
    if not averaged:
        return "a single cell" if len(cells) == 1 else "single cells"
    seeds = cells.loc[_is_averaged(cells), "seed"].nunique()
    diverged = int((_reasons(cells) == "diverged").sum())
    broken = int((~_is_averaged(cells)).sum())
    treatment = "count as beyond the others" if over_seeds.mean == "median" else "left out"
    left_out = f"; {plural(diverged, 'diverged cell')} {treatment}" if diverged else ""
    left_out += f"; {plural(broken, 'failed cell')} left out" if broken else ""
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
    reasons = part.cells.assign(reason=_reasons(part.cells))[["key", "reason"]]
    steps = part.trajectories.merge(reasons, on="key")
    steps[columns] = steps[columns].astype(np.float64).replace([np.inf, -np.inf], np.nan)
    if not steps[columns].notna().any(axis=None):
        return []
    bounds = {name: natural_bounds(steps[name].to_numpy(np.float64)) for name in columns}
    curves = []
    for values, cells in split_settings(part, names):
        setting = {name: values[name] for name in told}
        text = short_settings(part.study, setting)
        if (cells["status"] == "failed").all():
            text = f"{text} ({misses_in_words(cells)})".strip()
        setting_steps = steps[steps["key"].isin(cells["key"])]
        curves.append(replace(_curve(text, setting_steps, bounds, over_seeds), settings=setting))
    return curves


def _curve(
    text: str,
    steps: pd.DataFrame,
    bounds: Mapping[str, tuple[float, float]],
    over_seeds: Averaging,
) -> Curve:
    """The curve of some cells, of the columns that have bounds."""
    summaries: dict[str, list[pd.Series[float]]] = {}
    single = steps["key"].nunique() == 1
    for name, ends in bounds.items():
        beyond = over_seeds.mean == "median" and name.endswith("loss") and not single
        kept = steps if beyond or single else steps[steps["reason"] != "diverged"]
        table = _cell_table(kept, name, beyond=beyond)
        summary = over_seeds.summarise(table.to_numpy(), ends)
        summaries[name] = [
            pd.Series(np.where(np.isfinite(numbers), numbers, np.nan), table.index)
            for numbers in summary
        ]
    mean, low, high = (pd.DataFrame({n: s[i] for n, s in summaries.items()}) for i in range(3))
    ends_apart = steps[steps["reason"] != "diverged"].groupby("key")["step"].max().nunique() > 1
    return Curve(text, mean, low, high, ends_early=ends_apart)


def _cell_table(steps: pd.DataFrame, column: str, *, beyond: bool) -> pd.DataFrame:
    """A table with one row per step and one column per cell, up to the last common step.

    Cells may be logged at different steps: missing values between two steps are interpolated. A
    value that was logged as nan stays nan. With `beyond`, cells that diverged are infinite from
    their last number on.
    """
    table = steps.pivot(index="step", columns="key", values=column).dropna(axis=1, how="all")
    logged = steps.pivot(index="step", columns="key", values="reason")[table.columns].notna()
    interpolated = table.interpolate(method="index", limit_area="inside")
    table = table.where(logged, interpolated)
    diverged = set(steps.loc[steps["reason"] == "diverged", "key"]) if beyond else set()
    for key in diverged.intersection(table.columns):
        table.loc[table.index > table[key].last_valid_index(), key] = np.inf
    return table.dropna()


@styled
def draw_curves(data: FigureData, options: FigureOptions) -> Picture:
    """Draw logged columns against the step, a panel for each value of the parameter `by`.

    The columns are `options.value`, separated by commas; by default the study's losses
    (`..._loss`), its headline, or the first logged column. Up to eight cells, with fewer than three
    seeds of a setting, are a curve each. More cells are medians over seeds, with their quartiles,
    up to the last step that all seeds of a curve have reached, unless the user wants another mean
    or band, or a curve of each seed. More settings than colours have panels, if those of one
    parameter suffice, or otherwise shades of the colour map. Columns of a theory are black.

    Steps are logarithmic where most of what happens does so in their first tenth.

    Raises:
        UserError: if no steps were logged, a column or `by` is unknown, or the threshold is not
            finite.
    """
    columns = logged_columns(data, options.value)
    data = _drop_other_cells(data, columns)
    panel_parameter = options.by or panels_for_lines(data, varying_parameters(data), len(PALETTE))
    return draw_panels(panels(data, panel_parameter), options)


def draw_panels(parts: Sequence[Panel], options: FigureOptions) -> Picture:
    """Draw curves as `draw_curves` does, in given panels; the caller is `styled`."""
    study = parts[0].data.study
    columns = logged_columns(parts[0].data, options.value)
    theory = _theory_columns(parts[0].data, columns, options.theory)
    threshold = check_threshold(options.threshold)
    parts, split = _told_apart(parts, columns, theory)
    gathered = gather_curves(
        [part.data for part in parts],
        list(dict.fromkeys([*columns, *theory])),
        most_single=len(PALETTE),
        over_seeds=averaging(options, BAND),
        each_seed=options.band == "seeds",
    )
    curves = [curve for panel_curves in gathered.curves for curve in panel_curves]
    drawn = {name for name in [*columns, *theory] for c in curves if c.mean[name].notna().any()}
    columns, theory = ([name for name in names if name in drawn] for names in (columns, theory))
    figure, all_axes = new_panels(len(parts), height=2.8)
    scale = curve_scale([c.mean for c in curves], columns, theory, options)
    looks = curve_looks(study, curves)
    for axes, panel_curves, look in zip(
        all_axes, gathered.curves, line_looks(study, split), strict=True
    ):
        scale.dress(axes)
        for curve in panel_curves:
            of_panel = {curve.text: replace(look, dash="-")} if len(looks) == 1 else looks
            draw_curve(axes, curve, columns, of_panel, scale.floor, thin=options.band == "seeds")
        _draw_theory(axes, panel_curves, theory, looks)
        axes.set_xlabel(study.step)
    legend = curves_legend(study, columns, looks, curves)
    labels = [axis_label(study, name, logged=True) for name in theory]
    legend += [(Line2D([], [], **BOUNDS[i]), label) for i, label in enumerate(labels)]
    if threshold is not None:
        lines = [axes.axhline(threshold, **THRESHOLD) for axes in all_axes]
        legend.append((lines[0], f"threshold {tick_number(threshold)}"))
    legend += shade_below(all_axes, scale.floor, "start") if scale.floor else []
    is_loss = len(columns) > 1 and all(name.endswith("loss") for name in columns)
    ylabel = "loss" if is_loss else axis_label(study, columns[0], logged=True)
    all_axes[0].set_ylabel(label_with_note(ylabel, gathered.label, HIGH))
    label_outer(all_axes)
    title_panels(all_axes, [part.title for part in parts])
    figure.facts.append(_fact(study, columns, gathered.kind))
    dashes = zip(("Dashed", "Dotted", "Dash-dotted"), labels, strict=False)
    figure.facts += [f"{dash}: {label}." for dash, label in dashes]
    legend_below(figure, legend, 2 * len(parts), gathered.heading)
    return figure


def _told_apart(
    parts: Sequence[Panel], columns: Sequence[str], theory: Sequence[str]
) -> tuple[Sequence[Panel], list[Mapping[str, Value]]]:
    """Panels in which colours tell the settings apart: dashes tell the columns, black the theory.

    Of several columns and parameters, one parameter has colours and the others have panels. Where
    several settings have a theory, each has a panel. Too many panels are left as they are.

    Returns:
        The panels, and the setting by which each was split off; empty where none was.
    """
    varying = dict.fromkeys(name for part in parts for name in varying_parameters(part.data))
    names, [first, *_] = list(varying), parts
    split = list[str]()
    if theory and any(_settings_with(part.data, names, theory) > 1 for part in parts):
        split = names
    elif len(columns) > 1 and len(names) > 1:
        settings = [values for values, _ in split_settings(first.data, names)]
        coloured = colour_parameter(first.data.study, settings)
        split = [name for name in names if name != coloured] if coloured else []
    pieces = [
        (
            values,
            Panel(", ".join(filter(None, [text, part.title])), replace(part.data, cells=cells)),
        )
        for part in parts
        for values, cells in split_settings(part.data, split)
        for text in [short_settings(part.data.study, values)]
    ]
    if not split or len(pieces) > MOST_PANELS:
        return parts, [{} for _ in parts]
    order = list(dict.fromkeys(str(values) for values, _ in pieces))
    pieces.sort(key=lambda piece: order.index(str(piece[0])))  # a row for each
    return [panel for _, panel in pieces], [values for values, _ in pieces]


def _settings_with(data: FigureData, names: list[str], theory: Sequence[str]) -> int:
    """The number of settings that have a number of a theory, other than 0."""
    logged = data.trajectories[list(theory)].fillna(0).ne(0).any(axis=1)
    cells = data.cells[data.cells["key"].isin(data.trajectories.loc[logged, "key"])]
    return len(cells[names].drop_duplicates()) if names else min(1, len(cells))


def curve_looks(study: AnyStudy, curves: Sequence[Curve]) -> dict[str, LineLook]:
    """Return the look of each setting's curve, by its text, in order."""
    settings = {curve.text: curve.settings for curve in curves}
    return dict(zip(settings, line_looks(study, list(settings.values())), strict=True))


def _theory_columns(data: FigureData, columns: Sequence[str], theory: str | None) -> list[str]:
    """The columns of a theory.

    Raises:
        UserError: if one is unknown, or they stand beside several columns.
    """
    if theory is None:
        return []
    if len(columns) > 1:
        raise BadValue("theory", theory, "it stands beside one column; name one as value.")
    named = logged_columns(data, theory, "theory")
    if len(named) > len(BOUNDS):
        raise BadValue("theory", theory, f"it takes up to {len(BOUNDS)} columns.")
    return named


BOUNDS = [{**BOUND, "linestyle": dash} for dash in (BOUND["linestyle"], (0, (1, 1.2)), "-.")]
"""The looks of a theory's columns, in order: dashed, dotted, dash-dotted."""


def _draw_theory(
    axes: matplotlib.axes.Axes,
    curves: Sequence[Curve],
    theory: Sequence[str],
    looks: Mapping[str, LineLook],
) -> None:
    """Draw the columns of a theory: black, or in the colours of curves that have one each."""
    theories = (curve.mean[list(theory)].fillna(0) for curve in curves)
    several = sum(bool(frame.ne(0).any(axis=None)) for frame in theories) > 1
    for curve in curves:
        for column, bound in zip(theory, BOUNDS, strict=False):
            mean = curve.mean[column].dropna()
            colour = looks[curve.text].colour if several else bound["color"]
            axes.plot(mean.index, mean, **{**bound, "color": colour})


def _fact(study: AnyStudy, columns: Sequence[str], kind: str) -> str:
    """The sentence of the caption."""
    labels = ", ".join(axis_label(study, name, logged=True) for name in columns)
    return f"{labels[:1].upper()}{labels[1:]} against {study.step}: {kind}."


def logged_columns(data: FigureData, value: str | None, option: str = "value") -> list[str]:
    """Return the columns that `value` names with commas between, for the option of that name."""
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


def curves_legend(
    study: AnyStudy,
    columns: Sequence[str],
    looks: Mapping[str, LineLook],
    curves: Sequence[Curve],
) -> Legend:
    """Return the legend of columns and settings, and of curves that end with their first seed."""
    labels = [axis_label(study, column, logged=True) for column in columns]
    legend: Legend = []
    if len(looks) == 1:
        entries = list(zip(labels, PALETTE, strict=False)) if len(columns) > 1 else []
        legend += [(Line2D([], [], color=colour), label) for label, colour in entries]
    else:
        dashes = zip(DASHES, labels, strict=False) if len(columns) > 1 else ()
        legend += [(Line2D([], [], color="0.3", linestyle=dash), text) for dash, text in dashes]
        texts = list(looks)
        for text in (texts[index] for index in named_lines(len(texts))):
            dash = "-" if len(columns) > 1 else looks[text].dash
            legend.append((Line2D([], [], color=looks[text].colour, linestyle=dash), text))
    if any(curve.ends_early for curve in curves):
        dot = Line2D([], [], color="0.3", linestyle="", marker="o", markersize=2.5)
        legend.append((dot, "first seed ends"))
    return legend


def draw_curve(
    axes: matplotlib.axes.Axes,
    curve: Curve,
    columns: Sequence[str],
    looks: Mapping[str, LineLook],
    floor: float,
    *,
    thin: bool,
    banded: bool = True,
) -> None:
    """Draw the columns of a setting: told apart by dashes, or by colours where it is alone."""
    look, alone = looks[curve.text], len(looks) == 1
    for index, column in enumerate(columns):
        colour = PALETTE[index] if alone and len(columns) > 1 else look.colour
        dash = DASHES[index] if len(columns) > 1 and not alone else look.dash
        mean, low, high = (
            frame[column].dropna().clip(lower=floor if floor else None)
            for frame in (curve.mean, curve.low, curve.high)
        )
        thinner: dict[str, Any] = {"linewidth": 0.5, "alpha": 0.7} if thin else {}
        if curve.ends_early and not thin:
            thinner = {"marker": "o", "markersize": 2.5, "markevery": [-1]}
        axes.plot(mean.index, mean, color=colour, linestyle=dash, **thinner)
        if banded and len(looks) <= len(PALETTE):
            axes.fill_between(low.index, low, high, color=colour, alpha=0.2, linewidth=0)
