"""Figures 3 and 4 of Jiang et al. 2024: attention, inner products and values against the step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.typing import ColorType, LineStyleType

from overfit_cli.core.figure import FigureData, FigureOptions
from overfit_cli.core.parameters import of_row
from overfit_cli.core.text import UserError
from overfit_cli.figures.curve_grid import Looks, SettingPanels, draw_curve_grid
from overfit_cli.figures.panels import Panel, by_setting
from overfit_cli.figures.picture import Picture, styled
from overfit_cli.figures.style import PALETTE, Legend, brief, legend_below, plain
from overfit_cli.studies.benign_vit.columns import TOKEN_CLASSES
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.theory.predictions import predicted_regime
from overfit_cli.studies.benign_vit.theory.steps import StageEnds, stage_ends

MOST_SETTINGS = 3
_OF: dict[str, LineStyleType] = {"signal": "-", "noise": "--", "rest": ":"}
"""What attends, by its dash."""

_ON = dict(zip(TOKEN_CLASSES, PALETTE, strict=False))
"""What is attended to, by its colour."""

_VALUES = dict(zip(("value_plus", "value_minus", "value_noise"), PALETTE[4:7], strict=True))
_ROWS: dict[str, Looks] = {
    "attention": {
        f"attention_{source}_{target}": (_ON[target], _OF[source])
        for source in TOKEN_CLASSES
        for target in TOKEN_CLASSES
    },
    r"$\langle q, k\rangle$": {
        f"product_{source}_{target}": (_ON[target], _OF[source])
        for source in ("signal", "noise")
        for target in ("signal", "noise")
    },
    r"$x^\top W_V w_O$": {name: (colour, "-") for name, colour in _VALUES.items()},
}
_STAGES: dict[str, LineStyleType] = {"first": (0, (1, 3)), "second": (0, (6, 2))}


def has_dynamics(data: FigureData) -> bool:
    """Whether there are few enough settings to be drawn side by side."""
    return len(by_setting(data)) <= MOST_SETTINGS


@styled
def draw_dynamics(data: FigureData, options: FigureOptions) -> Picture:
    """Draw attention, inner products and values, a column of panels for each setting.

    Attention is from each class of token on each: colour says on which, dash of which. Several
    seeds are a median with a band of their middle half. Vertical lines mark where stages 1 and
    2 of the proof end, at the median over the seeds that are fitted.

    Raises:
        UserError: if there are more settings than fit side by side.
    """
    parts = sorted(by_setting(data), key=lambda part: predicted_regime(_parameters(part)))
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
    figure.facts += [
        _stages_in_words(_parameters(part), of_part)
        for part, of_part in zip(parts, ends, strict=True)
    ]
    for axes in figure.axes[: len(parts)]:
        axes.set_ylim(-0.03, 1.03)
    legend_below(figure, _legend({name for medians in marked for name in medians}), columns=4)
    return figure


def _parameters(part: Panel) -> BenignVitParameters:
    return of_row(BenignVitParameters, part.data.cells.iloc[0])


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
        most = max(end.lead for end in ends)
        lead = f" (lead up to {most:.2g} of {3 * parameters.tokens})"
    return (
        f"{_title(parameters)}: stage 1 {_when([end.first for end in ends])}{lead}, stage 2 "
        f"{_when([end.second for end in ends])}."
    )


def _when(steps: Sequence[float]) -> str:
    """When a stage ends, over the seeds."""
    ended = sorted(step for step in steps if np.isfinite(step))
    if not ended:
        return "doesn't end"
    often = "" if len(ended) == len(steps) else f" in {len(ended)} of {len(steps)} seeds"
    first, last = plain(ended[0]), plain(ended[-1])
    span = first if first == last else f"{first} to {last}"
    return f"ends at step {span}{often}"


def _legend(marked: set[str]) -> Legend:
    def line(colour: ColorType, dash: LineStyleType) -> Line2D:
        return Line2D([], [], color=colour, linestyle=dash)

    of = [(line("0.3", dash), f"of the {name}") for name, dash in _OF.items()]
    on = [(line(colour, "-"), f"on the {name}") for name, colour in _ON.items()]
    texts = (r"$\mu_+$", r"$\mu_-$", r"$|\xi_2|$")
    values = [(line(own, "-"), text) for own, text in zip(_VALUES.values(), texts, strict=True)]
    stages = [
        (line("0.5", dash), f"stage {number} ends")
        for number, (name, dash) in enumerate(_STAGES.items(), start=1)
        if name in marked
    ]
    return [*of, *on, *values, *stages]
