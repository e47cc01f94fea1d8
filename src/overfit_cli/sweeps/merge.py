"""Run directories of one study joined into one: their parts are copied, their manifests joined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from overfit_cli.core.arrays import varying
from overfit_cli.core.cell import parameter_columns
from overfit_cli.core.errors import UserError
from overfit_cli.core.files import write_whole
from overfit_cli.core.text import plural
from overfit_cli.sweeps.manifest import SOURCES, Manifest, Run
from overfit_cli.sweeps.part import CELLS, INDEX, STEPS
from overfit_cli.sweeps.store import RunDirectory

TOLERANCE, SMALLEST = 1e-5, 1e-11
"""By how much two numbers of one cell may differ, relative and in all: the last bits depend on the
processor, and on which cells are trained together."""

_WHERE = " directory"


def merge_directories(sources: Sequence[RunDirectory], out: RunDirectory) -> list[str]:
    """Copy the parts of run directories into one, and join their manifests.

    The manifest is written first, and names the sources until all their parts are copied: after a
    kill at any moment the same call goes on, and readers say until a merge into the directory ends
    that cells may be missing.

    Args:
        sources: directories that sweeps wrote; they stay as they are. Some may have no cells yet.
        out: where to; what it holds already is merged too.

    Returns:
        What is wrong with parts of the merged directory.
    """
    # Each once, however it was named.
    others = {
        one.path.resolve(): one for one in sources if one.path.resolve() != out.path.resolve()
    }
    held = [out] if out.names(CELLS) or out.manifest else []
    manifests = {one: one.manifest for one in (*held, *others.values())}
    for one, manifest in manifests.items():
        if not manifest:
            reason = "it has no manifest; name a directory that `overfit sweep` wrote."
            raise one.error(reason if one.path.is_dir() else one.why_empty())
    _check_alike(manifests)
    for source in others.values():
        _check_whole(source)
    frames = [
        one.load_cells().assign(**{_WHERE: str(one.path)}) for one in manifests if one.names(CELLS)
    ]
    if not frames:
        path = [*manifests][-1].path
        raise UserError(f"DIR {path}: it holds no cells, and neither do the others.")
    _check_numbers(pd.concat(frames, ignore_index=True))
    notes, named = out.prepare(), [str(path) for path in others]
    whole = _joined([*manifests.values()], named)
    with out.lock:
        out.update(lambda _: whole)
        for source in others.values():
            _copy(source, out)
        out.update(lambda _: whole.model_copy(update={"merging": ()}))
    return notes


def _check_alike(manifests: Mapping[RunDirectory, Manifest]) -> None:
    """Refuse a directory of another study, version, function, code or data than the first."""
    first, manifest = next(iter(manifests.items()))
    shared, data = _identity(manifest), dict[str, tuple[str, Path]]()
    for directory, other in manifests.items():
        for what, own in _identity(other).items():
            if own != shared[what]:
                raise directory.error(f"its {what} is another than that of {first.path}.")
        for name, digest in other.data.items():
            then, where = data.setdefault(name, (digest, directory.path))
            if then != digest:
                raise directory.error(f"its {name} had other content than that of {where}.")


def _identity(manifest: Manifest) -> dict[str, object]:
    """What directories that are merged have in common."""
    function = manifest.function
    return {
        "study": manifest.study,
        "study's version": manifest.version,
        "function's description": function and function.model_copy(update={"reference": ""}),
        "code": manifest.sources,
    }


def _check_whole(source: RunDirectory) -> None:
    """Refuse a directory with parts that are damaged or can't be read."""
    source.contents(trajectories=True)
    for (kind, name), why in source.left_out.items():
        if why.damaged or why.unread:
            raise source.error(
                f"{kind}/{name} is skipped by every reader: {why}. Move it elsewhere, or repeat "
                "the sweep into that directory to run its cells again. Nothing was merged."
            )


def _check_numbers(rows: pd.DataFrame) -> None:
    """Refuse cells that have other numbers in another directory."""
    several = rows[rows.duplicated("key", keep=False) & (rows["status"] == "done")]
    numbers = several.drop(columns="seconds").select_dtypes(["number", "bool"]).astype(float)
    of_key = numbers.groupby(several["key"])
    low, high, known = of_key.min(), of_key.max(), of_key.count()
    differs = (known > 0) & known.lt(of_key.size(), axis=0)
    differs |= ~np.isclose(low, high, rtol=TOLERANCE, atol=SMALLEST, equal_nan=True)
    conflicts = low.index[differs.any(axis=1)]
    if conflicts.empty:
        return
    example = several[several["key"] == conflicts[0]]
    column = differs.columns[differs.loc[conflicts[0]]][0]
    names = [*varying(rows, parameter_columns(rows)), "seed"]
    cell = ", ".join(f"{name} {example[name].iloc[0]}" for name in names)
    values = [f"{value!r} in {path}" for value, path in example[[column, _WHERE]].to_numpy()]
    raise UserError(
        f"{plural(len(conflicts), 'cell')} with other numbers in another directory: {cell} has "
        f"{column} {' and '.join(values)}. Nothing was merged."
    )


def _copy(source: RunDirectory, out: RunDirectory) -> None:
    """Copy the parts, and the files of functions, that aren't there yet."""
    # Trajectories first: a cell that is there has its trajectory.
    kinds = (STEPS, CELLS)
    paths = [Path(kind, part.name) for kind in kinds for part in source.parts(kind, INDEX[kind])]
    # A link of a directory that was sent may lead to any file of this user.
    paths += [
        path.relative_to(source.path)
        for path in source.path.glob(f"{SOURCES}/*/**/*")
        if path.is_file() and not path.is_symlink()
    ]
    for path in paths:
        if not (out.path / path).exists():
            (out.path / path).parent.mkdir(parents=True, exist_ok=True)
            write_whole(out.path / path, (source.path / path).read_bytes())


def _joined(manifests: Sequence[Manifest], named: Sequence[str]) -> Manifest:
    """One manifest of all: each run once, in the order in which they began.

    Args:
        named: the directories that are merged.
    """
    first, runs = manifests[0], list[Run]()
    for manifest in manifests:
        runs += [run for run in manifest.runs if run not in runs]
    sealed = [manifest.claims for manifest in manifests if manifest.claims is not None]
    return first.model_copy(
        update={
            "data": {name: mark for one in manifests for name, mark in one.data.items()},
            "runs": tuple(sorted(runs, key=lambda run: run.started)),
            "claims": None if first.claims is None else _in_all(sealed),
            "stated": _in_all([manifest.stated for manifest in manifests]),
            "merging": tuple(named),
        }
    )


def _in_all(texts: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """What all of them have."""
    shared = set.intersection(*(set(one.items()) for one in texts))
    return {name: text for name, text in texts[0].items() if (name, text) in shared}
