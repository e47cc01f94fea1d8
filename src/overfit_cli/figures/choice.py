"""What a figure shows where the user doesn't say: the study's choice, as far as it fits."""

from __future__ import annotations

from dataclasses import fields, replace

from overfit_cli.analysis.law import parse_law
from overfit_cli.errors import UserError
from overfit_cli.figure import Figure, FigureData, FigureOptions
from overfit_cli.figures.axis import parameter_values


def settled(figure: Figure, asked: FigureOptions, data: FigureData) -> FigureOptions:
    """Return the user's options, with the figure's own where they fit.

    An axis of the figure's own that doesn't vary in the data gives way to one that does; of
    the parameters that it would have panels by, the first that varies is taken, or none. Its law
    is about its own axes, column and threshold: where the user asks for others, it is left out.
    """
    given = {
        field.name: getattr(asked, field.name)
        for field in fields(asked)
        if getattr(asked, field.name) is not None
    }
    own = figure.options
    if figure.law_of is not None:
        own = replace(own, law=figure.law_of(data))
    options = replace(own, **given)
    if own.x is not None and own.y is not None:
        options = _with_axes_that_vary(options, asked, data)
    if "by" not in given and options.by is not None:
        values = parameter_values(data)
        wanted = [name for name in options.by.split(",") if len(values[name]) > 1]
        options = replace(options, by=wanted[0] if wanted else None)
    if "law" not in given and not _law_is_about(own, options):
        options = replace(options, law=None)
    return options


def _with_axes_that_vary(
    options: FigureOptions, asked: FigureOptions, data: FigureData
) -> FigureOptions:
    varying = [name for name, values in parameter_values(data).items() if len(values) > 1]
    x, y = options.x, options.y
    if asked.y is None and y not in varying:
        y = next((name for name in varying if name != x), y)
    if asked.x is None and (x not in varying or x == y):
        x = next((name for name in varying if name != y), x)
    return replace(options, x=x, y=y)


def _law_is_about(own: FigureOptions, options: FigureOptions) -> bool:
    """Whether the figure's own law still speaks of what is drawn."""
    if own.law is None or options.x is None or options.y is None:
        return False
    same = (own.value, own.threshold) == (options.value, options.threshold)
    try:
        parse_law(own.law, (options.x, options.y))
    except UserError:
        return False
    return same
