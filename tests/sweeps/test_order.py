"""Cells start coarse to fine: a small part of a sweep shows where its boundary lies."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from overfit_cli.core.cell import Cell
from overfit_cli.core.registry import find_study
from overfit_cli.sweeps.grid import make_grid
from overfit_cli.sweeps.order import coarse_to_fine
from overfit_cli.sweeps.plan import Plan, make_plan
from overfit_cli.sweeps.speed import cost_of
from overfit_cli.sweeps.store import RunDirectory
from tests.fake_study import fake_loss

FIGURE_1 = {"n": "2:20", "snr": "0.16:15.6:24"}
Batches = Sequence[Sequence[Cell]]


def plan_of(folder: Path, seeds: int, study: str = "benign-vit", **texts: str) -> Plan:
    grid = make_grid(find_study(study), texts, tuple(range(seeds)))
    return make_plan(grid, RunDirectory(folder), "cpu")


def place(cell: Cell) -> tuple[float, float]:
    settings = cell.parameters.model_dump()
    return settings["n"], settings["snr"]


def misjudged(plan: Plan, batches: Batches, share: float) -> float:
    """The share of places whose side no near place tells after this share of the work."""
    spent = np.cumsum([cost_of(plan.grid.study, batch) for batch in batches])
    first = {place(cell) for cell in chain(*batches[: int((spent <= share * spent[-1]).sum())])}
    axes = [sorted(map(float, plan.grid.axes[name])) for name in ("n", "snr")]
    loss = np.array([[fake_loss(n, snr) for snr in axes[1]] for n in axes[0]])
    known = np.array([(axes[0].index(n), axes[1].index(snr)) for n, snr in sorted(first)])
    spots = np.indices(loss.shape).reshape(2, -1).T
    nearest = known[((spots[:, None] - known) ** 2).sum(-1).argmin(-1)]
    told = loss[nearest[:, 0], nearest[:, 1]].reshape(loss.shape)
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


def test_one_seed_is_complete_before_the_next_begins(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, seeds=3, **FIGURE_1)
    seeds = [cell.seed for cell in chain(*coarse_to_fine(plan, jobs=2))]
    assert seeds == sorted(seeds)


@pytest.mark.parametrize("jobs", [1, 2, 8, 48])
@pytest.mark.parametrize(("study", "seeds"), [("benign-vit", 2), ("benign-vit", 1), ("toy", 2)])
def test_jobs_end_together_as_in_the_order_of_cost(
    tmp_path: Path, study: str, seeds: int, jobs: int
) -> None:
    """Each batch goes to the job that is free first; with the costs as they are stated."""
    plan = plan_of(tmp_path, seeds, study, **FIGURE_1)

    def ends(batches: Batches) -> float:
        free = [0.0] * jobs
        for batch in batches:
            heapq.heapreplace(free, free[0] + cost_of(plan.grid.study, batch))
        return max(free)

    assert ends(coarse_to_fine(plan, jobs)) <= 1.01 * ends(plan.batches)


def test_a_long_batch_starts_first(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, 1, "toy", n="1:40", snr="1:9:9")
    *others, last = plan.batches
    plan = replace(plan, batches=[*others, last * 4])
    assert coarse_to_fine(plan, jobs=8)[:2] == [last * 4, others[0]]
    assert coarse_to_fine(plan, jobs=1)[0] == others[0], "one job ends when all is done"


def test_batches_stay_as_the_study_makes_them(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, 2, "toy", n="1:9", snr="1:9:9")
    order = coarse_to_fine(plan, jobs=1)
    assert sorted(order, key=plan.batches.index) == plan.batches
    assert [batch[0].parameters.model_dump()["n"] for batch in order[:5]] == [1, 9, 5, 3, 7]


@pytest.mark.parametrize(
    "texts", [{"n": "1:9"}, {"n": "1:9", "initialisation": "pytorch,gaussian"}]
)
def test_without_two_axes_of_numbers_the_study_has_the_last_word(
    tmp_path: Path, texts: dict[str, str]
) -> None:
    plan = plan_of(tmp_path, 3, **texts)
    assert coarse_to_fine(plan, 1) == plan.batches


def test_cells_between_the_points_of_the_grid_stay_in_the_studys_order(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, 1, "toy", n="1:9", snr="1:9:9")
    between = make_grid(plan.grid.study, {"n": "1:9", "snr": "1.5"}, (0,)).cells()
    refined = replace(plan, batches=[between[5:], between[:5]])
    assert coarse_to_fine(refined, 1) == refined.batches
