"""Verdicts on published means: by hand, at the edge of a margin, and how often they err."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

import overfit_cli
from calibration.equivalence import World, edge, rows
from overfit_cli import UserError
from overfit_cli.report.differences import Comparison, compare_sides
from overfit_cli.report.equivalence import EquivalenceVerdict, read_tolerance
from overfit_cli.stats.intervals import Summary, difference_of_means
from tests.report.toy_numbers import loss, write_run

SEEDS = range(6)
PAGE = Path(__file__).parents[2] / "docs" / "verdicts.md"


def drawn(n: int, snr: float, seed: int) -> float:
    """A mean of n + snr over six seeds, whose deviation is 0.1."""
    return n + snr + 0.1 * (seed - 2.5) / math.sqrt(3.5)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run", loss(drawn), n=(1, 2), snr=(1.0, 2.0), seeds=SEEDS)


def compared(run: Path, *means: str, **options: Any) -> Comparison:
    """The run beside rows of `n,snr,mean,sd,seeds`."""
    path = run.parent / "published.csv"
    path.write_text("\n".join(["n,snr,test_loss,test_loss_sd,seeds", *means]))
    return compare_sides(run, path, **options)


def verdicts(comparison: Comparison) -> list[str]:
    return [point["verdict"] for point in comparison.differences[0]["points"]]


# One place


def test_a_place_agrees_by_its_90_interval_and_differs_by_its_95_interval() -> None:
    run = Summary(3.0, 0.1 / math.sqrt(6), 5, 6)
    error = math.hypot(0.1 / math.sqrt(24), run.error)
    parts = (0.1**2 / 24, run.error**2)
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / 23 + parts[1] ** 2 / 5)
    margin = read_tolerance(0.2)
    for share, inside, outside in ((0.95, "equivalent", "open"), (0.975, "open", "differs")):
        reach = stats.t.ppf(share, freedom) * error
        for nudge in (1e-6, -1e-6):
            for side in (1, -1):
                near = 3 + side * (0.2 - reach - nudge)
                far = 3 + side * (0.2 + reach + nudge)
                expected = inside if (nudge > 0) == (share == 0.95) else "open"
                if share == 0.95:
                    assert margin.verdict(_published(near), run) == expected
                expected = outside if nudge > 0 else "open"
                assert margin.verdict(_published(far), run) == expected


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
    bad = (
        0,
        -3,
        "0",
        "-3",
        "0%",
        "-10%",
        "abc",
        "",
        "%",
        "nan",
        "inf",
        "1e999",
        "1_0",
        True,
        [1],
        math.nan,
    )
    for wrong in bad:
        with pytest.raises(UserError, match="it takes a share of the mean of B, such as 5%"):
            read_tolerance(wrong)


# A file of places


def test_places_are_counted(run: Path) -> None:
    means = ("1,1,2.01,0.1,24", "1,2,3.3,0.1,24", "2,1,4,0.1,24", "2,2,6,0.1,24")
    comparison = compared(run, *means, tolerance="10%")
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
    points = compared(run, *means, tolerance="10%").differences[0]["points"]
    assert [(point["verdict"], point["lacks"]) for point in points] == [
        ("equivalent", ""),
        ("open", "5 distinct seeds on each side"),
        ("open", "the number of a cell"),
    ]
    few = compared(run, "1,1,1,0.001,4", tolerance="10%").differences[0]["points"][0]
    assert (few["verdict"], few["lacks"]) == ("open", "5 distinct seeds on each side")


def test_a_margin_needs_published_means_with_an_uncertainty(run: Path, tmp_path: Path) -> None:
    (tmp_path / "bare.csv").write_text("n,snr,test_loss\n1,1,2\n")
    with pytest.raises(UserError, match="has no uncertainty; beside test_loss it takes "):
        overfit_cli.compare(run, tmp_path / "bare.csv", tolerance="10%")
    assert "verdict" not in overfit_cli.compare(run, tmp_path / "bare.csv").places()


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


def test_the_page_has_the_table_of_error_rates() -> None:
    page = PAGE.read_text()
    heading, rule, *worlds = rows(runs=2)
    assert f"{heading}\n{rule}\n" in page
    for row in worlds:
        assert "|".join(row.split("|")[:4]) in page
