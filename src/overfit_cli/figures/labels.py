"""Labels: axes, settings and symbols in words; the parameters that vary."""

from __future__ import annotations

import math
import numbers
import re
import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial

import pandas as pd

from overfit_cli.core.errors import UserError
from overfit_cli.core.mathtext import with_money
from overfit_cli.core.parameters import (
    TRAINING_STEPS,
    Value,
    describe,
    parameter_named,
    symbol_spellings,
)
from overfit_cli.core.parameters import symbol_text as unicode_of
from overfit_cli.core.study import AnyStudy, FigureData
from overfit_cli.core.text import suggestion, visible

RUN = "run directory"
"""The name of the run directories as an axis; no parameter can have it."""


def axis_label(study: AnyStudy, name: str, *, logged: bool = False) -> str:
    """Return the label of a parameter or column: a few words, symbol and unit, in mathtext.

    Without words the label is the name.

    Args:
        logged: whether a column of trajectories takes precedence over one of cells.
    """
    if name in {"steps", "step"}:
        return study.step
    if name in {"seconds", RUN}:
        return {"seconds": "time (s)", RUN: "run"}[name]
    parameters = describe(study.parameters)
    cell_columns, step_columns = study.columns, study.trajectory_columns
    ordered = (
        (*cell_columns, *step_columns) if logged else (*step_columns, *cell_columns)
    )  # the last column of a name is kept
    columns = {column.name: column for column in ordered}
    if name not in parameters and name not in columns:
        names = [*parameters, *columns, "steps"]
        raise UserError(f"{study.name} has no column {name!r}; {suggestion(name, names)}")
    described = parameters[name] if name in parameters else columns[name]
    words = with_money(described.label or described.meaning or name.replace("_", " "))
    symbol = f" ${described.symbol}$" if described.symbol else ""
    unit = f" ({with_money(described.unit)})" if described.unit else ""
    return f"{words}{symbol}{unit}"


def opening(label: str) -> str:
    """Return a label for the begin of a sentence: capitalised, and with a comma if it has one."""
    return f"{label[:1].upper()}{label[1:]}{',' if ',' in label else ''}"


def formula_symbol(study: AnyStudy, name: str) -> str:
    """Return the symbol of a parameter or column, in mathtext without dollars, or its name."""
    columns = {column.name: column for column in (*study.columns, *study.trajectory_columns)}
    described = describe(study.parameters).get(name) or columns.get(name)
    if described is not None and described.symbol:
        return described.symbol
    if described is not None and not name.isidentifier() and _MATH.fullmatch(described.label):
        return rf"\left({described.label[1:-1]}\right)"  # an expression
    word = name.replace("_", r"\_")
    return rf"\mathrm{{{word}}}"


def setting(study: AnyStudy, name: str, value: object) -> str:
    """Return a parameter's value for a title: `$N$ = 5`, `attention kernel: softmax`, `seed 3`."""
    if is_word(study, name):
        label = with_money(describe(study.parameters)[name].label)
        return f"{label}: {value_label(study, name, value)}"
    return short_setting(study, name, value)


def short_setting(study: AnyStudy, name: str, value: object) -> str:
    """Return a parameter's value for a legend, where a word needs no name: `softmax`."""
    if name in (RUN, "seed"):
        return literal(str(value)) if name == RUN else f"seed {value}"
    info = describe(study.parameters)[name]
    if is_word(study, name):
        return value_label(study, name, value)
    called = f"${info.symbol}$" if info.symbol else with_money(info.label)
    unit = f" {with_money(info.unit)}" if info.unit else ""
    return f"{called} = {brief(value)}{unit}"


def value_label(study: AnyStudy, name: str, value: object) -> str:
    """Return what a figure calls a value that is a word: its label, if the parameter has one.

    A label may have mathtext.
    """
    described = describe(study.parameters)
    labels = described[name].value_labels if name in described else {}
    return with_money(labels.get(str(value), "")) or literal(str(value))


def is_word(study: AnyStudy, name: str) -> bool:
    """Return whether a parameter's values are words."""
    described = describe(study.parameters)
    return name in described and described[name].kind in ("literal", "text")


def settings(study: AnyStudy, values: Mapping[str, object]) -> str:
    """Return several parameters' values for a title, separated by commas."""
    return ", ".join(setting(study, name, value) for name, value in values.items())


def short_settings(study: AnyStudy, values: Mapping[str, object]) -> str:
    """Return several parameters' values for a legend; its heading names the parameters of words."""
    return ", ".join(short_setting(study, name, value) for name, value in values.items())


