"""Words of figures: labels, numbers, and captions."""

from __future__ import annotations

import math
import numbers
import re
import shlex
import textwrap
from collections.abc import Collection, Mapping, Sequence

from overfit_cli.core.cells import Cells
from overfit_cli.core.parameters import Value, describe, symbol_text, with_money
from overfit_cli.core.study import RUN, Schema, missed_by, stand_ins_of
from overfit_cli.core.text import VERSION, list_numbers, plural, spaced, typed_command, visible
from overfit_cli.sweeps.manifest import provenance_in_words


def axis_label(schema: Schema, name: str) -> str:
    """Return the label of a parameter or column: a few words, symbol and unit, in mathtext."""
    field = schema[name]
    words = with_money(field.label or spaced(name))
    symbol = f" ${field.symbol}$" if field.symbol else ""
    unit = f" ({with_money(field.unit)})" if field.unit else ""
    return f"{words}{symbol}{unit}"


def opening(label: str) -> str:
    """Return a label for the begin of a sentence: capitalised, and with a comma if it has one."""
    return f"{label[:1].upper()}{label[1:]}{',' if ',' in label else ''}"


def setting(schema: Schema, name: str, value: object) -> str:
    """Return a parameter's value for a title: `$N$ = 5`, `attention kernel: softmax`, `seed 3`."""
    label = f"{with_money(schema[name].label)}: " if is_word(schema, name) else ""
    return label + short_setting(schema, name, value)


def short_setting(schema: Schema, name: str, value: object) -> str:
    """Return a parameter's value for a legend, where a word needs no name: `softmax`."""
    if name == "seed":
        return f"seed {value}"
    if name == RUN or is_word(schema, name):
        return value_label(schema, name, value)
    field = schema[name]
    called = f"${field.symbol}$" if field.symbol else with_money(field.label)
    unit = f" {with_money(field.unit)}" if field.unit else ""
    return f"{called} = {brief(value)}{unit}"


def value_label(schema: Schema, name: str, value: object) -> str:
    """Return what a figure calls a value that is a word: its label, if the parameter has one.

    A label may have mathtext.
    """
    return with_money(schema[name].value_labels.get(str(value), "")) or literal(str(value))


def is_word(schema: Schema, name: str) -> bool:
    """Return whether a parameter's values are words."""
    return schema[name].role == "parameter" and schema[name].kind in ("literal", "text")


def short_settings(schema: Schema, values: Mapping[str, object]) -> str:
    """Return several parameters' values for a legend; its heading names the parameters of words."""
    return ", ".join(short_setting(schema, name, value) for name, value in values.items())


def symbols_in_words(schema: Schema, names: Collection[str]) -> list[str]:
    """Return a sentence on the symbols of some parameters, such as `H: attention heads`."""
    fields = [schema[name] for name in names if schema[name].symbol and not is_word(schema, name)]
    told = ", ".join(f"${field.symbol}$: {with_money(field.label)}" for field in fields)
    return [f"{told}."] if told else []


def heading(schema: Schema, names: Collection[str]) -> str:
    """Return a legend's heading: the parameters whose values are words."""
    return ", ".join(with_money(schema[name].label) for name in names if is_word(schema, name))


def contrast(schema: Schema, pair: tuple[str, Sequence[Value]]) -> str:
    """Return a setting that differs between two runs, the subtracted one last, in words.

    Values that are words make `coin − balanced (labels)`, others `chance 0.2, less that at 0`.
    """
    name, values = pair
    label = axis_label(schema, name)
    if is_word(schema, name):
        return f"{' − '.join(value_label(schema, name, value) for value in values)} ({label})"
    first, second = map(brief, values)
    return f"{label} {first}, less that at {second}"


def subtracted_means(data: Cells) -> str:
    """Return of how many seeds the means are that are subtracted; empty where cells are."""
    counts = data.pairs.seeds if data.pairs else ()
    return " less ".join(f"mean of {count} seeds" for count in counts)


def free_parameters(data: Cells, axes: Sequence[str]) -> list[str]:
    """Return the parameters that vary besides axes, but for those that each point of them fixes.

    A list that goes together with an axis, or an expression in it, mixes nothing. Where an axis is
    an expression, such as n / d, each of its values may have one d by chance: no parameter but
    those that it replaces is left out.
    """
    return data.varying(axes) if data.replaced or not axes else data.free_parameters(axes)


def independent_parameters(data: Cells) -> list[str]:
    """Return the parameters that vary, without those that an earlier one fixes."""
    names = list[str]()
    for name in data.varying():
        if all(name in free_parameters(data, [earlier]) for earlier in names):
            names.append(name)
    return names


def typeset(text: str) -> str:
    """Return a text in plain Unicode, with its mathtext converted: to measure, or to print."""
    return _MATH.sub(lambda math: symbol_text(math[0][1:-1]), text).replace(r"\$", "$")


_MATH = re.compile(r"(?<!\\)\$[^$]*(?<!\\)\$")


def literal(text: str) -> str:
    """Escape a name for a figure: one line, no mathtext."""
    return visible(text).replace("$", r"\$")


def wrap_text(text: str, letters: int) -> str:
    """Break lines longer than about `letters` between words; a formula is as long as it looks."""
    formulas = iter(_MATH.findall(text))
    text = _MATH.sub(lambda math: "\0" * len(typeset(math[0])) + "\1", text)
    text = text.replace(" = ", "\2=\2")  # a setting stays on its line
    lines = [
        textwrap.fill(line, letters, break_long_words=False, break_on_hyphens=False)
        for line in text.split("\n")
    ]
    return re.sub("\0*\1", lambda _: next(formulas), "\n".join(lines)).replace("\2", " ")


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


