"""Captions: the content of a figure, its cells, its settings and the commands that made it."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from overfit_cli.core.cells import Cells
from overfit_cli.core.parameters import Value, describe
from overfit_cli.core.parameters import symbol_text as unicode_of
from overfit_cli.core.study import missed_by, stand_ins_of
from overfit_cli.core.text import VERSION, list_numbers, plural
from overfit_cli.figures.labels import brief, subtracted_means, typeset
from overfit_cli.sweeps.manifest import provenance_in_words

WIDTH = 96


def caption(shows: str, data: Cells, command: str = "") -> str:
    """Return the caption of a figure, for its text file.

    Args:
        shows: what the figure shows, in sentences.
        command: the one that drew the figure; it stands below those that made the cells.
    """
    parts = data.parts or {"": data}
    texts = [shows, cells_in_words(data), settings_in_words(data)]
    wrapped = [textwrap.fill(typeset(text), WIDTH, break_on_hyphens=False) for text in texts]
    made = [line for part in parts.values() for run in part.runs for line in run.commands]
    if commands := [*dict.fromkeys(made), *filter(None, [command])]:
        wrapped.append("\n  ".join(["Commands:", *commands]))
    return "\n\n".join([*wrapped, f"overfit {VERSION}"]) + "\n"


def cells_in_words(data: Cells) -> str:
    """Write the number of cells, their seeds, the parameters that vary, and where they are from."""
    cells, counts, parts = data.trained, data.counts(), data.parts or {"": data}
    failed = cells.loc[cells["status"] == "failed"]
    words = missed_by(failed).map(_MISSES).fillna("failed").value_counts().sort_index()
    told = [plural(counts["done"], "cell") + " done", *(f"{n} {word}" for word, n in words.items())]
    told += [f"{counts['missing']} missing"] if counts["missing"] else []
    seeds = f"seeds {list_numbers(sorted(cells['seed'].unique().tolist()))}"
    seeds = "; ".join(filter(None, [subtracted_means(data) or seeds, unpaired(data)]))
    axes = [
        f"{symbol_and_name(data, name)} {_values_in_words(data.values[name])}"
        for name in data.varying()
    ]
    varies = f" Axes: {'; '.join(axes)}." if axes else ""
    chosen = [
        f" Chosen{f' of {name}' if name else ''}: {part.chosen}; the others are left out."
        for name, part in parts.items()
        if part.chosen
    ]
    own = f"Cells: {', '.join(told)}; {seeds}.{varies}{''.join(chosen)}"
    return " ".join([own, *provenance_in_words(parts), *stand_ins(parts)])


def unpaired(data: Cells) -> str:
    """Write how many cells of a difference have a counterpart; empty where all have."""
    pairs = data.pairs
    if pairs is None or pairs.here == pairs.there == pairs.both:
        return ""
    noun = "places" if pairs.by == "means" else "cells"
    here = f"{pairs.both} of {pairs.here} {noun} here"
    return f"{here} and of {pairs.there} there have a counterpart"


def _values_in_words(values: Sequence[Value]) -> str:
    if len(values) > 6:
        return f"{len(values)} values from {brief(values[0])} to {brief(values[-1])}"
    return ", ".join(map(brief, values))


_MISSES = {"diverged": "diverged", "step limit": "without reaching the target"}
"""What cells did that failed for these reasons."""


_LONGEST_SYMBOL = 6
"""A longer one is a formula."""


def symbol_and_name(data: Cells, name: str) -> str:
    """Write a number's parameter with its symbol, as the picture has it: `N (n)`."""
    info = describe(data.study.parameters).get(name)
    if info is None or not info.symbol or info.kind not in ("int", "float"):
        return name
    symbol = unicode_of(info.symbol)
    return name if symbol == name or len(symbol) > _LONGEST_SYMBOL else f"{symbol} ({name})"


def stand_ins(parts: Mapping[str, Cells]) -> list[str]:
    """Return what stands in for the papers' data in the cells of runs: see `Study.stand_in`."""
    sentences = [
        sentence for part in parts.values() for sentence in stand_ins_of(part.study, part.trained)
    ]
    return list(dict.fromkeys(sentences))


def settings_in_words(data: Cells) -> str:
    """Write the study and the parameters that have one value; of several studies, each one's."""
    if len({(part.study.name, part.study.version) for part in data.parts.values()}) > 1:
        each = [f"{name}, {_settings_of_study(part)}" for name, part in data.parts.items()]
        return f"Settings: {' '.join(each)}"
    return f"Settings: {_settings_of_study(data)}"


def _settings_of_study(data: Cells) -> str:
    study = data.study
    paper = f" ({study.paper})" if study.paper else ""
    texts = [
        f"{symbol_and_name(data, name)} {brief(value)}"
        for name, value in fixed_parameters(data).items()
    ]
    differs = f" They differ in: {'; '.join(data.differs)}." if data.differs else ""
    settings = f": {', '.join(texts)}" if texts else ""
    return f"{study.name}{paper}, version {study.version}{settings}.{differs}"


def fixed_parameters(data: Cells) -> dict[str, Value]:
    """Return the parameters that have one value in all cells, with this value."""
    described = describe(data.study.parameters)
    differ = {sentence.partition(" ")[0] for sentence in data.differs}
    return {
        name: values[0]
        for name, values in data.values.items()
        if len(values) == 1 and name in described and name not in differ
    }