def symbols_in_words(study: AnyStudy, names: Collection[str]) -> list[str]:
    """Return a sentence on the symbols of some parameters, such as `H: attention heads`."""
    described = describe(study.parameters)
    told = [
        f"${described[name].symbol}$: {with_money(described[name].label)}"
        for name in names
        if name in described and described[name].symbol and not is_word(study, name)
    ]
    return [f"{', '.join(told)}."] if told else []


def heading(study: AnyStudy, names: Collection[str]) -> str:
    """Return a legend's heading: the parameters whose values are words."""
    described = describe(study.parameters)
    labels = (described[name].label for name in names if is_word(study, name))
    return ", ".join(map(with_money, labels))


def common_settings(data: FigureData, cells: pd.DataFrame, most: int = 4) -> str:
    """Write what some of a figure's cells have in common: `exp, d = 3`; empty if nothing.

    Args:
        most: the largest number of values of a parameter that are listed.
    """
    texts = []
    for name, values in parameter_values(data).items():
        present = set(cells[name].unique().tolist()) if name in cells else set[Value]()
        shared = [value for value in values if value in present]
        if shared and len(shared) < len(values) and len(shared) <= most:
            first, *others = shared
            write = partial(value_label, data.study, name) if is_word(data.study, name) else brief
            texts.append(", ".join([short_setting(data.study, name, first), *map(write, others)]))
    return ("; " if any(", " in text for text in texts) else ", ").join(texts)


def contrast(study: AnyStudy, pairs: Mapping[str, Sequence[Value]]) -> str:
    """Return the one setting that differs, in words; empty of another number of them.

    Values that are words make `coin − balanced (labels)`, others `chance 0.2, less that at 0`.

    Args:
        pairs: the two values of each parameter that differs, the subtracted one last.
    """
    if len(pairs) != 1 or not pairs.keys() <= describe(study.parameters).keys():
        return ""
    [(name, values)] = pairs.items()
    label = axis_label(study, name)
    if is_word(study, name):
        return f"{' − '.join(value_label(study, name, value) for value in values)} ({label})"
    first, second = map(brief, values)
    return f"{label} {first}, less that at {second}"


def spellings(study: AnyStudy, names: Collection[str]) -> dict[str, str]:
    """Return the names of parameters and columns by their spellings in an equation.

    A name is spelled by itself or by its symbol. A symbol of several is a parameter's, or none.
    """
    names_by_spelling: dict[str, str] = {}
    columns = {column.name: column for column in (*study.columns, *study.trajectory_columns)}
    spelled = [
        (symbol, column.name)
        for column in columns.values()
        if column.name in names
        for symbol in symbol_spellings(column.symbol)
    ]
    symbols = [symbol for symbol, _ in spelled]
    names_by_spelling |= {symbol: name for symbol, name in spelled if symbols.count(symbol) == 1}
    for name, info in describe(study.parameters).items():
        for symbol in info.spelled_symbols if name in names else ():
            if parameter_named(study.parameters, symbol) == name:
                names_by_spelling[symbol] = name
    if TRAINING_STEPS in names:
        names_by_spelling.setdefault("steps", TRAINING_STEPS)
    return {**names_by_spelling, **{name: name for name in names}}


def parameter_values(data: FigureData) -> dict[str, tuple[Value, ...]]:
    """Return the values that each parameter takes in cells and plan, in order, by its name."""
    values_by_name: dict[str, tuple[Value, ...]] = {RUN: data.runs} if data.runs else {}
    for name, info in describe(data.study.parameters).items():
        if name in data.replaced:
            continue
        columns = [frame[name] for frame in (data.cells, data.planned) if name in frame]
        values = {value for column in columns for value in column.dropna().unique().tolist()}
        if info.kind == "literal":
            values_by_name[name] = tuple(choice for choice in info.choices if choice in values)
        else:
            values_by_name[name] = tuple(sorted(values))
        if data.runs and len(values) > 1 and not _varies_within_a_run(data, name):
            values_by_name[name] = values_by_name[name][:1]  # the run determines the value
    return values_by_name


def _varies_within_a_run(data: FigureData, name: str) -> bool:
    return bool((data.cells.groupby(RUN)[name].nunique() > 1).any())


def varying_parameters(data: FigureData) -> list[str]:
    """Return the names of the parameters that take several values, run directories among them."""
    return [name for name, values in parameter_values(data).items() if len(values) > 1]


def number_parameters(data: FigureData) -> list[str]:
    """Return the parameters that are numbers, of which the cells have a column."""
    described = describe(data.study.parameters).items()
    numbers = [name for name, info in described if info.kind in ("int", "float")]
    return [name for name in numbers if name in data.cells and name not in data.replaced]


