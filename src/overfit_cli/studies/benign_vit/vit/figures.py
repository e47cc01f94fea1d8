"""Figures of `benign-vit`: dynamics, dimension.

- `dynamics`: figures 3 and 4 of Jiang et al. 2024, attention, inner products and values against the
  step, a column of panels for each setting.
- `dimension`: the boundary's constant and exponent against d, and the test loss across it.
- `deficit`: what training attention misses of 1 against N·SNR²/√d_h, and the paper's rate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib.axes
import numpy as np
import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator
from matplotlib.typing import ColorType, LineStyleType

from overfit_cli.core.errors import UserError
from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.parameters import map_parameters, parameters_from_row
from overfit_cli.core.study import FigureData
from overfit_cli.core.text import plural
from overfit_cli.figures.curves import Curve, gather_curves
from overfit_cli.figures.inputs import check_threshold, require_numbers
from overfit_cli.figures.labels import axis_label, brief, setting, tick_number
from overfit_cli.figures.lines import MARKERS
from overfit_cli.figures.panels import Panel, setting_panels
from overfit_cli.figures.picture import Picture, is_narrow, new_figure, styled, title_panels
from overfit_cli.figures.style import (
    COLUMN,
    PAGE,
    PALETTE,
    Legend,
    colours_of_map,
    legend_below,
    log_ticks,
)
from overfit_cli.stats.bands import MIDDLE_HALF
from overfit_cli.stats.boundaries import Boundary, Curves
from overfit_cli.studies.benign_vit.vit.parameters import TOKEN_CLASSES, BenignVitParameters
from overfit_cli.studies.benign_vit.vit.theory import (
    FIGURE_1_CONSTANT,
    FIGURE_1_EXPONENT,
    FIGURE_1_THRESHOLD,
    SMALL_DEFICIT,
    STAGE_2_SLOPE,
    StageEnds,
    attention_deficit,
    boundaries,
    boundary_product,
    loss_curves,
    predicted_regime,
    stage_3_error,
    stage_ends,
    why_no_boundary,
)

MOST_SETTINGS = 3

EXPECTED: dict[str, Any] = {"color": "0.45", "linestyle": (0, (4, 2)), "linewidth": 0.9}
"""The style of what is expected of a number."""

Look = tuple[ColorType, LineStyleType]

Looks = Mapping[str, Look]
"""The logged columns of a panel, with the colour and the dash of each."""

_OF: dict[str, LineStyleType] = {"signal": "-", "noise": "--", "rest": ":"}
"""The dash of each attending token."""

_ON = dict(zip(TOKEN_CLASSES, PALETTE, strict=False))
"""The colour of each attended token."""

_VALUES = dict(zip(("value_plus", "value_minus", "value_noise"), PALETTE[4:7], strict=True))

_ROWS: dict[str, Looks] = {
    "attention": {
        f"attention_{source}_{target}": (_ON[target], _OF[source])
        for source in TOKEN_CLASSES
        for target in TOKEN_CLASSES
    },
    r"score $\langle q, k\rangle$": {
        f"product_{source}_{target}": (_ON[target], _OF[source])
        for source in ("signal", "noise")
        for target in ("signal", "noise")
    },
    r"value $x^\top W_V w_O$": {name: (colour, "-") for name, colour in _VALUES.items()},
}

_STAGES: dict[str, LineStyleType] = {"first": (0, (1, 3)), "second": (0, (6, 2))}


def has_dynamics(data: FigureData) -> bool:
    """Whether there are few enough settings to be drawn side by side."""
    return len(setting_panels(data)) <= MOST_SETTINGS


@styled
def draw_dynamics(data: FigureData, options: FigureOptions) -> Picture:
    """Draw attention, inner products and values, a column of panels for each setting.

    Attention is from each class of token on each: colour says on which, dash of which. Several
    seeds are a median with a band of their middle half. Vertical lines mark where stages 1 and
    2 of the proof end, at the median over the seeds that are fitted.

    Raises:
        UserError: if there are more settings than fit side by side.
    """
    parts = sorted(setting_panels(data), key=lambda part: predicted_regime(_parameters(part)))
    if len(parts) > MOST_SETTINGS:
        raise UserError(
            f"There are {len(parts)} settings here, and up to {MOST_SETTINGS} fit side by side; "
            "choose some with --where NAME=VALUE."
        )
    ends = [_ends(part) for part in parts]
    marked = [_medians(of_part) for of_part in ends]
    settings = [
        SettingPanels(
            part.data,
            _title(_parameters(part)),
            [(step, _STAGES[name]) for name, step in medians.items()],
        )
        for part, medians in zip(parts, marked, strict=True)
    ]
    figure = draw_curve_grid(settings, _ROWS)
    figure.facts.insert(0, "Attention, scores and values of tokens against gradient steps.")
    figure.facts += [
        _stages_in_words(_parameters(part), of_part)
        for part, of_part in zip(parts, ends, strict=True)
    ]
    figure.facts.append(_STAGES_EXPLAINED)
    for axes in figure.axes[: len(parts)]:
        axes.set_ylim(-0.03, 1.03)
    legend_below(figure, _legend({name for medians in marked for name in medians}), columns=4)
    return figure


_STAGES_EXPLAINED = (
    "Stage 1 of the proof ends where what is learned first, the signal or the strong noise, has a "
    "value 3M times that of any other token; stage 2 where the loss's mean slope falls to "
    f"{STAGE_2_SLOPE:g}."
)


def _parameters(part: Panel) -> BenignVitParameters:
    return parameters_from_row(BenignVitParameters, part.data.cells.iloc[0])


def _ends(part: Panel) -> list[StageEnds]:
    """The stages of each cell that is fitted."""
    parameters = _parameters(part)
    cells, steps = part.data.cells, part.data.trajectories
    steps = steps[steps["key"].isin(cells.loc[cells["status"] == "done", "key"])]
    regime = predicted_regime(parameters)
    return [stage_ends(of_cell, parameters.tokens, regime) for _, of_cell in steps.groupby("key")]


def _medians(ends: Sequence[StageEnds]) -> dict[str, float]:
    """The median step at which each stage ends, of those that end on some seed."""
    steps = {name: [getattr(end, name) for end in ends] for name in _STAGES}
    return {
        name: float(np.nanmedian(of_stage))
        for name, of_stage in steps.items()
        if np.isfinite(of_stage).any()
    }


def _title(parameters: BenignVitParameters) -> str:
    norm = f"$\\Vert\\mu\\Vert$ = {brief(parameters.signal_norm)}"
    return f"$N$ = {parameters.n}, {norm}: predicted {predicted_regime(parameters)}"


def _stages_in_words(parameters: BenignVitParameters, ends: Sequence[StageEnds]) -> str:
    """When the proof's stages end, for a caption."""
    lead = ""
    if not all(np.isfinite(end.first) for end in ends):
        factor = max(end.lead for end in ends)
        lead = f" (the value leads by {factor:.2g} times at most, of 3M = {3 * parameters.tokens})"
    return (
        f"{_title(parameters)}: stage 1 {_end_in_words([end.first for end in ends])}{lead}, "
        f"stage 2 {_end_in_words([end.second for end in ends])}."
    )


