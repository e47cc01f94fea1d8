"""Captions: the content of a figure, its cells, its settings and the commands that made it."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from overfit_cli.core.figure import Figure as StudyFigure
from overfit_cli.core.parameters import Value, describe
from overfit_cli.core.parameters import symbol_text as unicode_of
from overfit_cli.core.study import FigureData, stand_ins_of
from overfit_cli.core.text import VERSION, list_numbers, plural
from overfit_cli.figures.hidden_lines import hidden_in_words
from overfit_cli.figures.labels import brief, parameter_values, typeset
from overfit_cli.sweeps.provenance import provenance_in_words

if TYPE_CHECKING:
    import pandas as pd

    from overfit_cli.figures.picture import Picture

WIDTH = 96


def caption(
    figure: StudyFigure,
    picture: Picture,
    data: FigureData,
    commands: Sequence[str],
    *,
    usual: bool = True,
) -> str:
    """Return the caption of a figure, for its text file.

    Args:
        commands: the commands that made the cells, and the one that drew the figure.
        usual: whether it has the axes and the column of the study's figure.
    """
    shows = " ".join([*(picture.facts or [f"{figure.title}."]), *hidden_in_words(picture)])
    is_source = bool(figure.source) and usual and not data.less and figure.reproduces(data)
    source = f" After {figure.source}." if is_source else ""
    source += " For the full width of a page." if picture.is_wide else ""
    parts = data.parts or {"": data}
    cells = " ".join([cells_in_words(data), *provenance_in_words(parts), *stand_ins(parts)])
    texts = [shows + source, cells, settings_in_words(data)]
    wrapped = [textwrap.fill(typeset(text), WIDTH, break_on_hyphens=False) for text in texts]
    command_lines = (
        ["\n".join(["Commands:", *(f"  {command}" for command in commands)])] if commands else []
    )
    return "\n\n".join([*wrapped, *command_lines, f"overfit {VERSION}"]) + "\n"


def cells_in_words(data: FigureData) -> str:
    """Write the number of cells, their seeds, and the parameters that vary."""
    cells = data.cells
    seeds = sorted(cells["seed"].unique().tolist())
    is_failed = cells["status"] == "failed"
    reasons = cells["reason"] if "reason" in cells else cells["status"]
    words = reasons[is_failed].map(_MISSES).fillna("failed").value_counts()
    failed = "".join(f", {count} {word}" for word, count in words.sort_index().items())
    seeds_words = data.averaged or f"seeds {list_numbers(seeds)}"
    seeds_words += f"; {data.unpaired}" if data.unpaired else ""
    axes = [
        f"{symbol_and_name(data, name)} "
        + (
            f"{len(values)} values from {brief(values[0])} to {brief(values[-1])}"
            if len(values) > 6
            else ", ".join(map(brief, values))
        )
        for name, values in parameter_values(data).items()
        if len(values) > 1
    ]
    varies = f" Axes: {'; '.join(axes)}." if axes else ""
    runs = data.parts or {"": data}
    chosen = [
        f" Chosen{f' of {name}' if name else ''}: {part.chosen}; the others are left out."
        for name, part in runs.items()
        if part.chosen
    ]
    done = plural(int((~is_failed).sum()), "cell")
    return f"Cells: {done} done{failed}; {seeds_words}.{varies}{''.join(chosen)}"


_MISSES = {"diverged": "diverged", "step limit": "without reaching the target"}
"""What cells did that failed for these reasons."""


_LONGEST_SYMBOL = 6
"""A longer one is a formula."""


def symbol_and_name(data: FigureData, name: str) -> str:
    """Write a number's parameter with its symbol, as the picture has it: `N (n)`."""
    info = describe(data.study.parameters).get(name)
    if info is None or not info.symbol or info.kind not in ("int", "float"):
        return name
    symbol = unicode_of(info.symbol)
    return name if symbol == name or len(symbol) > _LONGEST_SYMBOL else f"{symbol} ({name})"


def stand_ins(parts: Mapping[str, FigureData]) -> list[str]:
    """Return what stands in for the papers' data in the cells of runs: see `Study.stand_in`."""
    sentences = [
        sentence for part in parts.values() for sentence in stand_ins_of(part.study, part.cells)
    ]
    return list(dict.fromkeys(sentences))


def settings_in_words(data: FigureData) -> str:
    """Write the study and the parameters that have one value; of several studies, each one's."""
    if len({(part.study.name, part.study.version) for part in data.parts.values()}) > 1:
        each = [f"{name}, {_settings_of_study(part)}" for name, part in data.parts.items()]
        return f"Settings: {' '.join(each)}"
    return f"Settings: {_settings_of_study(data)}"


def _settings_of_study(data: FigureData) -> str:
    study = data.study
    paper = f" ({study.paper})" if study.paper else ""
    texts = [
        f"{symbol_and_name(data, name)} {brief(value)}"
        for name, value in fixed_parameters(data).items()
    ]
    differs = f" They differ in: {'; '.join(data.differs)}." if data.differs else ""
    settings = f": {', '.join(texts)}" if texts else ""
    return f"{study.name}{paper}, version {study.version}{settings}.{differs}"


def fixed_parameters(data: FigureData) -> dict[str, Value]:
    """Return the parameters that have one value in all cells, with this value."""
    described = describe(data.study.parameters)
    differ = {sentence.partition(" ")[0] for sentence in data.differs}
    return {
        name: values[0]
        for name, values in parameter_values(data).items()
        if len(values) == 1 and name in described and name not in differ
    }


def mixed_directions(tables: Sequence[pd.DataFrame]) -> list[str]:
    """Return a sentence where some crossing curves rise and others fall; none where all agree."""
    rises = [rise for table in tables for rise in table.loc[table["side"] == "crosses", "rises"]]
    if len(set(rises)) < 2:
        return []
    return [f"{sum(rises)} of {plural(len(rises), 'crossing curve')} rise, the others fall."]


def repeated_crossings(tables: Sequence[pd.DataFrame]) -> list[str]:
    """Return a sentence on curves that cross a threshold more than once; none without any."""
    passes = [int(count) for table in tables for count in table["passes"]]
    repeated = [count for count in passes if count > 1]
    if not repeated:
        return []
    return [
        f"{len(repeated)} of {plural(len(passes), 'curve')} cross it more than once, up to "
        f"{max(repeated)} times; the crossing is that of a monotone fit."
    ]
