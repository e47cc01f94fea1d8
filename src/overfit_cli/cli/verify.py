"""The command `verify`: a figure's data compared with its record, and the figure drawn again.

The record of a figure names its run directories and the digests of the cells that were drawn. Each
directory is loaded by the code that draws the figure, and its digest is compared.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer

from overfit_cli.cli.completion import run_directories
from overfit_cli.cli.options import argument, error_as_option, flag, option
from overfit_cli.core.errors import UserError
from overfit_cli.core.files import error_text, read_bounded
from overfit_cli.core.text import console, plural, print_folded, visible

if TYPE_CHECKING:
    from overfit_cli.figures.draw import FigureRecord, SourceRecord

SHORT = 12
"""Digits of a digest that are shown."""


def _figures(path: Path) -> list[Path]:
    """The figures of a run directory, of a folder of such or of figures; or a file itself."""
    if not path.is_dir():
        return [path]
    for pattern in ("figures/*", "*", "*/figures/*"):
        figures = [file for file in path.glob(pattern) if file.suffix in (".png", ".pdf", ".svg")]
        if figures:
            return sorted(figures)
    raise UserError(f"{path} has no figure; `overfit plot --from {path}` draws one.")


class State(NamedTuple):
    """The data at a path beside a figure's: whether it is the same, None if it can't be used."""

    path: Path
    same: bool | None
    sentence: str


def _verify(file: Path, named: Sequence[Path], *, redraw: bool) -> tuple[bool, list[str]]:
    from overfit_cli.figures.draw import read_record
    from overfit_cli.sweeps.manifest import short_commit, sources_in_words

    try:
        content = read_bounded(file)
    except OSError as error:
        reason = f"it can't be read ({error_text(error)}); name a figure that overfit drew."
        raise UserError(reason) from None
    kind, record = read_record(content)
    states = [_find(record, index, file, named) for index in range(len(record.sources))]
    command = f": {record.command}" if record.command else ", from Python."
    sentences = [f"Drawn by overfit {record.overfit} with {_in_words(record.packages)}{command}"]
    for source, state in zip(record.sources, states, strict=True):
        commits = ", ".join(short_commit(commit, SHORT) for commit in source.commits)
        trained = f", trained at commit {commits}" if commits else ""
        what = f"{_cells(source)}{trained}" if source.study else "published numbers"
        sentences.append(f"From {source.path}: {what}; data {source.data[:SHORT]}.")
        sentences += filter(None, [sources_in_words({"": source.sources}), state.sentence])
    holds = all(state.same for state in states)
    if named and not any(state.path in named for state in states):
        holds = False
        sentences.append(f"--from {', '.join(map(str, named))}: that isn't the figure's data.")
    if any(state.same is None for state in states):
        return False, [*sentences, "Without its data the picture can't be drawn again."]
    if not redraw:
        return holds, [*sentences, "The picture isn't compared; --redraw draws it again."]
    same, sentence = _redraw(record, [state.path for state in states], kind, content)
    return holds and same, [*sentences, sentence]


def _cells(source: SourceRecord) -> str:
    return f"{plural(source.cells, 'cell')} of {source.study}, version {source.version}"


def _in_words(packages: Mapping[str, str]) -> str:
    return " and ".join(f"{name} {version}" for name, version in packages.items())


def _find(record: FigureRecord, index: int, file: Path, named: Sequence[Path]) -> State:
    """The first of the named, recorded and neighbouring paths with the same data, or with any."""
    source = record.sources[index]
    states = [State(Path(source.path), None, f"{source.path} isn't here; name it with --from.")]
    beside = file.resolve().parent / (source.beside or Path(source.path).name)
    with contextlib.suppress(ValueError):  # on another drive of Windows
        beside = Path(os.path.relpath(beside))
    for path in (*named, Path(source.path), beside):
        # Unlike Path's own functions, these say no to a name that is too long.
        exists = os.path.isdir(path / "cells") if source.study else os.path.isfile(path)  # noqa: PTH112, PTH113
        states += [_state(record, index, path)] if exists else []
        if states[-1].same:
            return states[-1]
    return next((state for state in states if state.same is not None), states[-1])


def _state(record: FigureRecord, index: int, path: Path) -> State:
    then = record.sources[index]
    try:
        now = _record_now(record, index, path)
    except (OSError, UserError) as error:
        reason = _reason(error)
        reason = reason.partition(f" {path}: ")[2] or reason
        return State(path, None, f"{path} can't be used: {reason}")
    if (_cells(now), now.key) != (_cells(then), then.key):
        return State(path, False, f"{path} has other cells: {_cells(now)}, key {now.key}.")
    if now.data != then.data:
        change = "the same cells have other numbers" if then.study else "its content differs"
        return State(path, False, f"{path} has changed: {change}.")
    what = "These cells are" if then.study else "This file is"
    here = "here" if path.as_posix() == then.path else f"in {path}"
    return State(path, True, f"{what} {here}, unchanged.")


def _reason(error: Exception) -> str:
    return error_as_option(error) if isinstance(error, UserError) else f"{error!r}."


def _record_now(record: FigureRecord, index: int, path: Path) -> SourceRecord:
    """Return the record of a source if the figure were drawn from the data at `path`."""
    from overfit_cli.figures.draw import figure_and_data, record_of_cells, record_of_run
    from overfit_cli.report import pictures
    from overfit_cli.report.runs import load_runs
    from overfit_cli.report.sides import load_side
    from overfit_cli.sweeps.store import RunDirectory

    source, compared = record.sources[index], record.compared
    directory = RunDirectory(path, "from")
    if not source.study:
        return source.model_copy(update={"data": pictures.digest_of_file(path)})
    if compared is not None:
        letter, where = ("B", compared.where_b) if index else ("A", compared.where_a)
        side = load_side(path, letter, record.where, where, compared.columns)
        return pictures.record_of_side(side, compared.columns[0])
    if record.claims:
        (run,) = load_runs([directory], path, record.where)
        return record_of_cells(run.data)
    figure, data = figure_and_data(record.figure, directory, record.where)
    return record_of_run(data, figure, record.options)


def _redraw(
    record: FigureRecord, paths: Sequence[Path], kind: str, content: bytes
) -> tuple[bool, str]:
    from overfit_cli.figures.draw import draw_figure, same_picture, versions
    from overfit_cli.figures.picture import file_content
    from overfit_cli.figures.style import look_of_record
    from overfit_cli.report.compare import compare_sides
    from overfit_cli.report.judge import decide
    from overfit_cli.report.pictures import draw_claims, draw_difference
    from overfit_cli.report.runs import load_runs
    from overfit_cli.sweeps.store import RunDirectory

    names, how = [source.name for source in record.sources], record.compared
    try:
        runs, look = [RunDirectory(path, "from") for path in paths], look_of_record(record.look)
        if how is not None:
            a, b = paths
            conditions = (how.columns, record.where, how.where_a, how.where_b)
            picture = draw_difference(compare_sides(a, b, *conditions), names=names)
        elif record.claims:
            (run,) = load_runs(runs, paths[0], record.where)
            judged = [decision.judged for decision in decide(run, record.claims)]
            picture = draw_claims(judged, look=look)
        else:
            minus = runs.pop() if record.minus is not None else None
            asked = (record.options, record.where, minus, look)
            picture = draw_figure(record.figure, runs, *asked, names=names)
        picture.metadata = record.metadata()
        # A figure that a notebook showed before it was saved is laid out once more.
        same = any(same_picture(kind, content, file_content(picture, kind)) for _ in range(2))
    except Exception as error:  # the record may have been edited
        return False, f"The picture can't be drawn again here: {_reason(error)}"
    if same:
        return True, "Drawn again, the picture is the same."
    return False, f"Drawn again with {_in_words(versions())}, the picture differs."


def verify(
    files: list[Path] = argument(
        "FILE|DIR",
        "PNG, PDF or SVG file that overfit drew; a run directory with figures, or a "
        "folder of run directories.",
    ),
    source: list[Path] | None = option(
        "DIR",
        "Run directory of the figure, or its CSV file; may be repeated.  [default: its "
        "recorded path, as typed or relative to the figure]",
        "--from",
        complete=run_directories,
    ),
    redraw: bool = flag("Draw the figure again and compare the picture.", "--redraw"),
) -> int:
    """Check that a figure's data is here, unchanged; with --redraw, that it gives the same picture.

    In a directory, figures that are not verified are described; the others have one line each.
    """
    named = source or []
    for path in named:
        if not path.exists():
            raise UserError(f"--from {path}: it isn't there; name the figure's run or CSV file.")
    output, code, verified = console(), 0, 0
    figures = {figure: path for path in files for figure in _figures(path)}
    for path, given in figures.items():
        try:
            holds, sentences = _verify(path, named, redraw=redraw)
        except UserError as error:
            typer.echo(visible(f"overfit: FILE {path}: {error}"), err=True)
            code = error.exit_code
            continue
        code, verified = max(code, 0 if holds else 1), verified + holds
        output.print(f"{path}: {'verified' if holds else 'not verified'}.")
        for sentence in sentences if path == given or not holds else ():
            print_folded(output, sentence, "  ", "    ")
    if any(path.is_dir() for path in files):
        unsaid = "" if redraw else "; --redraw compares the pictures too"
        output.print(f"{verified} of {plural(len(figures), 'figure')} verified{unsaid}.")
    return code
