"""The machine's work for every study: one thread, reasons, memory, members, minibatches."""

from __future__ import annotations

import itertools
import os
import warnings
from typing import ClassVar

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info

from overfit_cli import Column, Study
from overfit_cli.core.cell import ROW_COLUMNS, Batch, Cell, CellResult, Results, taken_columns
from overfit_cli.core.classification import minibatches
from overfit_cli.core.registry import why_no_study
from overfit_cli.core.training import (
    Execution,
    Training,
    failure,
    known_numbers,
    logged_steps,
    training_conditions,
)
from overfit_cli.sweeps.part import cell_schema
from overfit_cli.sweeps.worker import train_all
from tests.fake_study import FakeParameters, FakeStudy

CELL = Cell("fake", 1, FakeParameters(), 0)
OTHER = Cell("fake", 1, FakeParameters(n=3), 0)


def test_a_loss_says_why_a_training_failed() -> None:
    inf = np.inf
    losses = [(0.5, inf), (0.01, 0.01), (0.02, 0.01), (np.nan, 1), (inf, inf), (-inf, 1)]
    reasons = ["", "", "step limit", "diverged", "diverged", "diverged"]
    assert [failure(loss, at_most) for loss, at_most in losses] == reasons


def test_infinity_is_a_number_where_a_training_says_so() -> None:
    row = {"loss": 0.5, "bound": np.inf, "undefined": np.nan}
    assert known_numbers(row) == {"loss": 0.5}
    assert known_numbers(row, infinite=True) == {"loss": 0.5, "bound": np.inf}


def test_libraries_compute_on_one_thread_and_get_theirs_back() -> None:
    before = torch.get_num_threads(), os.environ.get("OMP_NUM_THREADS")
    pools = [pool["num_threads"] for pool in threadpool_info()]
    with training_conditions():
        assert torch.get_num_threads() == 1
        assert os.environ["OMP_NUM_THREADS"] == "1"
        assert {pool["num_threads"] for pool in threadpool_info()} == {1}
        warnings.warn("overflow encountered", RuntimeWarning, stacklevel=1)
    assert (torch.get_num_threads(), os.environ.get("OMP_NUM_THREADS")) == before
    assert [pool["num_threads"] for pool in threadpool_info()] == pools


class Full(FakeStudy):
    """A study of which three cells fit the memory, and one cell never."""

    sizes: ClassVar = list[int]()

    def train(self, batch: Batch[FakeParameters], training: Training) -> Results[FakeParameters]:
        self.sizes.append(len(batch))
        if len(batch) > 3 or any(cell.parameters.n == 8 for cell in batch):
            raise MemoryError("the device is full")
        for cell in batch:
            yield CellResult(cell, {"train_loss": 0.0, "test_loss": 1.0}, steps=1)


def test_a_batch_that_does_not_fit_is_split_in_halves_until_it_does() -> None:
    cells = [Cell("fake", 1, FakeParameters(n=n), 0) for n in range(1, 12)]
    full = Full()
    trained = train_all(full, cells, Execution())
    results = {one.cell.parameters.model_dump()["n"]: one for one in trained}
    assert full.sizes == [11, 6, 3, 3, 5, 3, 2, 1, 1, 1, 2]
    assert sorted(results) == list(range(1, 12))
    assert {n for n, result in results.items() if result.reason} == {8}
    assert results[8].reason.startswith("error: MemoryError: the device is full")


class Least(Study[FakeParameters]):
    """A study with its obligatory members alone."""

    name, version = "least", 1
    parameters = FakeParameters
    columns = (Column("loss", "a loss"), Column("error", "an error"))

    def train(self, batch, training):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
        for cell in batch:
            yield CellResult(cell, {"loss": cell.parameters.n, "error": 0.5}, steps=7)


def test_five_members_are_a_study_and_the_rest_has_defaults() -> None:
    assert Study.__abstractmethods__ == {"name", "version", "parameters", "columns"}
    least = Least()
    [trained] = train_all(least, [CELL], Execution())
    result = CellResult(CELL, trained.measurements, trained.steps, seconds=trained.seconds)
    assert (least.headline, least.title) == ("loss", "")
    assert (least.claims(), least.notes([CELL]), least.prepare([CELL])) == ((), (), {})
    assert least.summary(result) == "Trained after 7 steps: loss 10, error 0.5."
    failed = CellResult(CELL, {"loss": 2.0}, 3, "step limit")
    assert least.summary(failed) == "Failed (step limit) after 3 steps: loss 2."
    assert set(least.figures()) == {"heatmap", "cutoff", "boundary", "lines", "curves"}
    assert least.batches([CELL, OTHER], "cpu") == [[CELL], [OTHER]]
    assert (least.cost(CELL), least.probe(CELL), least.memory(CELL)) == (1.0, CELL, None)
    assert result.seconds > 0
    costly = type("Costly", (Least,), {"cost": lambda study, cell: cell.parameters.n})()
    assert costly.batches([OTHER, CELL], "cpu") == [[CELL], [OTHER]]


ILL_FORMED: list[tuple[dict[str, object], str]] = [
    ({"columns": ()}, "it has no columns, so nothing would be measured"),
    ({"columns": (Column("a", ""), Column("a", ""))}, "two of its columns are called 'a'"),
    ({"columns": (Column("seed", ""),)}, "its column 'seed' is one that every row has already"),
    ({"trajectory_columns": (Column("n", ""),)}, "its column 'n' is one that every row has"),
    ({"headline": "los"}, "its headline is 'los', which is none of its columns"),
    ({"parameters": int}, "must be a class that inherits from StudyParameters"),
    ({"name": "other"}, "its name is 'other'"),
]


def test_a_study_with_an_ill_formed_member_is_refused_when_it_is_loaded() -> None:
    for members, why in ILL_FORMED:
        assert why in why_no_study(type("IllFormed", (Least,), members)(), "least")
    assert why_no_study(Least(), "least") == ""
    assert "not an instance of a class that inherits from Study" in why_no_study(Least, "least")


def test_the_names_that_are_taken_are_those_that_every_row_has() -> None:
    names = set(cell_schema(Least()).names)
    assert names > ROW_COLUMNS
    assert names == taken_columns(FakeParameters) | {"loss", "error"}


@pytest.mark.parametrize("size", [4, 13])
def test_equal_minibatches_go_through_all_samples_once_an_epoch(size: int) -> None:
    drawn = list(itertools.islice(minibatches(10, size, seed=3), 5))
    assert {len(rows) for rows in drawn} == {size}
    rows = np.concatenate(drawn)[:20]
    for epoch in (rows[:10], rows[10:]):
        assert sorted(epoch) == list(range(10))
    others = list(itertools.islice(minibatches(10, 4, seed=3, equal=False), 6))
    assert [len(rows) for rows in others] == [4, 4, 2, 4, 4, 2]
    assert np.array_equal(np.concatenate(others), rows), "what is left is the last of an epoch"
    assert not np.array_equal(next(minibatches(10, 10, seed=2)), rows[:10])


def test_steps_are_logged_ever_fewer_up_to_the_last() -> None:
    assert logged_steps(3) == [0, 1, 2, 3]
    many = logged_steps(3000)
    assert many[:11] == list(range(11))
    assert many[-1] == 3000
    assert len(many) < 100
    assert many == sorted(set(many))