def _end_in_words(steps: Sequence[float]) -> str:
    """When a stage ends, over the seeds."""
    ended = sorted(step for step in steps if np.isfinite(step))
    if not ended:
        return "doesn't end"
    often = "" if len(ended) == len(steps) else f" in {len(ended)} of {len(steps)} seeds"
    first, last = tick_number(ended[0]), tick_number(ended[-1])
    span = first if first == last else f"{first} to {last}"
    return f"ends at step {span}{often}"


def _legend(marked: set[str]) -> Legend:
    """A block with a heading for each kind of line; blocks are as high as the highest."""

    def line(colour: ColorType, dash: LineStyleType) -> Line2D:
        return Line2D([], [], color=colour, linestyle=dash)

    texts = (r"$\mu_+$", r"$\mu_-$", r"$|\xi_2|$")
    values = [
        (line(colour, "-"), text) for colour, text in zip(_VALUES.values(), texts, strict=True)
    ]
    stages = [
        (line("0.5", dash), f"stage {number}")
        for number, (name, dash) in enumerate(_STAGES.items(), start=1)
        if name in marked
    ]
    blocks: dict[str, Legend] = {
        "query of": [(line("0.3", dash), f"the {name}") for name, dash in _OF.items()],
        "key of": [(line(colour, "-"), f"the {name}") for name, colour in _ON.items()],
        "value of": values,
        "end of": stages,
    }
    height = max(len(block) for block in blocks.values())
    blank = Line2D([], [], linestyle="")
    return [
        entry
        for heading, block in blocks.items()
        if block
        for entry in [(blank, heading), *block, *[(blank, "")] * (height - len(block))]
    ]


