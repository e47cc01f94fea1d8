"""The command `verify`: the data of figures compared with their records, and figures drawn again.

The record of a figure names its run directories and the digests of the cells that were drawn. Each
directory is searched for, loaded by the code that draws the figure, and its digest compared.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from overfit_cli.cli.completion import run_directories
from overfit_cli.cli.options import DataFolder, as_option, read_path, use_data
from overfit_cli.core.console import console
from overfit_cli.core.files import error_text, read_bounded
from overfit_cli.core.text import VERSION, UserError, plural, visible

if TYPE_CHECKING:
    from overfit_cli.figures.picture import Picture
    from overfit_cli.figures.record import FigureRecord, FileRecord, RunRecord

MOST_BYTES = 1 << 28
"""The size limit of a figure's file."""

MOST_PIXELS = 150_000_000
"""The limit of a picture that is drawn again: an edited record can name any size."""

SHORT = 12
"""Digits of a digest that are shown."""


@dataclass(frozen=True, eq=False)
class Source:
    """What lies at a path: the data of a figure's run, or why it can't be used.

    Attributes:
        path: the run directory or CSV file.
        change: how it differs from the record, in words; empty where it doesn't.
        data: the chosen cells, as the figure is drawn from them; None of a file.
        now: the record of these cells; None where they can't be used.
    """

    path: Path
    change: str
    data: Any = None
    now: RunRecord | None = None


def verify_figure(
    file: Path, named: Sequence[Path] = (), *, redraw: bool = False
) -> tuple[bool, list[str]]:
    """Return whether a figure agrees with its data, and sentences that say so.

    Args:
        file: a PNG, PDF or SVG file that overfit drew.
        named: its run directories, and its CSV file or the folder of it, in any order.
        redraw: whether to draw the figure again and compare the picture.

    Raises:
        UserError: if the file can't be read, or holds no record.
    """
    content, kind, record = _read(file)
    runs = [_find_run(record, index, file, named) for index in range(len(record.sources))]
    csv = _find_file(record.published, file, named) if record.published is not None else None
    sentences = [_drawn_by(record), *_data_in_words(record, runs, csv)]
    strangers = [] if _is_used(named, runs, csv) else [*_strangers(record, named)]
    sources = [*runs, *([csv] if record.published is not None else [])]
    there = [source for source in sources if source is not None and not _is_unusable(source, csv)]
    unchanged = not strangers and len(there) == len(sources)
    unchanged = unchanged and not any(source.change for source in there)
    sentences += strangers
    if strangers or len(there) < len(sources):
        return False, [*sentences, *(["Without its data the picture isn't drawn."] * redraw)]
    if not redraw:
        return unchanged, [*sentences, "The picture isn't compared; --redraw draws it again."]
    same, said = _compare(record, there, kind, content, unchanged=unchanged)
    return unchanged and same, [*sentences, said]


def _read(file: Path) -> tuple[bytes, str, FigureRecord]:
    """Return a file's content, its kind and its record."""
    from overfit_cli.figures.record import read_record

    try:
        content = read_bounded(file, MOST_BYTES)
        return content, *read_record(content)
    except OSError as error:
        said = f"it can't be read ({error_text(error)}); name a figure that overfit drew."
    except UserError as error:
        said = str(error)
    raise UserError(f"FILE {file}: {said}")


# Where the data lies


def _find_run(record: FigureRecord, index: int, file: Path, named: Sequence[Path]) -> Source | None:
    """Return the run directory with a run's cells, or else what lies where the record says."""
    run = record.sources[index]
    recorded = [path for path in _recorded_paths(run, file) if _holds_cells(path)]
    own = {path.resolve() for path in recorded}
    fallback: Source | None = None
    for path in [*filter(_holds_cells, named), *recorded]:
        source = _load(record, index, path)
        if not source.change:
            return source
        has_cells = source.now is not None and source.now.key == run.key
        if fallback is None and (has_cells or path.resolve() in own):
            fallback = source
    return fallback


def _find_file(published: FileRecord, file: Path, named: Sequence[Path]) -> Source | None:
    """Return the CSV file with the recorded content, or else the first that could be it."""
    from overfit_cli.report.difference_figure import digest_of_file

    name = Path(published.path).name
    inside = [path / name if path.is_dir() else path for path in named]
    beside = file.resolve().parent / name
    sources: list[Source] = []
    for path in (*inside, *_recorded_paths(published, file), beside):
        with contextlib.suppress(OSError):
            same = digest_of_file(path) == published.data
            sources.append(Source(_shown(path), "" if same else "it has other content"))
    return min(sources, key=lambda source: bool(source.change), default=None)


def _recorded_paths(source: RunRecord | FileRecord, file: Path) -> Iterator[Path]:
    """Give the paths of a source by its record: as typed, and as seen from the figure."""
    yield Path(source.path)
    if source.beside:
        yield _shown(file.resolve().parent / source.beside)