def free_parameters(data: FigureData, axes: Sequence[str]) -> list[str]:
    """Return the parameters that vary besides axes, but for those that each point of them fixes.

    A list that goes together with an axis, or an expression in it, mixes nothing. Where an axis is
    an expression, such as n / d, each of its values may have one d by chance: no parameter but
    those that it replaces is left out.
    """
    names = [name for name in varying_parameters(data) if name not in axes]
    if data.replaced or not axes:
        return names
    every = pd.concat([frame for frame in (data.cells, data.planned) if len(frame)])
    counted = [name for name in names if name != RUN]
    counts = every.groupby(list(axes), dropna=False)[counted].nunique().max() > 1
    return [name for name in names if counts.get(name, True)]


def independent_parameters(data: FigureData) -> list[str]:
    """Return the parameters that vary, without those that an earlier one fixes."""
    names = list[str]()
    for name in varying_parameters(data):
        if all(name in free_parameters(data, [earlier]) for earlier in names):
            names.append(name)
    return names


def split_settings(
    data: FigureData, names: Sequence[str]
) -> Iterator[tuple[dict[str, Value], pd.DataFrame]]:
    """Yield the values and the cells of each setting of some parameters, in order."""
    if not names:
        yield {}, data.cells
        return
    ranks = {
        name: {value: rank for rank, value in enumerate(values)}
        for name, values in parameter_values(data).items()
    }
    ranks["seed"] = {seed: seed for seed in data.cells["seed"].unique()}
    order = pd.DataFrame({name: data.cells[name].map(ranks[name]) for name in names})
    for _, group in order.reset_index(drop=True).groupby(list(names), sort=True):
        cells = data.cells.iloc[group.index]
        yield {name: cells[name].iloc[0] for name in names}, cells


def typeset(text: str) -> str:
    """Return a text in plain Unicode, with its mathtext converted: to measure, or to print."""
    return _MATH.sub(lambda math: unicode_of(math[0][1:-1]), text).replace(r"\$", "$")


_MATH = re.compile(r"(?<!\\)\$[^$]*(?<!\\)\$")


def literal(text: str) -> str:
    """Escape a name for a figure: one line, no mathtext."""
    return visible(text).replace("$", r"\$")


def wrap_text(text: str, letters: int) -> str:
    """Break lines longer than about `letters` between words, outside mathtext."""
    formulas = _MATH.findall(text)
    # A placeholder is as long as its formula looks, and is not broken.
    placeholders = [
        f"\0{number}\0".ljust(len(typeset(formula)), "\0")
        for number, formula in enumerate(formulas)
    ]
    for formula, placeholder in zip(formulas, placeholders, strict=True):
        text = text.replace(formula, placeholder, 1)
    lines = [
        textwrap.fill(line, letters, break_long_words=False, break_on_hyphens=False)
        for line in text.split("\n")
    ]
    text = "\n".join(lines)
    for formula, placeholder in zip(formulas, placeholders, strict=True):
        text = text.replace(placeholder, formula, 1)
    return text


def label_with_note(label: str, note: str, letters: int) -> str:
    """Return a label with a note in brackets, on a line of its own where both are too long."""
    if not note:
        return wrap_text(label, letters)
    fits = len(typeset(f"{label} ({note})")) <= letters
    return wrap_text(f"{label} ({note})" if fits else f"{label}\n({note})".lstrip(), letters)


def brief(value: object) -> str:
    """Write a parameter's value for a title or a legend: real numbers with up to four digits.

    Very small and large numbers have a power of ten, whole numbers only where they are round.
    """
    if isinstance(value, float):
        return tick_number(float(f"{value:.4g}"))
    if isinstance(value, numbers.Integral) and 1e5 <= int(value) == float(f"{int(value):.3g}"):
        return power(int(value))
    return str(value)


def tick_number(value: float) -> str:
    """Write a number for a tick: `0.05`, `200`, extreme ones with a power of ten, and infinity."""
    if not math.isfinite(value):
        return "nan" if math.isnan(value) else rf"${'-' if value < 0 else ''}\infty$"
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        return f"{value:g}".replace("-", "−")
    return power(value)


def power(value: float) -> str:
    """Write a number other than zero with a power of ten, in mathtext."""
    mantissa, exponent = f"{value:.2e}".split("e")
    factor = "" if float(mantissa) == 1 else rf"{float(mantissa):g} \cdot "
    return f"${factor}10^{{{int(exponent)}}}$"
