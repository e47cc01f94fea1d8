"""Selection of the cells that a claim is judged on, and what is said of those that are missing."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from math import inf, nan
from typing import Any

import numpy as np
import pandas as pd
import pytest

from overfit_cli.claims import cells as of_claims
from overfit_cli.claims import rules
from overfit_cli.claims.cells import BestSetting, Selection, require_done, require_trained
from overfit_cli.claims.parts import Margin, Part
from overfit_cli.core.arrays import varying
from overfit_cli.core.cells import Cells
from overfit_cli.core.claim import Claim, Measurement, Verdict
from overfit_cli.core.parameters import StudyParameters
from tests.judged import check_undecided
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


def failing(count: int, reason: str) -> pd.DataFrame:
    """The cells, of which the first so many failed."""
    frame = grid()
    frame.loc[frame.index[:count], ["status", "reason"]] = ["failed", reason]
    return frame


def selected(cells: pd.DataFrame, **options: Any) -> pd.DataFrame:
    return Selection(Parameters, **options).of(cells)


def losses(first: float, function: Callable[..., Any] = of_claims.positive_numbers) -> None:
    """Take the losses of the cells, the first of which is this one."""
    cells = grid()
    assert function(cells, "loss").tolist() == cells["loss"].tolist()
    cells.loc[0, "loss"] = first
    function(cells, "loss")


TORN = grid().drop(index=5)
"""The cells without that of n = 3 of the last seed."""


# Which cells a claim is about


def test_what_is_not_named_has_its_default_and_other_cells_change_nothing() -> None:
    expected = grid()
    others = pd.concat([grid(d=(16,)), grid().assign(kernel="gaussian")])
    mixed = pd.concat([expected, others]).sample(frac=1, random_state=0)
    chosen = selected(mixed, vary=["n"]).sort_values(["n", "seed"])
    pd.testing.assert_frame_equal(chosen, expected.sort_values(["n", "seed"]))
    cells = grid(n=(2, 3, 4))
    assert set(selected(cells, at={"n": 3})["n"]) == {3}
    assert set(selected(cells, at={"n": (3, 4)})["n"]) == {3, 4}
    assert set(of_claims.select_values(cells, {"n": (2, 9)})["n"]) == {2}
    assert of_claims.describe_values({"n": (3, 4), "d": 8}) == "n=3,4, d=8"


def test_what_training_came_to_counts_and_few_failures_may_be_borne() -> None:
    for reason in ("diverged", "step limit"):
        assert len(require_trained(failing(2, reason))) == 6
    assert len(require_done(grid())) == 6
    assert len(require_done(failing(1, "diverged"), most_failed=0.2)) == 5
    assert len(selected(grid(n=(2, 3, 4)), fewest={"n": 3})) == 9
    assert len(selected(grid(), includes={"n": (2,)})) == 6


def test_the_note_says_how_many_cells_of_other_settings_are_left_out() -> None:
    def measure(cells: pd.DataFrame) -> Measurement:
        chosen = selected(cells, vary=["n"], alike=["d"])
        return Measurement(verdict="holds", value=float(len(chosen)))

    claim = Claim(name="loss", source="", statement="", holds_where="", measure=measure)
    judged = claim.judge(pd.concat([grid(), grid(n=(2,), d=(16,), seeds=1)]))
    assert (judged.verdict, judged.value) == ("holds", 6.0)
    assert judged.note == "Judged at d=8; 1 cell of other settings left out."


# Balance


def test_a_setting_that_a_seed_lacks_and_another_has_is_an_absent_cell() -> None:
    absent = selected(TORN, vary=["n"]).query("reason == 'absent'")
    assert absent[["n", "seed", "d", "kernel", "status"]].to_numpy().tolist() == [
        [3, 2, 8, "softmax", "failed"]
    ]
    pd.testing.assert_frame_equal(selected(TORN, vary=["n"], balanced=False), TORN)
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
    told = [of_claims.repeated_seeds(one, Parameters) for one in (cells, twice, but_one, by_chance)]
    assert told == [[], [2], [], []]


def test_columns_that_vary_are_those_with_several_values_beside_nan() -> None:
    alike = {"whole": [2] * 3, "yes": [True] * 3, "nan": [nan, 0.5, 0.5], "nans": [nan] * 3}
    vary = {"words": ["a", "b", "a"], "wholes": [2, 2, 3], "no": [True, True, False]}
    vary |= {"numbers": [inf, nan, 0.5]}
    cells = pd.DataFrame({**alike, "word": ["a", None, "a"], **vary})
    assert varying(cells, cells.columns) == [*vary]
    assert varying(cells[:0], cells.columns) == []


# Two settings, each at its best step size, on cells whose best is known

KERNELS = of_claims.Comparison("kernel", "rate", "step size", "loss")
NAMES, BOTH, RATES = ("kernel", "rate", "n"), ("a", "b"), (0.1, 1.0, 10.0)


def of_kernels(b: float = 0.5, best_of_b: float = 1.0) -> pd.DataFrame:
    """Losses that are least at the step size 1 for `a` (0.2), and at `best_of_b` for `b`."""
    rows = [
        (kernel, rate, seed, least + 0.3 * (rate != best) + 0.01 * seed + spread * (-1) ** seed)
        for kernel, least, best, spread in (("a", 0.2, 1.0, 0.0), ("b", b, best_of_b, 0.002))
        for rate in RATES
        for seed in range(6)
    ]
    frame = pd.DataFrame(rows, columns=["kernel", "rate", "seed", "loss"])
    return frame.assign(n=2, status="done", reason="")


def broken(rates: tuple[float, ...], reason: str = "diverged") -> pd.DataFrame:
    """Those cells, of which one seed of `b` failed at these step sizes."""
    frame = of_kernels()
    bad = (frame["kernel"] == "b") & frame["rate"].isin(rates) & (frame["seed"] == 0)
    frame.loc[bad, ["status", "reason", "loss"]] = "failed", reason, nan
    return frame


def several(frame: pd.DataFrame) -> list[BestSetting]:
    return KERNELS.at_best(frame, NAMES, BOTH)


def lower(first: BestSetting, second: BestSetting) -> Measurement:
    """Measure whether the first loss is lower, seed by seed."""
    apart = first.column("loss") - second.column("loss")
    return of_claims.check_edge(rules.judge([Part.of(apart, Margin(most=0.0))]), first, second)


TRIED = of_kernels()
BEYOND = "Beyond the edge b may be better."


@pytest.mark.parametrize(
    ("b", "best_of_b", "verdict"),
    [
        (0.5, 1.0, "holds"),
        (0.1, 1.0, "fails"),
        (0.2, 1.0, "inconclusive"),  # a tie: the differences are 0 on average
        (0.5, 10.0, "inconclusive"),
        (0.1, 10.0, "fails"),  # beyond its edge the better one can only be better still
    ],
)
def test_each_setting_is_taken_at_its_best(b: float, best_of_b: float, verdict: Verdict) -> None:
    first, second = several(of_kernels(b, best_of_b))
    assert (first.value, first.tried, first.at_edge) == (1.0, RATES, False)
    assert (second.value, second.at_edge) == (best_of_b, best_of_b == 10.0)
    measured = lower(first, second)
    assert measured.verdict == verdict
    assert (BEYOND in measured.note) == (verdict == "inconclusive" and best_of_b == 10.0)


def test_settings_are_compared_on_the_seeds_of_both_at_the_same_other_settings() -> None:
    first, second = several(TRIED.query("kernel == 'a' or seed < 5"))
    assert first.cells.index.tolist() == second.cells.index.tolist() == [0, 1, 2, 3, 4]
    other = TRIED.query("seed < 2").assign(n=3, loss=9.0)
    assert lower(*several(pd.concat([other, TRIED]))) == lower(*several(TRIED))
    _, diverged = several(broken((1.0,)))
    assert diverged.value == 0.1, "where a seed diverged is no best"
    at_one = of_kernels(0.5, best_of_b=10.0).query("rate == 1")
    assert lower(*KERNELS.at_best(at_one, NAMES, BOTH, fewest=1)).verdict == "holds"


# Cells that do not suffice

Attempt = Callable[[], object]
LOST = "2 of 6 cells failed for reasons that say nothing of their training (worker killed)"
FAILED = "2 of 6 cells failed or are absent, and those may differ from the rest."
UNKNOWN, NO_LOGARITHM = "1 of 6 cells have no number of loss.", "Of 6 cells 5 have a loss above 0"
AT_9, WITH_50 = {"at": {"n": 9}, "preset": "fig1"}, {"includes": {"n": (2, 50)}, "preset": "heads"}


@pytest.mark.parametrize(
    ("words", "function"),
    [
        ("n=9, as in `overfit sweep fig1`.", lambda: selected(grid(), **AT_9)),
        ("It needs cells.", lambda: selected(grid().iloc[:0])),
        ("values of n; these cells have 2.", lambda: selected(grid(), fewest={"n": 3})),
        ("n=50 too, as in `overfit sweep heads`.", lambda: selected(grid(), **WITH_50)),
        ("It needs cells of kernel=a,b.", lambda: several(TRIED.query("kernel == 'a'"))),
        ("It needs cells of kernel=a,b.", lambda: several(TRIED.iloc[:0])),
    ],
)
def test_what_was_not_run_is_said(words: str, function: Attempt) -> None:
    check_undecided("not run", words, function)


@pytest.mark.parametrize(
    ("words", "function"),
    [
        ("1 of 6 cells failed", lambda: require_done(selected(TORN, vary=["n"]))),
        ("(absent)", lambda: require_trained(selected(TORN, vary=["n"]))),
        (LOST, lambda: require_trained(failing(2, "worker killed"))),
        (FAILED, lambda: require_done(failing(2, "diverged"), most_failed=0.2)),
        ("1 of 6 cells", lambda: require_done(failing(1, "diverged"))),
        *((UNKNOWN, partial(losses, bad)) for bad in (nan, inf, -inf)),
        (UNKNOWN, partial(losses, nan, of_claims.finite_numbers)),
        *((NO_LOGARITHM, partial(losses, bad)) for bad in (0.0, -0.5)),
        ("Of 0 cells 0 have", lambda: of_claims.positive_numbers(grid()[:0], "loss")),
        ("tried at one step size alone; it takes 2", lambda: several(TRIED.query("rate == 1"))),
        ("at the same step sizes", lambda: several(TRIED.query("kernel == 'a' or rate < 10"))),
        ("at the same step sizes", lambda: several(TRIED.query("rate < 10 or seed < 3"))),
        ("A kernel has no step size at which", lambda: several(broken(RATES))),
        ("say nothing of their training", lambda: several(broken((10.0,), "worker killed"))),
    ],
)
def test_cells_that_do_not_suffice_decide_nothing(words: str, function: Attempt) -> None:
    check_undecided("inconclusive", words, function)
