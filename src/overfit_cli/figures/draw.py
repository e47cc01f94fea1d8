"""A figure from run directories: loaded, chosen, compared, drawn, and captioned."""

from __future__ import annotations

import re
import shlex
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

from overfit_cli.core.arrays import LARGEST, without_overflow
from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.figure import Figure, FigureOptions
from overfit_cli.core.registry import figures_of
from overfit_cli.core.study import AnyStudy, FigureData
from overfit_cli.core.text import VERSION, most_alike, plural
from overfit_cli.figures.axes import varying_in_words
from overfit_cli.figures.caption import caption, stand_ins
from overfit_cli.figures.expressions import derive_axes, derive_columns, undefined_numbers
from overfit_cli.figures.inputs import resolve_options, resolve_symbols
from overfit_cli.figures.labels import tick_number, typeset, varying_parameters
from overfit_cli.figures.look import as_recorded
from overfit_cli.figures.panels import difference, side_by_side
from overfit_cli.figures.picture import Look, Picture, looking
from overfit_cli.figures.record import (
    FigureRecord,
    SourceRecord,
    record_of_cells,
    versions,
)
from overfit_cli.sweeps.load import chosen_data, load_figure_data
from overfit_cli.sweeps.manifest import read_manifest
from overfit_cli.sweeps.provenance import provenance_in_words
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
    figure, first = figure_and_data(request.figure, request.directories[0], request.where)
    _refuse_unheeded(figure, request)
    others = request.sources[1:]
    parts = [
        first,
        *(figure_and_data(request.figure, other, request.where)[1] for other in others),
    ]
    asked = resolve_symbols(request.options, first.study)
    derived = [derive_columns(figure, part, asked) for part in parts]
    data = _compared(request, derived, asked, figure)
    for sentence in provenance_in_words(data.parts or {"": data}):
        warnings.warn(sentence, UserWarning, stacklevel=2)
    commands = commands_behind([source.path for source in request.sources], request.command)
    picture = drawn(figure, data, asked, commands, request.look)
    picture.metadata = _record_of(request, figure, parts).metadata()
    return picture


def _record_of(request: Request, figure: Figure, parts: Sequence[FigureData]) -> FigureRecord:
    look = request.look or Look()
    names = request.called() if len(request.sources) > 1 else [""]
    runs = [
        record_of_run(directory.path, data, figure, request.options, request.out, name)
        for directory, data, name in zip(request.sources, parts, names, strict=True)
    ]
    minus = runs.pop() if request.minus is not None else None
    return FigureRecord(
        schema=1,
        overfit=VERSION,
        packages=versions(),
        command=request.command,
        title=figure.title,
        figure=request.figure,
        options=request.options,
        where=tuple(request.where),
        look=as_recorded(look),
        runs=tuple(runs),
        minus=minus,
    )


def record_of_run(
    path: Path,
    data: FigureData,
    figure: Figure,
    options: FigureOptions,
    out: Path | None = None,
    name: str = "",
) -> SourceRecord:
    """Return the record of a run directory: the cells that it gives the figure.

    Logged steps count where the figure reads them, and times where it draws them.
    """
    cells, steps = data.cells, None
    if figure.reads == "trajectories":
        steps = data.trajectories[data.trajectories["key"].isin(cells["key"])]
    columns = " ".join(filter(None, (options.value, options.theory, figure.options.value)))
    seconds = "seconds" in re.findall(r"\w+", columns)
    return record_of_cells(path, data.study.name, cells, steps, seconds=seconds, out=out, name=name)


def drawn(
    figure: Figure,
    data: FigureData,
    asked: FigureOptions,
    commands: Sequence[str],
    look: Look | None = None,
) -> Picture:
    """Draw a figure of some data, with its caption.

    Args:
        commands: those that made the cells, and the one that draws them.
    """
    look = look or Look()
    left_out = undefined_numbers(data, asked)
    data, too_large = _without_overflow(data, figure, asked.value or figure.options.value)
    left_out += too_large
    with looking(look, " ".join(stand_ins(data.parts or {"": data}))):
        on_axes = derive_axes(data, asked)
        options = resolve_options(figure, asked, on_axes)
        try:
            picture: Picture = figure.draw(on_axes, options)
        except BadValue as error:
            raise _by_default(error, figure, asked, on_axes) from error
    if picture.is_empty():
        raise UserError(f"{figure.name}: nothing would be drawn; the cells hold no number for it.")
    if left_out:
        picture.facts = [*(picture.facts or [f"{figure.title}."]), *left_out]
    if figure.equation_of is not None and options.law == (figure.equation_of(on_axes),):
        picture.facts += filter(None, [figure.equation_note(on_axes)])
    usual = (options.x, options.y, options.value) == (
        figure.options.x,
        figure.options.y,
        figure.options.value,
    )
    picture.caption = caption(figure, picture, data, commands, usual=usual)
    return picture


