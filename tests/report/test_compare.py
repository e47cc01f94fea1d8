"""Two runs, or a run and a file, compared: numbers are those of a calculation by hand.

Nothing is left unsaid.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import overfit_cli
from calibration.equivalence import World, edge
from overfit_cli import UserError
from overfit_cli.report.compare import Comparison, Margin, compare_sides
from tests.command import call
from tests.report.made_up import loss, write_run
from tests.toy_runs import TOY


@pytest.fixture(scope="module")
def a(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run over n and snr with three seeds, whose losses are n · snr + seed."""
    numbers = loss(lambda n, snr, seed: n * snr + seed)
    return write_run(tmp_path_factory.mktemp("runs") / "a", numbers)


def loss_of(comparison: Comparison) -> Mapping[str, Any]:
    return next(change for change in comparison.columns if change["column"] == "test_loss")


def ends_of(compared: Mapping[str, Any]) -> tuple[float, float]:
    """The ends of the interval of a compared column, or of one of its points."""
    return compared["difference"]["low"], compared["difference"]["high"]


def words(comparison: Comparison) -> str:
    return "\n".join([*comparison.above(), *comparison.below()])


@pytest.mark.parametrize("shift", [0, 1, 9])
@pytest.mark.parametrize("problem", range(6))
def test_a_difference_is_that_of_means_of_seeds(tmp_path: Path, problem: int, shift: int) -> None:
    """Of all values of n and at each; seeds are all, some or none the same; some cells failed."""
    draws, sides = np.random.default_rng([problem, shift]), list[Any]()
    for name, first in (("a", 0), ("b", shift)):
        seeds = range(first, first + 4)
        cells = pd.MultiIndex.from_product([(1, 2, 3), seeds], names=["n", "seed"])
        side = pd.Series(draws.normal(cells.get_level_values("n")), cells)
        side = side[draws.random(len(side)) < 0.85]
        numbers = loss(lambda n, snr, seed, known=side: known.get((n, seed)))  # type: ignore[misc]
        write_run(tmp_path / name, numbers, n=(1, 2, 3), snr=(1.0,), seeds=seeds)
        sides.append(side)
    comparison = compare_sides(tmp_path / "a", tmp_path / "b", tolerance=9)
    change = loss_of(comparison)
    if shift < 4:
        gaps = (sides[1] - sides[0]).dropna()
        test: Any = stats.ttest_1samp(gaps.groupby("seed").mean(), 0)
    else:
        of_a, of_b = (side.groupby("n").mean() for side in sides)
        gaps, middle = (of_b - of_a).dropna(), (of_a + of_b) / 2
        relative = [side.sub(middle, level="n").dropna().groupby("seed").mean() for side in sides]
        test = stats.ttest_ind(*relative[::-1], equal_var=False)
    low, high = test.confidence_interval()
    assert change["pairs"] == len(gaps)
    assert change["largest"]["difference"] == pytest.approx(max(gaps, key=abs))
    assert change["difference"]["value"] == pytest.approx((low + high) / 2)
    assert ends_of(change) == pytest.approx((low, high), rel=1e-6)
    places = comparison.places().query("column == 'test_loss'")
    assert [*places][:4] == ["column", "n", "a", "b"]
    for row in places.to_dict("records"):
        at = [side.loc[row["n"]] for side in sides]
        test_of: Any = partial(stats.ttest_ind, equal_var=False)
        if shift < 4:
            at = [side[side.index.isin(at[0].index.intersection(at[1].index))] for side in at]
            test_of = stats.ttest_rel
        assert [row["seeds_a"], row["seeds_b"]] == [len(side) for side in at]
        if min(map(len, at)) > 1:
            test = test_of(at[1], at[0])
            assert row["z"] == pytest.approx(test.statistic)
            assert row["difference"] / row["error"] == pytest.approx(row["z"])
            assert row["low"] == pytest.approx(test.confidence_interval().low)


# What is said


