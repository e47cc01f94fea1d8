"""`overfit export --to ro-crate`: a run directory described by the rules of RO-Crate 1.1."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

import overfit_cli
from overfit_cli.core.registry import find_study
from tests.command import call

FUNCTION = """
def train(n: int = 2, seed: int = 0):
    if n == 3:
        raise ValueError("n is 3")
    return {"loss": n + 0.1 * seed, "top 1 / all": 1.0}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a function in `run`, with files that are no part of it, and its crate."""
    folder = tmp_path_factory.mktemp("crate")
    (folder / "my file.py").write_text(FUNCTION)
    sweep = ("sweep", "my file.py", "--jobs=1", "--out=run")
    call(*sweep, "--n=2,3", "--seeds=2", cwd=folder, expect=1)
    call(*sweep, "--n=4,5", "--seeds=2", cwd=folder)
    call("plot", "lines", "--from=run", "--out=run/figures/a map.svg", cwd=folder)
    (folder / "run" / "set-aside").mkdir()
    (folder / "run" / "set-aside" / "old.parquet").write_bytes(b"old")
    (folder / "run" / "cells" / ".part-1").write_bytes(b"half")
    (folder / "run" / "link.csv").symlink_to(folder / "my file.py")
    said = call("export", "run", "--to=ro-crate", "--out=crate", cwd=folder).stdout
    assert said == (
        "Written: crate/ro-crate-metadata.json, about "
        f"{len(entities(folder / 'crate', 'File'))} files\n"
        "It names no licence: write yours in its entity #licence before you deposit it.\n"
    )
    return folder


def graph(crate: Path) -> list[dict[str, Any]]:
    """All entities of a crate."""
    described: dict[str, Any] = json.loads((crate / "ro-crate-metadata.json").read_text())
    assert described["@context"][0] == "https://w3id.org/ro/crate/1.1/context"
    entities: list[dict[str, Any]] = described["@graph"]
    return entities


def entities(crate: Path, kind: str) -> dict[str, dict[str, Any]]:
    """The entities of a type, by their address."""
    return {each["@id"]: each for each in graph(crate) if each["@type"] == kind}


def root_of(crate: Path) -> dict[str, Any]:
    """The data set, found as the specification says: by what the description is about."""
    every = {each["@id"]: each for each in graph(crate)}
    itself = every["ro-crate-metadata.json"]
    assert itself["@type"] == "CreativeWork"
    assert itself["conformsTo"]["@id"].startswith("https://w3id.org/ro/crate/")
    root: dict[str, Any] = every[itself["about"]["@id"]]
    return root


def references(value: object) -> Iterator[str]:
    """The addresses that a property refers to; a nested entity is refused."""
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, dict):
            assert set(item) == {"@id"}, f"{item} is nested"
            yield item["@id"]


def test_the_root_has_what_every_root_must_have(folder: Path) -> None:
    root = root_of(folder / "crate")
    assert (root["@id"], root["@type"]) == ("./", "Dataset")
    assert date.fromisoformat(root["datePublished"])
    assert root["name"] == "run, a run of my file:train"
    assert "8 cells, of which 2 failed of the study" in root["description"]
    [licence] = references(root["license"])
    assert entities(folder / "crate", "CreativeWork")[licence]["name"] == "No licence is chosen yet"


def test_every_entity_has_one_address_and_every_reference_an_entity(folder: Path) -> None:
    every = graph(folder / "crate")
    addresses = [each["@id"] for each in every]
    assert len(set(addresses)) == len(addresses)
    specification = "https://w3id.org/ro/crate/1.1"
    reached = {"ro-crate-metadata.json", specification}
    for each in every:
        assert each["@type"]
        for value in each.values():
            reached |= set(references(value))
    assert reached - {specification} == set(addresses)
    assert all(re.fullmatch(r"[\w./#:%~-]+", address, re.ASCII) for address in addresses)


def test_every_file_is_there_with_its_size_and_digest(folder: Path) -> None:
    crate = folder / "crate"
    files = entities(crate, "File")
    assert set(references(root_of(crate)["hasPart"])) == set(files)
    there = {path.relative_to(crate).as_posix() for path in crate.rglob("*") if path.is_file()}
    assert {unquote(address) for address in files} == there - {"ro-crate-metadata.json"}
    for address, file in files.items():
        content = (crate / unquote(address)).read_bytes()
        assert file["contentSize"] == str(len(content))
        assert file["sha256"] == hashlib.sha256(content).hexdigest()
    assert files["figures/a%20map.svg"]["encodingFormat"] == "image/svg+xml"
    assert not any("set-aside" in name or "/." in name or "link" in name for name in there)


def test_the_copy_is_a_run_directory(folder: Path) -> None:
    there = overfit_cli.load(folder / "crate")
    assert there.equals(overfit_cli.load(folder / "run"))


def test_columns_are_variables_that_were_measured(folder: Path) -> None:
    variables = entities(folder / "crate", "PropertyValue")
    names = [
        variables[each]["name"]
        for each in references(root_of(folder / "crate")["variableMeasured"])
    ]
    assert names == ["steps", "seconds", "loss", "top 1 / all"]
    assert variables["#column-seconds"]["unitText"] == "s"


def test_each_run_has_its_command_and_the_versions_that_it_used(folder: Path) -> None:
    crate = folder / "crate"
    actions = entities(crate, "CreateAction")
    assert [action["name"][-21:] for action in actions.values()] == [
        "run --n=2,3 --seeds=2",
        "run --n=4,5 --seeds=2",
    ]
    software = entities(crate, "SoftwareApplication")
    used = [software[each] for each in references(actions["#run-2"]["instrument"])]
    assert {"overfit", "Python", "numpy"} <= {each["name"] for each in used}
    assert all(each["version"] for each in used)


def test_an_installed_study_names_its_paper(tmp_path: Path) -> None:
    call("train", "toy", "--n=2", "--out=toy", cwd=tmp_path)
    call("export", "toy", "--to=ro-crate", "--out=crate", cwd=tmp_path)
    paper = find_study("toy").paper
    assert paper is not None
    [address] = references(root_of(tmp_path / "crate")["citation"])
    assert entities(tmp_path / "crate", "ScholarlyArticle")[address]["name"] == paper.title


def test_a_run_directory_is_described_where_it_is_and_again(tmp_path: Path) -> None:
    call("train", "toy", "--n=2", "--out=toy", cwd=tmp_path)
    before = {path for path in (tmp_path / "toy").rglob("*") if path.name[0] != "."}
    description = tmp_path / "toy" / "ro-crate-metadata.json"
    call("export", "toy", "--to=ro-crate", "--out=toy", cwd=tmp_path)
    after = {path for path in (tmp_path / "toy").rglob("*") if path.name[0] != "."}
    assert after - before == {description}
    first = root_of(tmp_path / "toy")["hasPart"]
    call("train", "toy", "--n=3", "--out=toy", cwd=tmp_path)
    call("export", "toy", "--to=ro-crate", "--out=toy", cwd=tmp_path)
    second = root_of(tmp_path / "toy")["hasPart"]
    assert len(second) > len(first)
    assert {"@id": description.name} not in second


@pytest.mark.parametrize("change", ["licence", "author", "other"])
def test_a_description_by_somebody_else_is_kept(change: str, tmp_path: Path) -> None:
    call("train", "toy", "--n=2", "--out=toy", cwd=tmp_path)
    call("export", "toy", "--to=ro-crate", "--out=toy", cwd=tmp_path)
    description = tmp_path / "toy" / "ro-crate-metadata.json"
    content = json.loads(description.read_text(encoding="utf-8"))
    for entity in content["@graph"]:
        if change == "licence" and entity["@id"] == "#licence":
            entity["name"] = "CC BY 4.0"
        if change == "author" and entity["@id"] == "./":
            entity["author"] = {"@id": "#me"}
    written = "[]" if change == "other" else json.dumps(content)
    description.write_text(written, encoding="utf-8")
    said = call("export", "toy", "--to=ro-crate", "--out=toy", cwd=tmp_path, expect=2).stderr
    assert said == (
        "overfit: --out toy: it has a ro-crate-metadata.json that overfit didn't write so; name "
        "another folder.\n"
    )
    assert description.read_text(encoding="utf-8") == written


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_takes_no_file_is_named(folder: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    out = f"--out={tmp_path}/crate"
    error = call("export", "run", "--to=ro-crate", out, cwd=folder, expect=2).stderr
    assert "can't be copied there (Permission denied)" in error
