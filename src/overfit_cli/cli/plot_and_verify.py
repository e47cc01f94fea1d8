"""The commands `plot` and `verify`: a figure of runs, and its data and picture checked.

The record of a figure names its run directories and the digests of the cells that were drawn. Each
directory is loaded by the code that draws the figure, and its digest is compared.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

import overfit_cli
from overfit_cli.cli import options as cli
from overfit_cli.core.errors import UserError
from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.files import error_text, read_bounded, results_folder
from overfit_cli.core.text import console, plural, print_folded, visible

if TYPE_CHECKING:
    from overfit_cli.figures.draw import FigureRecord, SourceRecord
    from overfit_cli.figures.picture import Picture


@cli.with_options(FigureOptions)
def plot(
    figure: str = cli.argument(
        "FIGURE", "Name of a figure; `overfit list figures` shows all.", "figures"
    ),
    directory: list[Path] = cli.option(
        "DIR",
        "Run directory; may be repeated, to overlay runs or draw them side by side.  "
        "[default: the newest that fits]",
        "--from",
        default=[],
        complete="runs",
    ),
    minus: Path | None = cli.option(
        "DIR", "Run directory to subtract, cell by cell.", complete="runs"
    ),
    out: Path | None = cli.option(
        "FILE",
        "PNG, PDF or SVG file, or CSV file of the numbers that the figure shows; a caption is "
        "written beside it, as FILE.txt.  [default: DIR/figures/FIGURE.png]",
    ),
    where: list[str] = cli.WHERE,
    size: str | None = cli.option(
        "column|page|WIDTHxHEIGHT",
        "Width of a paper's column or page, or a size in inches (85x65mm: millimetres).",
    ),
    style: Path | None = cli.option(
        "FILE.mplstyle",
        "Matplotlib style sheet: colours (image.cmap), fonts, dots (savefig.dpi).",
        envvar="OVERFIT_STYLE",
    ),
    **options: Any,
) -> int:
    """Draw a figure of a run, or of several, with its caption beside it."""
    directories, output = [*directory], console()
    if not directories:
        directories = [_newest_for(figure, FigureOptions.read(**options), where)]
        output.print(f"From {directories[0]}, the newest run directory that fits.")
    others = [f"-with-{each.resolve().name}" for each in directories[1:]]
    others += [f"-minus-{minus.resolve().name}"] if minus else []
    path = out or directories[0] / "figures" / f"{figure}{''.join(others)}.png"
    look: Any = {"size": size, "style": style}
    overfit_cli.draw(figure, *directories, minus=minus, where=where, out=path, **look, **options)
    cli.say_drawn(output, path)
    return 0


def _newest_for(name: str, asked: FigureOptions, where: Sequence[str]) -> Path:
    """The run directory in `results/` written last that has what a figure is drawn from."""
    from overfit_cli.figures import axes, draw, inputs
    from overfit_cli.sweeps.load import usable_directories

    newest = ""
    for directory in usable_directories(results_folder()):
        try:
            figure, cells = draw.figure_and_data(name, directory, where)
            data, options = inputs.prepare(figure, *inputs.read_options(figure, cells, asked))
            if figure.axes == 2:
                inputs.two_axes(data, options)
            elif figure.axes or options.x:
                axes.parameter_axis(data, "x", options.x)
            if figure.fits(data):
                return directory.path
            why_not = "it lacks what the figure is drawn from."
        except UserError as error:
            why_not = cli.error_as_option(error)
        newest = newest or f" The newest, {directory.path}, doesn't: {why_not}"
    none = f"No run directory in {results_folder()}/ fits {name}"
    hint = "`overfit sweep` or `overfit train` writes one, or name one with --from DIR."
    raise UserError(f"{none}; {hint}{newest}")


def verify(
    files: list[Path] = cli.argument(
        "FILE|DIR",
        "PNG, PDF or SVG file that overfit drew; a run directory with figures, or a "
        "folder of run directories.",
    ),
    directory: list[Path] = cli.option(
        "DIR",
        "Run directory of the figure, or its CSV file; may be repeated.  [default: its "
        "recorded path, as typed or relative to the figure]",
        "--from",
        default=[],
        complete="runs",
    ),
    redraw: bool = cli.flag("Draw the figure again and compare the picture.", "--redraw"),
) -> int:
    """Check that a figure's data is here, unchanged; with --redraw, that it gives the same picture.

    In a directory, figures that are not verified are described; the others have one line each.
    """
    for path in directory:
        if not path.exists():
            raise UserError(f"--from {path}: it isn't there; name the figure's run or CSV file.")
    output, code, verified = console(), 0, 0
    figures = {figure: path for path in files for figure in _figures(path)}
    for path, given in figures.items():
        try:
            holds, sentences = _verify(path, directory, redraw=redraw)
        except (OSError, UserError) as error:
            typer.echo(visible(f"overfit: FILE {path}: {_reason(error)}"), err=True)
            code = 2
            continue
        code, verified = max(code, 0 if holds else 1), verified + holds
        output.print(f"{path}: {'verified' if holds else 'not verified'}.")
        for sentence in sentences if path == given or not holds else ():
            print_folded(output, sentence, "  ", "    ")
    if any(path.is_dir() for path in files):
        unsaid = "" if redraw else "; --redraw compares the pictures too"
        output.print(f"{verified} of {plural(len(figures), 'figure')} verified{unsaid}.")
    return code


def _figures(path: Path) -> list[Path]:
    """The figures of a run directory, of a folder of such or of figures; or a file itself."""
    if not path.is_dir():
        return [path]
    for pattern in ("figures/*", "*", "*/figures/*"):
        figures = [file for file in path.glob(pattern) if file.suffix in (".png", ".pdf", ".svg")]
        if figures:
            return sorted(figures)
    raise UserError(f"{path} has no figure; `overfit plot --from {path}` draws one.")


def _verify(file: Path, named: Sequence[Path], *, redraw: bool) -> tuple[bool, list[str]]:
    from overfit_cli.figures.draw import read_record
    from overfit_cli.sweeps.manifest import short_commit, sources_in_words

    content = read_bounded(file)
    kind, record = read_record(content)
    states = [_find(record, index, file, named) for index in range(len(record.sources))]
    command = f": {record.command}" if record.command else ", from Python."
    packages = " and ".join(f"{name} {version}" for name, version in record.packages.items())
    sentences = [f"Drawn by overfit {record.overfit} with {packages}{command}"]
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
    same, sentence = _compare_picture(record, [state.path for state in states], kind, content)
    return holds and same, [*sentences, sentence]


SHORT = 12
"""Digits of a digest that are shown."""


class State(NamedTuple):
    """The data at a path beside a figure's: whether it is the same, None if it can't be used."""

    path: Path
    same: bool | None
    sentence: str


def _find(record: FigureRecord, index: int, file: Path, named: Sequence[Path]) -> State:
    """The first of the named, recorded and neighbouring paths with the same data, or with any."""
    source = record.sources[index]
    found = State(Path(source.path), None, f"{source.path} isn't here; name it with --from.")
    beside = file.resolve().parent / (source.beside or Path(source.path).name)
    with contextlib.suppress(ValueError):  # on another drive of Windows
        beside = Path(os.path.relpath(beside))
    for path in (*named, Path(source.path), beside):
        # Unlike Path's own functions, these say no to a name that is too long.
        exists = os.path.isdir(path / "cells") if source.study else os.path.isfile(path)  # noqa: PTH112, PTH113
        state = _state(record, index, path) if exists else found
        if state.same:
            return state
        found = found if found.same is not None else state
    return found


def _state(record: FigureRecord, index: int, path: Path) -> State:
    then = record.sources[index]
    try:
        now = _record_now(record, index, path)
    except (OSError, UserError) as error:
        reason = _reason(error)
        reason = reason.partition(f" {path}: ")[2] or reason
        return State(path, None, f"{path} can't be used: {reason}")
    if (_cells(now), now.key, now.data) != (_cells(then), then.key, then.data):
        what = f"{_cells(now)}, key {now.key}; " if then.study else ""
        return State(path, False, f"{path} has changed: {what}data {now.data[:SHORT]}.")
    here = "here" if path.as_posix() == then.path else f"in {path}"
    return State(path, True, f"This data is {here}, unchanged.")


def _cells(source: SourceRecord) -> str:
    return f"{plural(source.cells, 'cell')} of {source.study}, version {source.version}"


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"it can't be read ({error_text(error)})."
    return cli.error_as_option(error) if isinstance(error, UserError) else f"{error!r}."


def _record_now(record: FigureRecord, index: int, path: Path) -> SourceRecord:
    """The record of a source if the figure were drawn from the data at `path`."""
    from overfit_cli.figures import draw
    from overfit_cli.report import pictures, runs, sides
    from overfit_cli.sweeps.store import RunDirectory

    source, compared = record.sources[index], record.compared
    if not source.study:
        return pictures.record_of_file(path)
    if compared is not None:
        letter, where = ("B", compared.where_b) if index else ("A", compared.where_a)
        side = sides.load_side(path, letter, record.where, where, compared.columns)
        return draw.record_of_cells(side, seconds=compared.columns[0] == "seconds")
    directory = RunDirectory(path, "from")
    if record.claims:
        (run,) = runs.load_runs([directory], record.where)
        return draw.record_of_cells(run.data)
    figure, data = draw.figure_and_data(record.figure, directory, record.where)
    return draw.record_of_run(data, figure, record.options)


def _compare_picture(
    record: FigureRecord, paths: Sequence[Path], kind: str, content: bytes
) -> tuple[bool, str]:
    """Whether a picture is the same when it is drawn again, and a sentence about that."""
    from overfit_cli.figures.draw import same_picture, versions
    from overfit_cli.figures.picture import file_content

    try:
        picture = _draw_again(record, paths)
        picture.metadata = record.metadata()
        # A figure that a notebook showed before it was saved is laid out once more.
        same = any(same_picture(kind, content, file_content(picture, kind)) for _ in range(2))
    except Exception as error:  # the record may have been edited
        return False, f"The picture can't be drawn again here: {_reason(error)}"
    if same:
        return True, "Drawn again, the picture is the same."
    packages = " and ".join(f"{name} {version}" for name, version in versions().items())
    return False, f"Drawn again with {packages}, the picture differs."


def _draw_again(record: FigureRecord, paths: Sequence[Path]) -> Picture:
    from overfit_cli.figures import draw, style
    from overfit_cli.report import compare, judge, pictures, runs
    from overfit_cli.sweeps.store import RunDirectory

    names, how = [source.name for source in record.sources], record.compared
    if how is not None:
        a, b = paths
        sides = compare.compare_sides(a, b, how.columns, record.where, how.where_a, how.where_b)
        return pictures.draw_difference(sides, names=names)
    directories = [RunDirectory(path, "from") for path in paths]
    look = style.look_of_record(record.look)
    if record.claims:
        (run,) = runs.load_runs(directories, record.where)
        return pictures.draw_claims(judge.decide(run, record.claims), look=look)
    minus = directories.pop() if record.minus is not None else None
    asked = (record.options, record.where, minus, look)
    return draw.draw_figure(record.figure, directories, *asked, names=names)
