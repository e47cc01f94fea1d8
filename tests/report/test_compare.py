"""Two runs compared: the numbers are those of a calculation by hand, and nothing is left unsaid."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from overfit_cli import UserError
from overfit_cli.report.compare import Comparison, compare_sides
from tests.report.toy_numbers import Numbers, loss, write_run
from tests.toy_runs import TOY

SEEDS, NS, SNRS = (0, 1, 2), (1, 2), (1.0, 2.0)
DRAWS = np.random.default_rng(0).normal(size=(2, 3, 2, 2))
"""By side, seed, n and snr."""


def drawn(side: int) -> Numbers:
    """The losses of a side."""
    return loss(lambda n, snr, seed: DRAWS[side, seed % 3, n - 1, int(snr) - 1])


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    """Runs `a` and `b` with all seeds, whose numbers are `DRAWS`."""
    return write_run(tmp_path / "a", drawn(0)), write_run(tmp_path / "b", drawn(1))


def loss_of(comparison: Comparison) -> Mapping[str, Any]:
    return next(change for change in comparison.columns if change["column"] == "test_loss")


def words(comparison: Comparison) -> str:
    return "\n".join([*comparison.above(), *comparison.below()])


def by_seed(numbers: pd.Series[float]) -> pd.Series[float]:
    """Of each seed the mean over the places of which it has a number."""
    return numbers.dropna().groupby("seed").mean()


@pytest.mark.parametrize("shift", [0, 1, 9])
@pytest.mark.parametrize("problem", range(6))
def test_a_difference_is_that_of_the_means_of_seeds_at_the_places_of_both(
    tmp_path: Path, problem: int, shift: int
) -> None:
    """Places are values of n; seeds are all, some or none the same, and some cells failed."""
    draws = np.random.default_rng([problem, shift])
    sides: list[pd.Series[float]] = []
    for name, first in (("a", 0), ("b", shift)):
        seeds = range(first, first + 4)
        cells = pd.MultiIndex.from_product([(1, 2, 3), seeds], names=["n", "seed"])
        side = pd.Series(draws.normal(cells.get_level_values("n")), cells)
        side = side[draws.random(len(side)) < 0.85]
        numbers = loss(lambda n, snr, seed, known=side: known.get((n, seed)))  # type: ignore[misc]
        write_run(tmp_path / name, numbers, n=(1, 2, 3), snr=(1.0,), seeds=seeds)
        sides.append(side)
    change = loss_of(compare_sides(tmp_path / "a", tmp_path / "b"))
    a, b = sides
    if shift < 4:
        gaps = (b - a).dropna()
        mean, test = by_seed(gaps).mean(), stats.ttest_1samp(by_seed(gaps), 0)
    else:
        of_a, of_b = (side.groupby("n").mean() for side in sides)
        gaps, middle = (of_b - of_a).dropna(), (of_a + of_b) / 2
        ours, theirs = (by_seed(side.sub(middle, level="n")) for side in sides)
        mean, test = theirs.mean() - ours.mean(), stats.ttest_ind(theirs, ours, equal_var=False)
    interval = test.confidence_interval()
    assert change["pairs"] == len(gaps)
    assert change["difference"]["value"] == pytest.approx(mean)
    assert change["largest"]["difference"] == pytest.approx(max(gaps, key=abs))
    ends = (change["difference"]["low"], change["difference"]["high"])
    assert ends == pytest.approx((interval.low, interval.high), rel=1e-6)


@pytest.mark.parametrize("seeds", [SEEDS, (3, 4, 5)])
def test_every_setting_has_a_difference_with_its_error(
    tmp_path: Path, seeds: tuple[int, ...]
) -> None:
    a, b = write_run(tmp_path / "a", drawn(0)), write_run(tmp_path / "b", drawn(1), seeds=seeds)
    places = compare_sides(a, b, ["test_loss"], tolerance=9).places()
    assert [*places][:5] == ["column", "n", "snr", "a", "b"]
    test_of: Any = stats.ttest_rel if seeds == SEEDS else partial(stats.ttest_ind, equal_var=False)
    for row in places.to_dict("records"):
        first, second = (draws[:, row["n"] - 1, int(row["snr"]) - 1] for draws in DRAWS)
        test = test_of(second, first)
        assert row["z"] == pytest.approx(test.statistic)
        assert row["difference"] / row["error"] == pytest.approx(row["z"])
        assert row["low"] == pytest.approx(test.confidence_interval().low)
        assert (row["seeds_a"], row["seeds_b"], row["verdict"]) == (3, 3, "open")
    assert len(places) == 4


# What is said


def test_what_failed_and_what_has_no_counterpart_is_counted(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", drawn(0))
    some = loss(lambda *cell: None if cell == (2, 2.0, 2) else 1.5)
    b = write_run(tmp_path / "b", some, n=(2,), seeds=(1, 2, 3))
    comparison = compare_sides(a, b)
    assert (comparison.pairs.both, comparison.content["alone"]) == (4, {"a": 8, "b": 2})
    assert words(comparison).splitlines() == [
        "Equal at every pair: steps.",
        "A: a, 12 cells of toy.",
        "B: b, 6 cells of toy, 1 failed.",
        "4 pairs of cells with the same n, snr, seed.",
        "Without a counterpart: 8 cells of A, 2 cells of B.",
        "Failed on one side only: 0 cells of A, 1 cell of B.",
        "Intervals of B − A: 95 % t over 2 seeds.",
    ]
    apart = write_run(tmp_path / "c", drawn(1), seeds=(3, 4, 5))
    said = words(compare_sides(a, apart))
    assert "4 points with the same n, snr: means over seeds, none is on both." in said
    killed = Path(__file__).parents[1] / "fixtures" / "runs" / "interrupted"
    assert "A: interrupted, 1 cell of experiment:train, 3 missing." in words(
        compare_sides(killed, killed)
    )
    one = words(compare_sides(a, a, where=["seed=0"]))
    assert "Intervals of B − A: none, there is only one seed." in one


def test_conditions_choose_cells_of_both_or_of_one(two: tuple[Path, Path]) -> None:
    comparison = compare_sides(*two, where=["n=2"])
    apart = (DRAWS[1] - DRAWS[0])[:, 1].mean()
    assert loss_of(comparison)["difference"]["value"] == pytest.approx(apart)
    [of_one] = compare_sides(*two, ["test_loss / n"], ["n=2"]).columns
    assert of_one["difference"]["value"] == pytest.approx(apart / 2)
    same = compare_sides(two[0], two[0], where_a=["snr=1"], where_b=["snr=2"])
    expected = (DRAWS[0][:, :, 1] - DRAWS[0][:, :, 0]).mean()
    assert loss_of(same)["difference"]["value"] == pytest.approx(expected)
    assert same.content["settings"] == {"snr": {"a": 1.0, "b": 2.0}}
    lines = words(same).splitlines()
    assert {"A: a (snr=1), 6 cells of toy.", "snr: 1 in A, 2 in B."} <= {*lines}


def test_columns_and_numbers_of_one_side_alone_are_told(tmp_path: Path) -> None:
    both = {"test_loss": 1.0, "draw": 0.5}
    a = write_run(tmp_path / "a", lambda *_: both)
    b = write_run(tmp_path / "b", lambda *_: {"test_loss": 1.0})
    some = write_run(tmp_path / "some", lambda n, snr, seed: {"test_loss": 1.0} if seed else both)
    comparison = compare_sides(a, b)
    assert [change["column"] for change in comparison.columns] == ["test_loss", "steps"]
    assert comparison.content["columns_on_one_side"] == {"a": ["draw"], "b": []}
    assert "Measured only in A: draw." in words(comparison)
    with pytest.raises(UserError, match=r"value='draw': B has no such numbers"):
        compare_sides(a, b, ["draw"])
    lacking = compare_sides(a, some, ["draw"], tolerance=9)
    [record] = lacking.columns
    assert (record["pairs"], record["numbers_on_one_side"], record["verdict"]) == (4, 8, "open")
    assert "draw: 8 pairs with a number on one side only left out." in words(lacking)


def test_runs_of_two_numerical_versions_are_compared(tmp_path: Path) -> None:
    old = write_run(tmp_path / "old", loss(lambda *_: 0.2))
    with mock.patch.object(type(TOY), "version", 2):
        new = write_run(tmp_path / "new", loss(lambda *_: 0.25))
        comparison, said = compare_sides(old, new), words(compare_sides(old, new))
    assert loss_of(comparison)["difference"]["value"] == pytest.approx(0.05)
    assert "A: old, 12 cells of toy, of version 1." in said


def test_runs_that_share_nothing_are_refused(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", drawn(0), mood="prints")
    b = write_run(tmp_path / "b", loss(lambda *_: 0.2), n=(1,), snr=(3.0, 4.0), mood="raises")
    with pytest.raises(UserError) as refused:
        compare_sides(a, b)
    assert str(refused.value) == (
        f"where_b: no cell of {b} has a counterpart in A with the same n, snr; snr is 1, 2 in A "
        "and 3, 4 in B; choose one value on each side."
    )
    comparison = compare_sides(a, b, where_a=["snr=1.0"], where_b=["snr=3.0"])
    assert comparison.pairs.both == 3
    assert comparison.content["settings"]["mood"] == {"a": "prints", "b": "raises"}


# With a tolerance

APART = 0.1 * np.array([1, -1, 1, -1, 1, -1])
"""By seed they differ by 0.2 on average, with t intervals of ± 0.0901 (90 %), ± 0.1150 (95 %)."""


GAP = "4 cells have no number on one side"


def shifted(x: float, seed: int) -> float:
    return float(x + 0.2 + APART[seed])


@pytest.mark.parametrize(
    ("change", "tolerance", "verdict", "said"),
    [
        (shifted, 0.291, "equivalent", "Equivalent within 0.291: test_loss"),
        (shifted, 0.289, "open", "Open at 0.289: test_loss"),
        (shifted, 0.086, "open", "Open at 0.086: test_loss"),
        (shifted, 0.084, "differs", "Different by more than 0.084: test_loss"),
        (lambda x, seed: 1.02 * x, "3%", "equivalent", "Equivalent within 3 %: test_loss"),
        (lambda x, seed: 1.02 * x, "1%", "differs", "Different by more than 1 %: test_loss"),
        (lambda x, seed: x, 1e-12, "equivalent", "Equivalent within 1e-12: test_loss"),
        (lambda x, seed: None if seed == 1 else x, "5%", "open", f"Open at 5 %: test_loss ({GAP})"),
    ],
)
def test_a_column_is_equivalent_differs_or_is_open_by_its_interval(
    tmp_path: Path,
    change: Callable[[float, int], float | None],
    tolerance: str | float,
    verdict: str,
    said: str,
) -> None:
    a = write_run(tmp_path / "a", loss(lambda n, snr, seed: 2 + 0.1 * seed), seeds=range(6))
    changed = loss(lambda n, snr, seed: change(2 + 0.1 * seed, seed))
    b = write_run(tmp_path / "b", changed, seeds=range(6))
    comparison = compare_sides(a, b, ["test_loss"], tolerance=tolerance)
    assert [*comparison.table()["verdict"]] == [verdict]
    assert comparison.differs == (verdict == "differs")
    assert words(comparison).startswith(f"{said}.\n")
    assert comparison.columns[0]["lacks"] == (GAP if GAP in said else "")