@dataclass(frozen=True)
class SettingPanels:
    """One column of panels."""

    data: FigureData
    title: str  # what stands above it
    marks: Sequence[tuple[float, LineStyleType]]  # steps with a vertical line, each with its dash


def draw_curve_grid(settings: Sequence[SettingPanels], rows: Mapping[str, Looks]) -> Picture:
    """Draw curves, without a legend; several seeds are a median and its middle half.

    The panels of a row share y, so that settings are compared.
    """
    columns = [name for looks in rows.values() for name in looks]
    gathered = gather_curves(
        [panels.data for panels in settings], columns, most_single=1, over_seeds=MIDDLE_HALF
    )
    count = len(settings)
    least = 2.3 * count if count > 1 else 0.0
    figure = Picture(min(PAGE, COLUMN * max(1.0, 0.95 * count)), 5.6, least=least)
    grid = figure.subplots(len(rows), count, sharex="col", sharey="row", squeeze=False)
    for column, (shown, curves) in enumerate(zip(settings, gathered.curves, strict=True)):
        for axes, looks in zip(grid[:, column], rows.values(), strict=True):
            for curve in curves:
                _draw(axes, curve, looks)
            for step, dash in shown.marks:
                axes.axvline(step, color="0.5", linestyle=dash, linewidth=0.8)
        _scale_steps(grid[-1, column], shown, curves)
        grid[-1, column].set_xlabel("gradient steps")
    titles = [shown.title for shown in settings] + [""] * (count * (len(rows) - 1))
    title_panels(grid.ravel().tolist(), titles)
    for axes, label in zip(grid[:, 0], rows, strict=True):
        axes.set_ylabel(label)
    figure.facts.append(f"Lines: {gathered.kind}.")
    return figure


def _draw(axes: matplotlib.axes.Axes, curve: Curve, looks: Looks) -> None:
    for name, (colour, dash) in looks.items():
        mean = curve.mean[name].dropna()
        axes.plot(mean.index, mean, color=colour, linestyle=dash)
        low, high = curve.low[name].dropna(), curve.high[name].dropna()
        axes.fill_between(low.index, low, high, color=colour, alpha=0.2, linewidth=0)


_FEW_STEPS = 100
"""The number of steps up to which their axis is linear."""


def _scale_steps(axes: matplotlib.axes.Axes, shown: SettingPanels, curves: Sequence[Curve]) -> None:
    """Give steps an axis: logarithmic if they are many, from well before the first mark on."""
    steps = [float(step) for curve in curves for step in curve.mean.index]
    last = max(steps)
    if last <= _FEW_STEPS:
        axes.margins(x=0.02)
        axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
        return
    first = min((step for step, _ in shown.marks if step > 0), default=last / 10) / 100
    axes.set_xscale("log")
    axes.set_xlim(max(first, 1.0), last)
    log_ticks(axes.xaxis, *axes.get_xlim())


