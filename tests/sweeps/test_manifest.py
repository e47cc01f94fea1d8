"""A manifest that anybody may have edited is read, or is none with a sentence; it only grows."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import overfit_cli
from overfit_cli.core.files import MANIFEST
from overfit_cli.sweeps.grid import make_grid
from overfit_cli.sweeps.manifest import (
    MOST_BYTES,
    count_planned,
    planned_cells,
    read_manifest,
    record_run,
)
from tests.command import call
from tests.toy_runs import TOY, sweep_toy

GRID = ("sweep", "toy", "--n=1:3", "--snr=1:2:2", "--seeds=1", "--trajectories", "--jobs=1")
RUN: dict[str, Any] = {"values": {"n": [1, 2]}, "seeds": [0]}
WHOLE: dict[str, Any] = {"schema": 1, "study": "toy", "version": 1, "runs": [RUN]}


@pytest.fixture
def swept(tmp_path: Path) -> Path:
    call(*GRID, "--out=out", cwd=tmp_path)
    return tmp_path / "out"


def of(**changes: Any) -> str:
    return json.dumps({**WHOLE, **changes})


def of_run(**changes: Any) -> str:
    return json.dumps({**WHOLE, "runs": [{**RUN, **changes}]})


HOSTILE = {
    "empty": "",
    "cut short": of()[:-9],
    "no text": b"\xff\xfe\x00",
    "a list": "[]",
    "null": "null",
    "a number": "3",
    "nothing in it": "{}",
    "nesting bomb": "[" * 100_000,
    "deep object": '{"a":' * 100_000,
    "deep inside": of()[:-1] + ', "data": ' + "[" * 5000 + "]" * 5000 + "}",
    "runs is a number": of(runs=3),
    "runs is an object": of(runs={"a": 1}),
    "runs is null": of(runs=None),
    "a run is null": of(runs=[None]),
    "a run is empty": of(runs=[{}]),
    "values is a list": of_run(values=[]),
    "values is null": of_run(values=None),
    "values hold null": of_run(values={"n": [None]}),
    "values hold lists": of_run(values={"n": [[1], [2]]}),
    "a value alone": of_run(values={"n": 3}),
    "values hold NaN": of_run(values={"snr": [float("nan")]}),
    "values hold infinity": of_run(values={"snr": [float("inf")]}),
    "a huge number": of().replace('"version": 1', '"version": 1' + "0" * 5000),
    "a seed beyond reach": of_run(seeds=[2**70]),
    "a seed below zero": of_run(seeds=[-1]),
    "seeds are words": of_run(seeds=["a"]),
    "seeds is null": of_run(seeds=None),
    "a product of 10^10 points": of_run(values={name: [*range(100)] for name in "abcde"}),
    "settings is a list": of_run(settings=[]),
    "settings hold objects": of_run(settings={"jobs": {"a": 1}}),
    "packages is null": of_run(packages=None),
    "command is text": of_run(command="overfit"),
    "data is a list": of(data=[]),
    "data holds numbers": of(data={"MNIST": 3}),
    "study is a number": of(study=3),
    "study is null": of(study=None),
    "version is text": of(version="1"),
    "another schema": of(schema=99),
}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_manifest_is_none_with_a_sentence(text: str | bytes, swept: Path) -> None:
    (swept / MANIFEST).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.warns(
        UserWarning, match=r"manifest.json can't be read \(.*\); the directory"
    ) as said:
        assert read_manifest(swept) is None
    assert "\n" not in str(said[0].message)
    exported = call("export", "out", cwd=swept.parent)
    assert "test_loss" in exported.stdout
    assert exported.stderr.count("manifest.json can't be read") == 1
    assert len(call(*GRID, "--out=out", cwd=swept.parent).stdout.splitlines()) == 4


@pytest.mark.slow
def test_claims_are_judged_beside_a_manifest_that_cannot_be_read(swept: Path) -> None:
    (swept / MANIFEST).write_text("{")
    judged = call("report", "out", "--out=r", cwd=swept.parent)
    assert "toy-claim" in judged.stdout
    assert judged.stderr.count("manifest.json can't be read") == 1


def folder(path: Path) -> None:
    path.mkdir()


def pipe(path: Path) -> None:
    os.mkfifo(path)


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(MOST_BYTES + 1)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.unix
@pytest.mark.parametrize("make", [folder, pipe, huge, endless])
def test_something_else_in_its_place_is_none_with_a_sentence(
    make: Callable[[Path], None], swept: Path
) -> None:
    (swept / MANIFEST).unlink()
    make(swept / MANIFEST)
    with pytest.warns(UserWarning, match="can't be read"):
        assert read_manifest(swept) is None
    drawn = call("plot", "heatmap", "--from=out", cwd=swept.parent)
    assert "manifest.json can't be read" in drawn.stderr


def test_one_that_cannot_be_read_is_set_aside_by_a_run_that_trains(swept: Path) -> None:
    (swept / MANIFEST).write_text("[")
    call(*GRID[:2], "--n=4", *GRID[3:], "--out=out", cwd=swept.parent)
    manifest = read_manifest(swept)
    assert manifest is not None
    assert [run.values["n"] for run in manifest.runs] == [(4,)]
    assert (swept / "set-aside" / MANIFEST).read_text() == "["


def test_a_sweep_that_trains_nothing_leaves_it_as_it_is(swept: Path) -> None:
    before = (swept / MANIFEST).read_bytes()
    call(*GRID, "--out=out", cwd=swept.parent)
    call(*GRID, "--out=out", "--dry-run", cwd=swept.parent)
    assert (swept / MANIFEST).read_bytes() == before
    (swept / MANIFEST).unlink()
    call(*GRID, "--out=out", cwd=swept.parent)
    assert not (swept / MANIFEST).exists()


def test_a_sweep_that_trains_adds_to_the_history(swept: Path) -> None:
    first = json.loads((swept / MANIFEST).read_text())["runs"]
    earlier = {"started": "2020-01-01T00:00:00+00:00", "git_commit": "a" * 40, "resumed": 3}
    content = json.loads((swept / MANIFEST).read_text())
    content["runs"][0].update(earlier)
    (swept / MANIFEST).write_text(json.dumps(content))
    call(*GRID, "--fresh", "--out=out", cwd=swept.parent)
    runs = json.loads((swept / MANIFEST).read_text())["runs"]
    assert runs[0] == first[0] | earlier, "what was there stays, what this version doesn't know too"
    assert runs[1]["started"] > "2026"
    assert runs[1]["values"] == first[0]["values"]
    assert runs[1]["command"][1:3] == ["sweep", "toy"]
    assert len(planned_cells(swept, TOY)) == 6, "the same cells are planned once"
    assert count_planned(swept, TOY) == 6


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    grid = make_grid(TOY, {"n": "2:4", "snr": "0.5,1", "mood": "well,nan"}, (0, 5))
    record_run(tmp_path, grid, {"jobs": 2, "refine": 3, "tolerance": 0.25}, {"MNIST": "abc"})
    manifest = read_manifest(tmp_path)
    assert manifest is not None
    assert (manifest.study, manifest.version, manifest.data) == ("toy", 1, {"MNIST": "abc"})
    [run] = manifest.runs
    assert run.values == grid.values
    assert run.seeds == (0, 5)
    assert run.settings == {"jobs": 2, "refine": 3, "tolerance": 0.25}
    assert run.axes == ("n", "snr", "mood")
    assert run.size == 24


def test_the_manifest_of_a_damaged_directory_says_whose_it_is(tmp_path: Path) -> None:
    directory = sweep_toy(tmp_path / "out")
    record_run(directory.path, make_grid(TOY, {"n": "1"}, (0,)), {})
    assert directory.study_name() == "toy"
    assert len(overfit_cli.load(directory.path)) == 6
