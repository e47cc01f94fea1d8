"""Selection of the cells that a claim is judged on, and what is said of those that are missing."""

from __future__ import annotations

import itertools
from math import inf, nan
from typing import Literal

import numpy as np
import pandas as pd
import pytest

from overfit_cli.claims import cells as of_claims
from overfit_cli.claims.sentences import read
from overfit_cli.claims.stated import Measure
from overfit_cli.core.arrays import varying
from overfit_cli.core.cells import Cells
from overfit_cli.core.claim import Claim, Measurement, Verdict
from overfit_cli.core.parameters import StudyParameters, parameter
from tests.toy_runs import TOY


class Parameters(StudyParameters):
    """A model of two numbers and a word."""

    n: int = 2
    d: int = 8
    kernel: str = "softmax"


def grid(n: tuple[int, ...] = (2, 3), d: tuple[int, ...] = (8,), seeds: int = 3) -> pd.DataFrame:
    """Cells that are done, with a loss that no two share."""
    rows = list(itertools.product(n, d, range(seeds)))
    frame = pd.DataFrame(rows, columns=["n", "d", "seed"])
    loss = np.random.default_rng(0).random(len(rows))
    return frame.assign(kernel="softmax", status="done", reason="", loss=loss)


TORN = grid().drop(index=5)
"""The cells without that of n = 3 of the last seed."""


# Which cells a claim is about


def test_the_note_says_how_many_cells_of_other_settings_are_left_out() -> None:
    def measure(cells: pd.DataFrame) -> Measurement:
        chosen = of_claims.one_setting(cells, ["d"])
        return Measurement(verdict="holds", value=float(len(chosen)))

    claim = Claim(name="loss", source="", statement="", holds_where="", measure=measure)
    judged = claim.judge(pd.concat([grid(), grid(n=(2,), d=(16,), seeds=1)]))
    assert (judged.verdict, judged.value) == ("holds", 6.0)
    assert judged.note == "Judged at d=8; 1 cell of other settings left out."


# Balance


def test_a_setting_that_a_seed_lacks_and_another_has_is_an_absent_cell() -> None:
    twice = pd.concat([TORN, TORN.iloc[[0]]])  # as many rows as cells
    added = of_claims.add_absent(twice, ["n", "d", "kernel"]).query("reason == 'absent'")
    assert added[["n", "seed", "kernel"]].to_numpy().tolist() == [[3, 2, "softmax"]]


def test_planned_cells_that_are_absent_are_failed_ones() -> None:
    planned = grid(n=(2, 3, 4))[["n", "seed"]]
    extended = of_claims.rows_with_absent(Cells.of(TOY, grid(), planned))
    assert extended["reason"].tolist() == [""] * 6 + ["absent"] * 3
    assert extended["status"].tolist() == ["done"] * 6 + ["failed"] * 3
    assert set(extended.loc[6:, "n"]) == {4}
    whole = Cells.of(TOY, grid(), planned[planned["n"] < 4])
    assert of_claims.rows_with_absent(whole) is whole.frame


# Seeds


def test_a_seed_with_all_the_numbers_of_another_is_no_draw_of_its_own() -> None:
    cells = grid()
    twice = cells.assign(loss=cells["loss"].mask(cells["seed"] == 2, cells["loss"].shift(2)))
    but_one = twice.assign(loss=twice["loss"] + 1e-3 * (twice.index == 5))
    by_chance = cells.assign(loss=0.75, errors=3)  # counts and accuracies agree often
    longer = twice.assign(steps=10 + twice["seed"])  # the same end, reached elsewhere
    is_two = twice["seed"] == 2
    missed = twice.assign(steps=10, loss=twice["loss"].mask(is_two))
    worlds = (cells, twice, but_one, by_chance, twice.assign(steps=10), longer, missed)
    told = [of_claims.repeated_seeds(one, Parameters) for one in worlds]
    assert told == [[], [2], [], [], [2], [], []]