def has_wide_heads(data: FigureData) -> bool:
    """Whether d_h is an axis, with the weights of Condition 4.1."""
    cells = data.cells
    return cells["d_h"].nunique() > 1 and bool((cells["initialisation"] == "condition").all())


_FORMULA: dict[str, Any] = {"linewidth": 3.0, "alpha": 0.35}
_RATE: dict[str, Any] = {"linestyle": (0, (4, 2)), "linewidth": 0.9}


@styled
def draw_deficit(data: FigureData, options: FigureOptions) -> Picture:
    """Draw 1 less the training attention on the signal against N·SNR²/√d_h, for each M.

    Points are means over seeds, which differ by less than a marker. Their c is the geometric mean
    of what is missing over N·SNR²/√d_h, where that is small. Pale lines are the formula, dashed
    ones the paper's rate with a constant of 1: there c is log(6N²M²/δ)³.

    Raises:
        UserError: if no cell has a number.
    """
    cells = require_numbers(data, "train_attention_signal")
    theories = {"formula": attention_deficit, "paper": stage_3_error}
    for name, theory in theories.items():
        cells = cells.assign(**{name: map_parameters(BenignVitParameters, cells, theory)})
    rate = boundary_product(cells["n"], cells["snr"]) / np.sqrt(cells["d_h"].astype(float))
    cells = cells.assign(rate=rate, deficit=1 - cells["train_attention_signal"])
    figure, axes = new_figure(height=3.4)
    legend: Legend = []
    for colour, marker, (tokens, of_m) in zip(
        PALETTE, MARKERS, cells.groupby("tokens"), strict=False
    ):
        means = of_m.groupby(["n", "snr", "d_h"])[["rate", "deficit"]].mean()
        axes.plot(means["rate"], means["deficit"], marker, color=colour)
        for _, of_n in of_m.sort_values("rate").groupby("n"):
            axes.plot(of_n["rate"], of_n["formula"], color=colour, **_FORMULA)
            axes.plot(of_n["rate"], of_n["paper"], color=colour, **_RATE)
        small = of_m[of_m["formula"] <= SMALL_DEFICIT]
        c = float(np.exp(np.log(small["deficit"] / small["rate"]).mean()))
        look = Line2D([], [], color=colour, marker=marker, linestyle="")
        legend.append((look, f"$M$ = {tokens}, $c$ = {c:.0f}"))
    axes.set(xscale="log", yscale="log", ylabel="1 − training attention on the signal")
    axes.set_xlabel(r"$N \cdot \mathrm{SNR}^2 / \sqrt{d_h}$")
    axes.set_ylim(axes.get_ylim())
    axes.axhspan(1, axes.get_ylim()[1], color="0.93", zorder=0)
    axes.axhline(SMALL_DEFICIT, color="0.6", linewidth=0.6)
    for axis in (axes.xaxis, axes.yaxis):
        log_ticks(axis, *axis.get_view_interval())
    log_cubed = tick_number(float(f"{(cells['paper'] / cells['rate']).median():.1g}"))
    legend += [
        (Line2D([], [], color="0.3", **_FORMULA), "formula"),
        (
            Line2D([], [], color="0.3", **_RATE),
            rf"paper's rate, $c = \log^3(6N^2M^2/\delta)$, about {log_cubed}",
        ),
    ]
    legend_below(figure, legend, columns=3)
    figure.facts.append(
        "1 less the training attention on the signal against N·SNR²/√d_h: means of "
        f"{plural(cells['seed'].nunique(), 'seed')}. c is the factor between both, the geometric "
        f"mean where the formula is at most {SMALL_DEFICIT:g}, the grey line. Dashed: the paper's "
        "rate with a constant of 1; in the grey area it says nothing."
    )
    return figure


def has_dimensions(data: FigureData) -> bool:
    """Whether d is an axis, with grids over N and the signal-to-noise ratio."""
    return data.cells["d"].nunique() > 1 and why_no_boundary(data.cells, "d") is None


