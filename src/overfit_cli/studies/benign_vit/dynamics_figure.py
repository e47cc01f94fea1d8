"""Figures 3 and 4 of Jiang et al. 2024: attention, inner products and values against the step."""

from __future__ import annotations

import matplotlib.axes
import matplotlib.figure
import numpy as np
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from matplotlib.typing import LineStyleType

from overfit_cli.errors import UserError
from overfit_cli.figure import FigureData, FigureOptions
from overfit_cli.figures.panels import Panel, by_setting
from overfit_cli.figures.runs import Curve, gather_curves
from overfit_cli.figures.style import COLUMN, PALETTE, Legend, brief, legend_below, styled
from overfit_cli.parameters import describe
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.stages import StageEnds, stage_ends
from overfit_cli.studies.benign_vit.theory import Regime, predicted_regime

MOST_SETTINGS = 3
_PAIRS = ("signal_signal", "signal_noise", "noise_signal", "noise_noise")
_ROWS = {
    "attention": [f"attention_{pair}" for pair in _PAIRS],
    r"$\langle q, k\rangle$": [f"product_{pair}" for pair in _PAIRS],
    r"$x^\top W_V w_O$": ["value_plus", "value_minus", "value_noise"],
}
_OF_PAIRS = ("signal on signal", "signal on noise", "noise on signal", "noise on noise")
_OF_VALUES = (r"$\mu_+$", r"$\mu_-$", r"$|\xi_2|$")
_VALUE_COLOURS = PALETTE[4:7]


@styled
def draw_dynamics(data: FigureData, options: FigureOptions) -> matplotlib.figure.Figure:
    """Draw attention, inner products and values, a column of panels for each setting.

    Three seeds or more are a mean with a band of one standard deviation. Vertical lines mark
    where stages 1 and 2 of the proof end, at the median over seeds.

    Raises:
        UserError: if there are more settings than fit side by side.
    """
    parts = sorted(by_setting(data), key=lambda part: _regime(_parameters(part)))
    if len(parts) > MOST_SETTINGS:
        raise UserError(
            f"There are {len(parts)} settings here; dynamics are drawn for up to {MOST_SETTINGS} "
            "side by side."
        )
    columns = [name for names in _ROWS.values() for name in names]
    gathered, kind = gather_curves([part.data for part in parts], columns, few=1)
    figure = matplotlib.figure.Figure(figsize=(COLUMN * max(1.0, 0.95 * len(parts)), 5.4))
    grid = figure.subplots(len(_ROWS), len(parts), sharex="col", squeeze=False)
    for place, (part, curves) in enumerate(zip(parts, gathered, strict=True)):
        ends = _ends(part)
        for axes, names in zip(grid[:, place], _ROWS.values(), strict=True):
            for curve in curves:
                _draw(axes, curve, names)
            _mark(axes, ends)
        grid[0, place].set_title(_title(part, ends))
        grid[-1, place].set_xlabel("gradient steps")
    for axes, name in zip(grid[:, 0], _ROWS, strict=True):
        axes.set_ylabel(name)
    for axes in grid[0]:
        axes.set_ylim(-0.03, 1.03)
    figure.suptitle(kind, x=0.01, ha="left", fontsize=7)
    legend_below(figure, _legend(), columns=4)
    return figure


def _draw(axes: matplotlib.axes.Axes, curve: Curve, names: list[str]) -> None:
    colours = PALETTE if len(names) == len(_PAIRS) else _VALUE_COLOURS
    for name, colour in zip(names, colours, strict=False):
        mean = curve.mean[name].dropna()
        axes.plot(mean.index, mean, color=colour)
        low, high = curve.low[name].dropna(), curve.high[name].dropna()
        axes.fill_between(low.index, low, high, color=colour, alpha=0.2, linewidth=0)
    axes.margins(x=0.02)
    axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True))


def _parameters(part: Panel) -> BenignVitParameters:
    row = part.data.cells.iloc[0]
    return BenignVitParameters.model_validate(
        {name: row[name] for name in describe(BenignVitParameters)}
    )


def _regime(parameters: BenignVitParameters) -> Regime:
    return predicted_regime(parameters.n, parameters.snr)


def _ends(part: Panel) -> list[StageEnds]:
    """Each cell's stages."""
    parameters = _parameters(part)
    steps = part.data.trajectories
    steps = steps[steps["key"].isin(part.data.cells["key"])]
    return [
        stage_ends(of_cell, parameters.tokens, _regime(parameters))
        for _, of_cell in steps.groupby("key")
    ]


_STAGES: dict[str, LineStyleType] = {"first": ":", "second": "--"}


def _mark(axes: matplotlib.axes.Axes, ends: list[StageEnds]) -> None:
    for name, dash in _STAGES.items():
        steps = [getattr(end, name) for end in ends]
        if np.isfinite(steps).any():
            axes.axvline(float(np.nanmedian(steps)), color="0.4", linestyle=dash, linewidth=0.8)


def _title(part: Panel, ends: list[StageEnds]) -> str:
    parameters = _parameters(part)
    norm = f"$\\Vert\\mu\\Vert$ = {brief(parameters.signal_norm)}"
    lead = ""
    if not all(np.isfinite(end.first) for end in ends):
        most = max(end.lead for end in ends)
        lead = f" (lead up to {most:.2g} of {3 * parameters.tokens})"
    return (
        f"$N$ = {parameters.n}, {norm}: predicted {_regime(parameters)}\n"
        f"stage 1 {_when([end.first for end in ends])}{lead}\n"
        f"stage 2 {_when([end.second for end in ends])}"
    )


def _when(steps: list[float]) -> str:
    """When a stage ends, over the seeds."""
    ended = sorted(int(step) for step in steps if np.isfinite(step))
    if not ended:
        return "doesn't end"
    often = "" if len(ended) == len(steps) else f" in {len(ended)} of {len(steps)} seeds"
    span = f"{ended[0]} to {ended[-1]}" if ended[0] < ended[-1] else f"{ended[0]}"
    return f"ends at step {span}{often}"


def _legend() -> Legend:
    colours = (*PALETTE[: len(_OF_PAIRS)], *_VALUE_COLOURS)
    texts = (*_OF_PAIRS, *_OF_VALUES)
    lines = [(Line2D([], [], color=own), text) for own, text in zip(colours, texts, strict=True)]
    stages = [
        (Line2D([], [], color="0.4", linestyle=dash, linewidth=0.8), f"stage {number} ends")
        for number, dash in enumerate(_STAGES.values(), start=1)
    ]
    return [*lines, *stages]