def test_what_failed_and_what_has_no_counterpart_is_counted(a: Path, tmp_path: Path) -> None:
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
    apart = write_run(tmp_path / "c", loss(lambda n, *_: n), seeds=(3, 4, 5))
    said = words(compare_sides(a, apart))
    assert "4 points with the same n, snr: means over seeds, none is on both." in said
    killed = Path(__file__).parents[1] / "fixtures" / "runs" / "interrupted"
    missing = words(compare_sides(killed, killed))
    assert "A: interrupted, 1 cell of experiment:train, 3 missing." in missing
    one = words(compare_sides(a, a, where=["seed=0"]))
    assert "Intervals of B − A: none, there is only one seed." in one


def test_conditions_choose_cells_of_both_or_of_one(a: Path, tmp_path: Path) -> None:
    b = write_run(tmp_path / "b", loss(lambda n, snr, seed: n * snr + seed + 3 * n**2))
    [apart] = compare_sides(a, b, ["test_loss / n"], ["n=2"]).columns
    assert apart["difference"]["value"] == pytest.approx(3 * 2)
    same = compare_sides(a, a, where_a=["snr=1"], where_b=["snr=2"])
    assert loss_of(same)["difference"]["value"] == pytest.approx(1.5), "the mean of n"
    assert same.content["settings"] == {"snr": {"a": 1.0, "b": 2.0}}
    lines = words(same).splitlines()
    assert {"A: a (snr=1), 6 cells of toy.", "snr: 1 in A, 2 in B."} <= {*lines}


def test_columns_and_numbers_of_one_side_alone_are_told(tmp_path: Path) -> None:
    one, both = {"test_loss": 1.0}, {"test_loss": 1.0, "draw": 0.5}
    a, b = write_run(tmp_path / "a", lambda *_: both), write_run(tmp_path / "b", lambda *_: one)
    comparison = compare_sides(a, b)
    assert [change["column"] for change in comparison.columns] == ["test_loss", "steps"]
    assert comparison.content["columns_on_one_side"] == {"a": ["draw"], "b": []}
    assert "Measured only in A: draw." in words(comparison)
    some = write_run(tmp_path / "some", lambda n, snr, seed: one if seed else both)
    lacking = compare_sides(a, some, ["draw"], tolerance=9)
    [record] = lacking.columns
    assert (record["pairs"], record["numbers_on_one_side"], record["verdict"]) == (4, 8, "open")
    assert "draw: 8 pairs with a number on one side only left out." in words(lacking)


def test_runs_that_share_nothing_are_refused(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", loss(lambda n, *_: n), mood="prints")
    b = write_run(tmp_path / "b", loss(lambda *_: 0.2), n=(1,), snr=(3.0, 4.0), mood="raises")
    with pytest.raises(UserError) as refused:
        compare_sides(a, b)
    lacks = f"where_b: no cell of {b} has a counterpart in A with the same n, snr"
    assert str(refused.value) == f"{lacks}; choose one value of snr on each side."
    with mock.patch.object(type(TOY), "version", 2):  # of cells of another numerical version
        comparison = compare_sides(a, b, where_a=["snr=1.0"], where_b=["snr=3.0"])
        assert "A: a (snr=1.0), 6 cells of toy, of version 1." in words(comparison)
    assert comparison.pairs.both == 3
    assert comparison.content["settings"]["mood"] == {"a": "prints", "b": "raises"}


# With a tolerance

APART = 0.1 * np.array([1, -1, 1, -1, 1, -1])
"""By seed they differ by 0.2 on average, with t intervals of ± 0.0901 (90 %), ± 0.1150 (95 %)."""
GAP = "4 cells with a number on one side only"
Change = Callable[[float, int], float | None]


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
    tmp_path: Path, change: Change, tolerance: str | float, verdict: str, said: str
) -> None:
    a = write_run(tmp_path / "a", loss(lambda n, snr, seed: 2 + 0.1 * seed), seeds=range(6))
    changed = loss(lambda n, snr, seed: change(2 + 0.1 * seed, seed))
    b = write_run(tmp_path / "b", changed, seeds=range(6))
    comparison = compare_sides(a, b, ["test_loss"], tolerance=tolerance)
    assert [*comparison.table()["verdict"]] == [verdict]
    assert comparison.differs == (verdict == "differs")
    assert words(comparison).startswith(f"{said}.\n")
    assert comparison.columns[0]["lacks"] == (GAP if GAP in said else "")


