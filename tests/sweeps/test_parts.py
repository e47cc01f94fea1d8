"""Parts that are damaged, misplaced or not ours are left out by name; nothing is deleted."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import threading
import warnings
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import overfit_cli
from overfit_cli import UserError
from overfit_cli.core.cell import CellResult
from overfit_cli.core.files import MANIFEST
from overfit_cli.core.registry import find_study
from overfit_cli.sweeps.grid import make_grid
from overfit_cli.sweeps.maintain import compact_directory
from overfit_cli.sweeps.manifest import record_run
from overfit_cli.sweeps.part_file import (
    CELLS,
    KIND_MARK,
    TRAJECTORIES,
    VERSION_MARK,
    Refusal,
    read_part,
    write_part,
)
from overfit_cli.sweeps.plan import make_plan
from overfit_cli.sweeps.store import RunDirectory
from tests.command import call
from tests.toy_runs import TOY, parts_in, rows, stored_keys, sweep_toy, toy_cells


@pytest.fixture
def swept(tmp_path: Path) -> RunDirectory:
    """Six cells in three parts, with trajectories."""
    return sweep_toy(tmp_path / "out")


def test_a_part_bears_its_kind_and_the_digest_of_its_content(swept: RunDirectory) -> None:
    for kind in (CELLS, TRAJECTORIES):
        parts = parts_in(swept.path / kind.name)
        assert len(parts) == 3
        for part in parts:
            assert part.stem[-16:] == hashlib.sha256(part.read_bytes()).hexdigest()[:16]
            assert pq.read_schema(part).metadata[KIND_MARK] == kind.name.encode()


# Misplaced parts

GRID = ("--n=1:3", "--snr=1:2:2", "--seeds=1", "--trajectories", "--jobs=1")


def steps_of(directory: Path) -> pd.DataFrame:
    logged = RunDirectory(directory).load_trajectories()
    return logged.sort_values(["key", "step"], ignore_index=True)


@pytest.mark.parametrize(("one", "other"), [("cells", "trajectories"), ("trajectories", "cells")])
def test_parts_in_the_folder_of_another_kind_are_left_out(
    swept: RunDirectory, one: str, other: str
) -> None:
    read = rows if other == "cells" else steps_of
    before = read(swept.path)
    for part in parts_in(swept.path / one):
        shutil.copy(part, swept.path / other)
    again = call("sweep", "toy", *GRID, "--out", str(swept.path), cwd=swept.path)
    assert again.stdout.count(f"is left out: it holds {one}, not {other}.") == 3
    with pytest.warns(UserWarning, match=f"it holds {one}, not {other}"):
        pd.testing.assert_frame_equal(read(swept.path), before)


Change = Callable[[pa.Table], pa.Table]


def without(column: str) -> Change:
    return lambda table: table.drop_columns(column)


def filled(column: str, value: object) -> Change:
    return lambda table: table.set_column(
        table.column_names.index(column), column, pa.array([value] * table.num_rows)
    )


def marked(version: bytes) -> Change:
    return lambda table: table.replace_schema_metadata(
        {**table.schema.metadata, VERSION_MARK: version}
    )


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (without("n"), "it lacks the column 'n'"),
        (without("status"), "it lacks the column 'status'"),
        (filled("test_loss", "low"), "its column 'test_loss' holds string, not double"),
        (filled("key", 7), "its column 'key' holds int64, not string"),
        (marked(b"7"), "it has schema '7'; this overfit reads 2"),
        (lambda table: table.replace_schema_metadata(None), "it isn't a part file of overfit"),
        (marked(b"\xff\xfe"), "it has schema "),
        (filled("study", "other"), "it has rows of other, and is marked as a part of toy"),
    ],
)
def test_a_part_with_other_columns_types_or_marks_is_left_out_by_name(
    swept: RunDirectory, change: Change, reason: str
) -> None:
    """Whole files, named after their content: what is wrong with them is what they say."""
    expected = rows(swept.path)
    part = parts_in(swept.path / "cells")[1]
    table = change(pq.read_table(part))
    pq.write_table(table, part)
    digest = hashlib.sha256(part.read_bytes()).hexdigest()[:16]
    part = part.rename(part.with_name(f"0123456789abcdef0123-{digest}.parquet"))
    with pytest.warns(UserWarning, match=f"{part.name} is left out: {reason}"):
        left = rows(swept.path)
    assert len(left) == 4
    pd.testing.assert_frame_equal(
        left, expected[expected["key"].isin(left["key"])].reset_index(drop=True)
    )


def test_a_column_that_the_study_has_dropped_is_left_out(swept: RunDirectory) -> None:
    expected = rows(swept.path)
    part = parts_in(swept.path / "cells")[1]
    table = pq.read_table(part)
    write_part(part.parent, table.append_column("note", pa.array(["mine"] * table.num_rows)))
    part.unlink()
    pd.testing.assert_frame_equal(rows(swept.path), expected)


@pytest.mark.parametrize("change", [without("n"), filled("test_loss", "low")])
def test_an_unfit_part_takes_no_good_one_away(swept: RunDirectory, change: Change) -> None:
    """It holds the same cells, is newer, and is whole: only its columns speak against it."""
    expected = rows(swept.path)
    part = parts_in(swept.path / "cells")[1]
    write_part(part.parent, change(pq.read_table(part)))
    again = call("sweep", "toy", *GRID, "--out", str(swept.path), cwd=swept.path)
    assert "6 there already; 0 to run" in again.stdout
    assert again.stdout.count("is left out: it") == 1
    with pytest.warns(UserWarning, match="is left out: it"):
        pd.testing.assert_frame_equal(rows(swept.path), expected)
    part.unlink()
    mended = call("sweep", "toy", *GRID, "--out", str(swept.path), cwd=swept.path)
    assert "4 there already; 2 to run" in mended.stdout


def test_a_part_of_a_version_to_come_hides_nothing(swept: RunDirectory) -> None:
    expected = rows(swept.path)
    later = filled("version", 9)
    write_part(swept.path / "cells", later(pq.read_table(parts_in(swept.path / "cells")[0])))
    pd.testing.assert_frame_equal(rows(swept.path), expected)
    assert RunDirectory(swept.path).newest_version() == 1


def test_a_renamed_part_is_left_out_and_stays_where_it_is(swept: RunDirectory) -> None:
    part = parts_in(swept.path / "cells")[0]
    renamed = part.rename(part.with_name("mine.parquet"))
    with pytest.warns(UserWarning, match="it was renamed"):
        assert len(rows(swept.path)) == 4
        sweep_toy(swept.path)
    assert renamed.exists()
    prefixed = renamed.rename(part.with_name(f"machine-2-{part.name}"))
    assert isinstance(read_part(prefixed, CELLS), pa.Table)


# Bit rot


def test_pages_carry_checksums_for_other_readers(swept: RunDirectory) -> None:
    """Where the footer isn't hit, a reader without the digest notices too."""
    part = parts_in(swept.path / "cells")[0]
    content = part.read_bytes()
    column = pq.read_metadata(part).row_group(0).column(0)
    index = column.dictionary_page_offset + column.total_compressed_size // 2
    part.write_bytes(content[:index] + bytes([content[index] ^ 4]) + content[index + 1 :])
    with pytest.raises((OSError, pa.ArrowException)):
        pq.read_table(part, page_checksum_verification=True)


