"""Figures of `benign-vit`: dynamics, wide heads, deficit.

- `dynamics`: figures 3 and 4 of Jiang et al. 2024, attention, inner products and values against the
  step, a column of panels for each setting.
- `wide-heads`: the test loss against the training loss, with its limit.
- `deficit`: what training attention misses of 1 against N·SNR²/√d_h, and the paper's rate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib.axes
import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from matplotlib.typing import ColorType, LineStyleType

from overfit_cli.core.cells import Cells
from overfit_cli.core.errors import UserError
from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.parameters import map_parameters, parameters_from_row
from overfit_cli.core.text import plural
from overfit_cli.figures.axes import legend_below, log_ticks
from overfit_cli.figures.inputs import Panel, require_numbers
from overfit_cli.figures.labels import brief, tick_number
from overfit_cli.figures.lines import draw_lines
from overfit_cli.figures.picture import Picture, new_panels, title_panels
from overfit_cli.figures.seed_statistics import Line, lines_of_steps
from overfit_cli.figures.style import BOUND, COLUMN, MARKERS, PAGE, PALETTE, Legend
from overfit_cli.stats.intervals import MIDDLE_HALF
from overfit_cli.studies.benign_vit.parameters import TOKEN_CLASSES, BenignVitParameters
from overfit_cli.studies.benign_vit.theory import (
    SMALL_DEFICIT,
    STAGE_2_SLOPE,
    StageEnds,
    attention_deficit,
    boundary_product,
    predicted_regime,
    stage_3_error,
    stage_ends,
)

MOST_SETTINGS = 3

Look = tuple[ColorType, LineStyleType]

Looks = Mapping[str, Look]

_OF: dict[str, LineStyleType] = {"signal": "-", "noise": "--", "rest": ":"}
"""The dash of each attending token."""

_ON = dict(zip(TOKEN_CLASSES, PALETTE, strict=False))
"""The colour of each attended token."""

_VALUES = dict(zip(("value_plus", "value_minus", "value_noise"), PALETTE[4:7], strict=True))

_VALUE_NAMES = dict(zip(_VALUES, (r"$\mu_+$", r"$\mu_-$", r"$|\xi_2|$"), strict=True))

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


def setting_panels(data: Cells) -> list[Panel]:
    """Split the data by the settings of all parameters that vary, in order."""
    return [Panel("", cells) for _, cells in data.without_plan().settings(data.varying())]


def has_dynamics(data: Cells) -> bool:
    """Whether there are few enough settings to be drawn side by side."""
    return len(setting_panels(data)) <= MOST_SETTINGS


def draw_dynamics(data: Cells, options: FigureOptions) -> Picture:
    """Draw attention, inner products and values, a column of panels for each setting.

    Attention is from each class of token on each: colour says on which, dash of which. Several
    seeds are a median with a band of their middle half. Vertical lines mark where stages 1 and
    2 of the proof end, at the median over the seeds that are fitted.
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
    figure.facts.insert(
        0,
        "Attention, scores and values of tokens against gradient steps; the attention on the rest "
        "is the sum over the M − 2 other tokens, of which no score is logged.",
    )
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
    return parameters_from_row(BenignVitParameters, part.data.trained.iloc[0])


def _ends(part: Panel) -> list[StageEnds]:
    parameters = _parameters(part)
    cells, steps = part.data.trained, part.data.steps
    steps = steps[steps["key"].isin(cells.loc[cells["status"] == "done", "key"])]
    regime = predicted_regime(parameters)
    return [stage_ends(of_cell, parameters.tokens, regime) for _, of_cell in steps.groupby("key")]


def _medians(ends: Sequence[StageEnds]) -> dict[str, float]:
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
    lead = ""
    if not all(np.isfinite(end.first) for end in ends):
        factor = max(end.lead for end in ends)
        lead = f" (the value leads by {factor:.2g} times at most, of 3M = {3 * parameters.tokens})"
    return (
        f"{_title(parameters)}: stage 1 {_end_in_words([end.first for end in ends])}{lead}, "
        f"stage 2 {_end_in_words([end.second for end in ends])}."
    )


