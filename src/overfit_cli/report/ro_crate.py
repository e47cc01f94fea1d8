"""A run directory as an RO-Crate 1.1: its files with a description that repositories read.

See https://www.researchobject.org/ro-crate/specification/1.1: a flat list of entities, each with an
address, which refer to each other. The licence and the authors are left to the user.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from overfit_cli.core.errors import BadValue
from overfit_cli.core.files import SET_ASIDE, error_text, write_user_file
from overfit_cli.core.study import AnyStudy, stand_ins_of
from overfit_cli.core.text import VERSION, plural
from overfit_cli.report.labelled import column_of
from overfit_cli.sweeps.load import load_study_and_cells, measured_columns
from overfit_cli.sweeps.manifest import Run, read_manifest
from overfit_cli.sweeps.store import RunDirectory

if TYPE_CHECKING:
    import pandas as pd

Entity = dict[str, Any]

METADATA = "ro-crate-metadata.json"
LICENCE = "#licence"
_TOOL = "#overfit"
_SPECIFICATION = "https://w3id.org/ro/crate/1.1"

_NO_LICENCE = {
    "@id": LICENCE,
    "@type": "CreativeWork",
    "name": "No licence is chosen yet",
    "description": "Whoever deposits the data set names its licence here.",
}

_FORMATS = {
    ".csv": "text/csv",
    ".html": "text/html",
    ".json": "application/json",
    ".md": "text/markdown",
    ".mplstyle": "text/plain",
    ".parquet": "application/vnd.apache.parquet",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".py": "text/x-python",
    ".svg": "image/svg+xml",
    ".toml": "application/toml",
    ".txt": "text/plain",
    ".xml": "application/xml",
}
_CONTENTS = {
    "cells": "Cells: a row for each training run, with its parameters, its seed and its numbers.",
    "trajectories": "Logged steps: a row for each cell and step.",
    "manifest.json": "What was run: values, seeds, commands, versions, commit and machine.",
    "source": "Code of the function that trained the cells.",
    "figures": "A figure of the cells, or its caption.",
}


def write_crate(run: RunDirectory, out: Path) -> list[Path]:
    """Copy a run directory's files into a folder, and describe them there as an RO-Crate.

    The description is written last: a folder with one is whole. One that overfit wrote, and that
    nobody has changed, is replaced.

    Args:
        out: a new or empty folder; or the run directory, and nothing is copied then.

    Returns:
        The files that are described, as seen from the folder.
    """
    study, cells = load_study_and_cells(run, any_version=True)
    here, there = run.path.resolve(), out.resolve()
    files = _files(run.path)
    if (out / METADATA).exists() and not _is_own(out / METADATA):
        accepts = f"it has a {METADATA} that overfit didn't write so; name another folder."
        raise BadValue("out", str(out), accepts)
    if here != there:
        _copy(run.path, files, out)
    entities = _entities(run, study, cells, {name: _file(out, name) for name in files})
    context = [f"{_SPECIFICATION}/context", {"sha256": "http://schema.org/sha256"}]
    text = json.dumps({"@context": context, "@graph": entities}, indent=2, ensure_ascii=False)
    write_user_file(out / METADATA, f"{text}\n".encode(), "out", "the description")
    return files


def _is_own(description: Path) -> bool:
    try:
        content = json.loads(description.read_bytes())
        entities = {entity["@id"]: entity for entity in content["@graph"]}
    except (OSError, ValueError, KeyError, TypeError):
        return False
    root = entities.get("./", {})
    return _TOOL in entities and entities.get(LICENCE) == _NO_LICENCE and "author" not in root


def _files(root: Path) -> list[Path]:
    """The files of a run directory, as seen from it, without its description.

    None is hidden, linked or set aside.
    """
    files = []
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name[0] != "." and name != SET_ASIDE]
        paths = [Path(folder, name) for name in names if name[0] != "."]
        files += [path.relative_to(root) for path in paths if not path.is_symlink()]
    return sorted({*files} - {Path(METADATA)})


def _copy(root: Path, files: Sequence[Path], out: Path) -> None:
    if out.resolve().is_relative_to(root.resolve()):
        accepts = "it lies in the run directory; name a folder outside, or the run directory."
        raise BadValue("out", str(out), accepts)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise BadValue("out", str(out), "there is something already; name a new folder.")
    try:
        for file in files:
            (out / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / file, out / file)
    except OSError as error:
        accepts = f"{file} can't be copied there ({error_text(error)}); empty it and try again."
        raise BadValue("out", str(out), accepts) from None


def _file(out: Path, name: Path) -> Entity:
    with (out / name).open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    facts = {
        "@id": quote(name.as_posix()),
        "@type": "File",
        "name": name.name,
        "description": _CONTENTS.get(name.parts[0], ""),
        "contentSize": str((out / name).stat().st_size),
        "encodingFormat": _FORMATS.get(name.suffix.lower(), "application/octet-stream"),
        "sha256": digest,
    }
    return {key: fact for key, fact in facts.items() if fact}


def _entities(
    run: RunDirectory, study: AnyStudy, cells: pd.DataFrame, files: Mapping[Path, Entity]
) -> list[Entity]:
    """All entities: the description of itself, the data set, and what it refers to."""
    manifest = read_manifest(run.path)
    actions = list(_actions(manifest.runs if manifest is not None else ()))
    variables = [_variable(study, name) for name in measured_columns(cells)]
    paper = [_paper(study)] if study.paper is not None else []
    failed = int((cells["status"] == "failed").sum())
    counts = f"{plural(len(cells), 'cell')}, of which {failed} failed" if failed else ""
    version = int(cells["version"].iloc[0])
    sentences = [
        f"{(study.title or study.name).rstrip('.')}: {counts or plural(len(cells), 'cell')} of "
        f"the study {study.name}, version {version}, trained by overfit.",
        *stand_ins_of(study, cells),
    ]
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": f"{run.path.resolve().name}, a run of {study.name}",
        "description": " ".join(sentences),
        "datePublished": datetime.now(UTC).date().isoformat(),
        "license": {"@id": LICENCE},
        "hasPart": _references(files.values()),
        "variableMeasured": _references(variables),
        "citation": _references(paper),
        "mentions": _references(action for action in actions if "instrument" in action),
    }
    itself = {
        "@id": METADATA,
        "@type": "CreativeWork",
        "conformsTo": {"@id": _SPECIFICATION},
        "about": {"@id": "./"},
    }
    tool = _software("overfit", VERSION) | {"@id": _TOOL}
    described = {key: value for key, value in root.items() if value != []}
    return [itself, described, _NO_LICENCE, tool, *paper, *files.values(), *variables, *actions]


def _references(entities: Any) -> list[Entity]:
    return [{"@id": entity["@id"]} for entity in entities]


def _variable(study: AnyStudy, name: str) -> Entity:
    column = column_of(study, name)
    facts = {"name": name, "description": column.meaning, "unitText": column.unit}
    known = {key: fact for key, fact in facts.items() if fact}
    return {"@id": f"#column-{quote(name, safe='')}", "@type": "PropertyValue", **known}


def _paper(study: AnyStudy) -> Entity:
    paper = study.paper
    assert paper is not None
    return {
        "@id": paper.url or f"#{paper.key}",
        "@type": "ScholarlyArticle",
        "name": paper.title,
        "description": str(paper),
        "datePublished": str(paper.year),
    }


def _software(name: str, version: str) -> Entity:
    return {
        "@id": f"#{quote(name)}-{quote(version)}",
        "@type": "SoftwareApplication",
        "name": name,
        "version": version,
    }


def _actions(runs: Sequence[Run]) -> Iterator[Entity]:
    known = set[str]()
    for number, run in enumerate(runs, start=1):
        packages = {"Python": run.python, **run.packages}
        used = [_software(name, version) for name, version in packages.items() if version]
        yield from (each for each in used if each["@id"] not in known)
        known |= {each["@id"] for each in used}
        facts = {
            "@id": f"#run-{number}",
            "@type": "CreateAction",
            "name": shlex.join(run.command) or "A run from Python",
            "startTime": run.started,
            "description": f"The code was at commit {run.commit}." if run.commit else "",
            "instrument": _references([{"@id": _TOOL}, *used]),
            "result": {"@id": "./"},
        }
        yield {key: fact for key, fact in facts.items() if fact}