# A run and a file of published numbers

SIX = range(6)
HEAD = "n,snr,test_loss"


def spread(n: int, snr: float, seed: int) -> float:
    """Seeds that differ, and more so at larger n."""
    return n * snr + 0.1 * n * math.sin(7 * seed + n + snr)


def seeds_at(n: int, snr: float) -> list[float]:
    return [spread(n, snr, seed) for seed in SIX]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run over n and snr; published files lie beside it."""
    folder = tmp_path_factory.mktemp("published")
    return write_run(folder / "run", loss(spread), n=(2, 4), snr=(1.0, 2.0), seeds=SIX)


def compared(run: Path, text: str, **options: Any) -> Comparison:
    path = run.parent / "published.csv"
    path.write_text(text)
    return compare_sides(run, path, **options)


def welch(mean: float, error: float, freedom: float, sample: list[float]) -> tuple[float, float]:
    """The ends of the 95 % interval of a published mean less that of a sample."""
    ours = np.var(sample, ddof=1) / len(sample)
    whole = error**2 + ours
    degrees = whole**2 / (error**4 / freedom + ours**2 / (len(sample) - 1))
    half = stats.t.ppf(0.975, degrees) * math.sqrt(whole)
    middle = mean - float(np.mean(sample))
    return middle - half, middle + half


T9 = float(stats.t.ppf(0.975, 9))
LOW, HIGH = 8.3 - T9 / 20, 8.3 + T9 / 20


@pytest.mark.parametrize(
    ("columns", "fields", "error", "freedom"),
    [
        ("test_loss_sd,seeds", "0.4,24", 0.4 / math.sqrt(24), 23),
        ("test_loss_se,seeds", "0.1,16", 0.1, 15),
        ("test_loss_se", "0.1", 0.1, math.inf),
        ("test_loss_low,test_loss_high", "8.202002,8.397998", 0.05, math.inf),
        ("test_loss_low,test_loss_high,seeds", f"{LOW},{HIGH},10", 0.05, 9),
        ("test_loss_low,test_loss_high,test_loss_sd,seeds", f"{LOW},{HIGH},9,10", 0.05, 9),
    ],
)
def test_an_uncertainty_gives_welchs_interval_and_a_z_score(
    run: Path, columns: str, fields: str, error: float, freedom: float
) -> None:
    [read] = compared(run, f"{HEAD},{columns}\n4,2,8.3,{fields}\n").columns[0]["points"]
    sample = seeds_at(4, 2.0)
    assert ends_of(read) == pytest.approx(welch(8.3, error, freedom, sample), rel=1e-5)
    whole = math.hypot(error, stats.sem(sample))
    assert read["z"] == pytest.approx((8.3 - np.mean(sample)) / whole, rel=1e-5)
    assert read["seeds"] == {"a": 6, "b": None if math.isinf(freedom) else freedom + 1}


@pytest.mark.parametrize(("head", "seeds"), [("", ""), (",seeds", ",1"), (",seeds", ",2")])
def test_without_an_uncertainty_a_number_counts_as_exact(run: Path, head: str, seeds: str) -> None:
    comparison = compared(run, f"{HEAD}{head}\n2,1,9.5{seeds}\n4,2,8.0{seeds}\n")
    [change] = comparison.columns
    apart = [9.5 - np.array(seeds_at(2, 1.0)), 8.0 - np.array(seeds_at(4, 2.0))]
    for record, gaps in ((change, np.mean(apart, axis=0)), (change["points"][1], apart[1])):
        assert ends_of(record) == pytest.approx([*stats.ttest_1samp(gaps, 0).confidence_interval()])
    most = {"difference": pytest.approx(apart[0].mean()), "at": {"n": 2, "snr": 1.0}}
    assert (change["pairs"], change["largest"]) == (2, most)
    assert (comparison.pairs.by, comparison.content["alone"]) == ("point", {"a": 2, "b": 0})


def test_the_mean_over_places_allows_for_errors_that_all_go_one_way(run: Path) -> None:
    text = f"{HEAD},test_loss_se,seeds\n2,1,2,0.1,24\n4,2,8,0.3,12\n"
    ours = np.mean([seeds_at(2, 1.0), seeds_at(4, 2.0)], axis=0)
    expected = welch(5.0, 0.2, 11, ours.tolist())
    assert ends_of(compared(run, text).columns[0]) == pytest.approx(expected)


def test_columns_are_called_by_names_or_symbols_in_any_order(run: Path) -> None:
    text = "\ufefftest_loss, snr ,N\r\n9.5,1.0000000000001,2\r\n\r\n8,2.0,4.0\r\n"
    comparison = compared(run, text)
    assert (comparison.pairs.both, comparison.columns[0]["mean_b"]) == (2, 8.75)


def test_a_count_may_be_called_n_where_the_study_has_no_parameter_n(tmp_path: Path) -> None:
    def train(alpha: float = 1.0, seed: int = 0) -> dict[str, float]:
        return {"theta": alpha + 0.01 * seed}

    overfit_cli.sweep(train, alpha=[1, 2], seeds=5, jobs=1, out=tmp_path / "mine", quiet=True)
    texts = [f"alpha,theta,theta_sd,{name}\n1,1.02,0.1,24\n" for name in ("n", "seeds")]
    found, again = (compared(tmp_path / "mine", text).columns[0]["points"] for text in texts)
    assert found == again
    assert found[0]["seeds"] == {"a": 5, "b": 24}


def test_a_file_with_seeds_is_paired_by_seed(run: Path) -> None:
    rows = [f"2,1,{seed},{spread(2, 1, seed) + seed}" for seed in range(3)]
    comparison = compared(run, "\n".join(["n,snr,seed,test_loss", *rows]))
    interval = stats.ttest_1samp([0, 1, 2], 0).confidence_interval()
    assert comparison.pairs.by == "seed"
    assert ends_of(comparison.columns[0]) == pytest.approx((interval.low, interval.high))
    overfit_cli.load(run).to_csv(run.parent / "same.csv", index=False)
    same = compare_sides(run, run.parent / "same.csv")
    assert (same.table()[["difference", "largest"]] == 0).all(axis=None)


def test_what_a_file_lacks_is_no_difference_and_conditions_hold_where_they_can(run: Path) -> None:
    mean = np.mean(seeds_at(2, 1.0))
    comparison = compared(run, f"n,snr,test_loss,draw\n2,1,{mean + 1},\n4,2,NaN,\n9,9,1,\n")
    assert comparison.columns[0]["pairs"] == 1
    assert comparison.content["alone"] == {"a": 2, "b": 1}
    assert comparison.columns[0]["largest"]["difference"] == pytest.approx(1)
    chosen = compared(run, "n,test_loss\n2,9\n4,8\n", where=["snr=1", "n=2"])
    assert chosen.columns[0]["difference"]["value"] == pytest.approx(9 - mean)
    assert (chosen.pairs.both, len(chosen.b.frame)) == (1, 1)


def test_values_that_print_rounded_to_a_millionth_are_the_runs(tmp_path: Path) -> None:
    grid = tuple(np.linspace(0.01, 2, 25).tolist())
    run = write_run(tmp_path / "run", loss(spread), n=(2,), snr=grid, seeds=(0, 1))
    printed = [f"{value:.8g},1" for value in grid]
    far = [f"{grid[1] * (1 + 3e-6)!r},1", f"{grid[2]!r},1"]
    for rows, both, alone, first in ((printed, 25, 0, grid[0]), (far, 1, 1, grid[2])):
        comparison = compared(run, "\n".join(["snr,test_loss", *rows]))
        assert (comparison.pairs.both, comparison.content["alone"]["b"]) == (both, alone)
        assert comparison.columns[0]["points"][0]["at"] == {"snr": first}


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_exported_means_are_read_back(run: Path, ending: str) -> None:
    folder = run.parent
    call("export", "run", "--means", f"--out=means.{ending}", cwd=folder)
    comparison = compare_sides(run, folder / f"means.{ending}", tolerance="20%")
    assert [*comparison.table()["verdict"]] == ["equivalent", "equivalent"]
    place = comparison.places().query("column == 'test_loss' and n == 4 and snr == 2")
    [row], sample = place.to_dict("records"), seeds_at(4, 2.0)
    low, high = welch(float(np.mean(sample)), stats.sem(sample), 5, sample)
    assert (row["low"], row["high"], row["z"]) == pytest.approx((low, high, 0), rel=1e-6, abs=1e-9)


# Files that can't be read

SD = f"{HEAD},test_loss_sd,seeds"
UNUSABLE = "row 1: test_loss has no usable uncertainty; it needs 2 seeds or"
NONE = "it has numbers of none of A's columns: test_loss, steps."
BAD = [
    ("", "it has no row; write a header and a row for each point."),
    (f"{HEAD}\n2,1\n", "row 1: it has fewer fields than the header."),
    (f"{HEAD}\n2,1,9\n\n2,2,9,\n", "it can't be read (Expected 3 fields in line 4, saw 4"),
    ("n;snr;test_loss\n2;1;9\n", "toy has no parameter and no measured column 'n;snr;test_loss'"),
    ("n,snr,tset_loss\n2,1,9\n", "column 'tset_loss'; did you mean 'test_loss'"),
    ("n,snr\n2,1\n", NONE),
    (f"{HEAD}\n2,1,\n", NONE),
    ("n,n,test_loss\n2,1,9\n", "two columns are n; keep one of them."),
    ("n,snr,seed,test_loss\n2,1,-1,9\n", "row 1: seed takes a whole number of at least 0."),
    (f"{HEAD},\n2,1,9,\n", "toy has no parameter and no measured column ''"),
    (f"{HEAD}\n2,1,9\n2,,9\n", "row 2: snr: snr takes a number above 0, not ''."),
    (f"{HEAD}\n2,1,low\n", "row 1: test_loss: it takes a finite number, or nothing, not 'low'."),
    (f'{HEAD}\n2,1,"9\n', "it can't be read (unexpected end of data)."),
    ("n,test_loss\n2,9\n", "in A with the same n, snr; choose one value of snr on each side."),
    (f"{SD}\n2,1,9,-0.1,24\n", UNUSABLE),
    (f"{SD}\n2,1,9,0.1,1\n", UNUSABLE),
    (f"{HEAD},test_loss_sd\n2,1,9,0.1\n", UNUSABLE),
    (f"{HEAD},test_loss_low,test_loss_high\n2,1,9,10,8\n", UNUSABLE),
    (f"{SD}\n2,1,9,0.1,2.5\n", "seeds takes a whole number of at least 0."),
    (f"{HEAD},test_loss_low\n2,1,9,8\n", "test_loss_low and test_loss_high stand together."),
    (f"{HEAD},draw_se\n2,1,9,1\n", "draw_se stands beside draw in a file without seed"),
    (f"{HEAD},snr_sd\n2,1,9,1\n", "toy has no parameter and no measured column 'snr_sd'; "),
    (f"{HEAD},seed,test_loss_se\n2,1,9,0,1\n", "test_loss_se stands beside test_loss in a file "),
]


@pytest.mark.parametrize(("text", "words"), BAD)
def test_a_file_of_no_published_numbers_is_refused(run: Path, text: str, words: str) -> None:
    with pytest.raises(UserError, match=f"^[^\n]*{re.escape(words)}[^\n]*\\Z") as refused:
        compared(run, text)
    assert "published.csv" in str(refused.value)


@mock.patch("overfit_cli.core.files.MOST_BYTES", 100_000)
def test_a_file_that_is_no_text_or_too_large_is_refused(run: Path) -> None:
    for name, content, reason in (
        ("published.csv", "n,snr,test_loss\n2,1,9\n".encode("utf-16"), ""),
        ("means.parquet", b"n,snr,test_loss\n2,1,9\n", ""),
        ("published.csv", b"n" * 100_001, "it has more than 100000 bytes"),
    ):
        (run.parent / name).write_bytes(content)
        with pytest.raises(UserError, match=rf"{name}: it can't be read \({reason}"):
            compare_sides(run, run.parent / name)


# Verdicts: by hand, at the edge of a margin, and how often they err


def test_a_margin_is_written_as_a_share_or_as_a_number() -> None:
    for given in ("10%", "10 %", " 10% "):
        assert Margin.read(given) == Margin.read("10.0%")
    assert str(Margin.read("10%")) == "10 %"
    assert str(Margin.read(0.01)) == str(Margin.read("1e-2")) == "0.01"
    for wrong in (0, "-10%", "abc", "", "%", "nan", "inf", "1e999", "1_0", True, [1], math.nan):
        with pytest.raises(UserError, match="it takes a share of the mean of B, such as 5%"):
            Margin.read(wrong)


def test_places_have_verdicts_and_say_what_they_lack(tmp_path: Path) -> None:
    def numbers(n: int, snr: float, seed: int) -> float | None:
        copied, sign = 0 if snr == 2 and seed > 2 else seed, -1 if snr == 5 else 1
        return None if snr == 3 and seed == 1 else sign + 0.001 * math.sin(copied + 1)

    run = write_run(tmp_path / "run", loss(numbers), n=(1,), snr=range(1, 6), seeds=SIX)
    few, lost = "5 distinct seeds on each side", "the number of a cell"
    for row, verdict, lacks in (
        ("1,1,0.001,24,", "equivalent", ""),
        ("1,1.3,0.001,24,", "differs", ""),
        ("1,1.11,0.05,24,", "open", ""),
        ("5,-1.02,0.05,24,", "equivalent", ""),
        ("5,-0.8,0.05,24,", "differs", ""),
        ("1,1,0.001,4,", "open", few),
        ("2,1,0.001,24,", "open", few),
        ("3,1,0.001,24,", "open", lost),
        ("4,1,0.001,24,1", "open", lost),
        ("4,1,,,\n9,1,0.1,9,", "open", "a published uncertainty"),
    ):
        text = f"snr,test_loss,test_loss_sd,seeds,failed\n{row}"
        comparison = compared(run, text, tolerance="10%")
        [point] = comparison.columns[0]["points"]
        assert (point["verdict"], point["lacks"]) == (verdict, lacks)
        assert comparison.columns[0]["verdicts"][verdict] == 1
        assert comparison.differs == (verdict == "differs")


@pytest.mark.slow
@pytest.mark.parametrize("margin", ["10%", "50%", "0.1"])
@pytest.mark.parametrize("seeds", [(5, 5), (6, 24)])
@pytest.mark.one_in(3)
def test_at_the_end_of_a_margin_5_of_100_err(margin: str, seeds: tuple[int, int]) -> None:
    world = World(*seeds, margin)
    for mean in (edge(margin), 2 - edge(margin)):
        at_edge = world.shares(mean, runs=1500)
        assert at_edge["equivalent"] < 0.05 + 3 * math.sqrt(0.05 * 0.95 / 1500)
        assert at_edge["differs"] < 0.025 + 3 * math.sqrt(0.025 * 0.975 / 1500)
    assert world.shares(1.0, runs=300)["differs"] == 0