@styled
def draw_dimension(data: FigureData, options: FigureOptions) -> Picture:
    """Draw the boundary's constant C and exponent p against d, and the test loss against N · SNR².

    Raises:
        UserError: if d doesn't take several values, or something but N and the ratio varies too.
    """
    chosen = check_threshold(options.threshold)
    threshold = FIGURE_1_THRESHOLD if chosen is None else chosen
    single = "d takes one value only" if data.cells["d"].nunique() < 2 else None
    if why := single or why_no_boundary(data.cells, "d"):
        raise UserError(
            f"The figure `dimension` shows where overfitting turns benign over d, as in `overfit "
            f"sweep dimension`; in these cells that can't be found: {why}."
        )
    series = boundaries(data.cells, "d", threshold)
    return draw_boundary_numbers(data, series, "d", loss_curves(threshold), _WORDS)


@dataclass(frozen=True)
class BoundaryWords:
    """What a boundary y · x^p = C is called, and what is expected of it."""

    product: str  # y · x^p at the expected p, such as `N·SNR²`
    equation: str  # the equation with an open p, in mathtext
    value: str  # the measured column in words
    # constant, exponent: those that are expected
    constant: float
    exponent: float
    # expected_constant, expected_exponent: what these are, for beside their lines
    expected_constant: str
    expected_exponent: str


_WORDS = BoundaryWords(
    product=r"$N \cdot \mathrm{SNR}^2$",
    equation=r"$N \cdot \mathrm{SNR}^p = C$",
    value="test loss",
    constant=FIGURE_1_CONSTANT,
    exponent=FIGURE_1_EXPONENT,
    expected_constant="figure 1: 1000",
    expected_exponent="theorems: 2",
)


def draw_boundary_numbers(
    data: FigureData, series: Sequence[Boundary], axis: str, curves: Curves, words: BoundaryWords
) -> Picture:
    """Draw C and p against a parameter, and the measured column against y · x^p.

    Constants are medians over the curves of all y and seeds, with quartiles; exponents have 95 %
    bootstrap intervals. Curves that never cross count as beyond the grid.
    """
    narrow = is_narrow()
    figure = Picture(PAGE, 6.6 if narrow else 2.5)
    constants, exponents, losses = figure.subplots(3, 1) if narrow else figure.subplots(1, 3)
    outside = _draw_intervals(
        constants,
        {boundary.at: (boundary.median, boundary.low, boundary.high) for boundary in series},
    )
    fits = {boundary.at: boundary.fit for boundary in series if boundary.fit is not None}
    _draw_intervals(exponents, {value: fit.exponent[:3] for value, fit in fits.items()})
    _draw_reference(constants, words.constant, words.expected_constant)
    _draw_reference(exponents, words.exponent, words.expected_exponent)
    constants.set_ylabel(f"{words.product} at the crossing")
    exponents.set_ylabel(f"$p$ of {words.equation}")
    for axes in (constants, exponents):
        axes.set(xscale="log", xlabel=axis_label(data.study, axis))
        axes.set_xlim(series[0].at / 2, series[-1].at * 2)
    across = _draw_across(losses, data, axis, curves, words)
    figure.facts.append(f"{_numbers_title(series, data.cells, curves, words)}.")
    legend_below(figure, [*_numbers_legend(outside), *across], columns=4)
    return figure


_BINS = 24


def _numbers_legend(outside: bool) -> Legend:
    arrow = Line2D([], [], color=PALETTE[0], marker="^", linestyle="")
    return [
        (Line2D([], [], color=PALETTE[0], marker="o", linestyle=""), "measured"),
        *([(arrow, "beyond the grid")] if outside else []),
    ]


def _draw_reference(axes: matplotlib.axes.Axes, level: float, name: str) -> None:
    """Draw a horizontal line, with its name on it at the right end."""
    axes.axhline(level, **EXPECTED)
    axes.annotate(
        name,
        (0.7, level),
        xycoords=axes.get_yaxis_transform(),
        xytext=(0, 2),
        textcoords="offset points",
        ha="center",
        va="bottom",
        fontsize=6.5,
        color=EXPECTED["color"],
        path_effects=[withStroke(linewidth=2, foreground="white")],
    )


