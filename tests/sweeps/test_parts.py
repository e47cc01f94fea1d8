"""Parts that are damaged, misplaced or not ours are left out by name, and their cells run again."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import overfit_cli
from overfit_cli import UserError
from overfit_cli.core.cell import CellResult
from overfit_cli.core.files import MANIFEST
from overfit_cli.core.registry import find_study
from overfit_cli.sweeps import part as part_module
from overfit_cli.sweeps import store
from overfit_cli.sweeps.grid import Grid
from overfit_cli.sweeps.part import CELLS, STEPS, cell_table, digest_of_bytes, read_part
from overfit_cli.sweeps.plan import make_plan
from overfit_cli.sweeps.store import RunDirectory
from tests.command import call
from tests.toy_runs import TOY, parts_in, put, rows, stored_keys, sweep_toy, toy_cells, write_cells

VIT = find_study("benign-vit")
GRID = ("--n=1:3", "--snr=1:2:2", "--seeds=1", "--trajectories", "--jobs=1")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sweep_toy(tmp_path_factory.mktemp("whole") / "out").path


@pytest.fixture
def swept(whole: Path, tmp_path: Path) -> RunDirectory:
    """Six cells in three parts, with trajectories."""
    return RunDirectory(Path(shutil.copytree(whole, tmp_path / "out")))


def sweep_again(path: Path) -> str:
    return call("sweep", "toy", *GRID, "--out", str(path), cwd=path.parent).stdout


def test_a_part_says_what_it_is_and_when_it_was_written(swept: RunDirectory) -> None:
    for kind in (CELLS, STEPS):
        parts = parts_in(swept.path / kind)
        assert len(parts) == 3
        for part in parts:
            assert part.stem[-16:] == hashlib.sha256(part.read_bytes()).hexdigest()[:16]
            read = read_part(part, kind)
            assert read.study == "toy"
            assert abs(part.stat().st_mtime_ns - read.stamp) < 1e9


# Files that are no parts

Change = Callable[[pa.Table], pa.Table]


def without(column: str) -> Change:
    return lambda table: table.drop_columns(column)


def filled(column: str, *values: object) -> Change:
    """The two rows with other values in a column, or with one more."""

    def change(table: pa.Table) -> pa.Table:
        index = table.schema.get_field_index(column)
        array = pa.array(values * (2 // len(values)))
        if index < 0:
            return table.append_column(column, array)
        return table.set_column(index, column, array)

    return change


def marked(**marks: bytes) -> Change:
    changes = {f"overfit.{name}".encode(): mark for name, mark in marks.items()}
    return lambda table: table.replace_schema_metadata({**table.schema.metadata, **changes})


MARS = pa.scalar(1, pa.timestamp("us", "Mars/Olympus"))
CONTENTS: dict[str, tuple[Change, str]] = {
    "no status": (without("status"), "it lacks the column 'status'"),
    "a word": (filled("test_loss", "low"), "its column 'test_loss' holds string"),
    "a number": (filled("key", 7), "its column 'key' holds int64"),
    "no key": (filled("key", "a", None), "its column 'key' has an empty place"),
    "a key twice": (filled("key", "a"), "a cell, or a logged step of one, stands in it twice"),
    "no number": (filled("snr", float("nan")), "its column 'snr' has a number that is not finite"),
    "no value": (filled("n", None, 1), "its column 'n' has an empty place"),
    "many rows": (lambda table: pa.concat_tables(2_000 * [table]), "it has more rows than"),
    "a time": (filled("when", MARS), "its column 'when' holds timestamp"),
    "another schema": (marked(schema=b"7"), "it has schema '7'; this overfit reads 2"),
    "bytes": (marked(schema=b"\xff\xfe"), "it isn't a whole parquet file"),
    "another study": (marked(study=b"other"), "it belongs to other, and the directory to toy"),
    "no mark": (lambda table: table.replace_schema_metadata(None), "it has schema ''; this"),
}


def put_in_place(change: Change, part: Path) -> None:
    """Write other content than a part's, and name it after that: what is wrong is what it says."""
    put(part.parent, change(pq.read_table(part)))
    part.unlink()


