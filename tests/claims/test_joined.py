"""One claim of several parts, against its parts."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from overfit_cli.claims.stated import claim, joined
from overfit_cli.core.claim import Claim
from tests.fake_study import FakeStudy

STUDY = FakeStudy()


def _part(size: int) -> Claim:
    return claim(f"mean of test_loss[n = {size}] < 1", STUDY, name=f"below-{size}")


def _cells(centres: dict[int, float], seeds: int = 10, spread: float = 0.1) -> pd.DataFrame:
    random = np.random.default_rng(1)
    rows = [
        {"n": size, "snr": 1.0, "seed": seed, "test_loss": centre + spread * number}
        for size, centre in centres.items()
        for seed, number in enumerate(random.standard_normal(seeds))
    ]
    return pd.DataFrame(rows).assign(study=STUDY.name, status="done", reason="")


JOINT = joined({"n = 2": _part(2), "n = 4": _part(4)}, name="below", statement="Both are below 1.")


def test_it_holds_where_all_parts_hold() -> None:
    measured = JOINT.judge(_cells({2: 0.5, 4: 0.8}))
    assert measured.verdict == "holds"
    assert measured.value == measured.details["n = 4"]  # the nearest to the margin's end


@pytest.mark.parametrize("wrong", [2, 4])
def test_it_fails_where_one_part_fails(wrong: int) -> None:
    measured = JOINT.judge(_cells({2: 0.5, 4: 0.5} | {wrong: 1.5}))
    assert measured.verdict == "fails"
    assert measured.value == measured.details[f"n = {wrong}"]


def test_a_failure_that_is_none_at_the_level_of_all_is_undecided() -> None:
    cells = _cells({2: 0.5, 4: 1.0})
    part = _part(4).judge(cells)
    assert part.interval is not None
    assert part.value is not None
    width = part.interval.high - part.value
    shifted = _cells({2: 0.5, 4: 1.0 + (1 - part.value) + 1.02 * width})
    assert _part(4).judge(shifted).verdict == "fails"
    assert JOINT.judge(shifted).verdict == "inconclusive"


def test_its_details_have_the_interval_of_each_part() -> None:
    cells = _cells({2: 0.5, 4: 0.8})
    details = JOINT.judge(cells).details
    for size in (2, 4):
        part = _part(size).judge(cells)
        assert part.interval is not None
        ends = [details[f"n = {size}{end}"] for end in ("", ", from", ", to")]
        assert ends == [part.value, part.interval.low, part.interval.high]