def _draw_intervals(
    axes: matplotlib.axes.Axes, values: Mapping[float, tuple[float, float, float]]
) -> bool:
    """Draw each number with the ends of its interval; return whether any lies beyond the grid.

    What does is an arrowhead at the edge of the panel: up where a number is infinite, down where
    it is 0.
    """
    positions, table = np.array(list(values)), np.array(list(values.values())).reshape(-1, 3)
    high, low = np.isposinf(table).any(axis=1), (table == 0).any(axis=1)
    shown = np.isfinite(table[:, 0]) & (table[:, 0] > 0)
    middle, ends = table[shown, 0], table[shown, 1:]
    ends = np.where(np.isfinite(ends) & (ends > 0), ends, middle[:, None])
    bars = [middle - ends[:, 0], ends[:, 1] - middle]
    axes.errorbar(
        positions[shown], middle, yerr=bars, fmt="o", color=PALETTE[0], elinewidth=0.8, zorder=3
    )
    for marker, height, chosen in (("^", 0.96, high), ("v", 0.04, low)):
        heights = np.full(int(chosen.sum()), height)
        edge: Any = {"transform": axes.get_xaxis_transform(), "color": PALETTE[0]}
        axes.plot(positions[chosen], heights, marker, **edge)
    return bool(high.any() or low.any())


def _draw_across(
    axes: matplotlib.axes.Axes, data: FigureData, axis: str, curves: Curves, words: BoundaryWords
) -> Legend:
    """Draw the column's mean against y · x^p for the ends and the middle of the parameter."""
    done = data.cells[data.cells["status"] == "done"]
    values = sorted(done[axis].unique().tolist())
    shown = sorted({values[0], values[len(values) // 2], values[-1]})
    colours = colours_of_map(np.linspace(0, 0.85, len(shown)).tolist())
    handles: Legend = []
    dashes = ("-", (0, (4, 1.5)), (0, (1, 1.5)))  # lines that coincide are all seen
    for value, colour, dash in zip(shown, colours, dashes[: len(shown)], strict=True):
        chosen = done[done[axis] == value]
        logs = np.log(chosen[curves.y] * chosen[curves.x] ** curves.power)
        edges = np.linspace(logs.min(), logs.max(), _BINS + 1)
        bins = pd.Series(np.digitize(logs, edges[1:-1]), index=chosen.index)
        means = chosen[curves.value].groupby(bins).mean()
        centres = np.exp(logs.groupby(bins).mean())
        (line,) = axes.plot(centres, means, color=colour, linestyle=dash)
        handles.append((line, setting(data.study, axis, value)))
    _draw_reference(axes, curves.threshold, f"threshold {tick_number(curves.threshold)}")
    symbol = {column.name: column.symbol for column in data.study.columns}[curves.value]
    axes.set(xscale="log", yscale="log", xlabel=words.product)
    axes.set_ylabel(f"mean {words.value} ${symbol}$")
    log_ticks(axes.xaxis, *axes.get_xlim())
    log_ticks(axes.yaxis, *axes.get_ylim())
    return handles


def _numbers_title(
    series: Sequence[Boundary], cells: pd.DataFrame, curves: Curves, words: BoundaryWords
) -> str:
    failed = int((cells["status"] == "failed").sum())
    never, count = (
        sum(boundary.never for boundary in series),
        sum(boundary.curves for boundary in series),
    )
    parts = [
        f"Where the {words.value} crosses {curves.threshold:g}: median and quartiles of "
        f"{words.product}, p with its 95 % interval; {plural(cells['seed'].nunique(), 'seed')}"
    ]
    if never:
        parts.append(f"curves that never cross: {never} of {count}")
    if failed:
        parts.append(f"{plural(failed, 'failed cell')} left out")
    return "; ".join(parts)
