"""Shards are parts of a sweep that machines run apart, and that are merged into one directory."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from math import inf, nan
from pathlib import Path

import pandas as pd
import pytest

import overfit_cli
from overfit_cli import UserError
from overfit_cli.core.cell import Cell, CellResult
from overfit_cli.sweeps.grid import Grid
from overfit_cli.sweeps.plan import Shard
from overfit_cli.sweeps.store import RunDirectory
from tests.command import call, run
from tests.toy_runs import TOY, parts_in, rows, toy_cells, write_cells

Cost = Callable[[Cell], float]
GRID = ("--n", "1:6", "--snr", "1:2:3", "--seeds", "2")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    run("sweep", "toy", *GRID, "--jobs=1", "--trajectories", "--out", "out", cwd=folder)
    return folder / "out"


def test_shards_in_directories_of_their_own_are_merged_to_the_same_rows(
    tmp_path: Path, whole: Path
) -> None:
    for number in (1, 2, 3):
        part = ("--shard", f"{number}/3", "--out", f"out-{number}")
        run("sweep", "toy", *GRID, "--jobs=1", "--trajectories", *part, cwd=tmp_path)
        assert len(rows(tmp_path / f"out-{number}")) == 12
    files = list[dict[str, bytes]]()
    for _ in range(2):  # merging twice changes nothing
        done = run("merge", "out-1", "out-2", "out-3", "--out", "all", cwd=tmp_path)
        assert done.stdout == "3 directories merged into all: 36 cells.\n"
        found = (path for path in (tmp_path / "all").rglob("*.*") if path.is_file())
        files.append({path.name: path.read_bytes() for path in found})
    assert files[0] == files[1]
    pd.testing.assert_frame_equal(rows(tmp_path / "all"), rows(whole))
    assert len(overfit_cli.load(tmp_path / "all", trajectories=True)) == 72
    again = run("sweep", "toy", *GRID, "--jobs=1", "--out", "all", cwd=tmp_path)
    assert "36 there already; 0 to run" in again.stdout


def test_shards_may_share_a_directory_whatever_others_have_finished(
    tmp_path: Path, whole: Path
) -> None:
    for number in (1, 2, 3):
        shard = f"--shard={number}/3"
        output = run("sweep", "toy", *GRID, "--jobs=1", "--out=out", shard, cwd=tmp_path).stdout
        assert f"toy: 12 cells of 36, shard {number}/3" in output and "12 trained" in output
    pd.testing.assert_frame_equal(rows(tmp_path / "out"), rows(whole))


def test_runs_are_merged_whatever_their_parameters_are_called(tmp_path: Path) -> None:
    (tmp_path / "f.py").write_text("def train(path: int): return {'loss': path}\n")
    for name, values in (("a", "1,2"), ("b", "2,3")):
        call("sweep", "f.py", "--path", values, "--jobs=1", "--out", name, cwd=tmp_path)
    assert "3 cells" in call("merge", "a", "b", "--out", "all", cwd=tmp_path).stdout


def cubed(cell: Cell) -> float:
    """A cost: the third power of the toy's parameter n."""
    return float(cell.parameters.model_dump()["n"] ** 3)


def unknown(cell: Cell) -> float:
    return 1.0


def of_a_further_seed(cell: Cell) -> float:
    return float(cell.seed == 3)


CELLS = toy_cells("1:20", "1:2:4", range(4))
OF_ANOTHER_SPLIT = Shard(1, 2).cells_of(CELLS, cubed)


def left_by_another_split(cell: Cell) -> float:
    return float(cell not in OF_ANOTHER_SPLIT)


def parts_of(of: int, known: Cost, cells: list[Cell] = CELLS) -> list[list[Cell]]:
    """All parts, which are dealt by the cost that is known."""
    return [Shard(number, of).cells_of(cells, known) for number in range(1, of + 1)]


@pytest.mark.parametrize(("of", "count"), [(1, 320), (2, 320), (3, 320), (7, 320), (40, 33)])
def test_parts_are_disjoint_and_together_all_cells(of: int, count: int) -> None:
    cells = CELLS[:count]
    parts = parts_of(of, cubed, cells)
    assert sorted(cell.key for part in parts for cell in part) == sorted(one.key for one in cells)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize(
    ("of", "known", "cost", "most"),
    [
        (8, cubed, cubed, 1.01),
        *((of, unknown, cubed, 1.15) for of in (2, 3, 5, 6, 7)),
        (4, unknown, of_a_further_seed, 1.0),
        (4, cubed, left_by_another_split, 1.3),
    ],
)
def test_parts_cost_alike_also_what_is_missing_and_what_nobody_knows(
    of: int, known: Cost, cost: Cost, most: float
) -> None:
    costs = [sum(map(cost, part)) for part in parts_of(of, known)]
    assert max(costs) <= most * sum(costs) / of


@pytest.mark.parametrize(
    "text", ["", "3", "0/3", "4/3", "1/0", "a/b", "-1/3", "1/3/5", "1 / 3", "１/３", "1/1000000000"]
)
def test_what_is_no_shard_is_one_sentence(text: str) -> None:
    with pytest.raises(UserError, match=r"shard=.*: it takes I/N, such as 2/8: the second"):
        Shard.read(text)