def _end_in_words(steps: Sequence[float]) -> str:
    ended = sorted(step for step in steps if np.isfinite(step))
    if not ended:
        return "doesn't end"
    often = "" if len(ended) == len(steps) else f" in {len(ended)} of {len(steps)} seeds"
    first, last = tick_number(ended[0]), tick_number(ended[-1])
    span = first if first == last else f"{first} to {last}"
    return f"ends at step {span}{often}"


def _legend(marked: set[str]) -> Legend:
    def line(colour: ColorType, dash: LineStyleType) -> Line2D:
        return Line2D([], [], color=colour, linestyle=dash)

    values = [(line(colour, "-"), _VALUE_NAMES[name]) for name, colour in _VALUES.items()]
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

    data: Cells
    title: str  # what stands above it
    marks: Sequence[tuple[float, LineStyleType]]  # steps with a vertical line, each with its dash


def draw_curve_grid(settings: Sequence[SettingPanels], rows: Mapping[str, Looks]) -> Picture:
    """Draw curves, without a legend; several seeds are a median and its middle half."""
    columns = [name for looks in rows.values() for name in looks]
    gathered = lines_of_steps(
        [panels.data for panels in settings], columns, MIDDLE_HALF, most_single=1
    )
    count = len(settings)
    least = 2.3 * count if count > 1 else 0.0
    figure = Picture(min(PAGE, COLUMN * max(1.0, 0.95 * count)), 5.6, least=least)
    grid = figure.subplots(len(rows), count, sharex="col", sharey="row", squeeze=False)
    for column, (shown, lines) in enumerate(zip(settings, gathered.panels, strict=True)):
        for axes, looks in zip(grid[:, column], rows.values(), strict=True):
            for line in lines:
                _draw(axes, line, looks)
            for step, dash in shown.marks:
                axes.axvline(step, color="0.5", linestyle=dash, linewidth=0.8)
        _scale_steps(grid[-1, column], shown, lines)
        grid[-1, column].set_xlabel("gradient steps")
    titles = [shown.title for shown in settings] + [""] * (count * (len(rows) - 1))
    title_panels(grid.ravel().tolist(), titles)
    for axes, label in zip(grid[:, 0], rows, strict=True):
        axes.set_ylabel(label)
    figure.facts.append(f"Lines: {gathered.kind(columns[0])}.")
    return figure


def _draw(axes: matplotlib.axes.Axes, line: Line, looks: Looks) -> None:
    for name, (colour, dash) in looks.items():
        table = line[name]
        axes.plot(table.index, table["middle"], color=colour, linestyle=dash)
        band = (table.index, table["low"], table["high"])
        axes.fill_between(*band, color=colour, alpha=0.2, linewidth=0)


_FEW_STEPS = 100


def _scale_steps(axes: matplotlib.axes.Axes, shown: SettingPanels, lines: Sequence[Line]) -> None:
    steps = [
        float(step) for line in lines for table in line.tables.values() for step in table.index
    ]
    last = max(steps)
    if last <= _FEW_STEPS:
        axes.margins(x=0.02)
        axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
        return
    first = min((step for step, _ in shown.marks if step > 0), default=last / 10) / 100
    axes.set_xscale("log")
    axes.set_xlim(max(first, 1.0), last)
    log_ticks(axes.xaxis, *axes.get_xlim())


def has_wide_heads(data: Cells) -> bool:
    """Whether d_h is an axis, with the weights of Condition 4.1."""
    cells = data.trained
    return cells["d_h"].nunique() > 1 and bool((cells["initialisation"] == "condition").all())


def draw_wide_heads(data: Cells, options: FigureOptions) -> Picture:
    """Draw lines as usual, with so much room beside their ends that ticks of panels stand apart."""
    figure = draw_lines(data, options)
    low, high = figure.axes[0].get_xlim()
    room = (high / low) ** 0.08
    for axes in figure.axes:
        axes.set_xlim(low / room, high * room)
    return figure


_FORMULA: dict[str, Any] = {"linewidth": 3.0, "alpha": 0.35}


def _up_to(share: float) -> str:
    return f"up to {100 * share:.1g} %" if share >= 1e-4 else "less than 0.01 %"


