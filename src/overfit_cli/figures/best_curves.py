"""Training curves of each setting at its own best step size."""

from __future__ import annotations

from dataclasses import replace

from overfit_cli.analysis.best import best_of_sweep
from overfit_cli.figure import FigureData, FigureOptions
from overfit_cli.figures.axis import parameter_values, split_by, varying_parameters
from overfit_cli.figures.curves import draw_columns, draw_panels
from overfit_cli.figures.labels import short_settings
from overfit_cli.figures.panels import Panel, panels
from overfit_cli.figures.picture import Picture, styled

RATE = "learning_rate"


@styled
def draw_best_curves(data: FigureData, options: FigureOptions) -> Picture:
    """Draw logged columns against the step, each setting at its best step size.

    Best is the lowest mean of the study's headline over seeds, among the step sizes at which no
    seed failed (or, if there are none, the fewest did); the caption says which.
    """
    best = [_at_best_step_sizes(part) for part in panels(data, options.by)]
    figure = draw_panels([panel for panel, _ in best], options)
    figure.facts += [words for _, words in best if words]
    return figure


def _at_best_step_sizes(part: Panel) -> tuple[Panel, str]:
    """The part's cells at their best step sizes, and which these are."""
    values = parameter_values(part.data)
    if len(values[RATE]) < 2:
        return part, ""
    others = [name for name in varying_parameters(part.data) if name != RATE]
    cells = best_of_sweep(part.data.cells, RATE, others, part.data.study.headline)
    # The caption names the step sizes, so that a setting has one colour in every panel.
    same = cells.assign(**{RATE: cells[RATE].iloc[0]})
    planned = part.data.planned.iloc[:0]
    words = _in_words(replace(part.data, cells=cells), others)
    said = f"{words.rstrip('.')} ({part.title})." if part.title else words
    return Panel(part.title, replace(part.data, cells=same, planned=planned)), said


def _in_words(data: FigureData, others: list[str]) -> str:
    each = [
        f"{cells[RATE].iloc[0]:g}" + (f" for {text}" if text else "")
        for values, cells in split_by(data, others)
        for text in [short_settings(data.study, values)]
    ]
    return f"Best step size{'s' if len(each) > 1 else ''}: {', '.join(each)}."


@styled
def draw_loss_and_accuracy(data: FigureData, options: FigureOptions) -> Picture:
    """Draw test loss and test accuracy side by side, each setting at its best step size.

    Where the user names a value or panels it draws these instead, as `draw_best_curves` does.
    """
    if options.value is not None or options.by is not None or options.each_seed or data.runs:
        return draw_best_curves(data, options)
    panel, words = _at_best_step_sizes(Panel("", data))
    figure = draw_columns(panel, ("test_loss", "test_accuracy"))
    figure.facts += [words] if words else []
    return figure
