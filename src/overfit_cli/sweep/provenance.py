"""`manifest.json`: what was run into a directory, with what, when and on what."""

from __future__ import annotations

import contextlib
import importlib.metadata
import itertools
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from overfit_cli.errors import UserError
from overfit_cli.files import locked, write_whole
from overfit_cli.parameters import describe
from overfit_cli.study import Study
from overfit_cli.sweep.grid import Grid

if TYPE_CHECKING:
    import pandas as pd

MANIFEST = "manifest.json"
_PACKAGES = ("overfit-cli", "torch", "numpy", "pandas", "pyarrow", "joblib", "scipy", "matplotlib")


def check_data(directory: Path, data: Mapping[str, str]) -> None:
    """Hold a run to the data that the directory's other cells were trained on.

    Args:
        directory: the run directory, whether there or not.
        data: what the run reads: fingerprints of collections, by name.

    Raises:
        UserError: if a collection of one name held something else then.
    """
    before = read_manifest(directory).get("data", {})
    for name, fingerprint in data.items():
        if before.get(name, fingerprint) != fingerprint:
            raise UserError(
                f"--out {directory}: its cells were trained on other data ({name} held something "
                "else then); name another directory, or the data of before with --data."
            )


def record_run(
    directory: Path,
    grid: Grid,
    settings: Mapping[str, object],
    data: Mapping[str, str] | None = None,
) -> None:
    """Add a run to the directory's manifest.

    Args:
        directory: the run directory; it exists.
        grid: what the run covers.
        settings: how it is run (jobs, backend, device, preset, ...).
        data: fingerprints of the collections that it reads, by name.

    Raises:
        OSError: if it can't be written; the old manifest stays then.
    """
    with locked(directory):
        manifest = read_manifest(directory)
        manifest |= {"schema": 1, "study": grid.study.name, "version": grid.study.version}
        manifest["data"] = manifest.get("data", {}) | dict(data or {})
        entry = _entry(grid, settings)
        earlier = [run for run in manifest.get("runs", []) if _same_work(run, entry)]
        manifest["runs"] = [run for run in manifest.get("runs", []) if run not in earlier]
        entry["resumed"] = sum(run.get("resumed", 0) + 1 for run in earlier)
        manifest["runs"].append(entry)
        text = json.dumps(manifest, indent=2, allow_nan=False) + "\n"
        write_whole(directory / MANIFEST, text.encode())


def read_manifest(directory: Path) -> dict[str, Any]:
    """Return the manifest; an empty one where there is none, or none that can be read."""
    try:
        manifest = json.loads((directory / MANIFEST).read_text())
    except (OSError, ValueError):
        return {}
    if not isinstance(manifest, dict) or not isinstance(manifest.get("runs", []), list):
        return {}
    return manifest | {"runs": [run for run in manifest.get("runs", []) if _is_run(run)]}


def planned_cells(directory: Path, study: Study) -> pd.DataFrame:
    """Return the points that the runs into `directory` were meant to cover.

    One row a point: `seed` and a column a parameter, with defaults where a run set none.
    """
    import pandas as pd

    rows = [
        {"seed": seed, **point}
        for run in read_manifest(directory).get("runs", [])
        for point in _points(study, run["values"])
        for seed in run["seeds"]
    ]
    names = ["seed", *describe(study.parameters)]
    return pd.DataFrame(rows, columns=names).drop_duplicates(ignore_index=True)


def _points(study: Study, values: Mapping[str, list[Any]]) -> Iterator[dict[str, Any]]:
    """Every combination of the values, with the defaults that hold for it."""
    for point in itertools.product(*values.values()):
        # What the model refuses is no point: somebody may have edited the file.
        with contextlib.suppress(ValidationError):
            yield study.parameters(**dict(zip(values, point, strict=True))).model_dump()


def _is_run(run: object) -> bool:
    """Whether an entry has what is read of it: somebody may have edited the file."""
    return (
        isinstance(run, dict)
        and isinstance(run.get("seeds"), list)
        and isinstance(run.get("values"), dict)
        and all(isinstance(values, list) for values in run["values"].values())
    )


def _entry(grid: Grid, settings: Mapping[str, object]) -> dict[str, Any]:
    return {
        "values": {name: list(values) for name, values in grid.values.items()},
        "axes": list(grid.axes),
        "seeds": list(grid.seeds),
        "settings": dict(settings),
        "command": ["overfit", *sys.argv[1:]],
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "packages": {name: _version(name) for name in _PACKAGES},
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "git_commit": _git_commit(),
    }


def _same_work(run: Mapping[str, Any], entry: Mapping[str, Any]) -> bool:
    """Whether two runs cover the same cells: a sweep resumed twenty times is one entry."""
    return all(run.get(part) == entry[part] for part in ("values", "seeds"))


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _git_commit() -> str | None:
    """The commit of the code that runs, where it runs from a checkout."""
    here = Path(__file__).resolve()
    if not any((folder / ".git").exists() for folder in here.parents[:4]):
        return None
    command = ["git", "-C", str(here.parent), "rev-parse", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or None