def test_columns_that_vary_are_those_with_several_values_beside_nan() -> None:
    alike = {"whole": [2] * 3, "yes": [True] * 3, "nan": [nan, 0.5, 0.5], "nans": [nan] * 3}
    vary = {"words": ["a", "b", "a"], "wholes": [2, 2, 3], "no": [True, True, False]}
    vary |= {"numbers": [inf, nan, 0.5]}
    cells = pd.DataFrame({**alike, "word": ["a", None, "a"], **vary})
    assert varying(cells, cells.columns) == [*vary]
    assert varying(cells[:0], cells.columns) == []


# Two settings, each at its best step size, on cells whose best is known


class Sweep(StudyParameters):
    """A kernel and a step size."""

    kernel: Literal["a", "b"] = parameter("a", "kernel")
    rate: float = parameter(1.0, "step size", "r")


def of_kernels(b: float = 0.5, best_of_b: float = 1.0, best_of_a: float = 1.0) -> pd.DataFrame:
    """Losses that are least at the step size 1 for `a` (0.2), and at `best_of_b` for `b`."""
    rows = [
        (kernel, rate, seed, least + 0.3 * (rate != best) + 0.01 * seed + spread * (-1) ** seed)
        for kernel, least, best, spread in (("a", 0.2, best_of_a, 0.0), ("b", b, best_of_b, 0.002))
        for rate in (0.1, 1.0, 10.0)
        for seed in range(6)
    ]
    frame = pd.DataFrame(rows, columns=["kernel", "rate", "seed", "loss"])
    return frame.assign(status="done", reason="")


LOWER = "mean of loss[kernel=a, best rate] < loss[kernel=b, best rate]"
SMALL = "share of seeds with loss[kernel=b, best rate] < 0.1 > 0.5"


@pytest.mark.parametrize(
    ("sentence", "cells", "verdict"),
    [
        (LOWER, of_kernels(0.5), "holds"),
        (LOWER, of_kernels(0.1), "fails"),
        (LOWER, of_kernels(0.2), "inconclusive"),  # a tie: the differences are 0 on average
        (LOWER, of_kernels(0.5, best_of_b=10.0), "inconclusive"),
        (LOWER.replace("rate", "r"), of_kernels(0.5, best_of_b=10.0), "inconclusive"),
        (LOWER, of_kernels(0.1, best_of_b=10.0), "fails"),  # beyond its edge it can only be better
        (LOWER, of_kernels(0.5, best_of_a=0.1), "holds"),
        (LOWER, of_kernels(0.1, best_of_a=0.1), "inconclusive"),
        (LOWER, of_kernels(0.5).query("rate == 1"), "inconclusive"),  # there is no sweep
        (SMALL, of_kernels(0.5), "fails"),
        (SMALL, of_kernels(0.5, best_of_b=10.0), "inconclusive"),
        (SMALL, of_kernels(0.01, best_of_b=10.0), "holds"),
    ],
)
def test_each_setting_is_taken_at_its_best(
    sentence: str, cells: pd.DataFrame, verdict: Verdict
) -> None:
    found = Measure(read(sentence), Sweep)(cells)
    assert found.verdict == verdict
    of_b = cells[cells["kernel"] == "b"].groupby("rate")["loss"].mean()
    at_edge = of_b.idxmin() in (of_b.index[0], of_b.index[-1]) or of_b.min() < 0.15
    assert ("Beyond the edge" in found.note) == (verdict == "inconclusive" and at_edge)


def test_a_value_at_which_a_seed_diverged_is_not_the_best() -> None:
    frame = of_kernels()
    bad = (frame["kernel"] == "b") & (frame["rate"] == 1.0) & (frame["seed"] == 0)
    failed = {"status": "failed", "reason": "diverged", "loss": nan}
    frame = frame.assign(**{name: frame[name].mask(bad, to) for name, to in failed.items()})
    found = Measure(read("mean of loss[kernel=b, best rate] < 0.7"), Sweep)(frame)
    assert found.value == pytest.approx(0.825)
