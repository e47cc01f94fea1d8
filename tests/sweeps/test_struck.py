"""A merge or a compaction that is struck at any file operation is finished by the same command."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import overfit_cli
from overfit_cli import UserError
from overfit_cli.sweeps.manifest import read_manifest
from overfit_cli.sweeps.store import RunDirectory, merge_directories
from tests.command import call
from tests.file_operations import Strike, strikes
from tests.toy_runs import parts_in, rows, stored_keys, sweep_toy

pytestmark = pytest.mark.unix


def merge(folder: Path) -> None:
    sources = [RunDirectory(folder / name, "directories") for name in ("one", "two")]
    merge_directories(sources, RunDirectory(folder / "all", "out"))


def steps(path: Path) -> pd.DataFrame:
    return RunDirectory(path).load_trajectories()


def said_of(path: Path) -> str:
    """What a reader is told of a directory."""
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        try:
            overfit_cli.load(path)
        except UserError as error:
            return str(error)
    return " ".join(str(note.message) for note in notes)


@pytest.mark.parametrize(
    ("how", "stride"),
    [
        ("kill", 9),
        pytest.param("error", 23, marks=pytest.mark.slow),
        pytest.param("kill", 1, marks=pytest.mark.slow),
        pytest.param("error", 3, marks=pytest.mark.slow),
    ],
)
def test_the_same_merge_goes_on_wherever_it_was_struck(
    tmp_path: Path, how: Strike, stride: int
) -> None:
    """The sources share the cells of one n, and one directory is there already."""
    for name, n in (("one", "1:3"), ("two", "3:5"), ("before", "5:6")):
        sweep_toy(tmp_path / name, n)
    whole = RunDirectory(shutil.copytree(tmp_path / "before", tmp_path / "all"))
    merge(tmp_path)
    expected, logged = rows(whole.path), steps(whole.path)
    struck = incomplete = 0

    def restore() -> None:
        shutil.rmtree(whole.path)
        shutil.copytree(tmp_path / "before", whole.path)

    restore()
    for _ in strikes(how, tmp_path, lambda: merge(tmp_path), stride):
        struck += 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kept = rows(whole.path)
        if begun := len(read_manifest(whole.path).runs) > 1:
            complete = len(kept) == len(expected)
            assert complete or "two into it was cut short, so cells may" in said_of(whole.path)
            incomplete += not complete
        assert begun or len(kept) == 4, "cells without the run that they are of"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            merge(tmp_path)
        assert said_of(whole.path) == ""
        pd.testing.assert_frame_equal(rows(whole.path), expected)
        pd.testing.assert_frame_equal(steps(whole.path), logged)
        restore()
    assert struck > 5
    assert incomplete > 1


@pytest.mark.parametrize("stride", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_a_compaction_that_is_killed_anywhere_loses_and_doubles_nothing(
    tmp_path: Path, stride: int
) -> None:
    out = sweep_toy(tmp_path / "out", "1:4").path
    expected, logged = rows(out), steps(out)
    shutil.copytree(out, tmp_path / "before")
    struck = 0
    for _ in strikes("kill", out, lambda: RunDirectory(out).compact(), stride):
        struck += 1
        pd.testing.assert_frame_equal(rows(out), expected)
        RunDirectory(out).prepare()
        RunDirectory(out).compact()
        assert not list(out.glob("**/.part-*"))
        assert len(stored_keys(out)) == len(expected)
        pd.testing.assert_frame_equal(rows(out), expected)
        pd.testing.assert_frame_equal(steps(out), logged)
        shutil.rmtree(out)
        shutil.copytree(tmp_path / "before", out)
    assert struck > 2


def partly_merged(folder: Path, act: Callable[[], object]) -> None:
    """Kill a merge of `one` and `two` where `all` has two of its parts."""
    for name, n in (("one", "1:3"), ("two", "4:5")):
        sweep_toy(folder / name, n)
    for _ in strikes("kill", folder, act):
        if len(parts_in(folder / "all" / "cells")) == 2:
            break
        shutil.rmtree(folder / "all", ignore_errors=True)


def test_commands_say_that_a_merge_was_cut_short_until_it_is_repeated(tmp_path: Path) -> None:
    command = ("merge", "one", "two", "--out", "all")
    partly_merged(tmp_path, lambda: call(*command, cwd=tmp_path))
    export = ("export", "all", "--out", "all.csv")
    said = call(*export, cwd=tmp_path).stderr
    assert f"all: a merge of {tmp_path / 'one'} and {tmp_path / 'two'} into it " in said
    assert "was cut short, so cells may be missing; the same merge goes on." in said
    grid = ("--n=1:2", "--snr=1:2:2", "--seeds=1", "--jobs=1")
    call("sweep", "toy", *grid, "--out=all", cwd=tmp_path)
    assert "cut short" in call(*export, cwd=tmp_path).stderr, "a sweep is no merge"
    done = call(*command, cwd=tmp_path)
    assert done.stdout.startswith("2 directories merged into all: 10 cells.\n")
    assert call(*export, cwd=tmp_path).stderr == ""
