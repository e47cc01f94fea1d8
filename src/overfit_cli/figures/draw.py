"""A figure from run directories: loaded, chosen, compared, drawn, and captioned."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from overfit_cli.core.cells import Cells
from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.figure import Figure, FigureOptions
from overfit_cli.core.files import short_names
from overfit_cli.core.registry import figures_of
from overfit_cli.core.study import AnyStudy
from overfit_cli.core.text import most_alike
from overfit_cli.figures.inputs import difference, prepare, read_options, side_by_side
from overfit_cli.figures.labels import caption, stand_ins, unpaired
from overfit_cli.figures.picture import Picture, looking
from overfit_cli.figures.record import SourceRecord, new_record, record_of_cells
from overfit_cli.figures.style import Look
from overfit_cli.sweeps.load import load_run
from overfit_cli.sweeps.manifest import provenance_in_words
from overfit_cli.sweeps.store import RunDirectory


def draw_figure(
    name: str,
    directories: Sequence[RunDirectory],
    options: FigureOptions,
    where: Sequence[str] = (),
    minus: RunDirectory | None = None,
    look: Look | None = None,
    command: str = "",
    out: Path | None = None,
    names: Sequence[str] = (),
) -> Picture:
    """Draw a figure of run directories, with its caption and its record.

    Args:
        minus: a run directory to subtract, cell by cell.
        out: the file that it is drawn for.
        names: what it calls several run directories, the subtracted one last; by default what their
            paths say.
    """
    sources = [*directories, *([minus] if minus is not None else [])]
    loaded = [figure_and_data(name, each, where) for each in sources]
    figure, parts = loaded[0][0], [data for _, data in loaded]
    _refuse_unheeded(figure, directories, options, minus)
    paths = [source.path for source in sources]
    if not names and len({path.resolve() for path in paths}) < len(paths):
        raise BadValue("directory", str(paths[0]), "a run directory is named twice.")
    names, read = names or short_names(paths), [read_options(figure, p, options) for p in parts]
    derived, asked = [part for part, _ in read], read[0][1]
    usual = parts[0].study.headline if figure.reads == "cells" else ""
    value = asked.value or figure.options.value or usual
    if minus is None:
        data = side_by_side(names, derived, value.partition(",")[0].strip())
    else:
        data = difference(derived[0], derived[1], ("here", names[-1]), value)
        if words := unpaired(data):
            text = f"{names[-1]}: {words}; the others are left out"
            warnings.warn(text, UserWarning, stacklevel=2)
    for sentence in provenance_in_words(data.parts or {"": data}):
        warnings.warn(sentence, UserWarning, stacklevel=2)
    picture = drawn(figure, data, asked, command, look)
    called = names if parts[1:] else [""]
    runs = [
        record_of_run(part, figure, options, out, text)
        for part, text in zip(parts, called, strict=True)
    ]
    picture.metadata = new_record(
        command=command,
        title=figure.title,
        figure=name,
        options=options,
        where=tuple(where),
        look=replace(look or Look(), settings={}),
        runs=tuple(runs[: len(directories)]),
        minus=runs[-1] if minus is not None else None,
    ).metadata()
    return picture


def record_of_run(
    data: Cells,
    figure: Figure,
    options: FigureOptions,
    out: Path | None = None,
    name: str = "",
) -> SourceRecord:
    """Return the record of a run directory: the cells that it gives the figure.

    Logged steps count where the figure reads them, and times where it draws them.
    """
    steps = data.steps if figure.reads == "trajectories" else None
    columns = " ".join(filter(None, (options.value, options.theory, figure.options.value)))
    seconds = "seconds" in re.findall(r"\w+", columns)
    return record_of_cells(data, steps, seconds=seconds, out=out, name=name)


def drawn(
    figure: Figure,
    data: Cells,
    asked: FigureOptions,
    command: str = "",
    look: Look | None = None,
) -> Picture:
    """Draw a figure of some data, with its caption."""
    with looking(look or Look(), " ".join(stand_ins(data.parts or {"": data}))):
        on_axes, options = prepare(figure, data, asked)
        picture: Picture = figure.draw(on_axes, options)
    if picture.is_empty():
        raise UserError(f"{figure.name}: nothing would be drawn; the cells hold no number for it.")
    equation, note = figure.equation_of(on_axes) if figure.equation_of is not None else ("", "")
    picture.facts += [note] if note and options.law == (equation,) else []
    own, facts = figure.options, picture.facts or [f"{figure.title}."]
    usual = (options.x, options.y, options.value) == (own.x, own.y, own.value)
    if figure.source and usual and not data.pairs and figure.reproduces(data):
        facts = [*facts, f"After {figure.source}."]
    picture.caption = caption(" ".join(facts), data, command)
    return picture


def find_figure(study: AnyStudy, name: str) -> Figure:
    """Return a study's figure by its name."""
    figures = figures_of(study)
    if name not in figures:
        near = most_alike(name, figures, cutoff=0.7)
        hint = f"did you mean {near!r}?" if near else f"it has {', '.join(sorted(figures))}."
        raise UserError(f"{study.name} has no figure {name!r}; {hint}")
    return figures[name]


def figure_and_data(
    name: str, directory: RunDirectory, where: Sequence[str]
) -> tuple[Figure, Cells]:
    """Return a figure of a run directory's study, and what it is drawn from."""
    data = load_run(directory).where(*where)
    figure = find_figure(data.study, name)
    if figure.reads == "trajectories" and data.steps.empty:
        accepts = (
            f"it holds no trajectories, which {name} requires; `overfit train` and a sweep with "
            "trajectories write them."
        )
        raise BadValue("directory", str(directory.path), accepts)
    return figure, data


def _refuse_unheeded(
    figure: Figure,
    directories: Sequence[RunDirectory],
    options: FigureOptions,
    minus: RunDirectory | None,
) -> None:
    several = len(directories) > 1
    if minus is not None and several:
        raise BadValue("minus", None, "it subtracts from one run directory; name one.")
    if several and "from" not in figure.accepts:
        named = " ".join(str(directory.path) for directory in directories)
        accepts = f"{figure.name} draws one run directory, not {len(directories)}."
        raise BadValue("directory", named, accepts)
    given = options.given() | ({"minus": str(minus.path)} if minus is not None else {})
    for name in given.keys() - figure.accepts:
        value = given[name]
        value = ",".join(sorted(value)) or "none" if isinstance(value, frozenset | tuple) else value
        accepted = ", ".join(sorted(figure.accepts - {"from"})) or "none"
        raise BadValue(name, value, f"{figure.name} has no such option; it accepts {accepted}.")