def _by_default(
    error: BadValue, figure: Figure, asked: FigureOptions, data: FigureData
) -> UserError:
    if getattr(asked, error.name, None) is not None:
        return error
    varying = varying_parameters(data)
    if error.name in ("x", "y") and len(varying) < figure.axes:
        needs = "two parameters that vary" if figure.axes == 2 else "a parameter that varies"
        other = "; `overfit plot lines` needs one" if len(varying) == 1 else ""
        here = varying_in_words(varying)
        return UserError(f"{figure.name} needs {needs}, and here {here}{other}.")
    if error.value is not None and hasattr(asked, error.name):
        shown = f"{figure.name} has {error.name}={error.value} by default"
        return UserError(f"{shown}: {error.accepts}")
    return error


def _without_overflow(
    data: FigureData, figure: Figure, value: str | None
) -> tuple[FigureData, list[str]]:
    """Leave out numbers that are too large to average and draw; say how many in a sentence."""
    measured = [column.name for column in data.study.columns]
    logged = [column.name for column in data.study.trajectory_columns]
    cells, _ = without_overflow(data.cells, measured)
    steps, count = without_overflow(data.trajectories, logged)
    limit = typeset(tick_number(LARGEST))
    if figure.reads == "cells":
        column = value or data.study.headline
        _, count = without_overflow(data.cells, [column])
        if count and not cells[column].notna().any():
            raise BadValue("value", column, f"all its {count} numbers lie beyond ±{limit}.")
    sentences = [f"Left out: {plural(count, 'number')} beyond ±{limit}."] if count else []
    return replace(data, cells=cells, trajectories=steps), sentences


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
) -> tuple[Figure, FigureData]:
    """Return a figure of a run directory's study, and what it is drawn from."""
    data = chosen_data(load_figure_data(directory), where)
    figure = find_figure(data.study, name)
    if figure.reads == "trajectories" and data.trajectories.empty:
        accepts = (
            f"it holds no trajectories, which {name} requires; `overfit train` and a sweep with "
            "trajectories write them."
        )
        raise BadValue("directory", str(directory.path), accepts)
    return figure, data


def _refuse_unheeded(figure: Figure, request: Request) -> None:
    given = {
        field.name: value
        for field in fields(request.options)
        if (value := getattr(request.options, field.name)) is not None
    }
    several = len(request.directories) > 1
    if request.minus is not None and several:
        accepts = "it subtracts from one run directory; name one."
        raise BadValue("minus", None, accepts)
    if several and "from" not in figure.accepts:
        named = " ".join(str(directory.path) for directory in request.directories)
        accepts = f"{figure.name} draws one run directory, not {len(request.directories)}."
        raise BadValue("directory", named, accepts)
    if request.minus is not None:
        given["minus"] = str(request.minus.path)
    options = sorted(name.replace("_", "-") for name in figure.accepts - {"from"})
    for name in (name for name in given if name not in figure.accepts):
        option, value = _as_typed(name, given[name])
        accepts = f"{figure.name} has no such option; it accepts {', '.join(options) or 'none'}."
        raise BadValue(option, value, accepts)


def _as_typed(name: str, value: object) -> tuple[str, object]:
    if name == "log" and isinstance(value, frozenset):
        return "log", ",".join(sorted(value)) or "none"
    if isinstance(value, tuple):
        return "law", value[0] if value else "none"
    return name, value


def _compared(
    request: Request, parts: Sequence[FigureData], asked: FigureOptions, figure: Figure
) -> FigureData:
    names, value = request.called(), asked.value or figure.options.value
    if request.minus is None:
        axes = (asked.x or figure.options.x, asked.y or figure.options.y)
        named = [name for name in axes if name and name.isidentifier()]  # others are expressions
        return side_by_side(names, parts, [*named, value or _usual_column(figure, parts)])
    data, minus = parts
    less = difference(data, minus, names[-1], value)
    if less.unpaired:
        text = f"{names[-1]}: {less.unpaired}; the others are left out"
        warnings.warn(text, UserWarning, stacklevel=2)
    return less


def _usual_column(figure: Figure, parts: Sequence[FigureData]) -> str:
    study = parts[0].study
    if figure.reads == "cells":
        return study.headline
    logged = [column.name for column in study.trajectory_columns]
    shared = [name for name in logged if all(name in part.trajectories for part in parts)]
    return next(iter([*shared, *logged]), "")


def commands_behind(directories: Sequence[Path], drawing: str) -> list[str]:
    """Return the commands that made the cells of run directories, and the one that draws them.

    Args:
        drawing: what the user typed; empty where nothing was.
    """
    made: list[str] = []
    for directory in directories:
        manifest = read_manifest(directory)
        made += [shlex.join(run.command) for run in manifest.runs] if manifest else []
    typed = [command for command in dict.fromkeys(made) if command]  # Python types none
    return [*typed, *([drawing] if drawing else [])]
