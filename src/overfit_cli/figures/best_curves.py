"""The figures of step sizes: curves of each setting at its best one."""

from __future__ import annotations

from dataclasses import replace

from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.study import FigureData
from overfit_cli.figures.curves import draw_columns, draw_panels
from overfit_cli.figures.labels import (
    parameter_values,
    short_settings,
    split_settings,
    varying_parameters,
)
from overfit_cli.figures.panels import Panel, panels
from overfit_cli.figures.picture import Picture, styled
from overfit_cli.stats.pairs import best_of_sweep

RATE = "learning_rate"


@styled
def draw_best_curves(data: FigureData, options: FigureOptions) -> Picture:
    """Draw logged columns against the step, each setting at its best step size.

    The best step size has the lowest mean of the study's headline over seeds, among those with the
    fewest failed seeds; the caption names it.
    """
    best = [_best_step_sizes(part) for part in panels(data, options.by)]
    figure = draw_panels([panel for panel, _ in best], options)
    figure.facts += [words for _, words in best if words]
    return figure


def _best_step_sizes(part: Panel) -> tuple[Panel, str]:
    """The part's cells at their best step sizes, and a sentence with these."""
    values = parameter_values(part.data)
    if len(values[RATE]) < 2:
        return part, ""
    grouping = [name for name in varying_parameters(part.data) if name != RATE]
    cells = best_of_sweep(part.data.cells, RATE, grouping, part.data.study.headline)
    relabelled = cells.assign(**{RATE: cells[RATE].iloc[0]})
    planned = part.data.planned.iloc[:0]
    words = _best_sentence(replace(part.data, cells=cells), grouping)
    sentence = f"{words.rstrip('.')} ({part.title})." if part.title else words
    return Panel(part.title, replace(part.data, cells=relabelled, planned=planned)), sentence


def _best_sentence(data: FigureData, grouping: list[str]) -> str:
    choices = [
        f"{cells[RATE].iloc[0]:g}" + (f" for {text}" if text else "")
        for values, cells in split_settings(data, grouping)
        for text in [short_settings(data.study, values)]
    ]
    return f"Best step size{'s' if len(choices) > 1 else ''}: {', '.join(choices)}."


@styled
def draw_loss_and_accuracy(data: FigureData, options: FigureOptions) -> Picture:
    """Draw test loss and test accuracy side by side, each setting at its best step size.

    With a column, panels or several runs in the options it draws these, as `draw_best_curves`.
    """
    if any((options.value, options.theory, options.by, options.mean, options.band, data.runs)):
        return draw_best_curves(data, options)
    panel, words = _best_step_sizes(Panel("", data))
    figure = draw_columns(panel, ("test_loss", "test_accuracy"), options)
    figure.facts += [words] if words else []
    return figure
