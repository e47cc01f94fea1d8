"""Names as figures write them: parameters, columns, settings and equations."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from overfit_cli.errors import UserError, nearest
from overfit_cli.figures.style import brief, literal
from overfit_cli.parameters import describe, parameter_named
from overfit_cli.study import AnyStudy

RUN = "run directory"
"""The name under which run directories vary, as a parameter does; no parameter can have it."""


def axis_label(study: AnyStudy, name: str, *, logged: bool = False) -> str:
    """Return the label of a parameter or column: a few words, symbol and unit, in mathtext.

    What has no words given is called by its name.

    Args:
        study: whose parameter or column it is.
        name: its name.
        logged: whether a column of trajectories is meant, if one of cells has the same name.

    Raises:
        UserError: if the study has neither a parameter nor a column of that name.
    """
    if name in {"steps", "step"}:
        return study.step
    if name in {"seconds", RUN}:
        return {"seconds": "time (s)", RUN: "run"}[name]
    parameters = describe(study.parameters)
    of_cells, of_steps = study.columns, study.trajectory_columns
    both = (*of_cells, *of_steps) if logged else (*of_steps, *of_cells)  # the last of a name stays
    columns = {column.name: column for column in both}
    if name not in parameters and name not in columns:
        known = [*parameters, *columns, "steps"]
        raise UserError(f"{study.name} has no column {name!r}; {nearest(name, known)}")
    described = parameters[name] if name in parameters else columns[name]
    words = described.label or described.meaning or name.replace("_", " ")
    symbol = f" ${described.symbol}$" if described.symbol else ""
    unit = f" ({described.unit})" if described.unit else ""
    return f"{words}{symbol}{unit}"


def opening(label: str) -> str:
    """Return a label as a sentence begins with it: capital, and a comma after it if it has one."""
    return f"{label[:1].upper()}{label[1:]}{',' if ',' in label else ''}"


def symbol_of(study: AnyStudy, name: str) -> str:
    """Return what stands for a parameter or column in a formula, in mathtext without dollars."""
    columns = {column.name: column for column in (*study.columns, *study.trajectory_columns)}
    described = describe(study.parameters).get(name) or columns.get(name)
    if described is not None and described.symbol:
        return described.symbol
    word = name.replace("_", r"\_")
    return rf"\mathrm{{{word}}}"


def setting(study: AnyStudy, name: str, value: object) -> str:
    """Return a parameter's value for a title: `$N$ = 5`, `attention kernel: softmax`, `seed 3`."""
    if is_word(study, name):
        return f"{describe(study.parameters)[name].label}: {literal(str(value))}"
    return short_setting(study, name, value)


def short_setting(study: AnyStudy, name: str, value: object) -> str:
    """Return a parameter's value for a legend, where words stand for themselves: `softmax`."""
    if name in (RUN, "seed"):
        return literal(str(value)) if name == RUN else f"seed {value}"
    info = describe(study.parameters)[name]
    if is_word(study, name):
        return literal(str(value))
    called = f"${info.symbol}$" if info.symbol else info.label
    unit = f" {info.unit}" if info.unit else ""
    return f"{called} = {brief(value)}{unit}"


def is_word(study: AnyStudy, name: str) -> bool:
    """Return whether a parameter's values are words."""
    described = describe(study.parameters)
    return name in described and described[name].kind in ("literal", "text")


def settings(study: AnyStudy, values: Mapping[str, object]) -> str:
    """Return several parameters' values for a title, with commas between."""
    return ", ".join(setting(study, name, value) for name, value in values.items())


def short_settings(study: AnyStudy, values: Mapping[str, object]) -> str:
    """Return several parameters' values for a legend, whose heading names what words are of."""
    return ", ".join(short_setting(study, name, value) for name, value in values.items())


def heading(study: AnyStudy, names: Collection[str]) -> str:
    """Return a legend's heading: the parameters whose values stand in it as words."""
    described = describe(study.parameters)
    return ", ".join(described[name].label for name in names if is_word(study, name))


def spellings(study: AnyStudy, names: Collection[str]) -> dict[str, str]:
    """Return how each of some parameters may be spelled in an equation: its name, its symbol."""
    found = {name: name for name in names}
    for name, info in describe(study.parameters).items():
        for symbol in info.spelled_symbols if name in names else ():
            if parameter_named(study.parameters, symbol) == name:
                found[symbol] = name
    return found
