"""The picture of a running sweep, and the order of cells that shows its boundary early."""

from __future__ import annotations

import heapq
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from scipy.interpolate import griddata

from overfit_cli.core.cell import Cell, CellResult
from overfit_cli.core.registry import find_study
from overfit_cli.sweeps.grid import Grid
from overfit_cli.sweeps.part import cell_table
from overfit_cli.sweeps.plan import Plan, coarse_to_fine, make_plan
from overfit_cli.sweeps.progress import Diagram, diagram_of
from overfit_cli.sweeps.store import RunDirectory
from tests.fake_study import fake_loss
from tests.toy_runs import TOY, toy_cells, write_cells

FIGURE_1 = {"n": "2:20", "snr": "0.16:15.6:24"}
Batches = Sequence[Sequence[Cell]]


def plan_of(folder: Path, seeds: int, study: str = "benign-vit", **texts: str) -> Plan:
    grid = Grid.read(find_study(study), texts, tuple(range(seeds)))
    return make_plan(grid, RunDirectory(folder), "cpu")


def place(cell: Cell) -> tuple[float, float]:
    settings = cell.parameters.model_dump()
    return settings["n"], settings["snr"]


def misjudged(plan: Plan, batches: Batches, share: float) -> float:
    """The share of places whose side no near place tells after this share of the work."""
    spent = np.cumsum(replace(plan, batches=[*map(list, batches)]).costs)
    first = {place(cell) for cell in chain(*batches[: int((spent <= share * spent[-1]).sum())])}
    ns, snrs = (sorted(map(float, plan.grid.axes[name])) for name in ("n", "snr"))
    loss = np.array([[fake_loss(n, snr) for snr in snrs] for n in ns])
    known = np.array([(ns.index(n), snrs.index(snr)) for n, snr in sorted(first)])
    spots = np.moveaxis(np.indices(loss.shape), 0, -1)
    told = griddata(known, loss[*known.T], spots, method="nearest")
    return float(((told > 0.2) != (loss > 0.2)).mean())


def test_a_twentieth_of_a_sweep_shows_the_boundary_of_figure_1(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, seeds=2, **FIGURE_1)
    early = coarse_to_fine(plan, jobs=2)
    assert misjudged(plan, early, 0.05) < 0.05
    assert misjudged(plan, early, 0.01) < 0.15
    assert misjudged(plan, plan.batches, 0.05) > 0.15, "the costliest first, they are of one side"


def test_corners_come_first_then_the_centre_and_the_middles_of_edges(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, seeds=2, n="16:20", snr="1:9:9", d="600,700,800")
    order = list(chain(*coarse_to_fine(plan, jobs=1)))
    assert len(order) == len(plan.cells)
    assert {place(cell) for cell in order[:12]} == {(16, 1), (16, 9), (20, 1), (20, 9)}
    assert {place(cell) for cell in order[12:15]} == {(18, 5)}
    assert {place(cell) for cell in order[15:27]} == {(16, 5), (18, 1), (18, 9), (20, 5)}
    plan = plan_of(tmp_path, seeds=3, **FIGURE_1)
    seeds = [cell.seed for cell in chain(*coarse_to_fine(plan, jobs=2))]
    assert seeds == sorted(seeds), "one seed is complete before the next begins"


@pytest.mark.parametrize(("study", "seeds"), [("benign-vit", 2), ("benign-vit", 1), ("toy", 2)])
def test_jobs_end_together_as_in_the_order_of_cost(tmp_path: Path, study: str, seeds: int) -> None:
    """Each batch goes to the job that is free first; with the costs as they are stated."""
    plan = plan_of(tmp_path, seeds, study, **FIGURE_1)

    def ends(batches: Batches, jobs: int) -> float:
        free = [0.0] * jobs
        for cost in replace(plan, batches=[*map(list, batches)]).costs:
            heapq.heapreplace(free, free[0] + cost)
        return max(free)

    for jobs in (1, 2, 8, 48):
        assert ends(coarse_to_fine(plan, jobs), jobs) <= 1.01 * ends(plan.batches, jobs)


