"""One claim of several parts, against its parts."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from overfit_cli.claims.stated import claim, joined
from overfit_cli.core.claim import Interval, Verdict
from tests.fake_study import FakeStudy

STUDY = FakeStudy()
PARTS = {
    f"n = {n}": claim(f"mean of test_loss[n = {n}] < 1", STUDY, name=f"below-{n}") for n in (2, 4)
}
JOINT = joined(PARTS, name="below", statement="Both are below 1.")


def cells(first: float, second: float) -> pd.DataFrame:
    """Ten seeds of n = 2 and n = 4, whose losses lie around these numbers."""
    random = np.random.default_rng(1)
    rows = [
        {"n": n, "snr": 1.0, "seed": seed, "test_loss": centre + 0.1 * number}
        for n, centre in ((2, first), (4, second))
        for seed, number in enumerate(random.standard_normal(10))
    ]
    return pd.DataFrame(rows).assign(study=STUDY.name, status="done", reason="")


@pytest.mark.parametrize(
    ("first", "second", "verdict", "decisive"),
    [
        (0.5, 0.8, "holds", "n = 4"),  # the nearest to the margin's end
        (1.5, 0.5, "fails", "n = 2"),
        (0.5, 1.5, "fails", "n = 4"),
    ],
)
def test_it_holds_where_all_parts_hold_and_fails_where_one_fails(
    first: float, second: float, verdict: Verdict, decisive: str
) -> None:
    measured = JOINT.judge(cells(first, second))
    assert (measured.verdict, measured.value) == (verdict, measured.details[decisive])
    for name, part in PARTS.items():
        alone = part.judge(cells(first, second))
        value, low, high = (measured.details[f"{name}{end}"] for end in ("", ", from", ", to"))
        assert alone.interval == Interval(low, high, "95 % t over 10 seeds")
        assert alone.value == value


def test_a_failure_that_is_none_at_the_level_of_all_is_undecided() -> None:
    part = PARTS["n = 4"].judge(cells(0.5, 1.0))
    assert part.interval is not None
    assert part.value is not None
    width = part.interval.high - part.value
    shifted = cells(0.5, 1.0 + (1 - part.value) + 1.02 * width)
    assert PARTS["n = 4"].judge(shifted).verdict == "fails"
    assert JOINT.judge(shifted).verdict == "inconclusive"
