"""The run directories of a figure, and its file of published numbers, found where they lie now."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Protocol

from overfit_cli.cli.common import RESULTS
from overfit_cli.errors import UserError

if TYPE_CHECKING:
    from overfit_cli.figures.picture import Picture
    from overfit_cli.figures.provenance import FileRecord, Provenance, RunRecord

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
    from overfit_cli.report.comparison.recorded import digest_of_file

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
