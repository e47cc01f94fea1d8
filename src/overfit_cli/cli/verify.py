"""The command `verify`.

The run directories of a figure, and its file of published numbers, found where they lie now.

Figures drawn again from their records, by the code that drew them.

A figure held to its record: its cells compared, its picture drawn again.

The command `overfit verify`: figures held to the data that they were drawn from.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from overfit_cli.cli.completion import run_directories
from overfit_cli.cli.options import DataFolder, read_path, use_data
from overfit_cli.core.console import console
from overfit_cli.core.files import read_bounded, reason_of
from overfit_cli.core.text import VERSION, UserError, plural, visible

if TYPE_CHECKING:
    from overfit_cli.figures.picture import Picture
    from overfit_cli.figures.record import ComparisonRecord, FileRecord, Provenance, RunRecord


SAME, SAME_CELLS, OTHER, UNUSABLE = 3, 2, 1, 0
"""How well what lies somewhere fits a run, best first."""


@dataclass(frozen=True, eq=False)
class Found:
    """A run directory that a figure was drawn from, where it lies now.

    Attributes:
        path: where.
        held: what it holds, of the chosen cells, as the figure takes it.
        now: what a record would say of it.
    """

    path: Path
    held: Any
    now: RunRecord


@dataclass(frozen=True)
class FoundFile:
    """A file of published numbers, where it lies now.

    Attributes:
        path: where.
        is_same: whether it has the content that it had.
    """

    path: Path
    is_same: bool


class Redrawing(Protocol):
    """How a figure is drawn again.

    Attributes:
        record: the figure's.
        points: its file of published numbers, or why there is none; None where it has none.
    """

    record: Provenance
    points: FoundFile | str | None

    def load(self, path: Path) -> list[Found | str]:
        """Return what each of the figure's runs would be if it were at `path`, or why it can't."""

    def draw(self, found: Sequence[Found]) -> Picture:
        """Draw the figure from all of its runs."""


def find_runs(redrawing: Redrawing, file: Path, named: Sequence[Path]) -> list[Found | str]:
    """Return the run directories of a figure, in the record's order, each or why there is none.

    Each is the named directory that has its cells, or else one that has none of the others'. One
    that none is left for is looked for where the record says, and in `results/`. Both sides of a
    comparison may be one directory.

    Args:
        redrawing: what loads a directory.
        file: the figure.
        named: directories that the user named.
    """
    record = redrawing.record
    spare, found = [redrawing.load(path) for path in named], dict[int, Found | str]()
    for least in (SAME, SAME_CELLS, UNUSABLE):
        for places in _by_directory(record):
            fitting = [one for one in spare if _fit(record, places, one) >= least]
            if places[0] not in found and fitting:
                found |= {place: fitting[0][place] for place in places}
                spare.remove(fitting[0])
    for places in _by_directory(record):
        if places[0] not in found:
            best = _search(redrawing, places, file)
            found |= {place: best[place] for place in places}
    return [found[place] for place in sorted(found)]


def _by_directory(record: Provenance) -> list[list[int]]:
    """The places of the record's runs, those of one directory together."""
    found: dict[str, list[int]] = {}
    for place, run in enumerate(record.sources):
        found.setdefault(run.path, []).append(place)
    return list(found.values())


def _fit(record: Provenance, places: Sequence[int], there: Sequence[Found | str]) -> int:
    """How well what lies somewhere fits the runs at these places, all of them."""
    return min(_fit_of(record.sources[place], there[place]) for place in places)


def _fit_of(run: RunRecord, one: Found | str) -> int:
    if isinstance(one, str):
        return UNUSABLE
    if one.now.key != run.key:
        return OTHER
    return SAME if one.now.data == run.data else SAME_CELLS


def _search(redrawing: Redrawing, places: Sequence[int], file: Path) -> list[Found | str]:
    """What fits the runs at these places best: where the record says, or else in `results/`."""
    from overfit_cli.core.files import RESULTS

    record = redrawing.record
    run = record.sources[places[0]]
    best: list[Found | str] = []
    for path in filter(holds_cells, _places_of(run, file)):
        there = redrawing.load(path)
        if _fit(record, places, there) == SAME:
            return there
        if not best or _fit(record, places, there) > _fit(record, places, best):
            best = there
    for path in filter(holds_cells, sorted(RESULTS.glob("*"))):
        there = _copy(redrawing, run, path)
        least = max(_fit(record, places, best), OTHER) if best else OTHER
        best = there if there and _fit(record, places, there) > least else best
    missing = (
        f"No run directory here holds these cells: {run.path} isn't one, and none in {RESULTS}/ "
        "has them; name it with --from DIR."
    )
    return best or [missing] * len(record.sources)


