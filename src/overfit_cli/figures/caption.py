"""Captions: what a figure shows, from which cells, with which settings and commands."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from overfit_cli.core.figure import Figure as StudyFigure
from overfit_cli.core.parameters import Value, describe
from overfit_cli.core.study import FigureData
from overfit_cli.core.text import VERSION, plural
from overfit_cli.figures.labels import brief, parameter_values, typeset

if TYPE_CHECKING:
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
    """Return a text for beside a figure, which an author can paste below it.

    Args:
        figure: what was asked for.
        picture: what was drawn.
        data: what it was drawn from.
        commands: those that made the cells, and the one that drew the figure.
        usual: whether it shows what the study's own figure does: the same axes and column.
    """
    shows = " ".join(picture.facts or [f"{figure.title}."])
    source = f" After {figure.source}." if figure.source and usual and not data.less else ""
    parts = [shows + source, cells_in_words(data), settings_in_words(data)]
    wrapped = [textwrap.fill(typeset(part), WIDTH, break_on_hyphens=False) for part in parts]
    made = ["\n".join(["Commands:", *(f"  {command}" for command in commands)])] if commands else []
    return "\n\n".join([*wrapped, *made, f"overfit {VERSION}"]) + "\n"


def cells_in_words(data: FigureData) -> str:
    """Say how many cells there are, of which seeds, and what varies."""
    cells, states = data.cells, data.cells["status"].value_counts()
    seeds = sorted(cells["seed"].unique().tolist())
    even = seeds == list(range(seeds[0], seeds[-1] + 1)) and len(seeds) > 2
    which = f"{seeds[0]} to {seeds[-1]}" if even else ", ".join(map(str, seeds))
    failed = f", {states['failed']} failed" if "failed" in states else ""
    seeds_words = data.averaged or f"seeds {which}"
    seeds_words += f"; {data.unpaired}" if data.unpaired else ""
    axes = [
        f"{name} {len(values)} values from {brief(values[0])} to {brief(values[-1])}"
        if len(values) > 6
        else f"{name} {', '.join(map(brief, values))}"
        for name, values in parameter_values(data).items()
        if len(values) > 1
    ]
    varies = f" Axes: {'; '.join(axes)}." if axes else ""
    return (
        f"Cells: {plural(int(states.get('done', 0)), 'cell')} done{failed}; {seeds_words}.{varies}"
    )


def settings_in_words(data: FigureData) -> str:
    """Say which study it is, and the parameters that have one value."""
    study = data.study
    paper = f" ({study.paper})" if study.paper else ""
    texts = [f"{name} {brief(value)}" for name, value in fixed_parameters(data).items()]
    differs = f" They differ in: {'; '.join(data.differs)}." if data.differs else ""
    settings = ", ".join(texts)
    return f"Settings: {study.name}{paper}, version {study.version}: {settings}.{differs}"


def fixed_parameters(data: FigureData) -> dict[str, Value]:
    """Return the parameters that have one value in all cells, with it."""
    described = describe(data.study.parameters)
    differ = {sentence.partition(" ")[0] for sentence in data.differs}
    return {
        name: values[0]
        for name, values in parameter_values(data).items()
        if len(values) == 1 and name in described and name not in differ
    }
