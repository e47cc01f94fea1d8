"""Published means with their uncertainty: as Welch's interval at a place, and as verdicts."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import overfit_cli
from calibration.equivalence import World, edge
from overfit_cli import UserError
from overfit_cli.report.difference_words import closing_lines
from overfit_cli.report.differences import Comparison, compare_sides
from overfit_cli.report.equivalence import EquivalenceVerdict, read_tolerance
from overfit_cli.stats.intervals import Summary, difference_of_means
from tests.command import call
from tests.report.toy_numbers import loss, write_run

SEEDS = range(6)


def drawn(n: int, snr: float, seed: int) -> float:
    """Seeds that differ, and more so at larger n."""
    return n * snr + 0.1 * n * math.sin(7 * seed + n + snr)


def seeds_at(n: int, snr: float) -> list[float]:
    return [drawn(n, snr, seed) for seed in SEEDS]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run", loss(drawn), n=(2, 4), snr=(1.0, 2.0), seeds=SEEDS)


def compared(run: Path, text: str, **options: Any) -> Comparison:
    path = run.parent / "published.csv"
    path.write_text(text)
    return compare_sides(run, path, **options)


def point(run: Path, text: str) -> dict[str, Any]:
    """The first point of a comparison."""
    first: dict[str, Any] = compared(run, text).differences[0]["points"][0]
    return first


def welch(mean: float, sd: float, seeds: int, sample: list[float]) -> tuple[float, float]:
    """The ends of the 95 % interval of a published mean less that of a sample, by scipy."""
    published = mean + sd * stats.zscore(np.arange(seeds), ddof=1)
    interval = stats.ttest_ind(published, sample, equal_var=False).confidence_interval(0.95)
    return interval.low, interval.high


# What an uncertainty may be


def test_a_standard_deviation_and_seeds_give_welchs_interval_and_a_z_score(run: Path) -> None:
    read = point(run, "n,snr,test_loss,test_loss_sd,seeds\n4,2,8.3,0.4,24\n")
    sample = seeds_at(4, 2.0)
    low, high = welch(8.3, 0.4, 24, sample)
    assert (read["difference"]["low"], read["difference"]["high"]) == pytest.approx((low, high))
    error = math.sqrt(0.4**2 / 24 + np.var(sample, ddof=1) / 6)
    assert read["z"] == pytest.approx((8.3 - np.mean(sample)) / error)
    assert read["seeds"] == {"a": 6, "b": 24}
    assert read["difference"]["kind"] == "95 % Welch's t over 24 and 6 seeds"


def test_a_standard_error_is_a_deviation_over_the_root_of_the_seeds(run: Path) -> None:
    by_sd = point(run, "n,snr,test_loss,test_loss_sd,seeds\n4,2,8.3,0.4,16\n")
    by_se = point(run, "n,snr,test_loss,test_loss_se,seeds\n4,2,8.3,0.1,16\n")
    for end in ("value", "low", "high"):
        assert by_se["difference"][end] == pytest.approx(by_sd["difference"][end])


def test_without_seeds_a_standard_error_counts_as_exact(run: Path) -> None:
    read, sample = point(run, "n,snr,test_loss,test_loss_se\n4,2,8.3,0.1\n"), seeds_at(4, 2.0)
    ours = float(np.var(sample, ddof=1)) / 6
    whole = 0.1**2 + ours
    half = stats.t.ppf(0.975, whole**2 / (ours**2 / 5)) * math.sqrt(whole)
    assert read["difference"]["high"] - read["difference"]["value"] == pytest.approx(half)
    assert read["seeds"]["b"] is None


@pytest.mark.parametrize("seeds", ["", ",10"])
def test_an_interval_is_that_of_t_over_its_seeds_or_normal_without(run: Path, seeds: str) -> None:
    quantile = stats.t.ppf(0.975, 9) if seeds else stats.norm.ppf(0.975)
    column = ",seeds" if seeds else ""
    error = 0.05
    ends = f"{8.3 - quantile * error:.12f},{8.3 + quantile * error:.12f}"
    by_ends = point(
        run, f"n,snr,test_loss,test_loss_low,test_loss_high{column}\n4,2,8.3,{ends}{seeds}\n"
    )
    by_error = point(run, f"n,snr,test_loss,test_loss_se{column}\n4,2,8.3,{error}{seeds}\n")
    assert by_ends["z"] == pytest.approx(by_error["z"])
    assert by_ends["difference"]["low"] == pytest.approx(by_error["difference"]["low"])


def test_a_count_may_be_called_n_where_the_study_has_no_parameter_n(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "def train(alpha: float = 1.0, seed: int = 0):\n"
        "    return {'theta': alpha + 0.01 * seed, 'm': alpha}\n"
    )
    call("sweep", "mine.py", "--alpha=1,2", "--seeds=5", "--jobs=1", "--out=mine", cwd=tmp_path)
    points = []
    for name in ("n", "seeds"):
        path = tmp_path / f"{name}.csv"
        path.write_text(f"alpha,theta,theta_sd,{name}\n1,1.02,0.1,24\n")
        points.append(compare_sides(tmp_path / "mine", path).differences[0]["points"][0])
    assert points[0] == points[1]
    assert points[0]["seeds"] == {"a": 5, "b": 24}


def test_a_row_without_an_uncertainty_has_no_interval(run: Path) -> None:
    text = "n,snr,test_loss,test_loss_sd,seeds\n2,1,2,,1\n4,2,8,0.4,24\n"
    first, second = compared(run, text, tolerance="10%").differences[0]["points"]
    assert math.isnan(first["difference"]["low"])
    assert (first["verdict"], first["lacks"]) == ("open", "a published uncertainty")
    assert second["verdict"] == "equivalent"


def test_the_mean_over_places_allows_for_errors_that_all_go_one_way(run: Path) -> None:
    text = "n,snr,test_loss,test_loss_se,seeds\n2,1,2,0.1,24\n4,2,8,0.3,12\n"
    change = compared(run, text).differences[0]["difference"]
    ours = np.mean([seeds_at(2, 1.0), seeds_at(4, 2.0)], axis=0)
    low, high = welch(5.0, 0.2 * math.sqrt(12), 12, ours.tolist())
    assert (change["low"], change["high"]) == pytest.approx((low, high))


def test_intervals_that_contain_0_are_counted(run: Path) -> None:
    text = "n,snr,test_loss,test_loss_sd,seeds\n2,1,2,0.1,24\n4,2,80,0.1,24\n"
    words = "test_loss: the interval of B − A contains 0 at 1 of 2 points."
    assert words in closing_lines(compared(run, text))


# Places


def test_values_that_print_rounded_to_a_millionth_are_the_runs(tmp_path: Path) -> None:
    grid = tuple(np.linspace(0.01, 2, 25).tolist())
    run = write_run(tmp_path / "run", loss(drawn), n=(2,), snr=grid, seeds=SEEDS)
    rows = [f"{value:.8g},1" for value in grid]
    assert rows[1] == "0.092916667,1"
    comparison = compared(run, "\n".join(["snr,test_loss", *rows]))
    assert (comparison.pairs.both, comparison.alone["b"]) == (25, 0)
    assert comparison.differences[0]["points"][1]["at"] == {"snr": grid[1]}
    far = compared(run, f"snr,test_loss\n{grid[1] * (1 + 3e-6)!r},1\n{grid[2]!r},1\n")
    assert (far.pairs.both, far.alone["b"]) == (1, 1)


def test_two_rows_that_round_to_one_place_are_refused(run: Path) -> None:
    with pytest.raises(UserError, match="rows 1 and 2 have the same n and snr"):
        compared(run, "n,snr,test_loss\n2,1,1\n2,1.0000001,2\n")


# What export writes


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_exported_means_are_read_back(run: Path, ending: str) -> None:
    folder = run.parent
    call("export", "run", "--means", f"--out=means.{ending}", cwd=folder)
    shown = call("compare", "run", f"means.{ending}", "--tolerance=20%", cwd=folder).stdout
    assert shown.startswith(
        "Equivalent within 20 %: test_loss, steps.\n"
        "test_loss: 4 of 4 points equivalent (90 % Welch, 6 seeds against 6), 0 open, "
        "0 differ (95 %).\n"
    )
    assert "No difference: A and B are equal in all 2 columns.\n" in shown
    places = overfit_cli.compare(run, folder / f"means.{ending}", tolerance=0.5).places()
    sample = seeds_at(4, 2.0)
    [row] = places[
        (places["column"] == "test_loss") & (places["n"] == 4) & (places["snr"] == 2)
    ].to_dict("records")
    low, high = welch(float(np.mean(sample)), float(np.std(sample, ddof=1)), 6, sample)
    assert (row["low"], row["high"]) == pytest.approx((low, high))
    assert row["z"] == pytest.approx(0, abs=1e-9)


def test_a_mean_of_some_seeds_alone_keeps_its_interval(tmp_path: Path) -> None:
    # A column that some cells lack has fewer numbers than `seeds` says.
    def some(n: int, snr: float, seed: int) -> dict[str, float]:
        return {"test_loss": drawn(n, snr, seed), **({"draw": 1.0 + seed} if seed < 4 else {})}

    run = write_run(tmp_path / "run", some, n=(2,), snr=(1.0,), seeds=SEEDS)
    call("export", "run", "--means", "--out=means.csv", cwd=tmp_path)
    table = pd.read_csv(tmp_path / "means.csv")
    half = float(table["draw_high"].iloc[0] - table["draw_low"].iloc[0]) / 2
    assert half == pytest.approx(stats.t.ppf(0.975, 3) * stats.sem([1, 2, 3, 4]))
    point = compare_sides(run, tmp_path / "means.csv", ["draw"]).differences[0]["points"][0]
    published = half / stats.t.ppf(0.975, 5)
    error = math.hypot(published, stats.sem([1, 2, 3, 4]))
    assert point["difference"]["high"] > stats.norm.ppf(0.975) * error


def test_cells_that_failed_in_what_was_exported_leave_a_place_open(tmp_path: Path) -> None:
    def fails(n: int, snr: float, seed: int) -> dict[str, float] | None:
        return None if seed == 6 and snr == 1 else {"test_loss": drawn(n, snr, seed)}

    write_run(tmp_path / "run", fails, n=(2,), snr=(1.0, 2.0), seeds=range(7))
    call("export", "run", "--means", "--out=means.csv", cwd=tmp_path)
    write_run(tmp_path / "whole", loss(drawn), n=(2,), snr=(1.0, 2.0), seeds=range(7))
    for run in ("run", "whole"):
        shown = call("compare", run, "means.csv", "--tolerance=30%", cwd=tmp_path).stdout
        assert "1 of 2 points equivalent" in shown
        assert "1 open (1 lacks the number of a cell), 0 differ" in shown


# Files that can't be read


BAD = [
    (
        "test_loss,test_loss_sd,seeds\n2,1,9,-0.1,24\n",
        "test_loss_sd takes a number of at least 0, not -0.1.",
    ),
    ("test_loss,test_loss_sd,seeds\n2,1,9,0.1,1\n", "test_loss_sd needs at least 2 seeds, not 1."),
    ("test_loss,test_loss_sd,seeds\n2,1,9,0.1,\n", "test_loss_sd needs a number of seeds."),
    ("test_loss,test_loss_sd,seeds\n2,1,9,0.1,2.5\n", "seeds takes a whole number of at least 0."),
    (
        "test_loss,test_loss_low,test_loss_high\n2,1,9,10,8\n",
        "test_loss_low lies above test_loss_high.",
    ),
    (
        "test_loss,test_loss_low,test_loss_high\n2,1,9,9.5,10\n",
        "test_loss lies outside test_loss_low and test_loss_high.",
    ),
    (
        "test_loss,test_loss_low,test_loss_high\n2,1,9,8,\n",
        "a row has test_loss_low and test_loss_high, or neither.",
    ),
]
BAD_COLUMNS = [
    (
        "test_loss,test_loss_sd\n2,1,9,0.1\n",
        "test_loss_sd needs a column seeds, the number of seeds of a mean.",
    ),
    ("test_loss,test_loss_low\n2,1,9,8\n", "test_loss_low requires a column test_loss_high."),
    (
        "test_loss,test_loss_sd,test_loss_se,seeds\n2,1,9,1,1,9\n",
        "test_loss_sd and test_loss_se give one number twice; keep one of them.",
    ),
    ("test_loss,draw_se\n2,1,9,1\n", "draw_se is there without draw; add the column draw."),
    ("test_loss,snr_sd\n2,1,9,1\n", "toy has no parameter and no measured column 'snr_sd'; "),
    (
        "seed,test_loss,test_loss_se\n2,1,0,9,1\n",
        "a row for each seed has no test_loss_se; leave out ",
    ),
]


@pytest.mark.parametrize(("text", "words"), [*((t, f"row 1: {w}") for t, w in BAD), *BAD_COLUMNS])
def test_an_uncertainty_that_is_none_is_refused_in_a_sentence(
    run: Path, text: str, words: str
) -> None:
    (run.parent / "published.csv").write_text(f"n,snr,{text}")
    message = call("compare", "run", "published.csv", cwd=run.parent, expect=2).stderr
    assert message.startswith(f"overfit: published.csv: {words}")
    assert message.count("\n") == 1


def test_a_file_that_is_no_parquet_file_is_refused(run: Path) -> None:
    (run.parent / "means.parquet").write_text("n,snr,test_loss\n2,1,9\n")
    with pytest.raises(UserError, match=r"means.parquet: it is no parquet file \("):
        compare_sides(run, run.parent / "means.parquet")


# Verdicts: by hand, at the edge of a margin, and how often they err


def near(n: int, snr: float, seed: int) -> float:
    """A mean of n + snr over six seeds, whose deviation is 0.1."""
    return n + snr + 0.1 * (seed - 2.5) / math.sqrt(3.5)


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run", loss(near), n=(1, 2), snr=(1.0, 2.0), seeds=SEEDS)


def rows_of(*means: str) -> str:
    return "\n".join(["n,snr,test_loss,test_loss_sd,seeds", *means])


def verdicts(comparison: Comparison) -> list[str]:
    return [point["verdict"] for point in comparison.differences[0]["points"]]


# One place


def test_a_place_agrees_by_its_90_interval_and_differs_by_its_95_interval() -> None:
    run = Summary(3.0, 0.1 / math.sqrt(6), 5, 6)
    error = math.hypot(0.1 / math.sqrt(24), run.error)
    parts = (0.1**2 / 24, run.error**2)
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / 23 + parts[1] ** 2 / 5)
    margin = read_tolerance(0.2)
    inner, outer = (stats.t.ppf(share, freedom) * error for share in (0.95, 0.975))
    for side in (1, -1):
        for nudge, inside, outside in ((1e-6, "equivalent", "differs"), (-1e-6, "open", "open")):
            agreeing, differing = 0.2 - inner - nudge, 0.2 + outer + nudge
            assert margin.verdict(_published(3 + side * agreeing), run) == inside
            assert margin.verdict(_published(3 + side * differing), run) == outside


def _published(mean: float) -> Summary:
    return Summary(mean, 0.1 / math.sqrt(24), 23, 24)


def test_the_end_of_a_share_is_as_uncertain_as_the_published_mean() -> None:
    # The run's mean against 1.5 times the published one, whose error is 1.5 times as large.
    run, published = Summary(1.3, 0.0, 5, 6), Summary(1.0, 0.1, 23, 24)
    plain = difference_of_means(published, run)
    assert plain.inner is not None
    assert plain.inner[0] > -0.5, "the interval of the difference lies inside half of the mean"
    assert read_tolerance("50%").verdict(published, run) == "open"
    assert read_tolerance("0.5").verdict(published, run) == "equivalent"


@pytest.mark.parametrize("sign", [1, -1])
def test_a_share_is_of_the_size_of_the_published_mean(sign: int) -> None:
    margin, run = read_tolerance("10%"), Summary(sign * 1.0, 0.01, 5, 6)
    by_mean: dict[float, EquivalenceVerdict] = {
        1.02: "equivalent",
        1.11: "open",
        1.3: "differs",
        0.8: "differs",
    }
    for mean, verdict in by_mean.items():
        assert margin.verdict(Summary(sign * mean, 0.01, 23, 24), run) == verdict


def test_a_margin_is_written_as_a_share_or_as_a_number() -> None:
    for given in ("10%", "10 %", " 10% "):
        assert read_tolerance(given) == read_tolerance("10.0%")
    assert str(read_tolerance("10%")) == "10 %"
    assert str(read_tolerance(0.01)) == str(read_tolerance("1e-2")) == "0.01"
    for wrong in (0, "-10%", "abc", "", "%", "nan", "inf", "1e999", "1_0", True, [1], math.nan):
        with pytest.raises(UserError, match="it takes a share of the mean of B, such as 5%"):
            read_tolerance(wrong)


# A file of places


def test_places_are_counted(plain: Path) -> None:
    means = ("1,1,2.01,0.1,24", "1,2,3.3,0.1,24", "2,1,4,0.1,24", "2,2,6,0.1,24")
    comparison = compared(plain, rows_of(*means), tolerance="10%")
    assert verdicts(comparison) == ["equivalent", "open", "differs", "differs"]
    [record] = comparison.differences
    assert record["verdicts"] == {"equivalent": 1, "open": 1, "differs": 2}
    assert comparison.differs
    places = comparison.places()
    assert places.loc[2, "verdict"] == "differs"
    assert places.loc[2, "z"] == pytest.approx(
        1 / math.hypot(0.1 / math.sqrt(24), 0.1 / math.sqrt(6))
    )


def test_few_seeds_copies_and_failed_cells_leave_a_place_open(tmp_path: Path) -> None:
    def numbers(n: int, snr: float, seed: int) -> dict[str, float] | None:
        copied = 0 if snr == 2 and seed > 2 else seed
        return None if snr == 3 and seed == 1 else {"test_loss": 1 + 0.001 * math.sin(copied + 1)}

    run = write_run(tmp_path / "run", numbers, n=(1,), snr=(1.0, 2.0, 3.0), seeds=SEEDS)
    means = [f"1,{snr},1,0.001,24" for snr in (1, 2, 3)]
    points = compared(run, rows_of(*means), tolerance="10%").differences[0]["points"]
    assert [(point["verdict"], point["lacks"]) for point in points] == [
        ("equivalent", ""),
        ("open", "5 distinct seeds on each side"),
        ("open", "the number of a cell"),
    ]
    few = compared(run, rows_of("1,1,1,0.001,4"), tolerance="10%").differences[0]["points"][0]
    assert (few["verdict"], few["lacks"]) == ("open", "5 distinct seeds on each side")


# How often a verdict is wrong


@pytest.mark.parametrize("margin", ["10%", "50%", "0.1"])
@pytest.mark.parametrize("seeds", [(5, 5), (6, 24)])
@pytest.mark.one_in(3)
def test_verdicts_at_the_end_of_a_margin_err_at_most_in_5_of_100(
    margin: str, seeds: tuple[int, int]
) -> None:
    world = World(*seeds, margin)
    for mean in (edge(margin), 2 - edge(margin)):
        at_edge = world.shares(mean, runs=1500)
        assert at_edge["equivalent"] < 0.05 + 3 * math.sqrt(0.05 * 0.95 / 1500)
        assert at_edge["differs"] < 0.025 + 3 * math.sqrt(0.025 * 0.975 / 1500)
    assert world.shares(1.0, runs=300)["differs"] == 0