def flipped(content: bytes, bit: int) -> bytes:
    return content[: bit // 8] + bytes([content[bit // 8] ^ 1 << bit % 8]) + content[bit // 8 + 1 :]


DAMAGED = "its checksum doesn't match its name; cells in it count as missing"
FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "flipped": (lambda part: part.write_bytes(flipped(part.read_bytes(), 777)), DAMAGED),
    "torn": (lambda part: part.write_bytes(part.read_bytes()[:-9]), DAMAGED),
    "empty": (lambda part: part.write_bytes(b""), DAMAGED),
    "no parquet": (
        lambda part: part.with_name(f"a-{digest_of_bytes(b'mine')}.parquet").write_text("mine"),
        "it isn't a whole parquet file",
    ),
    "another program's": (
        lambda part: pd.DataFrame({"mine": [1]}).to_parquet(part.with_name("notes.parquet")),
        "it was renamed, or is no part",
    ),
    "renamed": (lambda part: part.rename(part.with_name("mine.parquet")), "it was renamed"),
    "a folder": (lambda part: part.with_name("folder.parquet").mkdir(), r"it can't be read \("),
    "a pipe": (lambda part: os.mkfifo(part.with_name("pipe.parquet")), r"it can't be read \("),
}
ODD = FILES | {what: (partial(put_in_place, how), why) for what, (how, why) in CONTENTS.items()}


@pytest.mark.unix
@pytest.mark.parametrize("what", ODD)
def test_a_file_that_is_no_whole_part_is_left_out_and_its_cells_run_again(
    swept: RunDirectory, what: str
) -> None:
    """Beside a good part of the same cells it takes nothing away."""
    (act, reason), kinds = ODD[what], (CELLS, STEPS) if what in FILES else (CELLS,)
    expected, steps = rows(swept.path), swept.load_trajectories()
    for kind in kinds:
        act(parts_in(swept.path / kind)[1])
    with pytest.warns(UserWarning, match=rf"\S+parquet is left out: {reason}"):
        lost = 6 - len(rows(swept.path))
    if what in CONTENTS:
        assert lost == 2
    else:
        with pytest.warns(UserWarning, match=f"is left out: {reason}"):
            assert 12 - len(RunDirectory(swept.path).load_trajectories()) == 2 * lost
    said = sweep_again(swept.path)
    assert len([line for line in said.splitlines() if "is left out: " in line]) == len(kinds)
    assert f"{6 - lost} there already; {lost} to run" in said
    again = RunDirectory(swept.path)
    with warnings.catch_warnings():
        # What isn't ours stays there, and what is damaged has another name.
        warnings.simplefilter("error" if reason is DAMAGED else "ignore")
        pd.testing.assert_frame_equal(rows(swept.path), expected)
        pd.testing.assert_frame_equal(again.load_trajectories(), steps)
    assert len(list((swept.path / CELLS).glob("*.damaged"))) == (reason is DAMAGED)


@pytest.mark.parametrize(("one", "other"), [(CELLS, STEPS), (STEPS, CELLS)])
def test_parts_in_the_folder_of_another_kind_are_left_out(
    swept: RunDirectory, one: str, other: str
) -> None:
    cells, steps = swept.load_cells(), swept.load_trajectories()
    for part in parts_in(swept.path / one):
        shutil.copy(part, swept.path / other)
    said = f"and 2 more files are left out: it isn't marked as {other}."
    assert said in sweep_again(swept.path)
    with pytest.warns(UserWarning, match=said):
        pd.testing.assert_frame_equal(swept.load_cells(), cells)
        pd.testing.assert_frame_equal(swept.load_trajectories(), steps)


def test_columns_and_versions_of_another_time_change_nothing_and_a_name_may_have_a_prefix(
    swept: RunDirectory,
) -> None:
    expected = rows(swept.path)
    part, other, _ = parts_in(swept.path / CELLS)
    noted = put(part.parent, filled("note", 1.5)(pq.read_table(part)))
    noted.rename(noted.with_name(f"machine-2-{noted.name}"))
    part.unlink()
    for version, change in ((9, filled("test_loss", 1)), (0, filled("n", "a word"))):
        put(part.parent, filled("version", version)(change(pq.read_table(other))))
    pd.testing.assert_frame_equal(rows(swept.path), expected)


def test_pages_carry_checksums_for_other_readers(swept: RunDirectory) -> None:
    """Where the footer isn't hit, a reader without the digest notices too."""
    part = parts_in(swept.path / CELLS)[0]
    column = pq.read_metadata(part).row_group(0).column(0)
    index = column.data_page_offset + column.total_compressed_size // 2
    part.write_bytes(flipped(part.read_bytes(), 8 * index + 2))
    with pytest.raises((OSError, pa.ArrowException)):
        pq.read_table(part, page_checksum_verification=True)


# Cells in two parts


