"""Options of a figure: the user's, then the study's as far as they fit."""

from __future__ import annotations

from dataclasses import fields, replace

from overfit_cli.analysis.equation import parse_equation
from overfit_cli.errors import UserError
from overfit_cli.figure import Figure, FigureData, FigureOptions
from overfit_cli.figures.axis import parameter_values
from overfit_cli.figures.labels import RUN
from overfit_cli.parameters import describe, parameter_named
from overfit_cli.study import AnyStudy


def resolved_options(figure: Figure, asked: FigureOptions, data: FigureData) -> FigureOptions:
    """Return the user's options, with the figure's own where they fit.

    An axis of the figure's own that doesn't vary in the data gives way to one that does; of
    the parameters that it would have panels by, the first that varies and is no axis is taken. Its
    equation is about its own axes, column and threshold: where the user names others, it is
    left out.
    """
    given = {
        field.name: getattr(asked, field.name)
        for field in fields(asked)
        if getattr(asked, field.name) is not None
    }
    own = figure.options
    if figure.equation_of is not None:
        law = figure.equation_of(data)
        own = replace(own, law=None if law is None else (law,))
    options = _with_axes_that_vary(figure.axes, replace(own, **given), asked, data)
    if "by" not in given and options.by is not None:
        values = parameter_values(data)
        free = [name for name in options.by.split(",") if name not in (options.x, options.y)]
        wanted = [name for name in free if len(values[name]) > 1]
        options = replace(options, by=wanted[0] if wanted else None)
    if "law" not in given and not _equation_is_about(own, options):
        options = replace(options, law=None)
    return options


def spelled_out(asked: FigureOptions, study: AnyStudy) -> FigureOptions:
    """Return the options with the names of parameters that the user calls by their symbols."""

    def spelled(name: str | None) -> str | None:
        return None if name is None else parameter_named(study.parameters, name)

    return replace(asked, x=spelled(asked.x), y=spelled(asked.y), by=spelled(asked.by))


def _with_axes_that_vary(
    axes: int, options: FigureOptions, asked: FigureOptions, data: FigureData
) -> FigureOptions:
    """Replace what doesn't vary: of two axes, the parameter declared first goes up."""
    values = parameter_values(data)
    varying = [
        name for name, taken in values.items() if len(taken) > 1 and name not in (asked.by, RUN)
    ]
    x, y = options.x, options.y
    if axes == 2 and asked.y is None and y not in varying:
        y = next((name for name in varying if name != x), y)
    if axes == 1:  # lines are joined along numbers, if there are any
        kinds = describe(data.study.parameters)
        varying.sort(key=lambda name: kinds[name].kind not in ("int", "float"))
    if axes >= 1 and asked.x is None and (x not in varying or x == y):
        x = next((name for name in varying if name != y), x)
    return replace(options, x=x, y=y)


def _equation_is_about(own: FigureOptions, options: FigureOptions) -> bool:
    """Whether the figure's own equation still speaks of what is drawn."""
    if own.law is None or options.x is None or options.y is None:
        return False
    same = (own.value, own.threshold) == (options.value, options.threshold)
    try:
        for law in own.law:
            parse_equation(law, (options.x, options.y))
    except UserError:
        return False
    return same
