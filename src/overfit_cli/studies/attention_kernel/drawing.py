"""Curves at the best step size: no kernel is shown at a rate that suits another."""

from __future__ import annotations

from dataclasses import replace

import matplotlib.figure
import pandas as pd

from overfit_cli.figure import FigureData, FigureOptions
from overfit_cli.figures.axis import parameter_values
from overfit_cli.figures.curves import draw_columns, draw_panels
from overfit_cli.figures.panels import Panel, panels
from overfit_cli.figures.style import styled
from overfit_cli.studies.attention_kernel.step_sizes import RATE, best_rates


@styled
def draw_best_curves(data: FigureData, options: FigureOptions) -> matplotlib.figure.Figure:
    """Draw logged columns against the step, each setting at its best step size.

    Best is the lowest mean of the study's headline over seeds, among the step sizes at which no
    seed failed (or, if there are none, the fewest did); a panel's title says which.
    """
    return draw_panels([_at_best_rates(part) for part in panels(data, options.by)], options)


def _at_best_rates(part: Panel) -> Panel:
    values = parameter_values(part.data)
    if len(values[RATE]) < 2:
        return part
    others = [name for name, found in values.items() if len(found) > 1 and name != RATE]
    cells = best_rates(part.data.cells, others, part.data.study.headline)
    # The title names the step sizes, so that a setting has one colour in every panel.
    same = cells.assign(**{RATE: cells[RATE].iloc[0]})
    title = f"{part.title}\n{_in_words(cells, others)}".strip()
    return Panel(title, replace(part.data, cells=same))


def _in_words(cells: pd.DataFrame, others: list[str]) -> str:
    chosen = cells[[*others, RATE]].drop_duplicates().sort_values(others)
    each = [
        "\xa0".join([*(str(row[name]) for name in others), f"{row[RATE]:g}"])
        for row in chosen.to_dict("records")
    ]
    return f"best step size{'s' if len(each) > 1 else ''}: {', '.join(each)}"


@styled
def draw_loss_and_accuracy(data: FigureData, options: FigureOptions) -> matplotlib.figure.Figure:
    """Draw test loss and test accuracy side by side, each setting at its best step size.

    With a value or panels of the user's choice it draws these instead, as `draw_best_curves` does.
    """
    if options.value is not None or options.by is not None:
        return draw_best_curves(data, options)
    best = _at_best_rates(Panel("", data))
    return draw_columns(best, ("test_loss", "test_accuracy"))
