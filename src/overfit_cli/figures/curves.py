"""The figure `curves`: logged columns against the step, by cell or as medians over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import matplotlib.axes
from matplotlib.lines import Line2D

from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.figure import MOST_PANELS, FigureOptions
from overfit_cli.core.parameters import Value
from overfit_cli.core.study import AnyStudy, FigureData
from overfit_cli.core.text import suggestion
from overfit_cli.figures.curve_bounds import (
    BOUNDS,
    CurveBounds,
    drawn_columns,
    seeds_above_floor,
)
from overfit_cli.figures.curve_data import Curve, CurveSet, gather_curves
from overfit_cli.figures.curve_scale import LEAST_SHARE, curve_scale, shade_below
from overfit_cli.figures.hidden_lines import name_line
from overfit_cli.figures.inputs import (
    BAND,
    averaging,
    check_threshold,
)
from overfit_cli.figures.labels import (
    axis_label,
    label_with_note,
    short_settings,
    split_settings,
    tick_number,
    varying_parameters,
)
from overfit_cli.figures.palette import DASHES, LineLook, colour_parameter, line_looks
from overfit_cli.figures.panels import Panel, panels, panels_for_lines
from overfit_cli.figures.picture import Picture, label_outer, new_panels, styled, title_panels
from overfit_cli.figures.style import (
    HIGH,
    PALETTE,
    THRESHOLD,
    Legend,
    band_look,
    legend_below,
    named_lines,
)
from overfit_cli.stats.bands import MEANS

__all__ = ["Curve", "CurveSet", "draw_curves", "draw_panels", "gather_curves"]


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
    """
    columns = logged_columns(data, options.value)
    data = _drop_other_cells(data, columns)
    panel_parameter = options.by or panels_for_lines(data, varying_parameters(data), len(PALETTE))
    return draw_panels(panels(data, panel_parameter), options)


def draw_panels(
    parts: Sequence[Panel], options: FigureOptions, *, least_share: float = LEAST_SHARE
) -> Picture:
    """Draw curves as `draw_curves` does, in given panels; the caller is `styled`."""
    study = parts[0].data.study
    columns = logged_columns(parts[0].data, options.value)
    theory = _theory_columns(parts[0].data, columns, options.theory)
    threshold = check_threshold(options.threshold)
    parts, split = _told_apart(parts, columns, theory)
    over_seeds = averaging(options, BAND)
    gathered = gather_curves(
        [part.data for part in parts],
        list(dict.fromkeys([*columns, *theory])),
        most_single=len(PALETTE),
        over_seeds=over_seeds,
        each_seed=options.band == "seeds",
    )
    curves = [curve for panel_curves in gathered.curves for curve in panel_curves]
    columns, theory = (drawn_columns(names, curves, log=False) for names in (columns, theory))
    figure, all_axes = new_panels(len(parts), height=2.8)
    scale = curve_scale(curves, columns, theory, options, least_share)
    theory = drawn_columns(theory, curves, log=scale.limits is not None)
    looks = curve_looks(study, curves)
    named = {name: axis_label(study, name, logged=True) for name in columns}
    for axes, panel_curves, look in zip(
        all_axes, gathered.curves, line_looks(study, split), strict=True
    ):
        scale.dress(axes)
        for curve in panel_curves:
            of_panel = (
                {curve.text: replace(look, dash="-")} if any(split) and len(looks) == 1 else looks
            )
            draw_curve(axes, curve, named, of_panel, scale.floor, thin=options.band == "seeds")
        axes.set_xlabel(study.step)
    legend = curves_legend(study, columns, looks, curves)
    bounds = CurveBounds(
        gathered.curves,
        [part.data for part in parts],
        columns[0],
        {name: axis_label(study, name, logged=True) for name in theory},
        scale.floor,
        scale.limits is not None,
        MEANS[over_seeds.mean] if gathered.label else "",
    )
    legend += bounds.draw(all_axes, looks)
    if threshold is not None:
        lines = [axes.axhline(threshold, **THRESHOLD) for axes in all_axes]
        legend.append((lines[0], f"threshold {tick_number(threshold)}"))
    legend += shade_below(all_axes, scale.floor, "start", least_share) if scale.floor else []
    is_loss = len(columns) > 1 and all(name.endswith("loss") for name in columns)
    ylabel = "loss" if is_loss else axis_label(study, columns[0], logged=True)
    all_axes[0].set_ylabel(label_with_note(ylabel, gathered.label, HIGH))
    label_outer(all_axes)
    title_panels(all_axes, [part.title for part in parts])
    figure.facts += [_fact(study, columns, gathered.kind), *bounds.facts()]
    if study.stop and any(curve.ends_early for curve in curves):
        figure.facts.append(f"{study.stop}.")
    if scale.floor and gathered.label:
        figure.facts += seeds_above_floor(gathered.curves, parts, columns[0], scale.floor)
    if scale.cut:
        figure.facts.append(f"Steps after {scale.last:g} are cut off: all bands are grey there.")
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
    logged = data.trajectories[list(theory)].fillna(0).ne(0).any(axis=1)
    cells = data.cells[data.cells["key"].isin(data.trajectories.loc[logged, "key"])]
    return len(cells[names].drop_duplicates()) if names else min(1, len(cells))


def curve_looks(study: AnyStudy, curves: Sequence[Curve]) -> dict[str, LineLook]:
    """Return the look of each setting's curve, by its text, in order."""
    settings = {curve.text: curve.settings for curve in curves}
    return dict(zip(settings, line_looks(study, list(settings.values())), strict=True))


def _theory_columns(data: FigureData, columns: Sequence[str], theory: str | None) -> list[str]:
    if theory is None:
        return []
    if len(columns) > 1:
        raise BadValue("theory", theory, "it is drawn beside one column; name one as value.")
    named = logged_columns(data, theory, "theory")
    if len(named) > len(BOUNDS):
        raise BadValue("theory", theory, f"it takes up to {len(BOUNDS)} columns.")
    return named


def _fact(study: AnyStudy, columns: Sequence[str], kind: str) -> str:
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
        raise BadValue(option, value, "it takes names of logged columns, separated by commas.")
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
    columns: Mapping[str, str],
    looks: Mapping[str, LineLook],
    floor: float,
    *,
    thin: bool,
    banded: bool = True,
) -> None:
    """Draw the columns of a setting: told apart by dashes, or by colours where it is alone."""
    look, alone = looks[curve.text], len(looks) == 1
    for index, (column, label) in enumerate(columns.items()):
        colour = PALETTE[index] if alone and len(columns) > 1 else look.colour
        dash = DASHES[index] if len(columns) > 1 and not alone else look.dash
        mean, low, high = (
            frame[column].dropna().clip(lower=floor if floor else None)
            for frame in (curve.mean, curve.low, curve.high)
        )
        thinner: dict[str, Any] = {"linewidth": 0.5, "alpha": 0.7} if thin else {}
        if curve.ends_early and not thin:
            thinner = {"marker": "o", "markersize": 2.5, "markevery": [-1]}
        [line] = axes.plot(mean.index, mean, color=colour, linestyle=dash, **thinner)
        if not thin:
            name_line(line, label if len(columns) > 1 else "", curve.text)
        if banded and len(looks) <= len(PALETTE):
            axes.fill_between(low.index, low, high, **band_look(colour, ground=0.12))