def test_shards_beyond_the_cells_are_empty_and_merged_with_the_others(tmp_path: Path) -> None:
    few = ("sweep", "toy", "--n", "1:2", "--snr", "1", "--seeds", "1", "--jobs=1")
    empty = "toy: 0 cells of 2, shard {0}/4 (n 2 × seeds 1), {0}.\nThis shard has no cell: "
    said = {
        number: run(*few, f"--shard={number}/4", f"--out={number}", cwd=tmp_path).stdout
        for number in "1234"
    }
    nothing = [number for number in said if said[number].startswith(empty.format(number))]
    assert len(nothing) == 2
    assert sum("1 trained" in output for output in said.values()) == 2
    done = run("merge", *said, "--out", "all", cwd=tmp_path)
    assert done.stdout.startswith("4 directories merged into all: 2 cells.\n")
    refused = run("merge", *nothing, "--out", "none", cwd=tmp_path, expect=2)
    assert refused.stderr.endswith(": it holds no cells, and neither do the others.\n")
    assert not (tmp_path / "none").exists()


SAME = [(1.0, 1.0 + 1e-6), (1e-9, 1e-9 + 1e-12), (nan, nan), (inf, inf)]
OTHERS = [(1.0, 1.0 + 1e-4), (nan, 1.0), (inf, -inf), (inf, 1.0)]
"""Two numbers of one cell that are taken to be the same, or not."""


ELSEWHERE = "with other numbers in another directory: "
OF_ONE = (
    f"{toy_cells('5', '1')[0].key} has draw 1.0 in one and 1.0001 in two. Nothing was merged.\n"
)


@pytest.mark.parametrize(
    ("draws", "said"),
    [
        (SAME, "merged into all: 4 cells."),
        (OTHERS, f"overfit: 4 cells {ELSEWHERE}"),
        ([*SAME, OTHERS[0]], f"overfit: 1 cell {ELSEWHERE}{OF_ONE}"),
    ],
)
def test_cells_with_other_numbers_are_named_and_nothing_is_merged(
    tmp_path: Path, draws: list[tuple[float, float]], said: str
) -> None:
    for at, name in enumerate(("one", "two")):
        (tmp_path / name / "cells").mkdir(parents=True)
        RunDirectory(tmp_path / name).record(Grid.read(TOY, {"n": f"1:{len(draws)}"}, (0,)), {})
        for cell, pair in zip(toy_cells(f"1:{len(draws)}", "1"), draws, strict=True):
            result = CellResult(cell, {"test_loss": 1.0, "draw": pair[at]})
            write_cells(RunDirectory(tmp_path / name), TOY, [result])
    expect = 0 if draws is SAME else 2
    done = run("merge", "one", "two", "--out", "all", cwd=tmp_path, expect=expect)
    assert said in done.stdout + done.stderr
    assert (tmp_path / "all").exists() == (draws is SAME)


def test_a_damaged_file_of_a_source_is_refused(tmp_path: Path, whole: Path) -> None:
    shutil.copytree(whole, tmp_path / "two")
    for kind in ("cells", "trajectories"):
        torn = parts_in(tmp_path / "two" / kind)[0]
        content = torn.read_bytes()
        torn.write_bytes(content[:-100])
        refused = run("merge", str(whole), "two", "--out", "all", cwd=tmp_path, expect=2)
        assert f"DIR two: {kind}/{torn.name} is left out: its checksum" in refused.stderr
        assert refused.stderr.endswith("Nothing was merged.\n")
        torn.write_bytes(content)
    assert not (tmp_path / "all").exists()
    pd.DataFrame({"mine": [1]}).to_parquet(tmp_path / "two" / "cells" / "notes.parquet")
    run("merge", str(whole), "two", "--out", "all", cwd=tmp_path)
    assert len(rows(tmp_path / "all")) == 36
    assert not (tmp_path / "all" / "cells" / "notes.parquet").exists(), "another program's"


def test_directories_that_are_not_alike_are_refused(tmp_path: Path, whole: Path) -> None:
    manifest = json.loads((whole / "manifest.json").read_text())
    first, second = (tmp_path / name / "manifest.json" for name in ("one", "two"))
    for file in (first, second):
        file.parent.mkdir()
    [last] = manifest["runs"]
    for what, one, two in (
        ("study", {}, {"study": "benign-vit"}),
        ("study's version", {}, {"version": 2}),
        ("code", {}, {"runs": [last | {"source": "abc"}]}),
        ("data images", {"data": {"images": "12"}}, {"data": {"images": "34"}}),
    ):
        first.write_text(json.dumps(manifest | one))
        second.write_text(json.dumps(manifest | two))
        refused = run("merge", "one", "two", "--out", "all", cwd=tmp_path, expect=2)
        assert f"DIR two: its {what} is another than that of one." in refused.stderr
    assert not (tmp_path / "all").exists()