def write(directory: RunDirectory, number: float, **how: Any) -> None:
    """Write all cells once more, with a number of its own, and a step that says it."""
    for cell in toy_cells():
        trajectory = {"step": [number], "train_loss": [number]}
        result = CellResult(cell, {"test_loss": number}, 1, trajectory=trajectory, **how)
        write_cells(directory, TOY, [result])


def shown(path: Path) -> tuple[set[float], set[float]]:
    """The numbers that are read, of cells and of their steps."""
    directory = RunDirectory(path)
    steps = directory.load_trajectories()
    assert len(directory.load_cells()) == steps["key"].nunique() == 6
    return set(directory.load_cells()["test_loss"]), set(steps["step"])


def test_the_newest_done_row_counts_with_its_steps_whatever_the_dates_of_files(
    tmp_path: Path,
) -> None:
    """A failed one replaces none that is done, nor its steps; joined parts have the same rows."""
    directory = RunDirectory(tmp_path)
    directory.prepare()
    for number in (1, 2, 3):
        write(directory, number)
    write(directory, 4, reason="diverged")
    for kind in (CELLS, STEPS):
        for part in parts_in(tmp_path / kind):
            os.utime(part, ns=(0, random.Random(part.name).randrange(10**18)))
    assert shown(tmp_path) == ({3}, {3})
    directory.compact()
    assert len(stored_keys(tmp_path)) == 6
    assert shown(tmp_path) == ({3}, {3})
    assert set(directory.contents()["status"]) == {"done"}
    write(directory, 5)
    assert shown(tmp_path) == ({5}, {5})


def test_a_part_of_another_study_hides_no_rows_and_without_a_manifest_is_refused_by_name(
    swept: RunDirectory,
) -> None:
    """It was copied there. Of a newer version than these, and the first by name."""
    grid = Grid.read(VIT, {"n": "2"}, (0,))
    results = [CellResult(cell, {"test_loss": 1.0}) for cell in grid.cells()]
    other = cell_table(VIT, results)
    put(swept.path / CELLS, other, schema="2", kind=CELLS, study="benign-vit")
    with pytest.warns(UserWarning, match="it belongs to benign-vit, and the directory to toy"):
        assert overfit_cli.load(swept.path)["study"].tolist() == ["toy"] * 6
    assert "6 there already; 0 to run" in sweep_again(swept.path)
    with pytest.raises(UserError, match="it holds cells of toy, not of benign-vit"):
        RunDirectory(swept.path).record(grid, {})  # as where two sweeps begin at once
    (swept.path / MANIFEST).unlink()
    for command in ("sweep toy --out", "plot heatmap --from", "report", "compact", "export"):
        refused = call(*command.split(), "out", cwd=swept.path.parent, expect=2)
        [sentence] = refused.stderr.splitlines()
        assert "cells of benign-vit and of toy, and no manifest;" in sentence


# Readers beside writers


def test_a_part_that_goes_while_it_is_read_is_looked_for_again(swept: RunDirectory) -> None:
    """Between the list and the reading every part is replaced by one of another name."""
    original, listings = swept.names, list[str]()

    def names(kind: str) -> set[str]:
        listings.append(kind)
        actual = original(kind)
        if listings.count(CELLS) == 2:
            RunDirectory(swept.path).compact()
        return actual

    with mock.patch.object(swept, "names", names):
        assert len(swept.load_cells()) == 6
    assert len(parts_in(swept.path / CELLS)) == 1


def test_a_plan_reads_what_it_needs_only_once(swept: RunDirectory) -> None:
    directory, grid = RunDirectory(swept.path), Grid.read(TOY, {"n": "1:3", "snr": "1:2:2"}, (0,))
    with mock.patch.object(part_module, "read_part", wraps=part_module.read_part) as parts:
        for _ in range(3):
            make_plan(grid, directory, "cpu")
    assert parts.call_count == 3


@pytest.mark.unix
def test_a_directory_of_very_many_parts_is_joined_when_it_is_opened_if_it_can_be(
    swept: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "MANY_PARTS", 2)
    expected = rows(swept.path)
    assert [len(parts_in(swept.path / kind)) for kind in (CELLS, STEPS)] == [1, 1]
    pd.testing.assert_frame_equal(rows(swept.path), expected)
    read_only = sweep_toy(swept.path / "read-only")
    (read_only.path / ".lock").unlink()
    (read_only.path / ".lock").mkdir()
    pd.testing.assert_frame_equal(rows(read_only.path), expected)
    assert len(parts_in(read_only.path / CELLS)) == 3
