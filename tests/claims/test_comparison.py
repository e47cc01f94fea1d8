"""Comparison of two settings at their best step sizes, on cells whose best is known."""

from __future__ import annotations

import pandas as pd
import pytest

from overfit_cli import Measurement
from overfit_cli.claims import rules
from overfit_cli.claims.cells import BestSetting, Comparison, check_edge
from overfit_cli.claims.parts import Margin, Part
from overfit_cli.core.claim import Verdict
from tests.judged import check_undecided

KERNELS = Comparison("kernel", "rate", "step size", "loss")
PARAMETERS = ("kernel", "rate", "n")
BOTH = ("a", "b")
RATES = (0.1, 1.0, 10.0)


def cells(b: float = 0.5, best_of_b: float = 1.0) -> pd.DataFrame:
    """Losses that are least at the step size 1 for `a` (0.2), and at `best_of_b` for `b`."""
    rows = [
        (kernel, rate, seed, least + 0.3 * (rate != best) + 0.01 * seed + spread * (-1) ** seed)
        for kernel, least, best, spread in (("a", 0.2, 1.0, 0.0), ("b", b, best_of_b, 0.002))
        for rate in RATES
        for seed in range(6)
    ]
    frame = pd.DataFrame(rows, columns=["kernel", "rate", "seed", "loss"])
    return frame.assign(n=2, status="done", reason="")


def failing(rates: tuple[float, ...], reason: str = "diverged") -> pd.DataFrame:
    """The cells, of which one seed of `b` failed at these step sizes."""
    frame = cells()
    bad = (frame["kernel"] == "b") & frame["rate"].isin(rates) & (frame["seed"] == 0)
    frame.loc[bad, ["status", "reason", "loss"]] = ["failed", reason, float("nan")]
    return frame


def several(frame: pd.DataFrame) -> list[BestSetting]:
    return KERNELS.several(frame, PARAMETERS, BOTH)


def lower(first: BestSetting, second: BestSetting) -> Measurement:
    """Measure whether the first loss is lower, seed by seed."""
    apart = first.column("loss") - second.column("loss")
    return check_edge(rules.judge([Part.of(apart, Margin(most=0.0))]), first, second)


BEYOND = "Beyond the edge b may be better."


@pytest.mark.parametrize(
    ("b", "best_of_b", "verdict", "edge"),
    [
        (0.5, 1.0, "holds", ""),
        (0.1, 1.0, "fails", ""),
        (0.2, 1.0, "inconclusive", ""),  # a tie: the differences are 0 on average
        (0.5, 10.0, "inconclusive", BEYOND),
        (0.1, 10.0, "fails", ""),  # beyond its edge the better one can only be better still
    ],
)
def test_each_setting_is_taken_at_its_best(
    b: float, best_of_b: float, verdict: Verdict, edge: str
) -> None:
    first, second = several(cells(b, best_of_b))
    assert (first.value, first.tried, first.at_edge) == (1.0, RATES, False)
    assert (second.value, second.at_edge) == (best_of_b, best_of_b == 10.0)
    measured = lower(first, second)
    assert measured.verdict == verdict
    assert (BEYOND in measured.note) == bool(edge)


def test_settings_are_compared_on_the_seeds_of_both() -> None:
    frame = cells()
    first, second = several(frame[(frame["kernel"] == "a") | (frame["seed"] < 5)])
    assert first.cells.index.tolist() == second.cells.index.tolist() == [0, 1, 2, 3, 4]


def test_cells_of_other_settings_change_nothing() -> None:
    other = cells().query("seed < 2").assign(n=3, loss=9.0)
    assert lower(*several(pd.concat([other, cells()]))) == lower(*several(cells()))


def test_a_step_size_at_which_a_seed_diverged_is_no_best() -> None:
    _, other = several(failing((1.0,)))
    assert other.value == 0.1


@pytest.mark.parametrize(
    ("frame", "verdict", "words"),
    [
        (cells().query("kernel == 'a'"), "not run", "It needs cells of kernel=a,b."),
        (cells().iloc[:0], "not run", "It needs cells of kernel=a,b."),
        (
            cells().query("rate == 1"),
            "inconclusive",
            "were tried at 1 and 1 step sizes; it takes 2",
        ),
        (cells().query("kernel == 'a' or rate < 10"), "inconclusive", "at the same step sizes"),
        (cells().query("rate < 10 or seed < 3"), "inconclusive", "with fewer seeds than others"),
        (failing(RATES), "inconclusive", "A kernel has no step size at which"),
        (failing((10.0,), "worker killed"), "inconclusive", "say nothing of their training"),
    ],
)
def test_settings_that_were_not_tried_alike_decide_nothing(
    frame: pd.DataFrame, verdict: Verdict, words: str
) -> None:
    check_undecided(verdict, words, lambda: several(frame))


def test_both_may_be_compared_at_one_step_size() -> None:
    at_one = cells(0.5, best_of_b=10.0).query("rate == 1")
    assert lower(*KERNELS.at_any(at_one, PARAMETERS, BOTH)).verdict == "holds"
