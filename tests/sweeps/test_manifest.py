"""A manifest that anybody may have edited is read, or refused in a sentence; it only grows."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from overfit_cli.core.errors import UserError
from overfit_cli.core.files import MANIFEST, MOST_BYTES
from overfit_cli.core.training import product_library
from overfit_cli.sweeps import store
from overfit_cli.sweeps.grid import Grid
from overfit_cli.sweeps.manifest import Manifest, read_manifest
from overfit_cli.sweeps.store import RunDirectory
from tests.command import call
from tests.toy_runs import TOY

GRID = ("sweep", "toy", "--n=1:3", "--snr=1:2:2", "--seeds=1", "--trajectories", "--jobs=1")
RUN: dict[str, Any] = {"values": {"n": [1, 2], "snr": [1.0, 2.0]}, "seeds": [0]}
WHOLE: dict[str, Any] = {"schema": 1, "study": "toy", "version": 1}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    call(*GRID, "--out=out", cwd=folder)
    return folder / "out"


@pytest.fixture
def swept(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "out"))


def of(run: Any = RUN, **changes: Any) -> str:
    return json.dumps({**WHOLE, "runs": [run], **changes})


def function(**parameter: Any) -> str:
    """A manifest of a function with this parameter."""
    named = {"name": "n", "kind": "int", **parameter}
    return of(function={"name": "a", "label": "a", "parameters": [PARAMETER, named]})


PARAMETER = {"name": "m", "kind": "int", "default": 1}


HOSTILE: dict[str, str | bytes] = {
    "empty": "",
    "no text": b"\xff\xfe\x00",
    "a list": "[]",
    "nesting bomb": "[" * 100_000,
    "deep object": '{"a":' * 100_000,
    "a run is empty": of({}),
    "values hold NaN": of({**RUN, "values": {"snr": [float("nan")]}}),
    "a huge number": of().replace('"version": 1', '"version": 1' + "0" * 5000),
    "a seed beyond reach": of({**RUN, "seeds": [2**70]}),
    "data holds numbers": of(data={"MNIST": 3}),
    "another schema": of(schema=99),
    "control characters": of({**RUN, "packages": {"\x1b]0;x\x07\u202e": 1}}),
    "a long default": function(default="x" * 5000),
    "a default of another kind": function(default="ten"),
    "a bound that is no number": function(about={"at_least": float("nan")}),
    "an infinite bound": function(about={"below": float("inf")}),
    "a kind that is none": function(kind="list"),
    "a parameter twice": function(name="m"),
    "a name of the model's": function(name="model_copy"),
    "a name that is none": function(name="a b"),
}
"""What is edited a little is in the tests with made-up manifests: `test_fuzz.py`."""


COMMANDS = (
    *("export out", "plot heatmap --from=out", "report out", "judge out", "runs out"),
    *("compact out", "merge out --out=all", "sweep toy --n=1:3 --out=out"),
    *("sweep toy --n=9 --out=out", "train toy --out=out"),
)


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_manifest_is_refused_in_a_sentence(what: str, tmp_path: Path) -> None:
    text = HOSTILE[what]
    (tmp_path / MANIFEST).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UserError, match=r"\A[ -~]{1,500} is damaged \([ -~]{1,500}\Z"):
        read_manifest(tmp_path)


def test_no_command_takes_a_damaged_manifest_for_none(swept: Path) -> None:
    (swept / MANIFEST).write_text("{")
    for command in COMMANDS:
        refused = call(*command.split(), cwd=swept.parent, expect=2).stderr
        assert re.fullmatch(rf".*{MANIFEST} is damaged \(.*\); restore it, or .*\.\n", refused)
    assert (swept / MANIFEST).read_text() == "{"
    listed = call("runs", ".", cwd=swept.parent)
    assert listed.stderr.count("is damaged") == 1
    assert "no run directory" in listed.stdout
    call(*GRID, "--out=good", cwd=swept.parent)
    listed = call("runs", ".", cwd=swept.parent)
    assert "out is left out: " in listed.stderr and "good" in listed.stdout, "it hides no other"
    (swept / MANIFEST).unlink()
    call("export", "out", cwd=swept.parent)


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(MOST_BYTES + 1)


@pytest.mark.unix
@pytest.mark.parametrize(
    "make", [Path.mkdir, os.mkfifo, huge, lambda path: path.symlink_to("/dev/zero")]
)
def test_something_else_in_its_place_is_refused(
    make: Callable[[Path], None], tmp_path: Path
) -> None:
    make(tmp_path / MANIFEST)
    with pytest.raises(UserError, match="is damaged"):
        read_manifest(tmp_path)


def test_a_run_of_before_covers_a_product_and_is_whole_beside_one_that_the_study_refuses() -> None:
    text = of(runs=[{**RUN, "values": {"n": [-1]}}, RUN])
    planned = Manifest.model_validate_json(text, strict=True).planned(TOY)
    assert planned["n"].tolist() == [1, 1, 2, 2]
    assert planned["n"].dtype.kind == "i"


def test_a_sweep_adds_to_the_history_if_it_trains(swept: Path) -> None:
    content = json.loads((swept / MANIFEST).read_text())
    [earlier] = content["runs"]
    earlier |= {"started": "2020-01-01T00:00:00+00:00", "git_commit": "a" * 40, "resumed": 3}
    (swept / MANIFEST).write_text(json.dumps(content))
    for how in ((), ("--dry-run",), ("--fresh",)):
        call(*GRID, *how, "--out=out", cwd=swept.parent)
    first, second = json.loads((swept / MANIFEST).read_text())["runs"]
    assert first == earlier, "what was there stays, what this version doesn't know too"
    assert second["started"] > "2026"
    assert second["values"] == first["values"]
    assert second["command"][:3] == ["overfit", "sweep", "toy"]
    assert len(RunDirectory(swept).manifest.planned(TOY)) == 6, "each is planned once"
    (swept / MANIFEST).unlink()
    call(*GRID, "--out=out", cwd=swept.parent)
    assert not (swept / MANIFEST).exists()


def test_the_manifest_says_what_was_run_on_what(tmp_path: Path) -> None:
    given = {"n": "2:3", "snr": "0.5,1", "mood": "well,nan"}
    settings = {"jobs": 2, "refine": 3, "tolerance": 0.25}
    directory = RunDirectory(tmp_path)
    directory.record(Grid.read(TOY, given, (0, 5)), settings, data={"MNIST": "abc"})
    directory.record(Grid.read(TOY, {**given, "n": "4"}, (0,)), {})
    manifest = directory.manifest
    assert manifest == read_manifest(tmp_path)
    assert (manifest.study, manifest.version, manifest.data) == ("toy", 1, {"MNIST": "abc"})
    first = manifest.runs[0]
    assert first.values == {"n": (2, 3), "snr": (0.5, 1.0), "mood": ("well", "nan")}
    assert (first.seeds, first.settings, first.size) == ((0, 5), settings, 16)
    assert first.axes == ("n", "snr", "mood")
    written = json.loads((tmp_path / MANIFEST).read_text())["runs"][0]
    assert written["packages"]["joblib"] >= "1.6"
    assert {"platform", "python", "started", "git_commit", "cores", "processor"} <= written.keys()
    assert written["products"] == product_library()
    planned = manifest.planned(TOY)
    assert (len(planned), sorted(planned["n"].unique())) == (16 + 4, [2, 3, 4])


READS = {
    "plot heatmap --from=out": 1,
    # Once to find the directory, and once to draw it.
    "plot heatmap": 2,
    "judge out 'test_loss < 9'": 1,
    "report out --out=page": 1,
    "runs out": 1,
    "compare out out --value=test_loss --out=less.png": 2,
    "export out --means --out=means.csv": 1,
    f"{' '.join(GRID)} --out=out": 1,
    # Another sweep may have added a run: it is read again under the lock.
    "sweep toy --n=1:4 --snr=1:2:2 --seeds=1 --jobs=1 --out=out": 2,
    "compact out": 1,
}


@pytest.mark.parametrize(
    "command",
    [pytest.param(one, marks=[pytest.mark.slow] * ("page" in one)) for one in READS],
)
@pytest.mark.one_in(2)
def test_a_command_reads_the_manifest_once(
    command: str, swept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OVERFIT_RESULTS", str(swept.parent))
    with mock.patch.object(store, "read_manifest", wraps=read_manifest) as read:
        call(*shlex.split(command), cwd=swept.parent)
    assert read.call_count == READS[command]