def _places_of(source: RunRecord | FileRecord, file: Path) -> Iterator[Path]:
    """Where the record of a figure says that a source lies."""
    yield Path(source.path)
    if source.beside:
        yield _shown(file.resolve().parent / source.beside)


def holds_cells(path: Path) -> bool:
    """Whether a path is that of a run directory."""
    try:
        return (path / "cells").is_dir()
    except OSError:  # such as that of a name that is too long
        return False


def _shown(path: Path) -> Path:
    """The path from here where it lies below, else in full."""
    whole, here = path.resolve(), Path.cwd()
    return whole.relative_to(here) if whole.is_relative_to(here) else whole


def unusable(path: Path, flag: str, error: UserError) -> str:
    """Return why a run directory can't be used, in a sentence.

    Args:
        path: the directory.
        flag: what it is called in the error's own sentence.
        error: why.
    """
    return f"{path} can't be used: {str(error).removeprefix(f'{flag} {path}: ')}"


def _copy(redrawing: Redrawing, run: RunRecord, path: Path) -> list[Found | str]:
    """What a directory holds that nobody named, if it is of the run's study, without a word."""
    from overfit_cli.sweeps.store import RunDirectory

    with warnings.catch_warnings(), contextlib.suppress(UserError):
        warnings.simplefilter("ignore")
        if RunDirectory(path).study_name() == run.study:
            return redrawing.load(path)
    return []


def find_file(published: FileRecord, file: Path, named: Sequence[Path]) -> FoundFile | str:
    """Return the file of published numbers of a figure, or a sentence that says there is none.

    It is the one with the recorded content, or else the first of its name, or else one that the
    user named.

    Args:
        published: what the figure's record says of it.
        file: the figure.
        named: run directories, folders and CSV files that the user named.
    """
    from overfit_cli.report.difference_figure import digest_of_file

    name = PurePosixPath(published.path).name
    inside = [path / name if path.is_dir() else path for path in named]
    inside.sort(key=lambda path: path.name != name)
    beside = [*_places_of(published, file), _shown(file.resolve().parent / name)]
    there: list[FoundFile] = []
    for path in (*inside, *beside):
        with contextlib.suppress(OSError):
            there.append(FoundFile(path, digest_of_file(path) == published.data))
    missing = (
        f"No such file is here: {published.path} isn't there, nor is it beside the figure; name it "
        "with --from FILE."
    )
    same = [one for one in there if one.is_same]
    return next(iter([*same, *there]), missing)


class Plotted:
    """A figure of `overfit plot`.

    Args:
        record: its own.
    """

    points: FoundFile | str | None = None

    def __init__(self, record: Provenance) -> None:
        self.record = record

    def load(self, path: Path) -> list[Found | str]:
        """Return the directory at `path`: every run of the figure would be read in the same way."""
        from overfit_cli.figures.draw import figure_and_data
        from overfit_cli.figures.record import run_record
        from overfit_cli.sweeps.store import RunDirectory

        record, directory = self.record, RunDirectory(path)
        found: Found | str
        try:
            figure, data = figure_and_data(record.figure, directory, record.where)
        except UserError as error:
            found = unusable(path, directory.flag, error)
        else:
            found = Found(path, data, run_record(directory, data, figure, record.options))
        return [found] * len(record.sources)

    def draw(self, found: Sequence[Found]) -> Picture:
        """Draw the figure.

        Raises:
            UserError: as `draw_parts` does, and for a look or colours that nothing can have.
        """
        from overfit_cli.core.registry import figures_of
        from overfit_cli.figures.draw import Request, draw_parts
        from overfit_cli.figures.look import checked_colour_map, look_of_record
        from overfit_cli.sweeps.store import RunDirectory

        record = self.record
        checked_colour_map(record.options.cmap)
        directories = [RunDirectory(one.path) for one in found]
        names = [run.name for run in record.sources]
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
        parts = [one.held for one in found]
        return draw_parts(request, figures_of(parts[0].study)[record.figure], parts)


