"""Parts are joined, and directories merged: every row stays, whoever writes, reads or strikes."""

from __future__ import annotations

import errno
import math
import os
import shutil
import warnings
from pathlib import Path
from unittest import mock

import pandas as pd
import pyarrow.parquet as pq
import pytest

import overfit_cli
from overfit_cli import UserError
from overfit_cli.core.cell import CellResult
from overfit_cli.figures.draw import digest_of_numbers
from overfit_cli.sweeps import part as part_module
from overfit_cli.sweeps import store
from overfit_cli.sweeps.manifest import read_manifest
from overfit_cli.sweeps.part import CELLS, STEPS
from overfit_cli.sweeps.store import RunDirectory, merge_directories
from tests.command import call, ended
from tests.file_operations import Strike, strikes
from tests.toy_runs import (
    TOY,
    begin,
    parts_in,
    put,
    stored_keys,
    sweep_toy,
    toy_cells,
    write_cells,
)

GRID = ("sweep", "toy", "--snr=1:2:2", "--seeds=1", "--trajectories", "--jobs=1", "--out=out")


def read(directory: RunDirectory) -> tuple[pd.DataFrame, pd.DataFrame]:
    reopened = RunDirectory(directory.path)
    return reopened.load_cells(), reopened.load_trajectories()


def check_same(directory: RunDirectory, before: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    for then, now in zip(before, read(directory), strict=True):
        pd.testing.assert_frame_equal(now, then)


def test_every_row_stays_in_one_part_of_each_kind(tmp_path: Path) -> None:
    directory = sweep_toy(tmp_path / "out")
    before, parts = read(directory), parts_in(directory.path / CELLS)
    assert "6 there already; 0 to run" in call(*GRID, "--n=1:3", cwd=tmp_path).stdout
    assert parts_in(directory.path / CELLS) == parts, "a sweep that trains nothing joins nothing"
    done = call("compact", "out", cwd=tmp_path)
    assert "out/cells: 3 parts joined into 1.\n" in done.stdout
    assert "out/trajectories: 3 parts joined into 1.\n" in done.stdout
    for kind, count in ((CELLS, 6), (STEPS, 12)):
        [part] = parts_in(tmp_path / "out" / kind)
        assert pq.read_metadata(part).num_rows == count
    check_same(directory, before)
    assert digest_of_numbers(*before) == digest_of_numbers(*read(directory))
    call(*GRID, "--n=1:6", cwd=tmp_path)
    assert [len(parts_in(directory.path / kind)) for kind in (CELLS, STEPS)] == [1, 1]
    assert len(read(directory)[0]) == 12
    assert "out/cells: 1 part joined into 1.\n" in call("compact", "out", cwd=tmp_path).stdout
    other = tmp_path / "out" / CELLS / "mine.parquet"
    other.touch()
    assert "mine.parquet is left out: " in call("compact", "out", cwd=tmp_path).stdout
    assert other.exists()


@pytest.mark.parametrize(("few", "compression"), [(1000, "SNAPPY"), (2, "ZSTD")])
def test_numbers_that_were_measured_are_split_by_bytes_and_others_have_dictionaries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int, compression: str
) -> None:
    monkeypatch.setattr(part_module, "FEW_ROWS", few)
    directory = sweep_toy(tmp_path / "out")
    before = read(directory)
    directory.compact()
    [part] = parts_in(tmp_path / "out" / CELLS)
    group = pq.read_metadata(part).row_group(0)
    columns = {group.column(at).path_in_schema: group.column(at) for at in range(group.num_columns)}
    assert {column.compression for column in columns.values()} == {compression}
    split = {name for name, column in columns.items() if "BYTE_STREAM_SPLIT" in column.encodings}
    assert split == {"seconds", "test_loss", "draw"}
    words = {name for name, column in columns.items() if column.has_dictionary_page}
    assert words > {"study", "n", "snr", "seed", "status"}
    check_same(directory, before)


def test_a_joined_part_is_no_larger_than_a_reader_likes(tmp_path: Path) -> None:
    directory = sweep_toy(tmp_path / "out", n="1:6")
    before = read(directory)
    with mock.patch.object(part_module, "JOINED_ROWS", 4):
        for _ in range(2):
            directory.compact()
            assert len(parts_in(directory.path / CELLS)) == 3
            check_same(directory, before)


def test_steps_without_a_number_stay_so(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path / "out")
    directory.prepare()
    for cell in toy_cells():
        trajectory = {"step": [0.0, 1.0, 2.0], "train_loss": [math.nan, math.inf, 0.5]}
        write_cells(directory, TOY, [CellResult(cell, {}, 2, trajectory=trajectory)])
    before = read(directory)
    directory.compact()
    assert len(parts_in(directory.path / STEPS)) == 1
    check_same(directory, before)
    assert before[1]["train_loss"].isna().sum() == 6


def test_joining_makes_no_old_row_newer_than_a_fresh_one(tmp_path: Path) -> None:
    """As after a fresh sweep that was killed; the old parts have columns of their own."""
    directory = sweep_toy(tmp_path / "out")
    before = read(directory)
    for part in parts_in(tmp_path / "out" / CELLS):
        table = pq.read_table(part).drop_columns(["draw", "test_loss"])
        put(part.parent, table, schema="2", kind=CELLS, study="toy")  # without a time
    directory.compact()
    check_same(directory, before)
    assert len(stored_keys(directory.path)) == 6


