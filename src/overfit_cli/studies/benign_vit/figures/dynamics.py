"""Figures 3 and 4 of Jiang et al. 2024: attention, inner products and values against the step."""

from __future__ import annotations

import matplotlib.axes
import matplotlib.figure
import numpy as np
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from matplotlib.typing import ColorType, LineStyleType

from overfit_cli.errors import UserError
from overfit_cli.figure import FigureData, FigureOptions
from overfit_cli.figures.panels import Panel, by_setting
from overfit_cli.figures.runs import Curve, gather_curves
from overfit_cli.figures.style import COLUMN, PALETTE, Legend, brief, legend_below, plain, styled
from overfit_cli.parameters import of_row
from overfit_cli.studies.benign_vit.columns import TOKEN_CLASSES
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.theory.predictions import predicted_regime
from overfit_cli.studies.benign_vit.theory.steps import StageEnds, stage_ends

MOST_SETTINGS = 3
_OF: dict[str, LineStyleType] = {"signal": "-", "noise": "--", "rest": ":"}
"""What attends, by its dash."""

_ON = dict(zip(TOKEN_CLASSES, PALETTE, strict=False))
"""What is attended to, by its colour."""

_Look = tuple[ColorType, LineStyleType]
_ATTENTION: dict[str, _Look] = {
    f"attention_{source}_{target}": (_ON[target], _OF[source])
    for source in TOKEN_CLASSES
    for target in TOKEN_CLASSES
}
_PRODUCTS: dict[str, _Look] = {
    f"product_{source}_{target}": (_ON[target], _OF[source])
    for source in ("signal", "noise")
    for target in ("signal", "noise")
}
_VALUES: dict[str, _Look] = {
    name: (colour, "-")
    for name, colour in zip(("value_plus", "value_minus", "value_noise"), PALETTE[4:7], strict=True)
}
_ROWS = {
    "attention": _ATTENTION,
    r"$\langle q, k\rangle$": _PRODUCTS,
    r"$x^\top W_V w_O$": _VALUES,
}
_STAGES: dict[str, LineStyleType] = {"first": (0, (1, 3)), "second": (0, (6, 2))}


def has_dynamics(data: FigureData) -> bool:
    """Whether there are few enough settings to stand side by side."""
    return len(by_setting(data)) <= MOST_SETTINGS


@styled
def draw_dynamics(data: FigureData, options: FigureOptions) -> matplotlib.figure.Figure:
    """Draw attention, inner products and values, a column of panels for each setting.

    Attention is from each class of token on each: colour says on which, dash of which. Several
    seeds are a mean with a band of one standard deviation. Vertical lines mark where stages 1 and
    2 of the proof end, at the median over the seeds that are fitted.

    Raises:
        UserError: if there are more settings than fit side by side.
    """
    parts = sorted(by_setting(data), key=lambda part: predicted_regime(_parameters(part)))
    if len(parts) > MOST_SETTINGS:
        raise UserError(
            f"There are {len(parts)} settings here; dynamics are drawn for up to {MOST_SETTINGS} "
            "side by side."
        )
    columns = [name for names in _ROWS.values() for name in names]
    gathered, kind = gather_curves([part.data for part in parts], columns, few=1)
    figure = matplotlib.figure.Figure(figsize=(COLUMN * max(1.0, 0.95 * len(parts)), 5.4))
    grid = figure.subplots(len(_ROWS), len(parts), sharex="col", squeeze=False)
    drawn: set[str] = set()
    for place, (part, curves) in enumerate(zip(parts, gathered, strict=True)):
        ends = _ends(part)
        drawn |= {name for name in _STAGES if any(np.isfinite(getattr(end, name)) for end in ends)}
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
    legend_below(figure, _legend(drawn), columns=4)
    return figure


def _draw(axes: matplotlib.axes.Axes, curve: Curve, looks: dict[str, _Look]) -> None:
    for name, (colour, dash) in looks.items():
        mean = curve.mean[name].dropna()
        axes.plot(mean.index, mean, color=colour, linestyle=dash)
        low, high = curve.low[name].dropna(), curve.high[name].dropna()
        axes.fill_between(low.index, low, high, color=colour, alpha=0.2, linewidth=0)
    axes.margins(x=0.02)
    axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True))


def _parameters(part: Panel) -> BenignVitParameters:
    return of_row(BenignVitParameters, part.data.cells.iloc[0])


def _ends(part: Panel) -> list[StageEnds]:
    """The stages of each cell that is fitted."""
    parameters = _parameters(part)
    cells, steps = part.data.cells, part.data.trajectories
    steps = steps[steps["key"].isin(cells.loc[cells["status"] == "done", "key"])]
    return [
        stage_ends(of_cell, parameters.tokens, predicted_regime(parameters))
        for _, of_cell in steps.groupby("key")
    ]


def _mark(axes: matplotlib.axes.Axes, ends: list[StageEnds]) -> None:
    for name, dash in _STAGES.items():
        steps = [getattr(end, name) for end in ends]
        if np.isfinite(steps).any():
            axes.axvline(float(np.nanmedian(steps)), color="0.5", linestyle=dash, linewidth=0.8)


def _title(part: Panel, ends: list[StageEnds]) -> str:
    parameters = _parameters(part)
    norm = f"$\\Vert\\mu\\Vert$ = {brief(parameters.signal_norm)}"
    lead = ""
    if not all(np.isfinite(end.first) for end in ends):
        most = max(end.lead for end in ends)
        lead = f" (lead up to {most:.2g} of {3 * parameters.tokens})"
    return (
        f"$N$ = {parameters.n}, {norm}: predicted {predicted_regime(parameters)}\n"
        f"stage 1 {_when([end.first for end in ends])}{lead}\n"
        f"stage 2 {_when([end.second for end in ends])}"
    )


def _when(steps: list[float]) -> str:
    """When a stage ends, over the seeds."""
    ended = sorted(step for step in steps if np.isfinite(step))
    if not ended:
        return "doesn't end"
    often = "" if len(ended) == len(steps) else f" in {len(ended)} of {len(steps)} seeds"
    first, last = plain(ended[0]), plain(ended[-1])
    span = first if first == last else f"{first} to {last}"
    return f"ends at step {span}{often}"


def _legend(drawn: set[str]) -> Legend:
    def line(colour: ColorType, dash: LineStyleType) -> Line2D:
        return Line2D([], [], color=colour, linestyle=dash)

    of = [(line("0.3", dash), f"of the {name}") for name, dash in _OF.items()]
    on = [(line(colour, "-"), f"on the {name}") for name, colour in _ON.items()]
    colours = [colour for colour, _ in _VALUES.values()]
    texts = (r"$\mu_+$", r"$\mu_-$", r"$|\xi_2|$")
    values = [(line(own, "-"), text) for own, text in zip(colours, texts, strict=True)]
    stages = [
        (line("0.5", dash), f"stage {number} ends")
        for number, (name, dash) in enumerate(_STAGES.items(), start=1)
        if name in drawn
    ]
    return [*of, *on, *values, *stages]
