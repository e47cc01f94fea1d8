"""Expressions that stand for a column or an axis, such as `test_error - train_error` and `n / d`.

They become columns of the data with a label, so that figures draw them as any other.
"""

from __future__ import annotations

import functools
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pydantic

from overfit_cli.core.arrays import Floats
from overfit_cli.core.cell import Column
from overfit_cli.core.errors import BadValue
from overfit_cli.core.figure import Figure, FigureOptions
from overfit_cli.core.parameters import Parameter
from overfit_cli.core.study import AnyStudy, FigureData
from overfit_cli.core.text import plural, round_digits
from overfit_cli.figures.labels import (
    RUN,
    formula_symbol,
    number_parameters,
    spellings,
    varying_parameters,
)
from overfit_cli.stats.equations import Expression, expression_in_mathtext, parse_expression

DIGITS = 12
"""Digits of an axis of an expression: rounding then makes no two values of the same."""


def derive_columns(figure: Figure, data: FigureData, options: FigureOptions) -> FigureData:
    """Return data with a column for each expression that the options have for a column.

    Args:
        figure: the figure: its columns are logged ones where it reads trajectories. Its own options
            may have expressions too.
        options: the user's options; the figure's count where they leave one out.
    """
    logged = figure.reads == "trajectories"
    for option in ("value", "theory"):
        text = getattr(options, option) or getattr(figure.options, option) or ""
        for part in text.split(",") if logged else [text]:
            if is_expression(data, part.strip()):
                label = figure.labels.get(part.strip(), "")
                data = _with_column(data, option, part.strip(), label, logged=logged)
    return data


def is_expression(data: FigureData, text: str) -> bool:
    """Return whether a text is neither a name nor the name of a column."""
    columns = {column.name for column in (*data.study.columns, *data.study.trajectory_columns)}
    return bool(text) and not text.isidentifier() and text not in {*columns, RUN}


def _with_column(
    data: FigureData, option: str, text: str, label: str, *, logged: bool
) -> FigureData:
    study = data.study
    declared = study.trajectory_columns if logged else study.columns
    measured = [column.name for column in declared]
    measured += ["step"] if logged else ["steps", "seconds"]
    numbers = number_parameters(data)
    spelled = spellings(study, {*measured, *numbers})
    expression = parse_expression(option, text, spelled, "columns and parameters")
    table = data.cells
    if logged:
        names = ["key", *(name for name in numbers if name in expression.names)]
        table = data.trajectories.merge(data.cells[names], on="key", how="left")
    if absent := sorted(expression.names.difference(table)):
        raise BadValue(option, text, f"these cells don't hold {absent[0]}; sweep them again.")
    result = _evaluated(expression, table)
    column = Column(text, text, label=label or f"${_formula(study, expression)}$")
    if logged:
        study = _study_with(study, trajectory_columns=(*study.trajectory_columns, column))
        steps = data.trajectories.assign(**{text: result})
        return replace(data, study=study, trajectories=steps)
    study = _study_with(study, columns=(*study.columns, column))
    return replace(data, study=study, cells=data.cells.assign(**{text: result}))


def undefined_numbers(data: FigureData, options: FigureOptions) -> list[str]:
    """Return sentences on cells and logged steps where an expression is not a finite number."""
    sentences = []
    tables = {"cell": data.cells[data.cells["status"] == "done"], "logged step": data.trajectories}
    asked = [options.value or "", options.theory or ""]
    for text in [*asked, *(part.strip() for given in asked for part in given.split(","))]:
        for unit, table in tables.items():
            if text and not text.isidentifier() and text in table:
                count = int((~np.isfinite(table[text].to_numpy(np.float64))).sum())
                rows = plural(count, unit)
                sentence = f"Left out: {rows} where {text} is not a finite number."
                if text == options.theory:
                    sentence = f"No {text} where it is not a finite number: in {rows}."
                sentences += [sentence] if count else []
    return list(dict.fromkeys(sentences))


def derive_axes(data: FigureData, options: FigureOptions) -> FigureData:
    """Return data with a parameter for each expression that the options have for an axis.

    It takes the place of a parameter in it: of those that vary and are no axis or panel, the one
    with the most values, and of equally many the first.
    """
    for side in ("x", "y"):
        text = getattr(options, side) or ""
        if is_expression(data, text):
            taken = {options.x, options.y, options.by}
            data = _with_axis(data, side, text, taken)
    return data


def _with_axis(data: FigureData, side: str, text: str, taken: Collection[str | None]) -> FigureData:
    numbers = number_parameters(data)
    spelled = spellings(data.study, numbers)
    expression = parse_expression(side, text, spelled, "parameters that are numbers")
    varying = [name for name in varying_parameters(data) if name in expression.names]
    replaceable = [name for name in varying if name not in taken]
    if not varying:
        hint = ", ".join(varying_parameters(data)) or "nothing"
        raise BadValue(side, text, f"it has one value in these cells; here vary: {hint}.")
    if not replaceable:
        accepts = "each parameter in it that varies here has an axis or panels already."
        raise BadValue(side, text, accepts)
    frames = {
        field: frame.assign(**{text: _rounded(_evaluated(expression, frame))})
        for field in ("cells", "planned")
        if expression.names <= {*(frame := getattr(data, field))} and not frame.empty
    }
    cells = frames["cells"]
    for row in cells[~np.isfinite(cells[text])].to_dict("records")[:1]:
        where = ", ".join(f"{name}={row[name]}" for name in sorted(expression.names))
        raise BadValue(side, text, f"it is not a finite number where {where}.")
    counts = {name: cells[name].nunique() for name in replaceable}
    gone = max(replaceable, key=lambda name: counts[name])
    declared = Parameter("expression", label=f"${_formula(data.study, expression)}$")
    field: Any = (float, declared.field(None, real=False))
    model = pydantic.create_model(
        data.study.parameters.__name__, __base__=data.study.parameters, **{text: field}
    )
    study = _study_with(data.study, parameters=model)
    return replace(data, study=study, replaced=data.replaced | {gone}, **frames)


def _evaluated(expression: Expression, table: pd.DataFrame) -> Floats:
    values = {name: table[name].to_numpy(np.float64, na_value=np.nan) for name in expression.names}
    result = expression.value(values)
    return np.where(np.isfinite(result), result, np.nan)


def _rounded(numbers: Floats) -> Floats:
    return np.array([round_digits(number, DIGITS) for number in numbers], dtype=np.float64)


def _formula(study: AnyStudy, expression: Expression) -> str:
    return expression_in_mathtext(expression, functools.partial(formula_symbol, study))


def _given(value: object, _: AnyStudy) -> object:
    return value


def _study_with(study: AnyStudy, **members: object) -> AnyStudy:
    properties = {
        name: property(functools.partial(_given, value)) for name, value in members.items()
    }
    kind = type(type(study).__name__, (type(study),), properties)
    copied: AnyStudy = object.__new__(kind)
    copied.__dict__.update(vars(study))
    return copied
