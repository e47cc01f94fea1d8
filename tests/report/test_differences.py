"""Two runs compared: the numbers are those of a calculation by hand, and nothing is left unsaid."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

from overfit_cli import UserError
from overfit_cli.core.text import three_digits
from overfit_cli.report.difference_words import (
    closing_lines,
    difference_rows,
    leading_lines,
    opening_lines,
)
from overfit_cli.report.differences import Comparison, compare_sides
from tests.report.toy_numbers import Numbers, loss, write_run
from tests.toy_runs import TOY

T2 = 4.302653
"""The 97.5 % quantile of Student's t with two degrees of freedom: three seeds."""

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
    return next(change for change in comparison.differences if change["column"] == "test_loss")


def test_cells_of_one_seed_are_paired_and_seeds_are_what_is_drawn(two: tuple[Path, Path]) -> None:
    comparison = compare_sides(*two)
    change = loss_of(comparison)
    by_seed = (DRAWS[1] - DRAWS[0]).mean(axis=(1, 2))
    half = T2 * by_seed.std(ddof=1) / np.sqrt(3)
    assert (change["pairs"], comparison.pairs.by) == (12, "seed")
    assert change["mean_a"] == pytest.approx(DRAWS[0].mean())
    assert change["mean_b"] == pytest.approx(DRAWS[1].mean())
    assert change["difference"]["value"] == pytest.approx(by_seed.mean())
    assert change["difference"]["low"] == pytest.approx(by_seed.mean() - half, rel=1e-6)
    assert change["difference"]["high"] == pytest.approx(by_seed.mean() + half, rel=1e-6)
    assert change["difference"]["kind"] == "95 % t over 3 seeds"


def test_the_largest_difference_is_told_with_its_place(two: tuple[Path, Path]) -> None:
    change = loss_of(compare_sides(*two))
    apart = DRAWS[1] - DRAWS[0]
    seed, n, snr = (int(index) for index in np.unravel_index(np.abs(apart).argmax(), apart.shape))
    assert change["largest"]["difference"] == apart[seed, n, snr]
    assert change["largest"]["at"] == {"n": NS[n], "snr": SNRS[snr], "seed": seed}


def test_a_seed_counts_once_however_many_of_its_cells_are_there(tmp_path: Path) -> None:
    """Seed 2 has a cell that failed in B: its mean is that of its other three."""
    whole = drawn(1)
    broken = (2, 2.0, 2)
    a = write_run(tmp_path / "a", drawn(0))
    b = write_run(tmp_path / "b", lambda *cell: None if cell == broken else whole(*cell))
    comparison = compare_sides(a, b)
    apart = DRAWS[1] - DRAWS[0]
    apart[2, 1, 1] = np.nan
    expected = np.nanmean(apart, axis=(1, 2)).mean()
    assert loss_of(comparison)["difference"]["value"] == pytest.approx(expected)
    assert loss_of(comparison)["pairs"] == 11
    assert (comparison.failed["b"], comparison.failed["a"]) == (1, 0)
    assert "Failed only in B: 1 cell." in opening_lines(comparison)
    assert "B: b, 12 cells of toy, 1 failed." in opening_lines(comparison)


def test_without_a_seed_in_common_means_are_compared(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", drawn(0))
    b = write_run(tmp_path / "b", drawn(1), seeds=(3, 4, 5))
    comparison = compare_sides(a, b)
    change = loss_of(comparison)
    seeds_a, seeds_b = DRAWS[0].mean(axis=(1, 2)), DRAWS[1].mean(axis=(1, 2))
    parts = [seeds.var(ddof=1) / 3 for seeds in (seeds_a, seeds_b)]
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / 2 + parts[1] ** 2 / 2)
    assert 2 < freedom < 4, "Welch's"
    places = DRAWS[1].mean(axis=0) - DRAWS[0].mean(axis=0)
    assert (change["pairs"], comparison.pairs.by) == (4, "means")
    assert change["difference"]["value"] == pytest.approx(seeds_b.mean() - seeds_a.mean())
    assert change["largest"]["difference"] == pytest.approx(places.flat[np.abs(places).argmax()])
    assert set(change["largest"]["at"]) == {"n", "snr"}
    half = change["difference"]["high"] - change["difference"]["value"]
    normal, few = 1.959964 * np.sqrt(sum(parts)), T2 * np.sqrt(sum(parts))
    assert normal < half < few
    assert change["difference"]["kind"] == "95 % Welch's t over 3 and 3 seeds"
    assert any(
        "means over seeds are compared: no seed is on both sides" in line
        for line in opening_lines(comparison)
    )