def test_a_long_batch_starts_first_and_batches_stay_as_the_study_makes_them(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, 2, "toy", n="1:9", snr="1:9:9")
    order = coarse_to_fine(plan, jobs=1)
    assert sorted(order, key=plan.batches.index) == plan.batches
    assert [batch[0].parameters.model_dump()["n"] for batch in order[:5]] == [1, 9, 5, 3, 7]
    plan = plan_of(tmp_path, 1, "toy", n="1:40", snr="1:9:9")
    *others, last = plan.batches
    plan = replace(plan, batches=[*others, last * 4])
    assert coarse_to_fine(plan, jobs=8)[:2] == [last * 4, others[0]]
    assert coarse_to_fine(plan, jobs=1)[0] == others[0], "one job ends when all is done"
    for initialisation in ("pytorch", "pytorch,gaussian"):
        plan = plan_of(tmp_path, 3, n="1:9", initialisation=initialisation)
        assert coarse_to_fine(plan, 1) == plan.batches, "without two axes of numbers"


# The picture

DARK, LIGHT, RED = (68, 1, 84), (253, 231, 37), (200, 40, 40)
Points = list[list[tuple[int, int, int] | None]]


def toy_diagram(folder: Path, seeds: int = 1, /, **texts: str) -> tuple[Plan, Diagram]:
    """A sweep of the toy, and its diagram, into which nothing has arrived."""
    plan = plan_of(folder, seeds, "toy", **texts)
    diagram = diagram_of(plan, RunDirectory(folder))
    assert diagram is not None
    return plan, diagram


def add(diagram: Diagram, cell: Cell, number: float | None) -> None:
    """Have a cell arrive with its headline, or as a failed one."""
    result = CellResult(cell, {"test_loss": number or 0.0}, reason="failed" * (number is None))
    diagram.add(cell_table(TOY, [result]).to_pandas())


def printed(diagram: Diagram, width: int = 80) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=40)
    with console.capture() as captured:
        console.print(diagram)
    return captured.get().splitlines()


def points(diagram: Diagram, width: int = 80) -> Points:
    """The colour of each character's halves, from the top, without margin, title and key."""
    console = Console(file=io.StringIO(), width=width, height=40, color_system="truecolor")
    rows: Points = []
    for line in console.render_lines(diagram, pad=False)[1:-2]:
        halves = [(part.text, part.style) for part in line[1:] if part.style]
        for side in ("color", "bgcolor"):
            colours = [getattr(style, side) for text, style in halves for _ in text]
            rows.append([tuple(colour.triplet) if colour.triplet else None for colour in colours])
    return rows if any(rows[-1]) else rows[:-1]


def arrived(folder: Path, numbers: Mapping[tuple[float, float], float], **texts: str) -> Diagram:
    """A diagram into which these numbers have arrived, by (n, snr), and no others."""
    plan, diagram = toy_diagram(folder, **texts)
    for cell in plan.cells:
        if place(cell) in numbers:
            add(diagram, cell, numbers[place(cell)])
    return diagram


TITLE = "test_loss over snr (across) and n (up)"


@pytest.mark.parametrize(
    ("texts", "title"),
    [
        ("n=1:3 snr=1:2:2", TITLE),
        ("n=1:2 snr=1:2:3 pause=0:1:4", "test_loss over pause (across) and snr (up), mean over n"),
        ("n=1:2 snr=1:2:2 pause=0:1:2 mood=well,prints,raises", f"{TITLE}, mean over pause, mood"),
        ("n=1:3", None),
        ("n=1:3 mood=well,prints", None),
    ],
)
def test_of_many_axes_the_diagram_has_the_two_with_the_most_numbers(
    tmp_path: Path, texts: str, title: str | None
) -> None:
    given = dict(text.split("=") for text in texts.split())
    diagram = diagram_of(plan_of(tmp_path, 2, "toy", **given), RunDirectory(tmp_path))
    assert (diagram and printed(diagram)[0]) == title


def test_a_point_is_the_mean_over_other_axes_and_seeds_of_the_cells_that_have_a_number(
    tmp_path: Path,
) -> None:
    plan, diagram = toy_diagram(tmp_path, 2, n="5,3", snr="2,1,4", pause="0,1")
    for cell in plan.cells:
        settings = cell.parameters.model_dump()
        failed = settings["snr"] == 4 or (settings["n"], settings["snr"], cell.seed) == (5, 2, 1)
        above = {1: 1, 2: 5, 4: 0}[settings["snr"]]
        add(diagram, cell, None if failed else above + 2 * settings["pause"] + 4 * cell.seed)
    upper, lower = points(diagram)
    middle = upper[16]
    assert upper == [DARK] * 16 + [middle] * 16 + [RED] * 16  # 4, and 6 between 4 and 8
    assert lower == [DARK] * 16 + [LIGHT] * 16 + [RED] * 16
    assert middle is not None
    assert 142 < middle[1] < 209
    assert printed(diagram)[1:] == [
        f"5 {'▀' * 48}",
        f"  1{' ' * 46}4",
        f"4 {'▀' * 10} 8   ▀ 2 points failed   ",
    ]