def _holds_cells(path: Path) -> bool:
    try:
        return (path / "cells").is_dir()
    except OSError:  # such as that of a name that is too long
        return False


def _shown(path: Path) -> Path:
    """Return a path that isn't relative from here where it lies below, else in full."""
    whole, here = path.resolve(), Path.cwd()
    if not path.is_absolute():
        return path
    return whole.relative_to(here) if whole.is_relative_to(here) else whole


def _load(record: FigureRecord, index: int, path: Path) -> Source:
    """Return the data of a run as if it lay at `path`, loaded by the code that draws it."""
    from overfit_cli.figures.draw import figure_and_data, record_of_run
    from overfit_cli.report.difference_figure import record_of_side
    from overfit_cli.report.sides import load_run
    from overfit_cli.sweeps.store import RunDirectory

    data: Any
    try:
        if record.compared is not None:
            where = (record.compared.where_a, record.compared.where_b)[index]
            data = load_run(path, "AB"[index], record.where, where)
            now = record_of_side(data, record.compared.columns[0])
        else:
            figure, data = figure_and_data(record.figure, RunDirectory(path), record.where)
            now = record_of_run(path, data, figure, record.options)
    except UserError as error:
        said = as_option(error)
        return Source(path, said.partition(f" {path}: ")[2] or said)
    return Source(path, _change(record.sources[index], now), data, now)


def _change(then: RunRecord, now: RunRecord) -> str:
    """Return how cells differ from the recorded ones, in words; empty where they don't."""
    if now.study != then.study:
        return f"its cells are of {now.study}"
    if now.version != then.version:
        return f"its cells are of version {now.version}"
    if now.cells != then.cells:
        return f"the figure would be drawn from {plural(now.cells, 'cell')}"
    if now.key != then.key:
        return "it has other cells, as many"
    return "" if now.data == then.data else "the same cells have other numbers"


def _is_unusable(source: Source, csv: Source | None) -> bool:
    return source.now is None and source is not csv


def _is_used(named: Sequence[Path], runs: Sequence[Source | None], csv: Source | None) -> bool:
    """Whether the figure's data lies in one of the named places, where any is named."""
    used = {source.path.resolve() for source in (*runs, csv) if source is not None}
    used |= {csv.path.resolve().parent} if csv is not None else set()
    return not named or any(path.resolve() in used for path in named)


def _strangers(record: FigureRecord, named: Sequence[Path]) -> Iterator[str]:
    """Give a sentence for each named place, none of which has the figure's data."""
    run = record.sources[0]
    for path in named:
        source = _load(record, 0, path) if _holds_cells(path) else Source(path, "")
        with_what = f": {source.change}" if source.change else ""
        if source.now is not None:
            now = source.now
            with_what = (
                f", with {plural(now.cells, 'cell')} of {now.study}, key {now.key}, data "
                f"{now.data[:SHORT]}; the figure is of {run.path}, key {run.key}, data "
                f"{run.data[:SHORT]}"
            )
        yield f"--from {path} isn't the figure's data{with_what.rstrip('.')}."


# The data in words


def _drawn_by(record: FigureRecord) -> str:
    packages = " and ".join(f"{name} {version}" for name, version in record.packages.items())
    command = f": {record.command}" if record.command else ", from Python."
    return f"Drawn by overfit {record.overfit} with {packages}{command}"


def _data_in_words(
    record: FigureRecord, runs: Sequence[Source | None], csv: Source | None
) -> Iterator[str]:
    """Give sentences on each source: the recorded one, and its state now."""
    sides = (" (A)", " (B)") if record.compared is not None else [""] * len(runs)
    for run, source, side in zip(record.sources, runs, sides, strict=False):
        commits = [commit[:SHORT] for commit in run.commits]
        trained = f", trained at commit {', '.join(commits)}" if commits else ""
        yield (
            f"From {run.path}{side}: {plural(run.cells, 'cell')} of {run.study}, version "
            f"{run.version}{trained}; key {run.key}, data {run.data[:SHORT]}."
        )
        yield _run_in_words(run, source)
    if record.published is not None:
        path, data = record.published.path, record.published.data
        yield f"From {path} (B): published numbers; data {data[:SHORT]}."
        if csv is None:
            yield f"No such file is here: {path} isn't there; name it with --from FILE."
        elif csv.change:
            yield f"{csv.path} has changed: {csv.change}."
        else:
            here = "here" if csv.path.as_posix() == path else f"at {csv.path}"
            yield f"This file is {here}, unchanged."


def _run_in_words(run: RunRecord, source: Source | None) -> str:
    if source is None:
        return (
            f"No run directory here holds these cells: {run.path} isn't one; name it with "
            "--from DIR."
        )
    if source.now is None:
        return f"{source.path} can't be used: {source.change}"
    if source.change:
        return f"{source.path} has changed: {source.change}."
    here = "here" if source.path.as_posix() == run.path else f"in {source.path}"
    lost = [commit[:SHORT] for commit in run.commits if commit not in source.now.commits]
    other = f" The manifest there doesn't name commit {', '.join(lost)}." if lost else ""
    return f"These cells are {here}, unchanged.{other}"


