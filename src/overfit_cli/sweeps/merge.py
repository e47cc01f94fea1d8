"""Merging of run directories, such as those of a sweep's shards, into one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyarrow as pa

from overfit_cli.errors import UserError
from overfit_cli.files import locked, write_whole
from overfit_cli.functions.record import FunctionRecord
from overfit_cli.parameters import describe
from overfit_cli.sweeps.loading import load_study_and_cells
from overfit_cli.sweeps.manifest import MANIFEST, Manifest, Run, read_manifest
from overfit_cli.sweeps.part_file import Refusal
from overfit_cli.sweeps.parts import PartFolder
from overfit_cli.sweeps.schema import study_of
from overfit_cli.sweeps.store import RunDirectory
from overfit_cli.words import plural

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_NAMED = 3
TOLERANCE = 1e-5
"""By how much two numbers of one cell may differ, relative to the larger of them and `SMALLEST`:
the last bits depend on the processor, and on which cells are trained together."""

SMALLEST = 1e-6
_OWN = frozenset({"seconds"})
"""Columns in which two rows of one cell may differ: how long it took isn't what was measured."""


@dataclass(frozen=True)
class Merged:
    """What became of the directories.

    Attributes:
        cells: how many cells the merged directory has.
        repeated: how many of them stood in several directories, with the same numbers.
        notes: what was done to put the merged directory in order.
    """

    cells: int
    repeated: int
    notes: tuple[str, ...]


def merge_directories(sources: Sequence[RunDirectory], out: RunDirectory) -> Merged:
    """Copy the parts of run directories into one, and join their manifests.

    Args:
        sources: directories that sweeps wrote; they stay as they are. Some may have no cells yet.
        out: where to; what it holds already is merged too.

    Raises:
        UserError: if they aren't of one study, version, code and data, a file of a source is
            damaged, none has cells, or two have other numbers of one cell; nothing is written then.
        OSError: if the directory can't be written to; the sources stay as they are.
    """
    held = [out] if out.cells.names() or read_manifest(out.path) else []
    # Each once, however it was named.
    others = {one.path.resolve(): one for one in sources if not _same(one, out)}
    every = [*held, *others.values()]
    manifests = {one: _manifest(one) for one in every}
    _check_alike(manifests)
    for source in others.values():
        _check_whole(source)
    frames = {one: one.load_cells() for one in every if one.cells.names()}
    if not frames:
        raise UserError(f"DIR {every[-1].path}: it holds no cells, and no other one does.")
    repeated = _check_rows(frames)
    notes = out.prepare()
    with locked(out.path):
        for source in every[len(held) :]:
            # Trajectories first: a cell that is there has its trajectory.
            _copy(source.trajectories, out.trajectories, manifests[source].study)
            _copy(source.cells, out.cells, manifests[source].study)
        text = _joined([*manifests.values()]).model_dump_json(indent=2, by_alias=True) + "\n"
        write_whole(out.path / MANIFEST, text.encode())
    notes += out.prepare()
    keys = pd.concat([frame["key"] for frame in frames.values()])
    return Merged(int(keys.nunique()), repeated, tuple(notes))


def _same(one: RunDirectory, other: RunDirectory) -> bool:
    return one.path.resolve() == other.path.resolve()


def _manifest(directory: RunDirectory) -> Manifest:
    manifest = read_manifest(directory.path)
    if manifest is None:
        raise UserError(
            f"{directory.flag} {directory.path}: it has no manifest that can be read; name a "
            "directory that `overfit sweep` wrote."
        )
    return manifest


def _described(manifest: Manifest) -> FunctionRecord | None:
    """What is known of a function, wherever it lay."""
    function = manifest.function
    return None if function is None else function.model_copy(update={"reference": ""})


def _check_alike(manifests: dict[RunDirectory, Manifest]) -> None:
    """Refuse directories whose cells can't stand beside each other."""
    [(first, one), *others] = manifests.items()
    held = {name: (value, first) for name, value in one.data.items()}
    for directory, other in others:
        wrong = _unlike(first, one, other)
        for name, value in other.data.items():
            known, where = held.setdefault(name, (value, directory))
            if known != value:
                wrong = wrong or f"its {name} held something else than that of {where.path}"
        if wrong:
            raise UserError(f"{directory.flag} {directory.path}: {wrong}.")