def test_values_are_coloured_by_ratio_where_all_are_positive_and_failed_points_are_red(
    tmp_path: Path,
) -> None:
    decades = {(1.0, float(snr)): 10.0**snr for snr in range(1, 6)}
    [line] = points(arrived(tmp_path, decades, n="1,2", snr="1:5:5"))[1:]
    assert [line[0], line[-1]] == [DARK, LIGHT]
    assert len(set(line)) == 5, "decades have one distance"
    with_zero = arrived(tmp_path, {**decades, (1, 1): 0, (2, 1): math.inf}, n="1,2", snr="1:5:5")
    upper, lower = points(with_zero)
    assert lower[9] == pytest.approx(DARK, abs=3), "by difference 100 of 100000 is little"
    assert upper[0] == RED


def test_a_point_to_come_looks_like_the_nearest_but_pale_and_is_counted(tmp_path: Path) -> None:
    diagram = arrived(tmp_path, {}, n="1,2", snr="1:10:10")
    assert points(diagram)[0] == []
    assert printed(diagram)[-1] == "20 points to come, pale as the nearest"
    diagram = arrived(tmp_path, {(1, 1): 1, (1, 10): 10}, n="1,2", snr="1:10:10")
    upper, lower = points(diagram)
    pale = [tuple(64 + c // 2 for c in colour) for colour in (DARK, LIGHT)]
    assert [lower[0], lower[-1]] == [DARK, LIGHT]
    assert {upper[0], lower[8], upper[-1]} >= set(pale)
    assert "18 points to come" in printed(diagram)[-1]


@pytest.mark.parametrize(("width", "characters"), [(60, 2), (80, 3), (120, 4), (200, 4)])
def test_a_wide_terminal_has_wide_points(tmp_path: Path, width: int, characters: int) -> None:
    diagram = arrived(tmp_path, {(2, 1): 1.0}, n="2:20", snr="1:24:24")
    lines = printed(diagram, width)
    assert lines[1] == "20 " + "▀" * 24 * characters
    assert len(lines) == 1 + 10 + 2
    assert [line[:3].strip() for line in lines[1:11]].count("") == 5


def test_more_values_than_room_are_averaged(tmp_path: Path) -> None:
    plan, diagram = toy_diagram(tmp_path, n="1:60", snr="1:100:100")
    results = [
        CellResult(cell, {"test_loss": snr}, reason="failed" * (snr <= 50 and (n, snr) != (1, 1)))
        for cell, (n, snr) in zip(plan.cells, map(place, plan.cells), strict=True)
    ]
    diagram.add(cell_table(TOY, results).to_pandas())
    lines = printed(diagram)
    assert max(map(len, lines)) <= 80
    assert len(lines) == 24 + 3
    rows = points(diagram)
    assert rows[-1][0] == DARK, "a bin has a number where one of its points has one"
    assert rows[0][0] == RED
    assert rows[0][-1] == pytest.approx(LIGHT, abs=4)


def test_a_kept_cell_has_its_number_and_one_that_failed_has_none_whatever_it_measured(
    tmp_path: Path,
) -> None:
    directory = RunDirectory(tmp_path)
    directory.prepare()
    done, failed, more, _ = toy_cells(n="1:2", snr="1:2:2")
    for result in (
        CellResult(done, reason="it failed at first"),
        CellResult(done, {"test_loss": 0.25}),
        CellResult(done, reason="and in another sweep"),
        CellResult(failed, {"test_loss": 0.5}, reason="diverged"),
    ):
        write_cells(directory, TOY, [result])
    _, diagram = toy_diagram(tmp_path, n="1:2", snr="1:2:2")
    key = "0.25 ▀▀▀▀▀▀▀▀▀▀ 0.25   ▀ 1 point failed   2 points to come, pale as the nearest"
    assert printed(diagram, 100)[-1] == key
    without = cell_table(TOY, [CellResult(more, reason="failed")]).to_pandas()
    diagram.add(without.drop(columns="test_loss"))  # as of a function that raises in all cells
    assert "2 points failed   1 point to come" in printed(diagram, 100)[-1]
