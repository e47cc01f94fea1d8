"""Figures 2 to 5 of Deora et al. 2024, a line for each H, and the figure of certificates.

Certificates are measured quantities over their bounds, and margins side by side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import matplotlib
import matplotlib.axes
import numpy as np
import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.typing import ColorType, LineStyleType

from overfit_cli.core.errors import UserError
from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.study import FigureData
from overfit_cli.core.text import plural
from overfit_cli.figures.curves import Curve, gather_curves
from overfit_cli.figures.labels import parameter_values, tick_number
from overfit_cli.figures.panels import Panel, setting_panels
from overfit_cli.figures.picture import Picture, styled, title_panels
from overfit_cli.figures.style import (
    COLUMN,
    HIGHLIGHT,
    PALETTE,
    Legend,
    colours_of_map,
    legend_below,
    log_ticks,
)
from overfit_cli.stats.bands import MIDDLE_HALF
from overfit_cli.studies.multihead.claims import log10_step_sizes

MOST_SETTINGS = 4
DASHES: tuple[LineStyleType, ...] = ("-", "--")

SMALLEST_LOSS = 1e-16
"""The end of the axis of losses, though some go on falling."""


@dataclass(frozen=True)
class Row:
    """A row of panels."""

    label: str
    columns: dict[str, str]  # what is drawn, and what each is called; the first with a full line
    log: bool = False  # whether y is logarithmic


ROWS = (
    Row("loss", {"train_loss": "training", "test_loss": "test"}, log=True),
    Row("averaged norm", {"norm_w": "$W$", "norm_u": "$U$"}),
    Row("attention on\nrelevant tokens", {"attention": ""}),
    Row("cosine with\nthe planted head", {"alignment_w": "$W$", "alignment_u": "$U$"}),
    Row("cosine with\nattention SVM", {"machine_cosine": ""}),
    Row(r"margin over $\Vert \tilde{U} \Vert$", {"margin": ""}),
)


@styled
def draw_heads(data: FigureData, options: FigureOptions) -> Picture:
    """Draw losses, norms, attention or alignment, and margins; a column for each setting.

    Lines are medians over trials with a band of their middle half: where some trials find a planted
    head and others don't, a mean is that of none. A grey line in the losses falls as 1/t; one in
    the margins is γ_attn, where attention can come.

    Raises:
        UserError: if nothing was logged, or there are more settings than fit side by side.
    """
    if data.trajectories.empty:
        raise UserError("No steps were logged here; `overfit train` logs a cell's steps.")
    parts = _settings(data)
    rows = [row for row in ROWS if _is_logged(data, row)]
    width = COLUMN * max(1.0, 0.85 * len(parts))
    figure = Picture(width, 1.25 * len(rows) + 0.9)
    grid = figure.subplots(len(rows), len(parts), sharex="col", sharey="row", squeeze=False)
    heads = sorted(data.cells["heads"].unique().tolist())
    kind = ""
    for of_row, row in zip(grid, rows, strict=True):
        selected = [_select_heads(part.data, count) for part in parts for count in heads]
        gathered = gather_curves(selected, list(row.columns), most_single=1, over_seeds=MIDDLE_HALF)
        curves, kind = gathered.curves, gathered.kind
        of_parts = [
            curves[start : start + len(heads)] for start in range(0, len(curves), len(heads))
        ]
        for axes, part, of_part in zip(of_row, parts, of_parts, strict=True):
            _draw(axes, row, part, dict(zip(heads, of_part, strict=True)))
        if "margin" in row.columns:
            _mark_margins(of_row, parts)
        if row.log:
            _scale_losses(of_row, [curve for of_one in curves for curve in of_one])
        of_row[0].set_ylabel(row.label)
    title_panels(grid[0], [part.title for part in parts])
    for axes in grid[-1]:
        axes.set_xlabel("gradient steps")
    figure.facts.append(f"Lines: {kind}.")
    legend_below(figure, _legend(rows, heads), columns=6)
    return figure


def _settings(data: FigureData) -> list[Panel]:
    """One part for each setting of the parameters other than heads."""
    varied = [name for name, values in parameter_values(data).items() if len(values) > 1]
    alike = data.cells.assign(heads=data.cells["heads"].iloc[0])
    if varied in ([], ["heads"]):
        return [Panel("", data)]
    planned = data.planned.assign(heads=alike["heads"].iloc[0])
    parts = setting_panels(replace(data, cells=alike, planned=planned))
    if len(parts) > MOST_SETTINGS:
        raise UserError(
            f"There are {len(parts)} settings beside heads here, and up to {MOST_SETTINGS} fit "
            "side by side; choose some with --where NAME=VALUE."
        )
    return [
        Panel(
            part.title,
            replace(data, cells=data.cells[data.cells["key"].isin(part.data.cells["key"])]),
        )
        for part in parts
    ]


def _is_logged(data: FigureData, row: Row) -> bool:
    return any(
        name in data.trajectories and data.trajectories[name].notna().any() for name in row.columns
    )


def _select_heads(data: FigureData, count: int) -> FigureData:
    """The cells of one H, of which there may be none, with their steps."""
    cells = data.cells[data.cells["heads"] == count]
    steps = data.trajectories[data.trajectories["key"].isin(cells["key"])]
    return replace(data, cells=cells, trajectories=steps)


def _draw(
    axes: matplotlib.axes.Axes, row: Row, part: Panel, curves: Mapping[int, Sequence[Curve]]
) -> None:
    """Draw a panel: for each H its one curve, or none where nothing was logged or all failed."""
    colours = _colours(list(curves))
    for count, curve in ((count, curve) for count, of_one in curves.items() for curve in of_one):
        for name, dash in zip(row.columns, DASHES, strict=False):
            mean = curve.mean[name].dropna()
            axes.plot(mean.index, mean, color=colours[count], linestyle=dash)
            low, high = curve.low[name].dropna(), curve.high[name].dropna()
            axes.fill_between(low.index, low, high, color=colours[count], alpha=0.15, linewidth=0)
    steps = part.data.trajectories["step"]
    axes.set_xscale("symlog", linthresh=1)
    axes.set_xlim(0, steps.max())


def _scale_losses(row: Sequence[matplotlib.axes.Axes], curves: Sequence[Curve]) -> None:
    """Give a row of losses one logarithmic axis, and a guide that falls as 1/t."""
    ends = pd.concat([curve.mean.min() for curve in curves])
    low = max(float(ends.min()), SMALLEST_LOSS)
    high = max(1.0, float(pd.concat([curve.high.max() for curve in curves]).max()))
    for axes in row:
        axes.set_yscale("log")
        axes.set_ylim(low / 2, 1.5 * high)
        log_ticks(axes.yaxis, low, high)
        last_step = axes.get_xlim()[1]
        steps = np.array([max(1.0, last_step / 100), last_step])
        axes.plot(steps, 0.5 * steps[0] / steps, color="0.5", linewidth=0.8, linestyle=(0, (1, 1)))


def _mark_margins(row: Sequence[matplotlib.axes.Axes], parts: Sequence[Panel]) -> None:
    """Draw γ_attn, which a cell's margin and its share give; the axis begins at −γ_attn or above.

    Far below, where all margins begin, nothing could be told from it.
    """
    marks = []
    for axes, part in zip(row, parts, strict=True):
        measured = part.data.cells.dropna(subset=["margin", "margin_share"])
        if len(measured):
            marks.append(float((measured["margin"] / measured["margin_share"]).median()))
            axes.axhline(marks[-1], color="0.5", linewidth=0.8)
    if marks:
        row[0].set_ylim(bottom=max(row[0].get_ylim()[0], -max(marks)))


def _colours(heads: Sequence[int]) -> dict[int, ColorType]:
    return dict(zip(heads, colours_of_map(np.linspace(0, 0.9, len(heads)).tolist()), strict=True))


def _legend(rows: Sequence[Row], heads: Sequence[int]) -> Legend:
    entries: Legend = [
        (Line2D([], [], color=colour), f"$H$ = {count}")
        for count, colour in _colours(heads).items()
    ]
    pairs = [list(row.columns.values()) for row in rows if len(row.columns) == 2]
    firsts = ", ".join(dict.fromkeys(pair[0] for pair in pairs))
    seconds = ", ".join(dict.fromkeys(pair[1] for pair in pairs))
    entries += [
        (Line2D([], [], color="0.3", linestyle=dash), text)
        for dash, text in zip(DASHES, (firsts, seconds), strict=True)
        if text
    ]
    entries.append((Line2D([], [], color="0.5", linestyle=(0, (1, 1)), linewidth=0.8), "$1/t$"))
    entries.append((Line2D([], [], color="0.5", linewidth=0.8), r"$\gamma_{\mathrm{attn}}$"))
    return entries


RATIOS = {
    "model_gradient": "Prop. 1: gradient of a head",
    "model_hessian": "Prop. 1: Hessian of a head",
    "loss_gradient": "Cor. 1: gradient of the loss",
    "loss_hessian": "Cor. 1: Hessian of the loss",
    "loss_concavity": "Cor. 1: concavity of the loss",
    "good_norm": "Def. 1, P1: norm of a head",
    "good_output": "Def. 1, P2: output",
    "optimal_missed": "Prop. 3: softmax missed",
    "optimal_margin": "Prop. 3: margin, inverse",
}
"""Columns that are measured numbers over their bounds, with their names in the figure."""

MARGINS = {
    "gamma_linear": r"$\gamma_{\mathrm{lin}}$, linear model",
    "gamma_tangent": r"$\gamma_\ast$, eq. (7) with $\zeta/4$",
    "ntk_margin_constructed": r"tangent kernel, $\theta_\ast$",
    "ntk_margin": "tangent kernel, largest",
    "margin": "after training",
    "gamma_attention": r"$\gamma_{\mathrm{attn}}$, attention",
}
"""Columns that are margins."""

_SPREAD = 0.12

_FAR = -1.0
"""Margins below are named, and not drawn: as stated one may lie far below all that are measured."""


@dataclass(frozen=True)
class CertificateRow:
    """A row of points."""

    name: str
    values: pd.Series[float]
    note: str  # what stands at its other end


@styled
def draw_certificates(data: FigureData, options: FigureOptions) -> Picture:
    """Draw measured numbers over their bounds, a point for each cell, and margins below them.

    A number above 1 would break its bound; one far below shows how loose it is. Theorems 1 and 2
    come with the decades of heads and of step size that their requirements are missed by.

    Raises:
        UserError: if no cell was held to bounds.
    """
    cells = data.cells[data.cells["status"] == "done"]
    ratios = [*_ratios(cells), *_theorems(cells)]
    if not ratios:
        raise UserError(
            "No cell was held to bounds here; `--set certify=true` does so, as `overfit sweep "
            "heads-certificates` has it."
        )
    margins = _margins(cells)
    heights = [len(ratios), len(margins)] if margins else [len(ratios)]
    figure = Picture(1.75 * COLUMN, 0.24 * sum(heights) + 1.3, least=5.0)
    grid = figure.subplots(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    _draw_certificates(grid[0], ratios)
    grid[0].set_xscale("log")
    grid[0].axvline(1, color=HIGHLIGHT, linewidth=1)
    grid[0].set_xlabel("measured over its bound; above 1 breaks it")
    if margins:
        _draw_certificates(grid[1], margins)
        grid[1].set_xlabel("margin")
    figure.facts.append(f"Each point is one of {plural(len(cells), 'cell')}.")
    return figure


def _ratios(cells: pd.DataFrame) -> list[CertificateRow]:
    rows = []
    for column, name in RATIOS.items():
        certified = cells
        if column.startswith("optimal"):  # Proposition 3 is about little noise
            certified = cells[cells.get("optimal_noise", pd.Series(2.0, cells.index)) <= 1]
        values = _numbers(certified, column)
        if len(values):
            rows.append(_row(name, values, f"at most {_two_digits(values.max())}"))
    return rows


def _theorems(cells: pd.DataFrame) -> list[CertificateRow]:
    """Theorems 1 and 2: the measured side over the bound, and the decades that they miss."""
    from_zero = cells[cells["initialisation"] == "zero"]
    sides = {
        "1": _numbers(from_zero, "mean_train_loss"),
        "2": _numbers(from_zero, "test_loss") - _numbers(from_zero, "train_loss"),
    }
    rows = []
    for number, side in sides.items():
        ratio = (side / _numbers(from_zero, f"theorem{number}_bound")).dropna()
        heads = _numbers(from_zero, f"theorem{number}_heads") - np.log10(
            from_zero["heads"].astype(float)
        )
        steps = log10_step_sizes(from_zero) - _numbers(from_zero, "theorem_step_size")
        if len(ratio):
            note = f"at most {_two_digits(ratio.max())}"
            if (heads > 0).any() or (steps > 0).any():
                note = (
                    f"vacuous: {heads.median():.0f} decades of $H$ too few,\n"
                    f"{steps.median():.0f} of step size too large (medians)"
                )
            rows.append(_row(f"Theorem {number}", ratio, note))
    return rows


def _two_digits(number: float) -> str:
    """Write a number with two digits, the very small as a power of ten."""
    return tick_number(float(f"{number:.2g}"))


def _row(name: str, ratios: pd.Series[float], note: str) -> CertificateRow:
    """A row of positive numbers on a logarithmic axis; the others are counted."""
    uncountable = int((ratios <= 0).sum())
    remark = f"; {uncountable} at 0 or less" if uncountable else ""
    return CertificateRow(name, ratios[ratios > 0], note + remark)


def _margins(cells: pd.DataFrame) -> list[CertificateRow]:
    if "ntk_margin" not in cells or cells["ntk_margin"].isna().all():
        return []
    return [
        CertificateRow(name, values, f"{values.median():.3g} in the median".replace("-", "−"))
        for column, name in MARGINS.items()
        if len(values := _numbers(cells, column))
    ]


def _numbers(cells: pd.DataFrame, column: str) -> pd.Series[float]:
    numbers: pd.Series[float] = cells.get(column, pd.Series(dtype=float)).astype(float).dropna()
    return numbers


def _draw_certificates(axes: matplotlib.axes.Axes, rows: Sequence[CertificateRow]) -> None:
    """Draw rows of points from top to bottom, moved apart a little; an arrow is for far ones."""
    for height, row in enumerate(rows):
        visible = row.values[row.values > _FAR]
        spread = np.random.default_rng(0).uniform(-_SPREAD, _SPREAD, len(visible))
        axes.plot(visible, height + spread, "o", color=PALETTE[0], markersize=2, alpha=0.5)
        transform = axes.get_yaxis_transform()
        if len(visible) < len(row.values):
            axes.plot(0.012, height, "<", color=PALETTE[0], markersize=4, transform=transform)
        axes.text(1.01, height, row.note, transform=transform, va="center", size=7)
    axes.set_yticks(range(len(rows)), [row.name for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.grid(axis="x", color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
