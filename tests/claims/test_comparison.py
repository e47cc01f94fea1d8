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


def cells(b: float = 0.5, best_of_b: float = 1.0, seeds: int = 6) -> pd.DataFrame:
    """Losses that are least at the step size 1 for `a` (0.2), and at `best_of_b` for `b`."""
    rows = [
        (
            kernel,
            rate,
            seed,
            least + 0.3 * (rate != best) + 0.01 * seed + (kernel == "b") * 0.002 * (-1) ** seed,
        )
        for kernel, least, best in (("a", 0.2, 1.0), ("b", b, best_of_b))
        for rate in RATES
        for seed in range(seeds)
    ]
    frame = pd.DataFrame(rows, columns=["kernel", "rate", "seed", "loss"])
    return frame.assign(n=2, status="done", reason="")


def lower(first: BestSetting, second: BestSetting) -> Measurement:
    """Measure whether the first loss is lower, seed by seed."""
    apart = first.column("loss") - second.column("loss")
    return check_edge(rules.judge([Part.of(apart, Margin(most=0.0))]), first, second)


def judge(frame: pd.DataFrame) -> Measurement:
    return lower(*KERNELS.several(frame, PARAMETERS, BOTH))


@pytest.mark.parametrize(("b", "verdict"), [(0.5, "holds"), (0.1, "fails"), (0.2, "inconclusive")])
def test_each_setting_is_taken_at_its_best(b: float, verdict: Verdict) -> None:
    """With the same loss on both sides every difference is 0, and a tie decides nothing."""
    assert judge(cells(b)).verdict == verdict
    first, second = KERNELS.several(cells(b), PARAMETERS, BOTH)
    assert (first.value, second.value) == (1.0, 1.0)
    assert (first.tried, first.at_edge) == (RATES, False)


def test_a_worse_setting_whose_best_is_at_the_edge_may_be_better_beyond_it() -> None:
    measurement = judge(cells(0.5, best_of_b=10.0))
    assert measurement.verdict == "inconclusive"
    assert "Beyond the edge b may be better." in measurement.note
    # The better one's edge takes nothing back: beyond it can only be better still.
    assert judge(cells(0.1, best_of_b=10.0)).verdict == "fails"


def test_settings_are_compared_on_the_seeds_of_both() -> None:
    frame = cells()
    torn = frame[(frame["kernel"] == "a") | (frame["seed"] < 5)]
    first, second = KERNELS.several(torn, PARAMETERS, BOTH)
    assert first.cells.index.tolist() == second.cells.index.tolist() == [0, 1, 2, 3, 4]


def test_cells_of_one_setting_alone_are_not_run() -> None:
    alone = cells().query("kernel == 'a'")
    check_undecided("not run", "It needs cells of kernel=a,b.", lambda: judge(alone))
    check_undecided("not run", "It needs cells of kernel=a,b.", lambda: judge(alone.iloc[:0]))


def test_cells_of_other_settings_change_nothing() -> None:
    other = cells().query("seed < 2").assign(n=3, loss=9.0)
    assert judge(pd.concat([other, cells()])) == judge(cells())


def test_a_single_step_size_decides_nothing() -> None:
    check_undecided(
        "inconclusive",
        "The kernels were tried at 1 and 1 step sizes; it takes 2",
        lambda: judge(cells().query("rate == 1")),
    )


def test_settings_that_were_not_tried_alike_decide_nothing() -> None:
    frame = cells()
    without = frame[(frame["kernel"] == "a") | (frame["rate"] != 10.0)]
    check_undecided("inconclusive", "weren't tried at the same step sizes", lambda: judge(without))
    fewer = frame[(frame["rate"] != 10.0) | (frame["seed"] < 3)]
    check_undecided("inconclusive", "were tried with fewer seeds than others", lambda: judge(fewer))


def failing(rates: tuple[float, ...], reason: str = "diverged") -> pd.DataFrame:
    """The cells, of which one seed of `b` failed at these step sizes."""
    frame = cells()
    bad = (frame["kernel"] == "b") & frame["rate"].isin(rates) & (frame["seed"] == 0)
    frame.loc[bad, ["status", "reason"]] = ["failed", reason]
    frame.loc[bad, "loss"] = float("nan")
    return frame


def test_a_step_size_at_which_a_seed_diverged_is_no_best() -> None:
    _, other = KERNELS.several(failing((1.0,)), PARAMETERS, BOTH)
    assert other.value == 0.1
    check_undecided(
        "inconclusive", "A kernel has no step size at which", lambda: judge(failing(RATES))
    )


def test_cells_that_a_worker_lost_decide_nothing() -> None:
    lost = failing((10.0,), "worker killed")
    check_undecided("inconclusive", "say nothing of their training", lambda: judge(lost))


def test_both_may_be_compared_at_one_step_size() -> None:
    at_one = cells(0.5, best_of_b=10.0).query("rate == 1")
    assert lower(*KERNELS.at_any(at_one, PARAMETERS, BOTH)).verdict == "holds"