def draw_deficit(data: Cells, options: FigureOptions) -> Picture:
    """Draw 1 less the training attention on the signal against N·SNR²/√d_h, for each M.

    Points are medians over seeds, which differ by less than a marker. Their c is the geometric mean
    of what is missing over N·SNR²/√d_h, where that is small. Pale lines are the formula; the black
    one is the paper's rate with a constant of 1, whose c, log(6N²M²/δ)³, is about one for all.
    """
    cells = require_numbers(data, "train_attention_signal")
    theories = {"formula": attention_deficit, "paper": stage_3_error}
    for name, theory in theories.items():
        cells = cells.assign(**{name: map_parameters(BenignVitParameters, cells, theory)})
    rate = boundary_product(cells["n"], cells["snr"]) / np.sqrt(cells["d_h"].astype(float))
    cells = cells.assign(rate=rate, deficit=1 - cells["train_attention_signal"])
    figure, [axes] = new_panels(1, height=3.6)
    legend: Legend = []
    residuals = []
    for colour, marker, (tokens, of_m) in zip(
        PALETTE, MARKERS, cells.groupby("tokens"), strict=False
    ):
        middle = of_m.groupby(["n", "snr", "d_h"])[["rate", "deficit"]].median()
        axes.plot(middle["rate"], middle["deficit"], marker, color=colour)
        axes.plot(of_m.groupby("rate")["formula"].median(), color=colour, **_FORMULA)
        small = of_m[of_m["formula"] <= SMALL_DEFICIT]
        c = float(np.exp(np.log(small["deficit"] / small["rate"]).mean()))
        residuals += (small["deficit"] / small["rate"] / c - 1).abs().tolist()
        look = Line2D([], [], color=colour, marker=marker, linestyle="")
        legend.append((look, f"$M$ = {tokens}, $c$ = {c:.0f}"))
    (paper,) = axes.plot(cells.groupby("rate")["paper"].median(), **BOUND)
    axes.set(xscale="log", yscale="log", ylabel="1 − training attention on the signal")
    axes.set_xlabel(r"$N \cdot \mathrm{SNR}^2 / \sqrt{d_h}$")
    axes.set_ylim(axes.get_ylim())
    axes.axhspan(1, axes.get_ylim()[1], color="0.93", zorder=0)
    level = axes.axhline(SMALL_DEFICIT, color="0.6", linewidth=0.6)
    for axis in (axes.xaxis, axes.yaxis):
        log_ticks(axis, *axis.get_view_interval())
    log_cubed = tick_number(float(f"{(cells['paper'] / cells['rate']).median():.1g}"))
    legend += [
        (Line2D([], [], color="0.3", **_FORMULA), "our formula"),
        (paper, f"paper's rate, $c$ ≈ {log_cubed}"),
        (level, f"{SMALL_DEFICIT:g}: $c$ is fitted below"),
        (Patch(color="0.93"), "says nothing"),
    ]
    legend_below(figure, legend, columns=2)
    by_setting = cells.groupby(["tokens", "n", "snr", "d_h"])["deficit"]
    spread = float((cells["deficit"] / by_setting.transform("median") - 1).abs().max())
    figure.facts.append(
        "1 less the training attention on the signal against N·SNR²/√d_h: medians of "
        f"{plural(cells['seed'].nunique(), 'seed')}, from which these differ by {_up_to(spread)}. "
        f"A fitted c is off by {_up_to(max(residuals, default=0.0))}. c: 1 less that attention "
        "over N·SNR²/√d_h, the geometric mean where the formula is at most "
        f"{SMALL_DEFICIT:g}, the grey line. The "
        "formula is ours, not the paper's: the mean over the M tokens of N·M·‖w_O‖²/(2 s²σ_h²d_h"
        "V²), with V = −log(e^ε − 1) and s the length of the token, for the signal 2/N of that; "
        "at one x, with other N, the median of its numbers is drawn. Dashed: the paper's rate with "
        "a constant of 1, for which c is log³(6N²M²/δ), at each N·SNR²/√d_h the median of its M "
        "and N; in the grey area it says nothing."
    )
    return figure
