"""The figure `certificates`: measured quantities over their bounds, and margins below them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib.axes
import numpy as np
import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.typing import ColorType

from overfit_cli.core.arrays import varying
from overfit_cli.core.cells import Cells
from overfit_cli.core.errors import UserError
from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.parameters import describe
from overfit_cli.core.text import plural
from overfit_cli.figures.axes import legend_below
from overfit_cli.figures.labels import brief, short_setting, tick_number
from overfit_cli.figures.picture import Picture, title_panels
from overfit_cli.figures.style import BOUND, COLUMN, MARKERS, PALETTE, Legend, value_colours
from overfit_cli.studies.multihead.parameters import STEP_RULES

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

_FAR = -1.0
"""Margins below are named, and not drawn: as stated one may lie far below all that are measured."""

TOLD_APART = ("sigma_init", "heads", "sigma", "first_samples")
"""The parameters of which the first that varies gives points their colours and sub-rows, and the
second their markers."""


@dataclass(frozen=True)
class CertificateRow:
    """A row of points: numbers by the index of their cells, and a sentence for the caption."""

    name: str
    values: pd.Series[float]
    note: str
    remark: str = ""


def draw_certificates(data: Cells, options: FigureOptions) -> Picture:
    """Draw measured numbers over their bounds, a point for each cell, and margins below them."""
    cells = data.trained[data.trained["status"] == "done"]
    ratios = [*_ratios(cells), *_theorems(cells)]
    if not ratios:
        raise UserError(
            "No cell here checks bounds; `--set certify=true` does so, as `overfit sweep "
            "heads-certificates` has it."
        )
    margins = _margins(cells)
    heights = [len(ratios), len(margins)] if margins else [len(ratios)]
    figure = Picture(1.5 * COLUMN, 0.27 * sum(heights) + 1.4, least=4.2)
    grid = figure.subplots(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    told = varying(cells, [name for name in TOLD_APART if name in cells])[:2]
    groups = _groups(data, cells, told)
    _draw_rows(grid[0], ratios, groups, "largest")
    grid[0].set_xscale("log")
    grid[0].axvline(1, **BOUND)
    grid[0].set_xlabel("measured over its bound; above 1 breaks it")
    if margins:
        _draw_rows(grid[1], margins, groups, "range")
        grid[1].set_xlabel("margin")
    title_panels(grid.tolist(), [""] * len(grid))
    described = describe(data.study.parameters)
    heading = ", ".join(described[name].label for name in told)
    legend_below(figure, _legend(groups, margins), columns=5, heading=heading)
    figure.facts.append(
        f"Measured numbers over their bounds{' and margins' if margins else ''}: each point is one "
        f"of {plural(len(cells), 'cell')}."
    )
    figure.facts += [row.remark for row in ratios if row.remark] + _pooled(data, told)
    return figure


@dataclass(frozen=True)
class Group:
    """The cells of one colour."""

    text: str
    colour: ColorType
    index: Mapping[str, pd.Index]
    words: Mapping[str, str]


def _groups(data: Cells, cells: pd.DataFrame, told: Sequence[str]) -> list[Group]:
    """The cells by the values of the parameters that are told apart; all where none varies."""
    values = data.values
    if not told:
        return [Group("", PALETTE[0], {"o": cells.index}, {})]
    name, others = told[0], told[1:]
    taken = values[name]
    shapes = {
        marker: (short_setting(data.schema, other, value), cells[other] == value)
        for other in others
        for marker, value in zip(MARKERS, values[other], strict=False)
    }
    groups = []
    for value, colour in zip(taken, value_colours(data.study, name, taken), strict=True):
        chosen = cells[name] == value
        index = {marker: cells.index[chosen & same] for marker, (_, same) in shapes.items()}
        groups.append(
            Group(
                short_setting(data.schema, name, value),
                colour,
                index or {"o": cells.index[chosen]},
                {marker: text for marker, (text, _) in shapes.items()},
            )
        )
    return groups


def _pooled(data: Cells, told: Sequence[str]) -> list[str]:
    values = data.values
    pooled = [
        f"${data.symbol(name)}$ = {', '.join(map(brief, values[name]))}"
        for name in TOLD_APART
        if name not in told and len(values.get(name, ())) > 1
    ]
    return [f"Together: {'; '.join(pooled)}."] if pooled else []


def _legend(groups: Sequence[Group], margins: Sequence[CertificateRow]) -> Legend:
    legend: Legend = [
        (Line2D([], [], color=group.colour, marker="s", linestyle=""), group.text)
        for group in groups
        if group.text
    ]
    legend += [
        (Line2D([], [], color="0.3", marker=marker, linestyle=""), text)
        for marker, text in groups[0].words.items()
    ]
    if any((row.values <= _FAR).any() for row in margins):
        legend.append((Line2D([], [], color="0.3", marker="<", linestyle=""), "farther left"))
    return legend


def _ratios(cells: pd.DataFrame) -> list[CertificateRow]:
    rows = []
    for column, name in RATIOS.items():
        certified = cells
        if column.startswith("optimal"):  # Proposition 3 is about little noise
            certified = cells[cells.get("optimal_noise", pd.Series(2.0, cells.index)) <= 1]
        values = _numbers(certified, column)
        if len(values):
            rows.append(_row(name, values))
    return rows


def _theorems(cells: pd.DataFrame) -> list[CertificateRow]:
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
        steps = _log10_step_sizes(from_zero) - _numbers(from_zero, "theorem_step_size")
        if len(ratio):
            missed = ""
            if (heads > 0).any() or (steps > 0).any():
                missed = (
                    f"Theorem {number} is vacuous here: it requires {heads.median():.0f} decades "
                    f"more heads, and a step size {steps.median():.0f} decades smaller (medians)."
                )
            rows.append(_row(f"Theorem {number}", ratio, missed))
    return rows


def _log10_step_sizes(cells: pd.DataFrame) -> pd.Series[float]:
    powers = cells["step_rule"].map(STEP_RULES).astype(float)
    sizes = cells["learning_rate"].astype(float) * cells["heads"].astype(float) ** powers
    return pd.Series(np.log10(sizes), cells.index)


def _digits(number: float) -> str:
    return tick_number(float(f"{number:.{3 if 0.95 < number < 1 else 2}g}"))


def _row(name: str, ratios: pd.Series[float], vacuous: str = "") -> CertificateRow:
    hidden = int((ratios <= 0).sum())
    note = f"{_digits(float(ratios.max()))}{', vacuous' if vacuous else ''}"
    remarks = [f"{name}: {plural(hidden, 'number')} at 0 or less not shown."] if hidden else []
    return CertificateRow(name, ratios[ratios > 0], note, " ".join([vacuous, *remarks]).strip())


def _margins(cells: pd.DataFrame) -> list[CertificateRow]:
    if "ntk_margin" not in cells or cells["ntk_margin"].isna().all():
        return []
    return [
        CertificateRow(name, values, _range_in_words(values))
        for column, name in MARGINS.items()
        if len(values := _numbers(cells, column))
    ]


def _range_in_words(values: pd.Series[float]) -> str:
    ends = [tick_number(float(f"{end:.3g}")) for end in (values.min(), values.max())]
    return " to ".join(dict.fromkeys(ends))


def _numbers(cells: pd.DataFrame, column: str) -> pd.Series[float]:
    numbers: pd.Series[float] = cells.get(column, pd.Series(dtype=float)).astype(float).dropna()
    return numbers


def _draw_rows(
    axes: matplotlib.axes.Axes, rows: Sequence[CertificateRow], groups: Sequence[Group], noted: str
) -> None:
    random, step = np.random.default_rng(0), 0.7 / len(groups)
    transform = axes.get_yaxis_transform()
    for height, row in enumerate(rows):
        for number, group in enumerate(groups):
            middle = height + step * (number - (len(groups) - 1) / 2)
            look: Mapping[str, Any] = {"color": group.colour, "markeredgewidth": 0}
            for marker, index in group.index.items():
                values = row.values[row.values.index.isin(index)]
                visible = values[values > _FAR]
                spread = middle + random.uniform(-0.35, 0.35, len(visible)) * step
                alpha = 0.5 if len(visible) <= _MANY else 0.2
                axes.plot(visible, spread, marker, markersize=2.5, alpha=alpha, **look)
                if len(visible) < len(values):
                    axes.plot(0.012, middle, "<", markersize=4, transform=transform, **look)
        axes.text(1.01, height, row.note, transform=transform, va="center", size=7)
    axes.text(1.01, -0.85, noted, transform=transform, va="center", size=7, style="italic")
    axes.set_yticks(range(len(rows)), [row.name for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.grid(axis="x", color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)


_MANY = 50
"""The number of points of a group from which they are pale."""
