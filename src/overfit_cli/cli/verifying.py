"""A figure held to its record: its cells compared, its picture drawn again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from overfit_cli import __version__
from overfit_cli.cli.finding import Found, FoundFile, Redrawing, find_runs, holds_cells
from overfit_cli.cli.redrawing import Compared, Plotted
from overfit_cli.errors import UserError
from overfit_cli.files import read_bounded, reason_of
from overfit_cli.recording import versions
from overfit_cli.words import plural

if TYPE_CHECKING:
    from overfit_cli.figures.picture import Picture
    from overfit_cli.figures.provenance import Provenance, RunRecord

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
    from overfit_cli.figures.metadata import read_record

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
    then = {"overfit": record.overfit, **record.packages}
    here = {"overfit": __version__, **versions()}
    others = [f"{name} {here[name]}" for name in here if then.get(name) != here[name]]
    if others:
        return f" Here it is drawn with {' and '.join(others)}, which may be why."
    if unchanged:
        return " The file was edited, or the run's plan in its manifest, or the code that draws."
    return ""


def _difference(redrawing: Redrawing, found: Sequence[Found], kind: str, content: bytes) -> str:
    """How the picture of a file isn't what its data gives, in words; empty where it is."""
    from overfit_cli.figures.same_picture import difference_of

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
    from overfit_cli.figures.metadata import MOST_PIXELS

    look = picture.look
    around = look.settings.get("savefig.pad_inches", 0.0) if "savefig.bbox" in look.settings else 0
    width, height = (picture.get_size_inches() + 2 * around) * look.dpi
    if width * height > MOST_PIXELS:
        raise UserError(f"it would have {width:.0f} × {height:.0f} pixels.")
