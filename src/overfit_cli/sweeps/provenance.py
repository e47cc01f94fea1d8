"""Provenance of a run's cells: the commit and the copies of their code, and sentences on both.

An installed study comes with this package, so that the package's commit is its commit. A plain
function has files of its own: theirs counts, and the run directory keeps a copy of them.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from overfit_cli.core.files import write_whole
from overfit_cli.core.study import AnyStudy, FigureData

SOURCES = "source"
"""The folder of a run directory with the functions' files, in a folder for each digest."""

DIRTY = "-dirty"
"""Ends a commit whose files had changes that weren't committed."""

SHORT = 8
"""Digits of a source's digest that are shown."""


def commit_of(study: AnyStudy) -> tuple[str | None, bool | None]:
    """Return the commit of the code that trains, and whether a function's files differ from it.

    Both are None where the code lies in no repository; an installed study's code isn't compared.
    """
    if not study.identity.source:
        return package_commit(), None
    paths = [file.path for file in study.source_files() if file.path is not None]
    folders = paths[0].parents if paths else ()
    root = next((folder for folder in folders if (folder / ".git").exists()), None)
    commit = None if root is None else _git(root, "rev-parse HEAD")
    if root is None or not commit:
        return None, None
    inside = [path for path in paths if path.is_relative_to(root)]
    return commit, _git(root, "status --porcelain --ignored --", *inside) != ""


def package_commit() -> str | None:
    """Return the commit of this package's code; None where it runs from no checkout."""
    here = Path(__file__).resolve()
    if not any((folder / ".git").exists() for folder in here.parents[:4]):
        return None
    return _git(here.parent, "rev-parse HEAD")


def _git(folder: Path, command: str, *paths: Path) -> str | None:
    words = ["git", "-C", str(folder), *command.split(), *map(str, paths)]
    try:
        done = subprocess.run(words, capture_output=True, check=False)
    except OSError:
        return None
    return None if done.returncode else done.stdout.decode(errors="replace").strip()


def short_commit(commit: str, digits: int) -> str:
    """Return a commit's first digits, with its mark of changes."""
    return commit.removesuffix(DIRTY)[:digits] + (DIRTY if commit.endswith(DIRTY) else "")


def keep_source(directory: Path, study: AnyStudy) -> None:
    """Copy a function's files into the run directory, once for each digest of them."""
    if not study.identity.source:
        return
    folder = directory / SOURCES / study.identity.source
    for file in study.source_files():
        path = folder / file.name
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, file.content)


def copy_sources(source: Path, target: Path) -> None:
    """Copy the functions' files that a run directory keeps into another one."""
    for path in (source / SOURCES).rglob("*"):
        copied = target / path.relative_to(source)
        # A link of a directory that was sent may lead to any file of this user.
        if path.is_file() and not path.is_symlink() and not copied.exists():
            copied.parent.mkdir(parents=True, exist_ok=True)
            write_whole(copied, path.read_bytes())


def count_sources(sources: Mapping[str, str], keys: Iterable[str]) -> dict[str, int]:
    """Return how many cells each source trained, the most first.

    Args:
        keys: the cells; those of which no digest is known don't count.
    """
    counts: dict[str, int] = {}
    for key in keys:
        if digest := sources.get(key):
            counts[digest] = counts.get(digest, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def sources_in_words(runs: Mapping[str, Mapping[str, int]]) -> str:
    """Say of how many sources cells are; empty where they are of one.

    Args:
        runs: the cells of each source, by the name of their run directory; a single one has none.
    """
    digests = {digest for counts in runs.values() for digest in counts}
    if len(digests) < 2:
        return ""
    texts = [
        f"{count} of {digest[:SHORT]}…{f' ({name})' if name else ''}"
        for name, counts in runs.items()
        for digest, count in counts.items()
    ]
    return f"Cells of {len(digests)} sources: {', '.join(texts)}."


def data_in_words(runs: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Say which data of one name had other content in another run directory."""
    sentences = []
    for data in sorted({data for fingerprints in runs.values() for data in fingerprints}):
        held = {name: marks[data] for name, marks in runs.items() if data in marks}
        if len(set(held.values())) > 1:
            texts = [f"{mark[:SHORT]}… ({name})" for name, mark in held.items()]
            sentences.append(f"Data that differs: {data}, {', '.join(texts)}.")
    return sentences


def thresholds_in_words(runs: Mapping[str, tuple[str, float] | None]) -> str:
    """Say at which thresholds runs were refined; empty where that is one or none.

    Args:
        runs: the column and the threshold, by the name of the run directory; None of one that
            wasn't refined.
    """
    refined = {name: target for name, target in runs.items() if target is not None}
    if len(set(refined.values())) < 2:
        return ""
    texts = [
        f"{f'{column} {value:g}'.strip()} ({name})" for name, (column, value) in refined.items()
    ]
    return f"Refined at different thresholds: {', '.join(texts)}."


def provenance_in_words(parts: Mapping[str, FigureData]) -> list[str]:
    """Write of which sources cells are, and which data and thresholds of runs differ.

    Nothing is written of what is one for all cells.
    """
    sentences = []
    for study in dict.fromkeys(part.study.name for part in parts.values()):
        runs = {name: part for name, part in parts.items() if part.study.name == study}
        counts = {
            name: count_sources(part.sources, part.cells["key"]) for name, part in runs.items()
        }
        sentences.append(sources_in_words(counts))
    sentences += data_in_words({name: part.collections for name, part in parts.items()})
    sentences.append(thresholds_in_words({name: part.boundary for name, part in parts.items()}))
    return [sentence for sentence in sentences if sentence]