class Compared:
    """A figure of `overfit compare`.

    Args:
        record: its own.
        compared: the part of it that says how.
        file: the figure.
        named: what the user named, among which its file of published numbers may be.
    """

    def __init__(
        self, record: Provenance, compared: ComparisonRecord, file: Path, named: Sequence[Path]
    ) -> None:
        self.record, self.compared = record, compared
        self.points: FoundFile | str | None = None
        if compared.published is not None:
            self.points = find_file(compared.published, file, named)

    def load(self, path: Path) -> list[Found | str]:
        """Return the directory at `path` as A, and as B if that is a run too."""
        own = (self.compared.where_a, self.compared.where_b)
        return [
            self._side(path, letter, where)
            for letter, where, _ in zip("AB", own, self.record.runs, strict=False)
        ]

    def _side(self, path: Path, letter: str, own: Sequence[str]) -> Found | str:
        from overfit_cli.report.difference_figure import record_of_side
        from overfit_cli.report.sides import load_run

        try:
            side = load_run(path, letter, self.record.where, own)
        except UserError as error:
            return unusable(path, letter, error)
        return Found(path, side, record_of_side(side, self.compared.columns[0]))

    def draw(self, found: Sequence[Found]) -> Picture:
        """Compare the sides, and draw the difference.

        Raises:
            UserError: as `compare_sides` and `draw_difference` do.
        """
        from overfit_cli.report.difference_figure import draw_difference
        from overfit_cli.report.differences import compare_loaded
        from overfit_cli.report.sides import load_points

        compared, sides = self.compared, [one.held for one in found]
        names = [run.name for run in self.record.runs]
        if compared.published is not None and isinstance(self.points, FoundFile):
            where = self.record.where
            sides.append(load_points(self.points.path, sides[0], where, compared.where_b))
            names.append(compared.published.name)
        a, b = sides
        comparison = compare_loaded(a, b, compared.columns, interpolated=compared.interpolate)
        return draw_difference(comparison, self.record.command, names=names)


MOST_BYTES = 1 << 28
"""Of a figure's file."""

SHORT = 12
"""Digits of a digest that are shown."""


def verify_figure(file: Path, named: Sequence[Path]) -> tuple[bool, list[str]]:
    """Return whether a figure is what its data gives, and sentences that say so.

    Args:
        file: a PNG, PDF or SVG file that overfit drew.
        named: its run directories, and its file of published numbers; empty to look for them.

    Raises:
        UserError: if the file can't be read, or holds no record.
    """
    content, kind, record = _read(file)
    redrawing: Redrawing = Plotted(record)
    if record.compared is not None:
        redrawing = Compared(record, record.compared, file, named)
    points = redrawing.points
    runs = _run_directories(named, points)
    found = [
        _or_another(run, one, runs)
        for run, one in zip(record.sources, find_runs(redrawing, file, runs), strict=True)
    ]
    sentences = [_drawn_by(record), *_data_in_words(record, found, points)]
    there = [one for one in found if not isinstance(one, str)]
    if len(there) < len(found) or isinstance(points, str):
        return False, [*sentences, "Without its data the picture isn't drawn again."]
    changes = [_change(run, one.now) for run, one in zip(record.sources, there, strict=True)]
    unchanged = not any(changes) and (points is None or points.is_same)
    same, said = _compare(redrawing, there, kind, content, unchanged=unchanged)
    return unchanged and same, [*sentences, said]


def _run_directories(named: Sequence[Path], points: FoundFile | str | None) -> list[Path]:
    """The named run directories: neither a file, nor a folder that one was found in."""
    folder = points.path.parent if isinstance(points, FoundFile) else None
    return [path for path in named if path.is_dir() and (path != folder or holds_cells(path))]


def _read(file: Path) -> tuple[bytes, str, Provenance]:
    """A file's content, its kind and its record."""
    from overfit_cli.figures.record import read_record

    try:
        content = read_bounded(file, MOST_BYTES)
        return content, *read_record(content)
    except OSError as error:
        said = f"it can't be read ({reason_of(error)}); name a figure that overfit drew."
    except UserError as error:
        said = str(error)
    raise UserError(f"FILE {file}: {said}")


def _drawn_by(record: Provenance) -> str:
    with_what = " and ".join(f"{name} {version}" for name, version in record.packages.items())
    how = f": {record.command}" if record.command else ", from Python."
    return f"Drawn by overfit {record.overfit} with {with_what}{how}"


def _data_in_words(
    record: Provenance, found: Sequence[Found | str], points: FoundFile | str | None
) -> Iterator[str]:
    """What the figure was drawn from, and what became of it."""
    sides = (" (A)", " (B)") if record.compared is not None else [""] * len(found)
    for run, one, side in zip(record.sources, found, sides, strict=False):
        yield _described(run, side)
        yield one if isinstance(one, str) else _told(run, one)
    if record.published is not None and points is not None:
        path, data = record.published.path, record.published.data
        yield f"From {path} (B): published numbers; data {data[:SHORT]}."
        yield points if isinstance(points, str) else _told_file(path, points)


def _described(run: RunRecord, side: str) -> str:
    """A run directory as it was."""
    commits = [commit[:SHORT] for commit in run.commits]
    trained = f", trained at commit {', '.join(commits)}" if commits else ""
    return (
        f"From {run.path}{side}: {plural(run.cells, 'cell')} of {run.study}, version {run.version}"
        f"{trained}; key {run.key}, data {run.data[:SHORT]}."
    )


