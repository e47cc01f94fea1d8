"""A figure from run directories: loaded, chosen, compared, drawn, and captioned."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from overfit_cli.core.cells import Cells
from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.figure import Figure, FigureOptions
from overfit_cli.core.registry import figures_of
from overfit_cli.core.study import AnyStudy
from overfit_cli.core.text import most_alike
from overfit_cli.figures.caption import caption, stand_ins, unpaired
from overfit_cli.figures.inputs import derive_columns, prepare, resolve_symbols
from overfit_cli.figures.panels import difference, side_by_side
from overfit_cli.figures.picture import Picture, looking
from overfit_cli.figures.record import FigureRecord, SourceRecord, new_record, record_of_cells
from overfit_cli.figures.style import Look
from overfit_cli.sweeps.load import load_run
from overfit_cli.sweeps.manifest import provenance_in_words
from overfit_cli.sweeps.store import RunDirectory


@dataclass(frozen=True)
class Request:
    """A request for a figure.

    Attributes:
        names: what the figure calls several run directories; empty for what their paths say.
    """

    figure: str
    directories: Sequence[RunDirectory]
    options: FigureOptions
    where: Sequence[str] = ()
    minus: RunDirectory | None = None
    look: Look | None = None
    command: str = ""
    out: Path | None = None
    names: Sequence[str] = ()

    @property
    def sources(self) -> list[RunDirectory]:
        """All run directories, the subtracted one last."""
        return [*self.directories, *([self.minus] if self.minus is not None else [])]

    def called(self) -> list[str]:
        """The sources' names: the last part of their paths, or all of it where two share it."""
        if self.names:
            return list(self.names)
        paths = [source.path for source in self.sources]
        if len({path.resolve() for path in paths}) < len(paths):
            raise BadValue("directory", str(paths[0]), "a run directory is named twice.")
        short = [path.resolve().name for path in paths]
        return short if len(set(short)) == len(short) else [str(path) for path in paths]


def draw_figure(request: Request) -> Picture:
    """Draw a figure, with its caption and its record."""
    loaded = [figure_and_data(request.figure, each, request.where) for each in request.sources]
    figure, parts = loaded[0][0], [data for _, data in loaded]
    _refuse_unheeded(figure, request)
    asked = resolve_symbols(request.options, parts[0].study)
    data = _compared(
        request, [derive_columns(figure, part, asked) for part in parts], figure, asked
    )
    for sentence in provenance_in_words(data.parts or {"": data}):
        warnings.warn(sentence, UserWarning, stacklevel=2)
    picture = drawn(figure, data, asked, request.command, request.look)
    picture.metadata = _record_of(request, figure, parts).metadata()
    return picture


def _record_of(request: Request, figure: Figure, parts: Sequence[Cells]) -> FigureRecord:
    names = request.called() if len(parts) > 1 else [""]
    runs = [
        record_of_run(data, figure, request.options, request.out, name)
        for data, name in zip(parts, names, strict=True)
    ]
    minus = runs.pop() if request.minus is not None else None
    return new_record(
        command=request.command,
        title=figure.title,
        figure=request.figure,
        options=request.options,
        where=tuple(request.where),
        look=replace(request.look or Look(), settings={}),
        runs=tuple(runs),
        minus=minus,
    )


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
    if figure.equation_of is not None and options.law == (figure.equation_of(on_axes),):
        picture.facts += filter(None, [figure.equation_note(on_axes)])
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


def _refuse_unheeded(figure: Figure, request: Request) -> None:
    several = len(request.directories) > 1
    if request.minus is not None and several:
        raise BadValue("minus", None, "it subtracts from one run directory; name one.")
    if several and "from" not in figure.accepts:
        named = " ".join(str(directory.path) for directory in request.directories)
        accepts = f"{figure.name} draws one run directory, not {len(request.directories)}."
        raise BadValue("directory", named, accepts)
    given = request.options.given()
    given |= {"minus": str(request.minus.path)} if request.minus is not None else {}
    for name in given.keys() - figure.accepts:
        value = given[name]
        value = ",".join(sorted(value)) or "none" if isinstance(value, frozenset | tuple) else value
        options = ", ".join(sorted(figure.accepts - {"from"})) or "none"
        raise BadValue(name, value, f"{figure.name} has no such option; it accepts {options}.")


def _compared(
    request: Request, parts: Sequence[Cells], figure: Figure, asked: FigureOptions
) -> Cells:
    names, value = request.called(), asked.value or figure.options.value
    if request.minus is None:
        usual = parts[0].study.headline if figure.reads == "cells" else ""
        return side_by_side(names, parts, (value or usual).partition(",")[0].strip())
    data, minus = parts
    less = difference(data, minus, ("here", names[-1]), value or data.study.headline)
    if words := unpaired(less):
        text = f"{names[-1]}: {words}; the others are left out"
        warnings.warn(text, UserWarning, stacklevel=2)
    return less