# The picture, drawn again


def _compare(
    record: FigureRecord, sources: Sequence[Source], kind: str, content: bytes, *, unchanged: bool
) -> tuple[bool, str]:
    """Return whether a file's picture is what its data gives, and a sentence that says so."""
    from overfit_cli.figures.picture import image
    from overfit_cli.figures.record import difference_of, versions

    try:
        picture = _draw(record, sources)
        if kind == "png":
            _check_size(picture)
        picture.metadata = record.metadata()
        change = difference_of(kind, content, image(picture, kind))
        if change:  # a figure that a notebook showed before it was saved is laid out once more
            change = difference_of(kind, content, image(picture, kind)) and change
    except Exception as error:  # the record may have been edited
        said = (
            as_option(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
        )
        return False, f"The picture can't be drawn again here: {said}"
    if not change:
        return True, "Drawn again, the picture is the same."
    then, here = (
        {"overfit": record.overfit, **record.packages},
        {"overfit": VERSION, **versions()},
    )
    others = [f"{name} {here[name]}" for name in here if then.get(name) != here[name]]
    why = ""
    if others:
        why = f" Here it is drawn with {' and '.join(others)}, which may be why."
    elif unchanged:
        why = " The file was edited, or the run's plan in its manifest, or the code that draws."
    return False, f"Drawn again, it is another picture: {change}.{why}"


def _draw(record: FigureRecord, sources: Sequence[Source]) -> Picture:
    """Draw a figure from its data, by the code that drew it.

    Raises:
        UserError: if the data doesn't give such a figure, or nothing can have such a look.
    """
    from overfit_cli.core.registry import figures_of
    from overfit_cli.figures.draw import Request, draw_parts
    from overfit_cli.figures.look import check_colour_map, look_of_record
    from overfit_cli.report.difference_figure import draw_difference
    from overfit_cli.report.differences import compare_loaded
    from overfit_cli.report.sides import load_points
    from overfit_cli.sweeps.store import RunDirectory

    data = [source.data for source in sources]
    names = [run.name for run in record.sources]
    compared = record.compared
    if compared is not None:
        if compared.published is not None:
            path = sources[-1].path
            data[1] = load_points(path, data[0], record.where, compared.where_b)
            names.append(compared.published.name)
        a, b = data
        comparison = compare_loaded(a, b, compared.columns, interpolated=compared.interpolate)
        return draw_difference(comparison, record.command, names=names)
    directories = [RunDirectory(source.path) for source in sources]
    request = Request(
        record.figure,
        directories[: len(record.runs)],
        record.options,
        record.where,
        directories[-1] if record.minus is not None else None,
        look_of_record(record.look),
        record.command,
        names=names if len(names) > 1 else (),
    )
    check_colour_map(record.options.cmap)
    return draw_parts(request, figures_of(data[0].study)[record.figure], data)


def _check_size(picture: Picture) -> None:
    """Refuse a picture of too many pixels."""
    look = picture.look
    around = look.settings.get("savefig.pad_inches", 0.0) if "savefig.bbox" in look.settings else 0
    width, height = (picture.get_size_inches() + 2 * around) * look.dpi
    if width * height > MOST_PIXELS:
        raise UserError(f"it would have {width:.0f} × {height:.0f} pixels.")


def verify(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE", help="PNG, PDF or SVG file that overfit drew."),
    ],
    source: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar="DIR",
            help="Run directory of the figure, or its CSV file; may be repeated.  "
            "[default: where it was, as typed or as seen from the figure]",
            autocompletion=run_directories,
        ),
    ] = None,
    redraw: Annotated[
        bool, typer.Option("--redraw", help="Draw the figure again and compare the picture.")
    ] = False,
    data_folder: DataFolder = None,
) -> int:
    """Say whether a figure's data is here, unchanged, and with --redraw gives the same picture."""
    from overfit_cli.report.differences import is_csv

    use_data(data_folder)
    paths = [path for text in files if (path := read_path("FILE", text))]
    named = [path for text in source or [] if (path := read_path("--from", text))]
    for path in named:
        if not path.is_dir() and not (is_csv(path) and path.is_file()):
            raise UserError(
                f"--from {path}: there is no such directory; name the figure's run or its CSV file."
            )
    output, worst = console(), 0
    for path in paths:
        try:
            holds, sentences = verify_figure(path, named, redraw=redraw)
        except UserError as error:
            if len(paths) == 1:
                raise
            typer.echo(visible(f"overfit: {error}"), err=True)
            worst = max(worst, error.exit_code)
            continue
        worst = max(worst, 0 if holds else 1)
        output.print(f"{path}: {'verified' if holds else 'not verified'}.")
        for sentence in sentences:
            output.print(f"  {sentence}")
    return worst