def _or_another(run: RunRecord, found: Found | str, named: Sequence[Path]) -> Found | str:
    """A run directory, or a sentence where the user named one that isn't the figure's."""
    if isinstance(found, str) or found.path not in named or found.now.key == run.key:
        return found
    if found.path.resolve() == Path(run.path).resolve():  # it is the figure's, and has changed
        return found
    now = found.now
    return (
        f"--from {found.path} is another run, with {plural(now.cells, 'cell')} of {now.study}, key "
        f"{now.key}, data {now.data[:SHORT]}; the figure is of {run.path}, key {run.key}, data "
        f"{run.data[:SHORT]}."
    )


def _told(run: RunRecord, found: Found) -> str:
    """What became of it."""
    path, change = found.path, _change(run, found.now)
    if change:
        return f"{path} has changed: {change}."
    here = "here" if path.as_posix() == run.path else f"in {path}"
    lost = [commit[:SHORT] for commit in run.commits if commit not in found.now.commits]
    other = f" The manifest there doesn't name commit {', '.join(lost)}." if lost else ""
    return f"These cells are {here}, unchanged.{other}"


def _told_file(path: str, found: FoundFile) -> str:
    """What became of a file of published numbers."""
    if not found.is_same:
        return f"{found.path} has changed: it has other content."
    here = "here" if found.path.as_posix() == path else f"at {found.path}"
    return f"This file is {here}, unchanged."


def _change(then: RunRecord, now: RunRecord) -> str:
    """How cells aren't those of then, in words; empty where they are, to the last bit."""
    if now.study != then.study:
        return f"its cells are of {now.study}"
    if now.version != then.version:
        return f"its cells are of version {now.version}"
    if now.cells != then.cells:
        return f"the figure would be drawn from {plural(now.cells, 'cell')}"
    if now.key != then.key:
        return "it has other cells, as many"
    return "" if now.data == then.data else "the same cells have other numbers"


def _compare(
    redrawing: Redrawing, found: Sequence[Found], kind: str, content: bytes, *, unchanged: bool
) -> tuple[bool, str]:
    """Whether the picture of a file is what its data gives, and a sentence that says so."""
    try:
        how = _difference(redrawing, found, kind, content)
    except UserError as error:
        return False, f"The picture can't be drawn again here: {error}"
    except Exception as error:  # anybody may have written the record
        return False, f"The picture can't be drawn again here ({type(error).__name__}: {error})."
    if not how:
        return True, "Drawn again, the picture is the same."
    why = _why(redrawing.record, unchanged=unchanged)
    return False, f"Drawn again, it is another picture: {how}.{why}"


def _why(record: Provenance, *, unchanged: bool) -> str:
    """What may be why a picture is another one, in a sentence; empty where its data is why."""
    from overfit_cli.figures.record import versions

    then = {"overfit": record.overfit, **record.packages}
    here = {"overfit": VERSION, **versions()}
    others = [f"{name} {here[name]}" for name in here if then.get(name) != here[name]]
    if others:
        return f" Here it is drawn with {' and '.join(others)}, which may be why."
    if unchanged:
        return " The file was edited, or the run's plan in its manifest, or the code that draws."
    return ""


def _difference(redrawing: Redrawing, found: Sequence[Found], kind: str, content: bytes) -> str:
    """How the picture of a file isn't what its data gives, in words; empty where it is."""
    from overfit_cli.figures.record import difference_of

    first = ""
    for drawn in _drawn_again(redrawing, found, kind):
        how = difference_of(kind, content, drawn)
        if not how:
            return ""
        first = first or how
    return first


def _drawn_again(redrawing: Redrawing, found: Sequence[Found], kind: str) -> Iterator[bytes]:
    """The files that the same figure gives, with the same record.

    One that was shown in a notebook before it was saved is laid out once more then.
    """
    from overfit_cli.figures.picture import image

    picture = redrawing.draw(found)
    if kind == "png":
        _check_size(picture)
    picture.record = redrawing.record
    yield from (image(picture, kind) for _ in range(2))


def _check_size(picture: Picture) -> None:
    """Refuse a picture of too many pixels: an edited record can ask for any size."""
    from overfit_cli.figures.record import MOST_PIXELS

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
            "[default: where it was, or the run in results/ with the same cells]",
            autocompletion=run_directories,
        ),
    ] = None,
    data_folder: DataFolder = None,
) -> int:
    """Say whether a figure's data is here, unchanged, and gives the same picture."""
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
            holds, sentences = verify_figure(path, named)
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
