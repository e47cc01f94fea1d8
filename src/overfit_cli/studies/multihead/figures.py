"""The figure `heads`: figures 2 to 5 of Deora et al. 2024, a line for each H."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.typing import ColorType, LineStyleType

from overfit_cli.core.cells import Cells
from overfit_cli.core.errors import UserError
from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.parameters import describe
from overfit_cli.figures.axes import legend_below, log_steps, log_ticks
from overfit_cli.figures.labels import brief, setting, tick_number
from overfit_cli.figures.picture import Picture, lay_out, title_panels
from overfit_cli.figures.seed_statistics import Line, lines_of_steps
from overfit_cli.figures.style import COLUMN, PAGE, Legend, value_colour
from overfit_cli.stats.intervals import MEAN, MIDDLE_HALF
from overfit_cli.studies.multihead.planted.parameters import FOUND_AT

MOST_SETTINGS = 3
DASHES: tuple[LineStyleType, ...] = ("-", (0, (3, 1.2)))

SMALLEST_LOSS = 1e-16
"""The end of the axis of losses, though some go on falling."""

MOST_BANDS = 3
"""The number of H up to which all have a band; of more, the first, the middle and the last have."""

FOUND = "found"
"""Whether a seed has found the planted head, at a step."""


@dataclass(frozen=True)
class Row:
    """A row of panels.

    Attributes:
        columns: what is drawn, and what each is called; the first has a full line.
        log: whether y is logarithmic; None where it is if the last numbers span a decade or more.
    """

    label: str
    columns: dict[str, str]
    log: bool | None = False


ROWS = (
    Row("loss", {"train_loss": "training", "test_loss": "test"}, log=True),
    Row(
        "averaged norm",
        {
            "norm_w": r"$\Sigma_h\Vert W_h\Vert \,/\, H$",
            "norm_u": r"$\Sigma_h\Vert U_h\Vert \,/\, \sqrt{H}$",
        },
        log=None,
    ),
    Row("attention on\nrelevant tokens", {"attention": ""}),
    Row("cosine with\nplanted head", {"alignment_w": "$W$", "alignment_u": "$U$"}),
    Row("share of seeds\nthat find it", {FOUND: ""}),
    Row(r"margin over $\Vert U\Vert$", {"margin": ""}),
)

OPTIMISERS = {
    "gd": "GD",
    "adam": "Adam",
    "loss-normalised": "GD over the loss",
    "gradient-normalised": "normalised GD",
}
"""Optimisers with short names for titles."""

_STEP_SIZES = {"constant": "", "sqrt-heads": r"\sqrt{H}", "heads": "H"}
_STEPS = ("optimiser", "learning_rate", "step_rule")


@dataclass(frozen=True)
class Column:
    """A column of panels: a setting of the parameters other than H."""

    title: str
    data: Cells


@dataclass(frozen=True)
class Look:
    """The style of the line of an H."""

    colour: ColorType
    width: float  # the smaller H, the wider: lines that coincide are all seen
    has_band: bool


Curves = Mapping[int, Line]
"""The curve of each H with a number in a panel."""


def draw_heads(data: Cells, options: FigureOptions) -> Picture:
    """Draw losses, norms, attention or alignment, and margins; a column for each setting.

    Lines are medians over seeds with a band of their middle half. Where some seeds find a planted
    head and others don't, a median hides the fewer: their share has a row. Of cells that differ in
    their number of steps alone those that train longest are drawn: the others are their beginnings.
    """
    if data.steps.empty:
        raise UserError("No steps were logged here; `overfit train` logs a cell's steps.")
    data = _with_found(data)
    columns = _columns(data)
    rows = [row for row in ROWS if _is_logged(data, row)]
    heads = sorted(data.trained["heads"].unique().tolist())
    looks = _looks(data, heads)
    count = len(columns)
    width = min(PAGE, COLUMN * max(1.0, 0.85 * count))
    figure = Picture(width, 1.15 * len(rows) + 0.8, least=2.3 * count if count > 1 else 0.0)
    grid = figure.subplots(len(rows), count, sharex="col", squeeze=False)
    for row_axes, row in zip(grid, rows, strict=True):
        curves, kind = _gather(columns, row, heads)
        for axes, of_column in zip(row_axes, curves, strict=True):
            _draw(axes, row, of_column, looks)
        _scale(row_axes, row, curves)
        if "margin" in row.columns:
            _mark_margins(row_axes, columns)
        row_axes[0].set_ylabel(row.label)
        if row.columns.keys() == {"train_loss", "test_loss"}:
            figure.facts += _losses_in_words(curves)
        if FOUND in row.columns:
            figure.facts += _misses_in_words(columns)
        elif "loss" in row.label:
            figure.facts.insert(
                0, f"Lines: {kind}{_bands_in_words(looks)}.{_seeds_in_words(columns)}"
            )
    for axes, column in zip(grid[-1], columns, strict=True):
        last = float(column.data.steps["step"].max())
        log_steps(axes, last)
        axes.set_xlim(0, last)
        axes.set_xlabel("gradient steps")
    title_panels(grid.ravel().tolist(), _titles(columns, len(rows)))
    labels = ", ".join(row.label.replace("\n", " ") for row in rows)
    figure.facts.insert(0, f"{labels[0].upper()}{labels[1:]} against gradient steps.")
    legend: Legend = [
        (Line2D([], [], color=look.colour, linewidth=look.width), f"$H$ = {brief(count)}")
        for count, look in looks.items()
    ]
    legend_below(figure, legend, columns=6 if count > 1 else 3)
    lay_out(figure)
    for row_axes, row in zip(grid, rows, strict=True):
        _name_columns(row_axes, row)
    return figure


def _with_found(data: Cells) -> Cells:
    """The data with steps that say whether the planted head is found there, as 0 or 1."""
    steps = data.steps
    if "alignment_w" not in steps:
        return data
    found = (steps["alignment_w"] > FOUND_AT) & (steps["alignment_u"] > FOUND_AT)
    return data.with_steps(steps.assign(**{FOUND: found.astype(float)}))


def _columns(data: Cells) -> list[Column]:
    names = data.varying(("heads", "training_steps"))
    columns = []
    for _, part in data.without_plan().settings(names):
        cells = part.frame
        longest = cells[cells["training_steps"] == cells["training_steps"].max()]
        steps = data.steps[data.steps["key"].isin(longest["key"])]
        whole = data.with_trained(longest).with_steps(steps)
        columns.append(Column(_title(whole, names), whole))
    if len(columns) > MOST_SETTINGS:
        raise UserError(
            f"There are {len(columns)} settings beside heads here, and up to {MOST_SETTINGS} fit "
            "side by side; choose some with --where NAME=VALUE."
        )
    return columns


def _title(part: Cells, names: Sequence[str]) -> str:
    values = part.trained.iloc[0]
    texts = []
    if not names or set(names) & set(_STEPS):
        optimiser = OPTIMISERS.get(values["optimiser"], values["optimiser"])
        factor, power = brief(float(values["learning_rate"])), _STEP_SIZES[values["step_rule"]]
        size = (
            f"${power}$" if power and factor == "1" else f"{factor} ${power}$" if power else factor
        )
        texts.append(rf"{optimiser}, $\eta$ = {size}")
    others = [name for name in names if name not in _STEPS]
    return ", ".join([*texts, *(setting(part.schema, name, values[name]) for name in others)])


def _titles(columns: Sequence[Column], rows: int) -> list[str]:
    return [column.title for column in columns] + [""] * (len(columns) * (rows - 1))


def _is_logged(data: Cells, row: Row) -> bool:
    steps = data.steps
    return any(name in steps and steps[name].notna().any() for name in row.columns)


def _looks(data: Cells, heads: Sequence[int]) -> dict[int, Look]:
    info = describe(data.study.parameters)["heads"]
    banded = heads
    if len(heads) > MOST_BANDS:
        banded = [heads[0], heads[len(heads) // 2], heads[-1]]
    widths = np.linspace(2.6, 0.9, len(heads)).tolist() if len(heads) > 1 else [1.2]
    return {
        count: Look(value_colour(info, count) or "black", width, count in banded)
        for count, width in zip(heads, widths, strict=True)
    }


def _gather(columns: Sequence[Column], row: Row, heads: Sequence[int]) -> tuple[list[Curves], str]:
    parts = [_of_heads(column.data, count) for column in columns for count in heads]
    averaging = MEAN if FOUND in row.columns else MIDDLE_HALF
    gathered = lines_of_steps(parts, list(row.columns), averaging, most_single=1)
    single = [lines[0] if lines else None for lines in gathered.panels]
    if FOUND in row.columns:  # a seed that diverged finds nothing
        done = [float((part.trained["status"] == "done").mean()) for part in parts]
        single = [
            curve and replace(curve, tables={FOUND: curve[FOUND] * share})
            for curve, share in zip(single, done, strict=True)
        ]
    by_panel = [single[start : start + len(heads)] for start in range(0, len(single), len(heads))]
    return [
        {count: curve for count, curve in zip(heads, curves, strict=True) if curve is not None}
        for curves in by_panel
    ], gathered.kind(next(iter(row.columns)))


def _of_heads(data: Cells, count: int) -> Cells:
    cells = data.trained[data.trained["heads"] == count]
    steps = data.steps[data.steps["key"].isin(cells["key"])]
    return data.with_trained(cells).with_steps(steps)


def _draw(axes: Axes, row: Row, curves: Curves, looks: Mapping[int, Look]) -> None:
    for count, curve in curves.items():
        look = looks[count]
        for name, dash in zip(row.columns, DASHES, strict=False):
            steps, table = curve[name].index, curve[name]
            thin: dict[str, Any] = {"color": look.colour, "linewidth": look.width}
            axes.plot(steps, table["middle"], linestyle=dash, **thin)
            if look.has_band and name != FOUND:
                band: dict[str, Any] = {"color": look.colour, "alpha": 0.15, "linewidth": 0}
                axes.fill_between(steps, table["low"], table["high"], **band)


def _name_columns(all_axes: Sequence[Axes], row: Row) -> None:
    if len(row.columns) < 2:
        return
    handles = [Line2D([], [], color="0.3", linestyle=dash) for dash in DASHES]
    names = list(row.columns.values())
    drawn = [axes for axes in all_axes if axes.lines]
    guided = [axes for axes in drawn if any(line.get_gid() == GUIDE for line in axes.lines)]
    if guided:
        letters = ", ".join(axes.get_title(loc="left")[:3] for axes in guided)
        handles.append(Line2D([], [], **_GUIDE))
        names.append(GUIDE if len(guided) == len(drawn) else f"{GUIDE} in {letters}")
    drawn[0].legend(handles, names, loc="best", borderaxespad=0.2, handlelength=1.8)


def _scale(all_axes: Sequence[Axes], row: Row, curves: Sequence[Curves]) -> None:
    ends = [
        float(curve[name]["middle"].iloc[-1])
        for panel in curves
        for curve in panel.values()
        for name in row.columns
        if len(curve[name])
    ]
    log = row.log if row.log is not None else min(ends) > 0 and max(ends) > 10 * min(ends)
    if row.columns.keys() == {"train_loss", "test_loss"}:
        _scale_losses(all_axes, curves)
    elif log:
        for axes in all_axes:
            axes.set_yscale("log", nonpositive="mask")
            axes.set_ylim(min(ends) / 30, 2 * max(ends))
            log_ticks(axes.yaxis, *axes.get_ylim())
        _label_first(all_axes)
    else:
        limits = [axes.get_ylim() for axes, panel in zip(all_axes, curves, strict=True) if panel]
        low, high = min(low for low, _ in limits), max(high for _, high in limits)
        for axes in all_axes:
            axes.set_ylim((-0.04, 1.04) if FOUND in row.columns else (low, high))
        _label_first(all_axes)


def _label_first(all_axes: Sequence[Axes]) -> None:
    for axes in all_axes[1:]:
        axes.tick_params(labelleft=False)


def _scale_losses(all_axes: Sequence[Axes], curves: Sequence[Curves]) -> None:
    """Give losses a logarithmic axis, one for all unless a panel would use hardly any of it."""
    ranges = []
    for panel in curves:
        tables = [table for curve in panel.values() for table in curve.tables.values()]
        lows = [table["middle"].min() for table in tables]
        highs = [table["high"].max() for table in tables]
        ranges.append((max(min(lows), SMALLEST_LOSS), max(1.0, np.nanmax([1.0, *highs]))))
    low, high = min(low for low, _ in ranges), max(high for _, high in ranges)
    spans = [np.log(top / bottom) for bottom, top in ranges]
    shared = min(spans) > _LEAST_SHARE * np.log(high / low)
    for axes, panel, limits in zip(all_axes, curves, ranges, strict=True):
        bottom, top = (low, high) if shared else limits
        axes.set_yscale("log")
        axes.set_ylim(bottom / 2, 1.5 * top)
        log_ticks(axes.yaxis, *axes.get_ylim())
        _draw_guide(axes, panel)
    if shared:
        _label_first(all_axes)


_LEAST_SHARE = 0.1
"""The share of an axis of losses that a panel uses, or has an axis of its own."""


GUIDE = r"$\propto 1/t$"
"""The name of a line that falls as 1/t."""

_GUIDE: dict[str, Any] = {"color": "black", "linewidth": 1.0, "linestyle": (0, (1, 1))}


def _draw_guide(axes: Axes, curves: Curves) -> None:
    """Draw a line that falls as 1/t above the ends of the training losses, if these are near it."""
    ends = [curve["train_loss"]["middle"] for curve in curves.values()]
    last = max(float(end.index[-1]) for end in ends)
    top = max(float(end.iloc[-1]) for end in ends)
    bottom, highest = axes.get_ylim()
    factor = max(2.0, (highest / bottom) ** 0.05)
    start = max(last / 30, factor * top * last)
    if top < 0.01 / last or start > last / 3:
        return
    steps = np.array([start, last])
    axes.plot(steps, factor * top * last / steps, gid=GUIDE, **_GUIDE)


def _mark_margins(all_axes: Sequence[Axes], columns: Sequence[Column]) -> None:
    """Draw γ_attn; the axis begins at −γ_attn or above, and a panel says where margins begin."""
    marks = {}
    for axes, column in zip(all_axes, columns, strict=True):
        measured = column.data.trained.dropna(subset=["margin", "margin_share"])
        if len(measured):
            marks[axes] = float((measured["margin"] / measured["margin_share"]).median())
    if not marks:
        return
    highest = max(marks.values())
    bottom = max(all_axes[0].get_ylim()[0], -highest)
    for axes, mark in marks.items():
        axes.axhline(mark, color="0.4", linewidth=0.8)
        name, edge = r"$\gamma_{\mathrm{attn}}$", axes.get_yaxis_transform()
        axes.text(0.02, mark, name, transform=edge, va="bottom", fontsize=6.5, color="0.3")
    for axes in all_axes:
        axes.set_ylim(bottom, highest + 0.25 * (highest - bottom))
        heights = [np.asarray(line.get_ydata(), dtype=np.float64) for line in axes.lines]
        least = min(float(height.min()) for height in heights if height.size)
        if least < bottom:
            text = f"↓ from {brief(float(f'{least:.2g}'))}"
            axes.text(0.02, 0.05, text, transform=axes.transAxes, fontsize=6.5, color="0.3")


def _bands_in_words(looks: Mapping[int, Look]) -> str:
    banded = [str(count) for count, look in looks.items() if look.has_band]
    return "" if len(banded) == len(looks) else f" (of H = {', '.join(banded)})"


def _seeds_in_words(columns: Sequence[Column]) -> str:
    counts = [column.data.trained["seed"].nunique() for column in columns]
    if len(set(counts)) == 1:
        return ""
    each = zip(counts, columns, strict=True)
    return f" Seeds: {', '.join(f'{count} ({column.title})' for count, column in each)}."


def _losses_in_words(curves: Sequence[Curves]) -> list[str]:
    """Sentences on losses that leave the axis, and on those that lie flat below 1/t."""
    losses = [curve["train_loss"]["middle"] for panel in curves for curve in panel.values()]
    sentences = []
    if any(loss.iloc[-1] < SMALLEST_LOSS for loss in losses):
        sentences.append(f"Losses below {tick_number(SMALLEST_LOSS)} are not shown.")
    flat = any(
        0 < loss.iloc[-1] < 0.01 / loss.index[-1]
        and loss[loss.index <= loss.index[-1] / 3].iloc[-1] < 2 * loss.iloc[-1]
        for loss in losses
    )
    if flat:
        sentences.append(
            "Where a loss lies flat far below 1/t, its gradient is as small as itself: it would "
            "take about 1/loss further steps to fall."
        )
    return sentences


def _misses_in_words(columns: Sequence[Column]) -> list[str]:
    sentences = []
    for column in columns:
        cells = column.data.trained
        found = (cells["alignment_w"] > FOUND_AT) & (cells["alignment_u"] > FOUND_AT)
        missed = (~found).groupby(cells["heads"]).agg(["sum", "size"])
        texts = [
            f"{misses} of {seeds} at H = {heads}"
            for heads, misses, seeds in missed.itertuples()
            if misses
        ]
        ends = ", ".join(texts) or "none"
        sentences.append(f"Seeds without the planted head at the end, {column.title}: {ends}.")
    return sentences
