"""`overfit compact` joins parts into few: every row stays, whoever writes or reads beside it."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import overfit_cli
from overfit_cli.core.cell import CellResult
from overfit_cli.sweeps import maintain as module
from overfit_cli.sweeps.maintain import compact_directory
from overfit_cli.sweeps.part_file import (
    CELLS,
    Refusal,
    digest_of_numbers,
    is_joined,
    key_of_cells,
    read_part,
    write_part,
)
from overfit_cli.sweeps.store import RunDirectory
from tests.command import call, start, wait_for
from tests.toy_runs import TOY, parts_in, stored_keys, sweep_toy, toy_cells

GRID = ("sweep", "toy", "--n=1:6", "--snr=1:2:2", "--seeds=1", "--trajectories", "--out=out")


def steps_of(directory: RunDirectory) -> pd.DataFrame:
    return directory.load_trajectories().sort_values(["key", "step"], ignore_index=True)


def test_every_row_stays_in_one_part_of_each_kind(tmp_path: Path) -> None:
    directory = sweep_toy(tmp_path / "out", n="1:6")
    cells, steps = directory.load_cells(), steps_of(directory)
    digests = key_of_cells(cells), digest_of_numbers(cells, steps)
    done = call("compact", "out", cwd=tmp_path)
    assert "out/cells: 6 parts of " in done.stdout
    assert "joined into 1 part of " in done.stdout
    assert "out/trajectories: 6 parts of " in done.stdout
    for kind, rows in (("cells", 12), ("trajectories", 24)):
        [part] = parts_in(tmp_path / "out" / kind)
        assert pq.read_metadata(part).num_rows == rows
    again = RunDirectory(tmp_path / "out")
    pd.testing.assert_frame_equal(again.load_cells(), cells)
    pd.testing.assert_frame_equal(steps_of(again), steps)
    assert digests == (key_of_cells(cells), digest_of_numbers(again.load_cells(), steps_of(again)))
    assert "12 there already; 0 to run" in call(*GRID, "--jobs=1", cwd=tmp_path).stdout
    twice = call("compact", "out", cwd=tmp_path)
    assert "out/cells: 1 part of " in twice.stdout
    assert "nothing to join" in twice.stdout


def test_real_numbers_of_a_joined_part_are_split_by_bytes_and_a_part_of_before_is_rewritten(
    tmp_path: Path,
) -> None:
    directory = sweep_toy(tmp_path / "out", n="1:6")
    [*parts] = parts_in(tmp_path / "out" / "cells")
    assert not any(map(is_joined, parts))
    table = pa.concat_tables([pq.read_table(part) for part in parts]).sort_by("key")
    cells = directory.load_cells()
    write_part(tmp_path / "out" / "cells", table)  # as parts were joined before
    for part in parts:
        part.unlink()
    call("compact", "out", cwd=tmp_path)
    [part] = parts_in(tmp_path / "out" / "cells")
    assert is_joined(part)
    columns = pq.read_metadata(part).row_group(0)
    for column in map(columns.column, range(columns.num_columns)):
        assert column.compression == "ZSTD"
        assert ("BYTE_STREAM_SPLIT" in column.encodings) == (column.physical_type == "DOUBLE")
    pd.testing.assert_frame_equal(RunDirectory(tmp_path / "out").load_cells(), cells)
    content = part.read_bytes()
    part.write_bytes(content[:-30] + bytes([content[-30] ^ 1]) + content[-29:])
    assert isinstance(read_part(part, CELLS), Refusal)


def test_a_joined_part_is_no_larger_than_a_reader_likes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = sweep_toy(tmp_path / "out", n="1:6")
    largest = max(part.stat().st_size for part in parts_in(tmp_path / "out" / "cells"))
    monkeypatch.setattr(module, "MOST_BYTES", 2 * largest)
    cells, _ = compact_directory(directory)
    assert (cells.parts_before, cells.parts_after) == (6, 3)
    assert len(overfit_cli.load(tmp_path / "out")) == 12


def test_what_readers_leave_out_stays_where_it_is(tmp_path: Path) -> None:
    sweep_toy(tmp_path / "out")
    damaged, renamed, _ = parts_in(tmp_path / "out" / "cells")
    damaged.write_bytes(damaged.read_bytes()[:-1])
    renamed = renamed.rename(renamed.with_name("mine.parquet"))
    done = call("compact", "out", cwd=tmp_path)
    assert done.stderr.count("is left as it is: ") == 2
    assert damaged.exists()
    assert renamed.exists()


def test_cells_that_stand_twice_stand_once_in_the_joined_part(tmp_path: Path) -> None:
    """As a fresh sweep leaves them that was killed on its way; a failed row doesn't win."""
    directory = sweep_toy(tmp_path / "out")
    before, steps = directory.load_cells(), steps_of(directory)
    other = sweep_toy(tmp_path / "other", n="2:3")
    for kind in ("cells", "trajectories"):
        for part in parts_in(other.path / kind):
            part.rename(tmp_path / "out" / kind / part.name)
    directory.write(TOY, [CellResult(cell, reason="diverged") for cell in toy_cells()[:3]])
    list(compact_directory(directory))
    [part] = parts_in(tmp_path / "out" / "cells")
    assert pq.read_metadata(part).num_rows == 6
    reopened = RunDirectory(directory.path)
    drop = ["seconds"]
    pd.testing.assert_frame_equal(
        reopened.load_cells().drop(columns=drop), before.drop(columns=drop)
    )
    pd.testing.assert_frame_equal(steps_of(reopened), steps)


