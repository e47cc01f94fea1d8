"""A run compared with a CSV file: by hand, between its points where asked, and in a sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import overfit_cli
from overfit_cli import UserError
from overfit_cli.report.difference_words import closing_lines
from overfit_cli.report.differences import Comparison, compare_sides
from tests.report.toy_numbers import loss, write_run

T2 = 4.302653
"""The 97.5 % quantile of Student's t with two degrees of freedom: three seeds."""


def plane(n: float, snr: float, seed: float) -> float:
    """Linear in n and in snr; seeds are parallel planes."""
    return 10 - 2 * n + 3 * snr + 0.1 * (seed - 1) ** 2


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Its n and snr are spaced by steps."""
    return write_run(tmp_path / "run", loss(plane), n=(2, 4), snr=(1.0, 2.0, 4.0, 5.0))


def compared(run: Path, text: str, **options: object) -> Comparison:
    path = run.parent / "published.csv"
    path.write_text(text)
    return compare_sides(run, path, **options)  # type: ignore[arg-type]


def points_of(comparison: Comparison) -> list[dict[str, Any]]:
    points: list[dict[str, Any]] = comparison.differences[0]["points"]
    return points


def test_published_numbers_are_compared_with_means_over_seeds(run: Path) -> None:
    comparison = compared(run, "n,snr,test_loss\n2,1,9.5\n4,2,8.0\n")
    [change] = comparison.differences
    means = np.array([[plane(2, 1, seed), plane(4, 2, seed)] for seed in range(3)])
    by_seed = (np.array([9.5, 8.0]) - means).mean(axis=1)
    assert (change["pairs"], comparison.pairs.by) == (2, "point")
    assert change["difference"]["value"] == pytest.approx(by_seed.mean())
    half = T2 * by_seed.std(ddof=1) / np.sqrt(3)
    assert change["difference"]["high"] - change["difference"]["value"] == pytest.approx(
        half, rel=1e-6
    )
    assert change["mean_a"] == pytest.approx(means.mean())
    assert change["mean_b"] == pytest.approx(8.75)
    assert change["largest"]["difference"] == pytest.approx(9.5 - means[:, 0].mean())
    assert change["largest"]["at"] == {"n": 2, "snr": 1.0}
    assert (comparison.alone["a"], comparison.alone["b"]) == (6, 0)


def test_each_point_has_the_interval_of_the_runs_mean(run: Path) -> None:
    mean = plane(2, 1, 0) - 0.1 / 3  # seeds are 0.1, 0 and 0.1 above the plane
    half = T2 * (0.1 / np.sqrt(3)) / np.sqrt(3)
    comparison = compared(run, f"n,snr,test_loss\n2,1,{mean + half - 1e-3}\n4,2,0\n")
    inside, outside = points_of(comparison)
    assert inside["a"] == pytest.approx(mean)
    assert inside["difference"]["low"] == pytest.approx(-1e-3, abs=1e-6)
    assert inside["difference"]["high"] == pytest.approx(2 * half - 1e-3, abs=1e-6)
    assert outside["difference"]["high"] < 0
    assert "test_loss: B lies inside the interval of A's mean at 1 of 2 points." in closing_lines(
        comparison
    )


def test_columns_are_called_by_names_or_symbols_in_any_order(run: Path) -> None:
    text = "\ufefftest_loss, snr ,N\r\n9.5,1.0000000000001,2\r\n\r\n8,2.0,4.0\r\n"
    comparison = compared(run, text)
    assert comparison.pairs.both == 2
    assert comparison.differences[0]["mean_b"] == 8.75


def test_a_file_with_seeds_is_paired_by_seed(run: Path) -> None:
    rows = [f"2,1,{seed},{plane(2, 1, seed) + seed}" for seed in range(3)]
    comparison = compared(run, "\n".join(["n,snr,seed,test_loss", *rows]))
    [change] = comparison.differences
    assert comparison.pairs.by == "seed"
    assert change["difference"]["value"] == pytest.approx(1.0)
    assert change["difference"]["high"] == pytest.approx(1 + T2 / np.sqrt(3), rel=1e-6)


def test_a_run_written_as_csv_is_that_run(run: Path) -> None:
    overfit_cli.load(run).to_csv(run.parent / "same.csv", index=False)
    comparison = compare_sides(run, run.parent / "same.csv")
    assert comparison.pairs.both == 24
    assert [change["column"] for change in comparison.differences] == ["test_loss", "steps"]
    assert (comparison.table()[["difference", "largest"]] == 0).all(axis=None)


def test_what_a_file_lacks_is_no_difference(run: Path) -> None:
    comparison = compared(run, f"n,snr,test_loss,draw\n2,1,{plane(2, 1, 0)},\n4,2,NaN,\n9,9,1,\n")
    assert comparison.differences[0]["pairs"] == 1
    assert (comparison.alone["b"], comparison.alone["a"]) == (1, 6)
    assert comparison.differences[0]["largest"]["difference"] == pytest.approx(1 / 30)


def test_conditions_choose_points_and_cells(run: Path) -> None:
    comparison = compared(run, "n,test_loss\n2,9\n4,8\n", where=["snr=1", "n=2"])
    means = np.mean([plane(2, 1, seed) for seed in range(3)])
    assert comparison.differences[0]["difference"]["value"] == pytest.approx(9 - means)
    assert (comparison.pairs.both, len(comparison.b.cells)) == (1, 1)


# Files that can't be read


BAD = [
    ("", "it has no row; write a header and a row for each point."),
    ("n,snr,test_loss\n2,1\n", "row 1 has fewer fields than the header."),
    (
        "n,snr,test_loss\n2,1,9\n\n2,2,9,\n",
        "it is no CSV file (Expected 3 fields in line 4, saw 4).",
    ),
    (
        "n;snr;test_loss\n2;1;9\n",
        "semicolons separate its columns; write commas.",
    ),
    (
        "n,snr,tset_loss\n2,1,9\n",
        "toy has no parameter and no measured column 'tset_loss'; did you mean 'test_loss'",
    ),
    ("n,snr\n2,1\n", "none of its columns is one that toy measures, such as test_loss."),
    ("n,n,test_loss\n2,1,9\n", "two columns are n; keep one of them."),
    ("n,snr,seed,test_loss\n2,1,-1,9\n", "row 1: seed -1: it takes a whole number of at least 0."),
    ("n,snr,test_loss,\n2,1,9,\n", "a column has no name; give each its own."),
    ("n,snr,test_loss\n2,1,9\n2,,9\n", "row 2: snr: snr takes a number above 0, not ''."),
    (
        "n,snr,seed,test_loss\n2,1, ,9\n",
        "row 1: seed: seed takes a whole number of at least 0, not ''.",
    ),
    (
        "n,snr,test_loss\n2,1,low\n",
        "row 1: test_loss: it takes a finite number, or nothing, not 'low'.",
    ),
    (
        "n,snr,test_loss\n2,1,9\n\n2,1.0,8\n",
        "rows 1 and 2 have the same n and snr; give each row its own point",
    ),
    ('n,snr,test_loss\n2,1,"9\n', "it is no CSV file (unexpected end of data)."),
    (
        "n,test_loss\n2,9\n",
        "it has no column snr, which varies in A; choose one value with --where-a.",
    ),
    (
        "n,snr,test_loss\n2,7,9\n",
        "no cell of it has a counterpart in A with the same n, snr; snr is 1, 2, 4, 5 in A and 7 "
        "in B; choose one value on each side with --where-a and --where-b.",
    ),
    ("n,snr,test_loss\n2,1,\n", "it has numbers of none of A's columns: test_loss, steps."),
]


@pytest.mark.parametrize(("text", "words"), BAD, ids=[words[:40] for _, words in BAD])
def test_a_file_that_is_none_of_published_numbers_is_refused(
    run: Path, text: str, words: str
) -> None:
    with pytest.raises(UserError) as refused:
        compared(run, text)
    assert words in str(refused.value)
    assert "published.csv" in str(refused.value)


def test_a_file_that_is_no_text_is_refused(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = run.parent / "published.csv"
    path.write_bytes("n,snr,test_loss\n2,1,9\n".encode("utf-16"))
    with pytest.raises(UserError, match="it isn't text in UTF-8"):
        compare_sides(run, path)
    monkeypatch.setattr("overfit_cli.report.published.MOST_BYTES", 10)
    with pytest.raises(UserError, match=r"it can't be read \(it has more than 10 bytes\)"):
        compare_sides(run, path)