def test_which_places_a_seed_lacks_is_no_difference_of_means(tmp_path: Path) -> None:
    """B is A and 0.5 more everywhere; some seeds lack a place where the loss is a hundred."""

    def high(n: int, snr: float, seed: int) -> float:
        return 100.0 if n == 2 else snr

    a = write_run(tmp_path / "a", loss(high))
    b = write_run(
        tmp_path / "b",
        lambda n, snr, seed: (
            None if (n, seed) == (2, 4) else {"test_loss": high(n, snr, seed) + 0.5}
        ),
        seeds=(3, 4),
    )
    change = loss_of(compare_sides(a, b))
    assert change["difference"]["value"] == pytest.approx(0.5)
    assert change["difference"]["high"] - change["difference"]["low"] == pytest.approx(
        0.0, abs=1e-12
    )
    assert change["mean_b"] - change["mean_a"] == pytest.approx(0.5)


def test_one_seed_has_no_interval(tmp_path: Path) -> None:
    a, b = (write_run(tmp_path / name, drawn(side), seeds=(0,)) for side, name in enumerate("ab"))
    comparison = compare_sides(a, b)
    assert np.isnan(loss_of(comparison)["difference"]["low"])
    [row] = [row for row in difference_rows(comparison) if row["column"] == "test_loss"]
    assert row["B − A"] == three_digits(loss_of(comparison)["difference"]["value"])
    assert "Intervals of B − A: none, there is only one seed." in closing_lines(comparison)


