"""Training curves of each setting at its own best step size."""

from __future__ import annotations

from dataclasses import replace

import matplotlib.figure
import pandas as pd

from overfit_cli.analysis.best import best_of_sweep
from overfit_cli.figure import FigureData, FigureOptions
from overfit_cli.figures.axis import parameter_values
from overfit_cli.figures.curves import draw_columns, draw_panels
from overfit_cli.figures.panels import Panel, panels
from overfit_cli.figures.style import styled

RATE = "learning_rate"


@styled
def draw_best_curves(data: FigureData, options: FigureOptions) -> matplotlib.figure.Figure:
    """Draw logged columns against the step, each setting at its best step size.

    Best is the lowest mean of the study's headline over seeds, among the step sizes at which no
    seed failed (or, if there are none, the fewest did); a panel's title says which.
    """
    return draw_panels([_at_best_step_sizes(part) for part in panels(data, options.by)], options)


def _at_best_step_sizes(part: Panel) -> Panel:
    values = parameter_values(part.data)
    if len(values[RATE]) < 2:
        return part
    others = [name for name, found in values.items() if len(found) > 1 and name != RATE]
    cells = best_of_sweep(part.data.cells, RATE, others, part.data.study.headline)
    # The title names the step sizes, so that a setting has one colour in every panel.
    same = cells.assign(**{RATE: cells[RATE].iloc[0]})
    title = f"{part.title}\n{_in_words(cells, others)}".strip()
    return Panel(title, replace(part.data, cells=same))


def _in_words(cells: pd.DataFrame, others: list[str]) -> str:
    best = cells[[*others, RATE]].drop_duplicates().sort_values(others)
    each = [
        "\xa0".join([*(str(row[name]) for name in others), f"{row[RATE]:g}"])
        for row in best.to_dict("records")
    ]
    return f"best step size{'s' if len(each) > 1 else ''}: {', '.join(each)}"


@styled
def draw_loss_and_accuracy(data: FigureData, options: FigureOptions) -> matplotlib.figure.Figure:
    """Draw test loss and test accuracy side by side, each setting at its best step size.

    Where the user names a value or panels it draws these instead, as `draw_best_curves` does.
    """
    if options.value is not None or options.by is not None:
        return draw_best_curves(data, options)
    panel = _at_best_step_sizes(Panel("", data))
    return draw_columns(panel, ("test_loss", "test_accuracy"))