def _unlike(first: RunDirectory, one: Manifest, other: Manifest) -> str:
    """In what a directory is unlike the first one; empty where it is alike."""
    if other.study != one.study:
        return f"it holds cells of {other.study}, and {first.path} of {one.study}"
    if other.version != one.version:
        return (
            f"its cells are of version {other.version} of {one.study}, and those of {first.path} "
            f"of {one.version}"
        )
    if _described(other) != _described(one):
        return f"{one.study} has other parameters or another description there than in {first.path}"
    if {run.source for run in other.runs} != {run.source for run in one.runs}:
        return f"its cells were trained by other code than those of {first.path}"
    return ""


def _check_rows(frames: dict[RunDirectory, pd.DataFrame]) -> int:
    """Return how many cells stand in several directories.

    Raises:
        UserError: naming those that have other numbers in another one.
    """
    rows = pd.concat(
        [frame.assign(**{_WHERE: str(one.path)}) for one, frame in frames.items()],
        ignore_index=True,
    )
    several = rows[rows.duplicated("key", keep=False) & (rows["status"] == "done")]
    study, _ = load_study_and_cells(next(iter(frames)), any_version=True)
    varied = [name for name in describe(study.parameters) if name in rows]
    named = [*(name for name in varied if rows[name].nunique() > 1), "seed"]
    count, conflicts = _conflicts(several, named)
    if count:
        others = count - len(conflicts)
        more = f"; and {plural(others, 'other cell')}" if others else ""
        raise UserError(
            f"{plural(count, 'cell')} with other numbers in another directory: "
            f"{'; '.join(conflicts)}{more}. Nothing was merged."
        )
    return int(rows.loc[rows.duplicated("key"), "key"].nunique())


_WHERE = " directory"


def _conflicts(rows: pd.DataFrame, named: Sequence[str]) -> tuple[int, list[str]]:
    """How many cells have rows that differ, and a sentence for each of the first `MOST_NAMED`.

    It says which cell, and the first column that differs.
    """
    first = rows.drop_duplicates("key").set_index("key").loc[rows["key"]]
    compared = [name for name in rows if name not in {"key", *_OWN, _WHERE}]
    differs = np.column_stack([_differ(rows[name], first[name]) for name in compared])
    keys = pd.unique(rows["key"].to_numpy()[differs.any(axis=1)])
    sentences = list[str]()
    for key in keys[:MOST_NAMED]:
        own = (rows["key"] == key).to_numpy()
        name, found = compared[int(differs[own].any(axis=0).argmax())], rows[own]
        cell = ", ".join(f"{one} {found[one].iloc[0]}" for one in named)
        there = [f"{value!r} in {place}" for value, place in found[[name, _WHERE]].to_numpy()]
        sentences.append(f"{cell} has {name} {' and '.join(there)}")
    return len(keys), sentences


def _differ(one: pd.Series, other: pd.Series) -> NDArray[np.bool_]:
    """Where two columns differ, row by row."""
    a, b = one.to_numpy(), other.to_numpy()  # (rows,)
    unknown = one.isna().to_numpy() & other.isna().to_numpy()
    if not pd.api.types.is_float_dtype(one.dtype):
        return np.asarray(~((a == b).astype(bool) | unknown))
    with np.errstate(invalid="ignore"):  # of two infinities
        largest = np.maximum(np.maximum(abs(a), abs(b)), SMALLEST)
        near = (abs(a - b) <= TOLERANCE * largest) & np.isfinite(largest)
    return np.asarray(~(near | (a == b) | unknown))


def _check_whole(source: RunDirectory) -> None:
    """Refuse a directory with damaged parts: their cells would be missing without a word."""
    for folder in (source.cells, source.trajectories):
        for path, part in folder.indices().items():
            if isinstance(part, Refusal) and part.damaged:
                raise UserError(
                    f"{source.flag} {source.path}: of {path.relative_to(source.path)}, "
                    f"{part.reason}. The same sweep with --out {source.path} runs its cells again. "
                    "Nothing was merged."
                )


def _copy(source: PartFolder, target: PartFolder, study: str) -> None:
    """Copy a study's parts that aren't there yet; parts are named after their content."""
    for path, part in source.indices().items():
        copied = target.path / path.name
        if isinstance(part, pa.Table) and study_of(part) == study and not copied.exists():
            write_whole(copied, path.read_bytes())


def _joined(manifests: Sequence[Manifest]) -> Manifest:
    """One manifest of all: each run once, in the order in which they began."""
    runs = list[Run]()
    for manifest in manifests:
        runs += [run for run in manifest.runs if run not in runs]
    data = {name: value for manifest in manifests for name, value in manifest.data.items()}
    ordered = tuple(sorted(runs, key=lambda run: run.started))
    return manifests[0].model_copy(update={"data": data, "runs": ordered})