def test_a_damaged_part_is_set_aside_and_its_cells_run_again(swept: RunDirectory) -> None:
    expected, steps = rows(swept.path), steps_of(swept.path)
    for folder in ("cells", "trajectories"):
        part = parts_in(swept.path / folder)[1]
        content = bytearray(part.read_bytes())
        content[len(content) // 2] ^= 1
        part.write_bytes(content)
    with pytest.warns(UserWarning, match="its checksum doesn't match its name"):
        assert len(rows(swept.path)) == 4
    again = call("sweep", "toy", *GRID, "--out", str(swept.path), cwd=swept.path)
    assert again.stdout.count("is damaged and is set aside in") == 2
    assert "its cells run again" in again.stdout
    for folder in ("cells", "trajectories"):
        assert len(parts_in(swept.path / "set-aside" / folder)) == 1
    pd.testing.assert_frame_equal(rows(swept.path), expected)
    pd.testing.assert_frame_equal(steps_of(swept.path), steps)


def test_a_damaged_trajectory_is_logged_again_and_stays(swept: RunDirectory) -> None:
    """Its new part has the very name of the damaged one, because it has the same content."""
    steps = steps_of(swept.path)
    part = parts_in(swept.path / "trajectories")[0]
    content = part.read_bytes()
    part.write_bytes(content[:-1])
    again = call("sweep", "toy", *GRID, "--out", str(swept.path), cwd=swept.path)
    assert "its cells run again where steps are logged" in again.stdout
    assert part.read_bytes() == content
    pd.testing.assert_frame_equal(steps_of(swept.path), steps)


# Nothing is deleted


def test_what_a_fresh_sweep_replaces_is_set_aside(swept: RunDirectory) -> None:
    old = {path.name: path.read_bytes() for path in parts_in(swept.path / "cells")}
    expected = rows(swept.path)
    sweep_toy(swept.path, n="2:3", fresh=True)
    aside = {path.name: path.read_bytes() for path in parts_in(swept.path / "set-aside" / "cells")}
    assert len(aside) == 2
    assert aside.items() <= old.items()
    pd.testing.assert_frame_equal(rows(swept.path), expected)
    stored = [key for part in parts_in(swept.path / "cells") for key in pq.read_table(part)["key"]]
    assert len(stored) == 6


def test_two_things_of_one_name_are_both_kept_aside(swept: RunDirectory) -> None:
    part = parts_in(swept.path / "cells")[0]
    for content in (b"torn", b"torn again"):
        part.write_bytes(content)
        RunDirectory(swept.path).prepare()
    aside = (swept.path / "set-aside" / "cells").iterdir()
    assert sorted(path.read_bytes() for path in aside) == [b"torn", b"torn again"]


def test_a_cell_that_is_done_is_not_replaced_by_a_failed_one(swept: RunDirectory) -> None:
    before = rows(swept.path)
    cells = toy_cells()
    swept.write(TOY, [CellResult(cell, reason="diverged") for cell in cells])
    pd.testing.assert_frame_equal(rows(swept.path), before)
    assert {cell.status for cell in RunDirectory(swept.path).contents().cells.values()} == {"done"}
    swept.finish([], replaced=True)
    pd.testing.assert_frame_equal(rows(swept.path), before)


def test_a_training_replaces_a_cell_that_had_failed(swept: RunDirectory) -> None:
    before, [cell, *_] = rows(swept.path), toy_cells("7")
    for result in (CellResult(cell, reason="diverged"), CellResult(cell, {"test_loss": 0.5}, 1)):
        swept.write(TOY, [result])
    assert set(rows(swept.path)["status"]) == {"done"}
    swept.finish([], replaced=True)
    assert set(rows(swept.path)["status"]) == {"done"}
    assert len(rows(swept.path)) == len(before) + 1
    assert stored_keys(swept.path).count(cell.key) == 1


# Studies


def of_the_real_study(folder: Path) -> RunDirectory:
    small = ("--set=d=30", "--set=d_h=20", "--set=d_v=6", "--set=tokens=4", "--set=test_samples=4")
    call("sweep", *small, "--n=2", "--snr=1:2:2", "--seeds=1", "--jobs=1", "--out=real", cwd=folder)
    return RunDirectory(folder / "real")


@pytest.fixture
def mixed(tmp_path: Path) -> RunDirectory:
    """A toy's directory with a manifest, into which a part of another study was copied."""
    real = of_the_real_study(tmp_path)
    call("sweep", "toy", *GRID, "--out=out", cwd=tmp_path)
    for part in parts_in(real.path / "cells"):
        # First by name: whoever looks at one part only looks at this one.
        shutil.copy(part, tmp_path / "out" / "cells" / f"0{part.name}")
    return RunDirectory(tmp_path / "out")


def test_a_part_of_another_study_hides_no_rows(mixed: RunDirectory) -> None:
    with pytest.warns(UserWarning, match="it belongs to benign-vit, and the directory to toy"):
        cells = overfit_cli.load(mixed.path)
    assert set(cells["study"]) == {"toy"}
    assert len(cells) == 6, "a newer version of the other study doesn't hide these"
    assert mixed.study_name() == "toy"
    assert mixed.newest_version() == 1
    again = call("sweep", "toy", *GRID, "--out=out", cwd=mixed.path.parent)
    assert "6 there already; 0 to run" in again.stdout
    assert "is left out: it belongs to benign-vit, and the directory to toy" in again.stdout
    refused = call("sweep", "--n=2", "--out=out", cwd=mixed.path.parent, expect=2)
    assert "it holds cells of toy, not of benign-vit" in refused.stderr


def test_studies_mixed_without_a_manifest_are_refused_by_name(mixed: RunDirectory) -> None:
    (mixed.path / MANIFEST).unlink()
    with pytest.raises(UserError, match="cells of benign-vit and of toy, and no manifest says"):
        overfit_cli.load(mixed.path)
    for command in ("sweep toy --out", "plot heatmap --from", "report", "compact"):
        refused = call(*command.split(), "out", cwd=mixed.path.parent, expect=2)
        [sentence] = refused.stderr.splitlines()
        assert "cells of benign-vit and of toy" in sentence


def test_a_run_of_another_study_is_not_recorded(swept: RunDirectory, tmp_path: Path) -> None:
    """As where two sweeps begin at once in a directory that is still empty."""
    record_run(swept.path, make_grid(TOY, {"n": "1"}, (0,)), {})
    other = make_grid(find_study("benign-vit"), {"n": "2"}, (0,))
    with pytest.raises(UserError, match="it holds cells of toy, not of benign-vit"):
        record_run(swept.path, other, {})


# Readers beside writers


@pytest.mark.slow
def test_a_reader_beside_fresh_sweeps_and_compaction_sees_every_row(swept: RunDirectory) -> None:
    """The writer replaces and joins all parts over and over; every load must have six cells."""
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            sweep_toy(swept.path, fresh=True)
            list(compact_directory(RunDirectory(swept.path)))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        lengths = [len(overfit_cli.load(swept.path)) for _ in range(60)]
        steps = [len(RunDirectory(swept.path).load_trajectories()) for _ in range(60)]
    finally:
        stop.set()
        writer.join()
    assert set(lengths) == {6}
    assert set(steps) == {12}


def test_a_part_that_goes_while_it_is_read_is_looked_for_again(
    swept: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the list and the reading every part is replaced by one of another name."""
    original, listings = swept.cells.names, 0

    def names() -> list[str]:
        nonlocal listings
        listings += 1
        actual = original()
        if listings == 1:
            sweep_toy(swept.path, fresh=True)
        return actual

    monkeypatch.setattr(swept.cells, "names", names)
    assert len(swept.load_cells()) == 6


def test_a_plan_reads_what_it_needs_only_once(
    swept: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = list[Path]()

    def counted(path: Path, *others: object) -> pa.Table | Refusal:
        read.append(path)
        return read_part(path, *others)  # type: ignore[arg-type]

    monkeypatch.setattr("overfit_cli.sweeps.part_folder.read_part", counted)
    directory = RunDirectory(swept.path)
    record_run(swept.path, make_grid(TOY, {"n": "1"}, (0,)), {})
    for _ in range(3):
        make_plan(make_grid(TOY, {"n": "1:3", "snr": "1:2:2"}, (0,)), directory, "cpu")
    assert len(read) == 3


@pytest.mark.unix
def test_what_is_in_the_way_is_no_part_or_is_named(swept: RunDirectory) -> None:
    os.mkfifo(swept.path / "cells" / "pipe.parquet")
    (swept.path / "cells" / "folder.parquet").mkdir()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(rows(swept.path)) == 6
    again = call("sweep", "toy", *GRID, "--out", str(swept.path), cwd=swept.path)
    assert "6 there already; 0 to run" in again.stdout
    (swept.path / "blocked" / ".lock").mkdir(parents=True)
    [sentence] = call("sweep", "toy", "--out=blocked", cwd=swept.path, expect=2).stderr.splitlines()
    assert "--out blocked" in sentence


def test_no_flipped_bit_passes_as_data(swept: RunDirectory) -> None:
    part = parts_in(swept.path / "cells")[0]
    content, chance = part.read_bytes(), random.Random(0)
    for _ in range(600):
        index = chance.randrange(8 * len(content))
        flipped = bytearray(content)
        flipped[index // 8] ^= 1 << index % 8
        part.write_bytes(flipped)
        refused = read_part(part, CELLS)
        assert isinstance(refused, Refusal)
        assert refused.damaged
    part.write_bytes(content)
    assert isinstance(read_part(part, CELLS), pa.Table)