def test_steps_without_a_number_stay_so(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path / "out")
    directory.prepare()
    for cell in toy_cells():
        trajectory = {"step": [0.0, 1.0, 2.0], "train_loss": [math.nan, math.inf, 0.5]}
        directory.write(TOY, [CellResult(cell, {}, 2, trajectory=trajectory)])
    before = steps_of(directory)
    assert [joined.parts_after for joined in compact_directory(directory)] == [1, 1]
    pd.testing.assert_frame_equal(steps_of(RunDirectory(directory.path)), before)
    assert before["train_loss"].isna().sum() == 6


def test_joining_makes_no_old_row_newer_than_a_fresh_one(tmp_path: Path) -> None:
    """As after a fresh sweep that was killed; the old parts have columns of their own."""
    directory = sweep_toy(tmp_path / "out")
    expected = directory.load_cells()
    for part in parts_in(tmp_path / "out" / "cells"):
        table = pq.read_table(part).drop_columns("draw")
        index = table.column_names.index("test_loss")
        old = write_part(part.parent, table.set_column(index, "test_loss", pa.array([-1.0, -1.0])))
        os.utime(old, (10**9, 10**9))
    list(compact_directory(RunDirectory(directory.path)))
    reopened = RunDirectory(directory.path)
    pd.testing.assert_frame_equal(reopened.load_cells(), expected)
    reopened.prepare()
    pd.testing.assert_frame_equal(reopened.load_cells(), expected)
    assert len(parts_in(tmp_path / "out" / "set-aside" / "cells")) == 3, "nothing is deleted"


@pytest.mark.slow
def test_a_sweep_beside_it_loses_and_doubles_nothing(tmp_path: Path) -> None:
    grid = ("sweep", "toy", "--n=1:40", "--seeds=1", "--trajectories", "--out=out")
    process = start(*grid, "--set=pause=0.03", "--jobs=2", cwd=tmp_path)
    wait_for(lambda: len(parts_in(tmp_path / "out" / "cells")) > 2)
    while process.poll() is None:
        call("compact", "out", cwd=tmp_path)
    output, errors = process.communicate()
    assert process.returncode == 0, output + errors
    assert errors == ""
    assert len(overfit_cli.load(tmp_path / "out")) == 40
    stored = stored_keys(tmp_path / "out")
    assert len(stored) == len(set(stored)) == 40
    assert len(overfit_cli.load(tmp_path / "out", trajectories=True)) == 80