def three_digits(value: float) -> str:
    """Write a number for a tick, in three digits."""
    return tick_number(float(f"{value:.3g}"))


def power(value: float) -> str:
    """Write a number other than zero with a power of ten, in mathtext."""
    mantissa, exponent = f"{value:.2e}".split("e")
    factor = "" if float(mantissa) == 1 else rf"{float(mantissa):g} \cdot "
    return f"${factor}10^{{{int(exponent)}}}$"


WIDTH = 96


def caption(shows: str, data: Cells) -> str:
    """Return the caption of a figure, for its text file.

    The command that draws it stands below those that made the cells.

    Args:
        shows: what the figure shows, in sentences.
    """
    texts = [shows, cells_in_words(data), settings_in_words(data)]
    seen = [visible(typeset(text)) for text in texts]
    wrapped = [textwrap.fill(text, WIDTH, break_on_hyphens=False) for text in seen]
    runs = [run for part in _parts(data).values() for run in part.runs]
    made = [visible(line) for run in runs for line in run.commands]
    if commands := [*dict.fromkeys(made), *filter(None, [shlex.join(typed_command())])]:
        wrapped.append("\n  ".join(["Commands:", *commands]))
    return "\n\n".join([*wrapped, f"overfit {VERSION}"]) + "\n"


def _parts(data: Cells) -> Mapping[str, Cells]:
    return data.parts or {"": data}


def cells_in_words(data: Cells) -> str:
    """Write the number of cells, their seeds, the parameters that vary, and where they are from."""
    cells, counts, parts = data.trained, data.counts(), _parts(data)
    missed = missed_by(cells[cells["status"] == "failed"]).map(_MISSES).fillna("failed")
    told = [f"{plural(counts['done'], 'cell')} done"]
    told += [f"{count} {word}" for word, count in missed.value_counts().sort_index().items()]
    told += [f"{counts['missing']} missing"] if counts["missing"] else []
    seeds = subtracted_means(data) or f"seeds {list_numbers(sorted(set(cells['seed'])))}"
    axes = "; ".join(_parameter_in_words(data, name) for name in data.varying())
    chosen = [
        f"Chosen{f' of {name}' if name else ''}: {part.chosen}; the others are left out."
        for name, part in parts.items()
        if part.chosen
    ]
    own = f"Cells: {', '.join(told)}; {'; '.join(filter(None, [seeds, unpaired(data)]))}."
    varies = [f"Axes: {axes}."] if axes else []
    return " ".join([own, *varies, *chosen, *provenance_in_words(parts), *stand_ins(data)])


def unpaired(data: Cells) -> str:
    """Write how many cells of a difference have a counterpart; empty where all have."""
    pairs = data.pairs
    if pairs is None or pairs.here == pairs.there == pairs.both:
        return ""
    noun = "places" if pairs.by == "means" else "cells"
    here = f"{pairs.both} of {pairs.here} {noun} here"
    return f"{here} and of {pairs.there} there have a counterpart"


_MISSES = {"diverged": "diverged", "step limit": "without reaching the target"}
"""What cells did that failed for these reasons."""


_LONGEST_SYMBOL = 6
"""A longer one is a formula."""


def _parameter_in_words(data: Cells, name: str) -> str:
    """Write a parameter's values after its name, and a number's symbol: `N (n) 10, 20`."""
    info, values = describe(data.study.parameters).get(name), data.values[name]
    symbol = symbol_text(info.symbol) if info and info.kind in ("int", "float") else ""
    is_known = symbol not in ("", name) and len(symbol) <= _LONGEST_SYMBOL
    listed = ", ".join(map(brief, values))
    if len(values) > 6:
        listed = f"{len(values)} values from {brief(values[0])} to {brief(values[-1])}"
    return f"{symbol} ({name}) {listed}" if is_known else f"{name} {listed}"


def stand_ins(data: Cells) -> list[str]:
    """Return what stands in for the papers' data in the cells of runs: see `Study.stand_in`."""
    every = [stand_ins_of(part.study, part.trained) for part in _parts(data).values()]
    return list(dict.fromkeys(sentence for sentences in every for sentence in sentences))


def settings_in_words(data: Cells) -> str:
    """Write the study and the parameters that have one value; of several studies, each one's."""
    if len({(part.study.name, part.study.version) for part in data.parts.values()}) > 1:
        each = [f"{name}, {_settings_of_study(part)}" for name, part in data.parts.items()]
        return f"Settings: {' '.join(each)}"
    return f"Settings: {_settings_of_study(data)}"


def _settings_of_study(data: Cells) -> str:
    study = data.study
    paper = f" ({study.paper})" if study.paper else ""
    fixed = ", ".join(_parameter_in_words(data, name) for name in fixed_parameters(data))
    told = "; ".join(f"{name} {words}" for name, words in data.differs.items())
    differs = f" They differ in: {told}." if told else ""
    settings = f": {fixed}" if fixed else ""
    return f"{study.name}{paper}, version {study.version}{settings}.{differs}"


def fixed_parameters(data: Cells) -> dict[str, Value]:
    """Return the parameters that have one value in all cells, with this value."""
    described = describe(data.study.parameters)
    return {
        name: values[0]
        for name, values in data.values.items()
        if len(values) == 1 and name in described and name not in data.differs
    }