def test_what_has_no_counterpart_is_counted(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", drawn(0), n=(1, 2))
    b = write_run(tmp_path / "b", drawn(1), n=(2,), seeds=(1, 2, 3))
    comparison = compare_sides(a, b)
    assert (comparison.pairs.both, comparison.alone["a"], comparison.alone["b"]) == (4, 8, 2)
    [message] = [line for line in opening_lines(comparison) if "pairs" in line]
    assert message.startswith("4 pairs of cells with the same n, snr and seed.")
    assert message.endswith("Without a counterpart: 8 cells of A, 2 cells of B.")


def test_conditions_choose_cells_of_both_or_of_one(two: tuple[Path, Path]) -> None:
    comparison = compare_sides(*two, where=["n=2"])
    assert loss_of(comparison)["difference"]["value"] == pytest.approx(
        (DRAWS[1] - DRAWS[0])[:, 1].mean()
    )
    same = compare_sides(two[0], two[0], where_a=["snr=1"], where_b=["snr=2"])
    expected = (DRAWS[0][:, :, 1] - DRAWS[0][:, :, 0]).mean()
    assert loss_of(same)["difference"]["value"] == pytest.approx(expected)
    assert same.settings == {"snr": {"a": 1.0, "b": 2.0}}
    assert [*opening_lines(same)][:2] == [
        "A: a (snr=1), 6 cells of toy.",
        "B: a (snr=2), 6 cells of toy.",
    ]


def test_columns_that_one_side_has_alone_are_told_and_those_of_no_number_are_not(
    tmp_path: Path,
) -> None:
    a = write_run(tmp_path / "a", lambda *_: {"test_loss": 1.0, "draw": 0.5})
    b = write_run(tmp_path / "b", lambda *_: {"test_loss": 1.0})
    comparison = compare_sides(a, b)
    assert [change["column"] for change in comparison.differences] == ["test_loss", "steps"]
    assert comparison.only_in == {"a": ["draw"], "b": []}
    with pytest.raises(UserError, match=r"value='draw': B has no such numbers"):
        compare_sides(a, b, ["draw"])


def test_a_number_that_one_cell_of_a_pair_lacks_is_counted(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", lambda *_: {"test_loss": 1.0, "draw": 0.5})
    b = write_run(
        tmp_path / "b",
        lambda n, snr, seed: {"test_loss": 1.0} if seed else {"test_loss": 1.0, "draw": 0.5},
    )
    [record] = compare_sides(a, b, ["draw"], tolerance=9).differences
    assert (record["pairs"], record["numbers_on_one_side"]) == (4, 8)
    assert record["verdict"] == "open"


def test_verdicts_are_compared_on_the_same_choice_of_cells(tmp_path: Path) -> None:
    """The toy's claim fails where the least test loss is below 0.1."""
    a = write_run(tmp_path / "a", loss(lambda n, *_: 0.2))
    b = write_run(tmp_path / "b", loss(lambda n, *_: 0.2 if n == 1 else 0.05))
    comparison = compare_sides(a, b)
    [(claim, (first, second))] = comparison.verdicts.items()
    assert (claim, first.verdict, second.verdict) == ("toy-claim", "holds", "fails")
    assert (first.value, second.value) == (0.2, 0.05)
    assert comparison.changed == ["toy-claim"]
    chosen = compare_sides(a, b, where=["n=1"])
    assert (len(chosen.verdicts), chosen.changed) == (1, [])


def test_runs_of_two_numerical_versions_are_compared_and_not_judged(tmp_path: Path) -> None:
    old = write_run(tmp_path / "old", loss(lambda *_: 0.2))
    with mock.patch.object(type(TOY), "version", 2):
        new = write_run(tmp_path / "new", loss(lambda *_: 0.25))
        comparison = compare_sides(old, new)
        newer = compare_sides(new, old)
        opened, led = [*opening_lines(comparison)], [*leading_lines(comparison)]
    assert loss_of(comparison)["difference"]["value"] == pytest.approx(0.05)
    assert loss_of(newer)["difference"]["value"] == pytest.approx(-0.05)
    assert comparison.pairs.both == 12
    assert comparison.verdicts == {}
    assert opened[0] == "A: old, 12 cells of toy, of version 1."
    assert led[-1] == (
        "Verdicts aren't compared: the claims are of the installed version of the study, and the "
        "cells of another."
    )


def test_a_column_is_equivalent_differs_or_is_open_by_its_interval(tmp_path: Path) -> None:
    seeds = tuple(range(6))
    a = write_run(tmp_path / "a", loss(lambda n, snr, seed: 2 + 0.1 * seed), seeds=seeds)

    def verdict(change: Callable[[float, int], float | None], tolerance: str | float) -> str:
        def numbers(n: int, snr: float, seed: int) -> dict[str, float] | None:
            number = change(2 + 0.1 * seed, seed)
            return None if number is None else {"test_loss": number}

        b = write_run(tmp_path / f"b{len([*tmp_path.iterdir()])}", numbers, seeds=seeds)
        comparison = compare_sides(a, b, ["test_loss"], tolerance=tolerance)
        [said] = comparison.table()["verdict"]
        assert comparison.differs == (said == "differs")
        return str(said)

    # By seed they differ by 0.2 on average, with t intervals of ± 0.0901 (90 %), ± 0.1150 (95 %).
    apart = 0.1 * np.array([1, -1, 1, -1, 1, -1])
    ends = {0.291: "equivalent", 0.289: "open", 0.086: "open", 0.084: "differs"}
    for tolerance, expected in ends.items():
        assert verdict(lambda x, seed: x + 0.2 + apart[seed], tolerance) == expected
    assert verdict(lambda x, seed: 1.02 * x, "3%") == "equivalent"
    assert verdict(lambda x, seed: 1.02 * x, "1%") == "differs"
    assert verdict(lambda x, seed: x, 1e-12) == "equivalent"
    assert verdict(lambda x, seed: None if seed == 1 else x, "5%") == "open", "a cell failed"


def test_runs_that_share_nothing_are_refused(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", drawn(0))
    b = write_run(tmp_path / "b", loss(lambda *_: 0.2), n=(1,), snr=(3.0, 4.0))
    with pytest.raises(UserError) as refused:
        compare_sides(a, b)
    assert str(refused.value) == (
        f"B {b}: no cell of it has a counterpart in A with the same n, snr; snr is 1, 2 in A and "
        "3, 4 in B; choose one value on each side with --where-a and --where-b."
    )
    assert compare_sides(a, b, where_a=["snr=1.0"], where_b=["snr=3.0"]).pairs.both == 3


def test_settings_that_no_cell_shares_are_named(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", drawn(0), mood="prints")
    b = write_run(tmp_path / "b", drawn(1))
    write_run(b, drawn(1), mood="raises")
    with pytest.raises(UserError, match="; mood is prints in A and raises, well in B; choose"):
        compare_sides(a, b)
    comparison = compare_sides(a, b, where_b=["mood=well"])
    assert comparison.settings == {"mood": {"a": "prints", "b": "well"}}
    assert comparison.pairs.both == 12