@pytest.mark.slow
def test_a_sweep_beside_it_loses_and_doubles_nothing(tmp_path: Path) -> None:
    grid = ("--n=1:40", "--seeds=1", "--set=pause=0.03", "--trajectories", "--jobs=2", "--out=out")
    process = begin(tmp_path, *grid)
    while process.poll() is None:
        call("compact", "out", cwd=tmp_path)
    ended(process)
    assert len(overfit_cli.load(tmp_path / "out")) == 40
    stored = stored_keys(tmp_path / "out")
    assert len(stored) == len(set(stored)) == 40
    assert len(overfit_cli.load(tmp_path / "out", trajectories=True)) == 80


# Struck at any file operation


def merge(folder: Path) -> None:
    sources = [RunDirectory(folder / name, "directories") for name in ("one", "two")]
    merge_directories(sources, RunDirectory(folder / "all", "out"))


def said_of(path: Path) -> str:
    """What a reader is told of a directory."""
    with warnings.catch_warnings(record=True, action="always") as notes:
        try:
            overfit_cli.load(path)
        except UserError as error:
            return str(error)
    return " ".join(str(note.message) for note in notes)


@pytest.mark.unix
@pytest.mark.slow
@pytest.mark.parametrize(("how", "stride"), [("kill", 1), ("error", 3)])
def test_the_same_merge_goes_on_wherever_it_was_struck(
    tmp_path: Path, how: Strike, stride: int
) -> None:
    """The sources share the cells of one n, and one directory is there already."""
    folder, whole = tmp_path / "runs", RunDirectory(tmp_path / "runs" / "all")
    for name, n in (("one", "1:3"), ("two", "3:5"), ("all", "5:6")):
        sweep_toy(folder / name, n)
    merge(shutil.copytree(folder, tmp_path / "merged"))
    before, incomplete = read(RunDirectory(tmp_path / "merged" / "all")), list[int]()
    for number in strikes(how, folder, lambda: merge(folder), stride):
        with warnings.catch_warnings(action="ignore"):
            kept = read(whole)[0]
        begun = len(read_manifest(whole.path).runs) > 1
        assert begun or len(kept) == 4, "cells without the run that they are of"
        if begun and len(kept) < len(before[0]):
            assert "two into it was cut short, so cells may" in said_of(whole.path)
            incomplete.append(number)
        with warnings.catch_warnings(action="ignore"):
            merge(folder)
        assert said_of(whole.path) == ""
        check_same(whole, before)
    assert len(incomplete) > 1


@pytest.mark.unix
@pytest.mark.parametrize("stride", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_a_compaction_that_is_killed_anywhere_loses_and_doubles_nothing(
    tmp_path: Path, stride: int
) -> None:
    directory = sweep_toy(tmp_path / "out", "1:4")
    out, before = directory.path, read(directory)
    for _ in strikes("kill", out, lambda: RunDirectory(out).compact(), stride):
        check_same(directory, before)
        RunDirectory(out).compact()
        assert not list(out.glob("**/.part-*"))
        assert len(stored_keys(out)) == len(before[0])
        check_same(directory, before)


def test_commands_say_that_a_merge_was_cut_short_until_it_is_repeated(tmp_path: Path) -> None:
    for name, n in (("one", "1:2"), ("two", "3")):
        sweep_toy(tmp_path / name, n)
    cut = mock.patch.object(
        store, "_copy", wraps=store._copy, side_effect=[mock.DEFAULT, KeyboardInterrupt]
    )
    merged, export = ("merge", "one", "two", "--out=all"), ("export", "all", "--out=all.csv")
    with cut:
        call(*merged, cwd=tmp_path, expect=130)
    said = call(*export, cwd=tmp_path).stderr
    assert f"all: a merge of {tmp_path / 'one'} and {tmp_path / 'two'} into it " in said
    assert "was cut short, so cells may be missing; the same merge goes on." in said
    call(*GRID[:-1], "--n=1", "--fresh", "--out=all", cwd=tmp_path)
    assert "cut short" in call(*export, cwd=tmp_path).stderr, "a sweep is no merge"
    done = call(*merged, cwd=tmp_path)
    assert done.stdout.startswith("2 directories merged into all: 6 cells.\n")
    assert call(*export, cwd=tmp_path).stderr == ""


@pytest.mark.unix
def test_a_file_system_without_locks_gives_a_sentence_and_keeps_every_row(tmp_path: Path) -> None:
    """A directory that was written where there were locks has a lock file."""
    directory = sweep_toy(tmp_path / "out")
    before = read(directory)
    for number, command in (
        (errno.ENOLCK, "compact out"),
        (errno.ENOSYS, "sweep toy --n=1:4 --jobs=1 --out=out"),
        (errno.EOPNOTSUPP, "merge out --out=all"),
    ):
        with mock.patch("fcntl.flock", side_effect=OSError(number, os.strerror(number))):
            done = call(*command.split(), cwd=tmp_path, expect={1, 2})
        assert done.stderr.count("\n") == 1
        assert "the file system has no file locks" in done.stderr
    check_same(directory, before)
