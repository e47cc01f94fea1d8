"""A manifest that anybody may have edited is read, or is none with a sentence; it only grows."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from overfit_cli.core.files import MANIFEST
from overfit_cli.core.training import product_library
from overfit_cli.sweeps.grid import make_grid
from overfit_cli.sweeps.manifest import (
    MOST_BYTES,
    count_planned,
    planned_cells,
    read_manifest,
    record_run,
)
from tests.command import call
from tests.toy_runs import TOY

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
    "nothing in it": "{}",
    "nesting bomb": "[" * 100_000,
    "deep object": '{"a":' * 100_000,
    "deep inside": of()[:-1] + ', "data": ' + "[" * 5000 + "]" * 5000 + "}",
    "runs is null": of(runs=None),
    "a run is empty": of(runs=[{}]),
    "values hold lists": of_run(values={"n": [[1], [2]]}),
    "values hold NaN": of_run(values={"snr": [float("nan")]}),
    "a huge number": of().replace('"version": 1', '"version": 1' + "0" * 5000),
    "a seed beyond reach": of_run(seeds=[2**70]),
    "a product of 10^10 points": of_run(values={name: [*range(100)] for name in "abcde"}),
    "settings hold objects": of_run(settings={"jobs": {"a": 1}}),
    "command is text": of_run(command="overfit"),
    "data holds numbers": of(data={"MNIST": 3}),
    "another schema": of(schema=99),
}
"""What is edited a little is in the tests with made-up manifests: `test_fuzz.py`."""


@pytest.mark.one_in(3)
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


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(MOST_BYTES + 1)


@pytest.mark.unix
@pytest.mark.parametrize(
    "make", [Path.mkdir, os.mkfifo, huge, lambda path: path.symlink_to("/dev/zero")]
)
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
    assert runs[1]["command"][:3] == ["overfit", "sweep", "toy"]
    assert count_planned(swept, TOY) == len(planned_cells(swept, TOY)) == 6, "each is planned once"


def test_the_manifest_says_what_was_run_on_what(tmp_path: Path) -> None:
    given = {"n": "2:3", "snr": "0.5,1", "mood": "well,nan"}
    settings = {"jobs": 2, "refine": 3, "tolerance": 0.25}
    record_run(tmp_path, make_grid(TOY, given, (0, 5)), settings, {"MNIST": "abc"})
    record_run(tmp_path, make_grid(TOY, {**given, "n": "4"}, (0,)), {})
    manifest = read_manifest(tmp_path)
    assert manifest is not None
    assert (manifest.study, manifest.version, manifest.data) == ("toy", 1, {"MNIST": "abc"})
    first, second = manifest.runs
    assert first.values == {"n": (2, 3), "snr": (0.5, 1.0), "mood": ("well", "nan")}
    assert second.values["n"] == (4,)
    assert (first.seeds, first.settings, first.size) == ((0, 5), settings, 16)
    assert first.axes == ("n", "snr", "mood")
    written = json.loads((tmp_path / MANIFEST).read_text())["runs"][0]
    assert written["packages"]["joblib"] >= "1.6"
    assert {"platform", "python", "started", "git_commit", "cores", "processor"} <= written.keys()
    assert written["products"] == product_library()
    planned = planned_cells(tmp_path, TOY)
    assert len(planned) == count_planned(tmp_path, TOY) == 16 + 4
    assert sorted(planned["n"].unique()) == [2, 3, 4]
