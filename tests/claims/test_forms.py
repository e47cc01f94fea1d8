"""Further forms of sentences: ends of grids, worst settings, turns and late steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from overfit_cli.claims.ranges import Range
from overfit_cli.claims.stated import claim, stated_claim
from overfit_cli.core.claim import Measurement
from overfit_cli.core.study import AnyStudy
from overfit_cli.functions.function_study import study_of_function

SEEDS = 12


def train(n: int = 10, method: str = "none", seed: int = 0) -> dict[str, float]:
    """A loss of 1/n, half as large with ridge."""
    noise = float(np.exp(0.02 * np.random.default_rng([seed, n, len(method)]).standard_normal()))
    return {"loss": noise / n * (0.5 if method == "ridge" else 1.0), "late": float(n)}


def study() -> AnyStudy:
    return study_of_function(train)


def cells(n: tuple[int, ...] = (4, 8, 16, 32), method: tuple[str, ...] = ("none",)) -> pd.DataFrame:
    rows = [
        {"n": a, "method": b, "seed": seed, **train(a, b, seed)}
        for a in n
        for b in method
        for seed in range(SEEDS)
    ]
    return pd.DataFrame(rows).assign(status="done", reason="", study=study().name)


def judged(text: str, rows: pd.DataFrame) -> Measurement:
    return claim(text, study()).judge(rows)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("loss is 1/32 within 5% where n is largest", "holds"),
        ("loss is 1/4 within 5% where n is smallest", "holds"),
        ("loss is 1/16 within 5% where n < 32 and n is largest", "holds"),
        ("loss is 1/16 within 5% where n is largest and n < 32", "holds"),
        ("loss[n is smallest] / loss[n is largest] is 8 within 10%", "holds"),
        ("loss[n = 8] < loss[n is smallest]", "holds"),
        ("share of seeds with loss[n is largest] < loss[n is smallest] > 2/3", "holds"),
        ("loss < 0.2 where method is largest", "inconclusive"),
    ],
)
def test_a_claim_may_be_about_the_ends_of_a_grid(text: str, expected: str) -> None:
    assert judged(text, cells()).verdict == expected


def test_a_geometric_mean_is_that_of_ratios() -> None:
    rows = cells(n=(10,), method=("none", "ridge"))
    by_method = rows.pivot(index="seed", columns="method", values="loss")
    mean = float(np.exp(np.log(by_method["ridge"] / by_method["none"]).mean()))
    for text in (
        "geometric mean of loss[method=ridge] / loss[method=none] is 0.5 within 10%",
        "geometric mean of loss[method=ridge] < loss[method=none]",
    ):
        measured = judged(text, rows)
        assert measured.verdict == "holds"
        assert measured.value == pytest.approx(mean)
        assert measured.interval is not None
        assert measured.interval.kind == "95 % t over 12 seeds"
    negative = judged("geometric mean of loss - 1 < 1", rows)
    assert (negative.verdict, negative.note) == (
        "inconclusive",
        "A number is 0 or less, which has no logarithm.",
    )


def test_the_worst_setting_of_each_seed_is_judged_where_a_claim_says_so() -> None:
    rows = cells(n=(4, 8))
    rows["loss"] = np.where((rows["n"] == 4) == (rows["seed"] % 2 == 0), 1.0, 0.1)
    rows["loss"] += 0.001 * rows["seed"]
    assert judged("loss < 0.9 on average", rows).verdict == "holds"
    assert judged("loss < 0.9", rows).verdict == "inconclusive"  # each n exceeds it on half
    assert judged("loss < 0.9 at worst", rows).verdict == "fails"
    assert judged("loss > 0.09 at worst", rows).verdict == "holds"
    both = judged("loss is 0.5 within 0.3 at worst", rows)
    assert both.verdict == "fails"
    assert {"least over 2 settings", "most over 2 settings"} <= set(both.details)
    assert "The worst is the most over 2 settings." in both.note


def test_a_share_is_of_seeds_that_meet_a_condition_everywhere_where_it_says_so() -> None:
    rows = cells(n=(4, 8))
    rows["loss"] = np.where((rows["n"] == 4) & (rows["seed"] % 3 == 0), 1.0, 0.1)
    rows.loc[(rows["n"] == 8) & (rows["seed"] % 3 == 1), "loss"] = 1.0
    everywhere = judged("share of seeds with loss < 0.5 everywhere > 0.1", rows)
    assert everywhere.value == pytest.approx(1 / 3)
    assert judged("share of seeds with loss < 0.5 > 0.1", rows).value == pytest.approx(2 / 3)
    both = judged("share of seeds with loss < 0.5 and n * loss > 0.5 everywhere > 0.1", rows)
    assert both.value == 0.0
    lost = rows.assign(status=["failed"] * 2 + ["done"] * (len(rows) - 2))
    one_unknown = judged("share of seeds with loss < 0.5 everywhere > 0.1", lost)
    assert one_unknown.value == pytest.approx((4 + 0.5) / 12)  # of the other it is known: n = 8


def test_a_power_that_turns_at_the_end_is_none_throughout() -> None:
    rows = cells()
    measured = judged("power of n in loss < 0 throughout", rows)
    assert measured.verdict == "holds"
    assert measured.note == "The worst is at the whole line."
    rows.loc[rows["n"] == 32, "loss"] *= 4
    assert judged("power of n in loss < 0", rows).verdict == "holds"
    turned = judged("power of n in loss < 0 throughout", rows)
    assert turned.verdict == "fails"
    assert "The worst is at its end." in turned.note
    but_for_the_last = rows.assign(loss=rows["n"].map({4: 1.0, 8: 1.1, 16: 1.2, 32: 0.1}))
    but_for_the_last["loss"] += 0.001 * but_for_the_last["seed"]
    assert judged("power of n in loss < 0", but_for_the_last).verdict == "holds"
    jumped = judged("power of n in loss < 0 throughout", but_for_the_last)
    assert jumped.verdict == "fails"
    assert "The worst is at all but the last value." in jumped.note
    rising = rows.assign(loss=1 / rows["loss"])
    assert judged("power of n in loss > 0 throughout", rising).verdict == "fails"


def test_several_quantities_are_judged_together_at_the_level_of_all() -> None:
    rows = cells()
    for text, expected in (
        ("loss < 0.3; late > 3", "holds"),
        ("mean of loss < 0.3; share of seeds with late > 3 > 0.7", "holds"),
        ("loss < 0.3; late > 5", "fails"),
        ("loss < 0.3; late > 5 where n >= 8", "holds"),
        ("loss[n=4] < 0.2; late[n=4] > 3", "fails"),
    ):
        assert judged(text, rows).verdict == expected, text
    measured = judged("loss < 0.3; late > 3 where n = 4", rows)
    assert measured.details["late"] == 4.0
    assert judged("loss[n=4] < 0.2; late[n=4] > 3", rows).note.startswith("The worst is loss[n=4]")


def test_fewer_seeds_than_a_claim_asks_for_decide_nothing() -> None:
    assert judged("loss < 0.3 with at least 12 seeds", cells()).verdict == "holds"
    few = judged("loss < 0.3 with at least 13 seeds", cells())
    assert few.verdict == "inconclusive"
    assert "It needs 13 seeds; these cells have 12 seeds." in few.note


ENDS = {"late": ("waited", "endless")}


def test_a_number_that_came_too_late_lies_above_what_was_waited_for() -> None:
    rows = cells(n=(4, 8, 16, 32)).assign(waited=20.0, endless=np.inf)
    rows["late"] = rows["late"].where(rows["n"] < 32)  # 32 steps are more than 20

    def judged_with(text: str, between: dict[str, tuple[str, str]]) -> Measurement:
        fields = {"name": "late", "source": "", "statement": text}
        stated = stated_claim(
            lambda rows: rows, study().parameters, text, between=between, **fields
        )
        return stated.judge(rows)

    text = "power of n in late > 0.5"
    assert judged_with(text, {}).verdict == "inconclusive"
    assert judged_with(text, ENDS).verdict == "holds"
    assert judged_with("late[n=32] / late[n=4] > 4", ENDS).verdict == "holds"
    assert judged_with("late[n=32] / late[n=4] < 6", ENDS).verdict == "inconclusive"
    assert judged_with("share of seeds with late > 19 > 0.6 where n = 32", ENDS).verdict == (
        "holds"
    )


def test_ranges_contain_what_the_arithmetic_gives_in_between() -> None:
    random = np.random.default_rng(0)
    ends = np.sort(random.uniform(-3, 3, (2, 500, 2)), axis=2)  # (numbers, rows, ends)
    ends[0, :100, 1], ends[1, 100:200, 0] = np.inf, -np.inf
    x, y = (Range(each[:, 0], each[:, 1]) for each in ends)
    inside = [
        np.clip(random.uniform(each[:, 0].clip(-9), each[:, 1].clip(max=9)), -9, 9) for each in ends
    ]
    computations: tuple[Callable[[Any, Any], Any], ...] = (
        lambda x, y: x + 2 * y,
        lambda x, y: -(x - y) * x,
        lambda x, y: x / y,
        lambda x, y: np.exp(x) / (1 + y * y),
        lambda x, y: np.sqrt(x * x) - np.log(np.exp(y)),
        lambda x, y: (2 + x) ** y,
    )
    for compute in computations:
        with np.errstate(all="ignore"):
            found, number = compute(x, y), compute(*inside)
        known = np.isfinite(number)
        slack = 1e-9 * (1 + np.abs(number[known]))
        assert (found.low[known] <= number[known] + slack).all()
        assert (number[known] <= found.high[known] + slack).all()
