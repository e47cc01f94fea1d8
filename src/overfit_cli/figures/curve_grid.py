"""Logged columns against the step: panels by setting, and by group of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import matplotlib.axes
from matplotlib.ticker import MaxNLocator
from matplotlib.typing import ColorType, LineStyleType

from overfit_cli.core.figure import FigureData
from overfit_cli.figures.curves import Curve, gather_curves
from overfit_cli.figures.picture import Picture, title_panels
from overfit_cli.figures.style import COLUMN

Look = tuple[ColorType, LineStyleType]
Looks = Mapping[str, Look]
"""The logged columns of a panel, with the colour and the dash of each."""


@dataclass(frozen=True)
class SettingPanels:
    """One column of panels.

    Attributes:
        data: of the setting.
        title: what stands above it.
        marks: steps with a vertical line, each with its dash.
    """

    data: FigureData
    title: str
    marks: Sequence[tuple[float, LineStyleType]]


def draw_curve_grid(settings: Sequence[SettingPanels], rows: Mapping[str, Looks]) -> Picture:
    """Draw curves, without a legend; several seeds are a median with a band of their middle half.

    Args:
        settings: from left to right.
        rows: from top to bottom, by their labels.
    """
    columns = [name for looks in rows.values() for name in looks]
    gathered = gather_curves([one.data for one in settings], columns, few=1, middle="median")
    figure = Picture(COLUMN * max(1.0, 0.95 * len(settings)), 5.4)
    grid = figure.subplots(len(rows), len(settings), sharex="col", squeeze=False)
    for place, (setting, curves) in enumerate(zip(settings, gathered.curves, strict=True)):
        for axes, looks in zip(grid[:, place], rows.values(), strict=True):
            for curve in curves:
                _draw(axes, curve, looks)
            for step, dash in setting.marks:
                axes.axvline(step, color="0.5", linestyle=dash, linewidth=0.8)
        grid[-1, place].set_xlabel("gradient steps")
    title_panels(grid[0], [setting.title for setting in settings])
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
    axes.margins(x=0.02)
    axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
