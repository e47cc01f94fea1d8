"""Selection of the cells that a claim is judged on, and what is said of those that are missing."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest

from overfit_cli.claims.cells import (
    Selection,
    add_absent,
    describe_values,
    finite_numbers,
    positive_numbers,
    repeated_seeds,
    require_done,
    require_trained,
    rows_with_absent,
    select_values,
)
from overfit_cli.core.arrays import varying
from overfit_cli.core.cells import Cells
from overfit_cli.core.claim import Claim, Measurement
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


def failing(frame: pd.DataFrame, count: int, reason: str) -> pd.DataFrame:
    """The cells, of which the first so many failed."""
    frame = frame.copy()
    frame.loc[frame.index[:count], ["status", "reason"]] = ["failed", reason]
    return frame


# Which cells a claim is about


def test_what_is_not_named_has_its_default_and_other_cells_change_nothing() -> None:
    selection = Selection(Parameters, vary=["n"])
    expected = grid()
    others = pd.concat([grid(d=(16,)), grid().assign(kernel="gaussian")])
    mixed = pd.concat([expected, others]).sample(frac=1, random_state=0)
    chosen = selection.of(mixed).sort_values(["n", "seed"])
    pd.testing.assert_frame_equal(chosen, expected.sort_values(["n", "seed"]))


def test_values_are_named_one_or_several() -> None:
    cells = grid(n=(2, 3, 4))
    assert set(Selection(Parameters, at={"n": 3}).of(cells)["n"]) == {3}
    assert set(Selection(Parameters, at={"n": (3, 4)}).of(cells)["n"]) == {3, 4}
    assert set(select_values(cells, {"n": (2, 9)})["n"]) == {2}
    assert describe_values({"n": (3, 4), "d": 8}) == "n=3,4, d=8"


def test_without_such_cells_a_claim_is_not_run_and_names_a_preset() -> None:
    selection = Selection(Parameters, at={"n": 9}, preset="fig1")
    check_undecided(
        "not run",
        "It needs cells of n=9, as in `overfit sweep fig1`.",
        lambda: selection.of(grid()),
    )
    check_undecided("not run", "It needs cells.", lambda: Selection(Parameters).of(grid().iloc[:0]))


def test_a_parameter_may_have_to_take_several_values() -> None:
    selection = Selection(Parameters, fewest={"n": 3})
    assert len(selection.of(grid(n=(2, 3, 4)))) == 9
    check_undecided(
        "not run", "It needs 3 values of n; these cells have 2.", lambda: selection.of(grid())
    )


def test_the_note_says_how_many_cells_of_other_settings_are_left_out() -> None:
    selection = Selection(Parameters, vary=["n"], alike=["d"])
    mixed = pd.concat([grid(d=(8,)), grid(n=(2,), d=(16,), seeds=1)])
    claim = Claim(
        name="loss",
        source="",
        statement="",
        holds_where="",
        measure=lambda cells: Measurement(verdict="holds", value=float(len(selection.of(cells)))),
    )
    judged = claim.judge(mixed)
    assert (judged.verdict, judged.value) == ("holds", 6.0)
    assert judged.note == "Judged at d=8; 1 cell of other settings left out."


# Balance


def test_a_setting_that_a_seed_lacks_and_another_has_is_an_absent_cell() -> None:
    selection = Selection(Parameters, vary=["n"])
    torn = grid(n=(2, 3)).drop(index=5)  # n = 3 of the last seed
    chosen = selection.of(torn)
    absent = chosen[chosen["reason"] == "absent"]
    assert absent[["n", "seed", "d", "kernel", "status"]].to_numpy().tolist() == [
        [3, 2, 8, "softmax", "failed"]
    ]
    check_undecided(
        "inconclusive", "1 of 6 cells failed or are absent", lambda: require_done(chosen)
    )
    check_undecided("inconclusive", "(absent)", lambda: require_trained(chosen))
    unbalanced = Selection(Parameters, vary=["n"], balanced=False)
    pd.testing.assert_frame_equal(unbalanced.of(torn), torn)


def test_values_that_a_claim_speaks_of_must_be_among_the_cells() -> None:
    selection = Selection(Parameters, includes={"n": (2, 50)}, preset="heads")
    check_undecided(
        "not run",
        "It needs cells of n=50 too, as in `overfit sweep heads`.",
        lambda: selection.of(grid()),
    )
    assert len(Selection(Parameters, includes={"n": (2,)}).of(grid())) == 6


def test_planned_cells_that_are_absent_are_failed_ones() -> None:
    planned = grid(n=(2, 3, 4))[["n", "seed"]]
    extended = rows_with_absent(Cells.of(TOY, grid(), planned))
    assert extended["reason"].tolist() == [""] * 6 + ["absent"] * 3
    assert extended["status"].tolist() == ["done"] * 6 + ["failed"] * 3
    assert set(extended.loc[6:, "n"]) == {4}
    whole = Cells.of(TOY, grid(), planned[planned["n"] < 4])
    assert rows_with_absent(whole) is whole.frame


def test_an_absent_cell_beside_a_duplicated_one_is_added() -> None:
    cells = grid()
    twice = pd.concat([cells.drop(index=5), cells.iloc[[0]]])  # as many rows as cells
    added = add_absent(twice, ["n", "d", "kernel"]).query("reason == 'absent'")
    assert added[["n", "seed", "kernel"]].to_numpy().tolist() == [[3, 2, "softmax"]]


# Cells that failed


def test_what_training_came_to_counts_and_what_a_worker_lost_does_not() -> None:
    for reason in ("diverged", "step limit"):
        assert len(require_trained(failing(grid(), 2, reason))) == 6
    check_undecided(
        "inconclusive",
        "2 of 6 cells failed for reasons that say nothing of their training (worker killed)",
        lambda: require_trained(failing(grid(), 2, "worker killed")),
    )


def test_cells_that_are_done_stand_for_all_only_where_few_failed() -> None:
    assert len(require_done(grid())) == 6
    assert len(require_done(failing(grid(), 1, "diverged"), most_failed=0.2)) == 5
    check_undecided(
        "inconclusive",
        "2 of 6 cells failed or are absent, and those may differ from the rest.",
        lambda: require_done(failing(grid(), 2, "diverged"), most_failed=0.2),
    )
    check_undecided(
        "inconclusive", "1 of 6 cells", lambda: require_done(failing(grid(), 1, "diverged"))
    )


# Numbers


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_missing_or_infinite_decides_nothing(bad: float) -> None:
    cells = grid()
    assert finite_numbers(cells, "loss").tolist() == cells["loss"].tolist()
    cells.loc[0, "loss"] = bad
    sentence = "1 of 6 cells have no number of loss."
    check_undecided("inconclusive", sentence, lambda: finite_numbers(cells, "loss"))
    check_undecided("inconclusive", sentence, lambda: positive_numbers(cells, "loss"))


@pytest.mark.parametrize("bad", [0.0, -0.5])
def test_a_number_without_a_logarithm_decides_nothing_where_one_is_taken(bad: float) -> None:
    cells = grid()
    cells.loc[0, "loss"] = bad
    check_undecided(
        "inconclusive", "have a loss of 0 or less", lambda: positive_numbers(cells, "loss")
    )
    check_undecided(
        "inconclusive", "There is no cell", lambda: positive_numbers(cells.iloc[:0], "loss")
    )


# Seeds


def test_a_seed_with_all_the_numbers_of_another_is_no_draw_of_its_own() -> None:
    cells = grid()
    assert repeated_seeds(cells, Parameters) == []
    cells.loc[cells["seed"] == 2, "loss"] = cells.loc[cells["seed"] == 0, "loss"].to_numpy()
    assert repeated_seeds(cells, Parameters) == [2]
    cells.loc[(cells["seed"] == 2) & (cells["n"] == 3), "loss"] += 1e-3
    assert repeated_seeds(cells, Parameters) == []


def test_counts_and_accuracies_agree_by_chance_and_tell_no_repetition() -> None:
    cells = grid().assign(loss=0.75, errors=3)
    assert repeated_seeds(cells, Parameters) == []


def test_columns_that_vary_are_those_with_several_values_beside_nan() -> None:
    columns = {
        "whole": [2, 2, 2],
        "wholes": [2, 2, 3],
        "yes": [True, True, True],
        "no": [True, True, False],
        "nan": [math.nan, 0.5, 0.5],
        "nans": [math.nan, math.nan, math.nan],
        "numbers": [math.inf, math.nan, 0.5],
        "word": ["softmax", None, "softmax"],
        "words": ["softmax", "relu", "softmax"],
    }
    cells = pd.DataFrame(columns)
    assert varying(cells, columns) == [name for name in columns if cells[name].nunique() > 1]
    assert varying(cells, columns) == ["wholes", "no", "numbers", "words"]
    assert varying(cells[:0], columns) == []
