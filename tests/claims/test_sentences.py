from __future__ import annotations

import itertools
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as some
from scipy.stats import spearmanr

from overfit_cli.claims import stated
from overfit_cli.claims.parts import FEWEST, Margin, Statistic
from overfit_cli.claims.quantities import Level, _end_ranks, _rank_correlations
from overfit_cli.claims.sentences import FORMS, read
from overfit_cli.claims.stated import Measure, cells_of, claim, joined
from overfit_cli.core.claim import Interval, Measurement, Verdict
from overfit_cli.core.errors import BadValue
from overfit_cli.core.expressions import ANY, read_expression
from overfit_cli.report.runs import run_of_cells
from tests.claims.decay import STUDY, cells, lost
from tests.judged import lines


def grid(slope: float = 0.1, seeds: int = 5) -> pd.DataFrame:
    """Noise with ties, and a trend along n; one line is constant."""
    rows = cells(tuple(range(2, 14)), tuple(map(float, range(1, 9))), seeds=seeds)
    noise = np.random.default_rng(0).standard_normal(len(rows))
    rows["test_error"] = np.round(noise + slope * rows["n"], 1)
    rows.loc[(rows["snr"] == 3) & (rows["seed"] == 1), "test_error"] = 1.0
    return rows.sample(frac=1, random_state=0)


def peaked(height: float) -> pd.DataFrame:
    """A trend that falls, with a peak on its way."""
    rows = grid(-0.3, seeds=20)
    peak = rows["n"].map({6: 8.0, 7: 16.0, 8: 8.0}).fillna(0.0)
    return rows.assign(test_error=rows["test_error"] + height * peak)


def judged(text: str, rows: pd.DataFrame) -> Measurement:
    return claim(text, STUDY).judge(rows)


ALL, LINE, TEN, TWO = cells(), cells(snr=(1.0,)), cells((10,), (1.0,)), cells((4, 8), (1.0,))
GROUPS = cells(method=("none", "ridge"))
UNEVEN = cells((10,), (1.0, 2.0, 4.0))
UNEVEN.loc[UNEVEN["snr"] == 1.0, "test_error"] += 0.02
FIVE = TEN[TEN["seed"] < 5]
ABSENT = pd.concat([TEN, cells((10,), (2.0,), seeds=5)])
WORST = TWO.assign(test_error=np.where(TWO["seed"] % 2 == TWO["n"] // 8, 1.0, 0.1))
WORST["test_error"] += 0.001 * WORST["seed"]
"""Each n has a large error at half of the seeds, and every seed at one n."""
TURNED = LINE.assign(test_error=LINE["test_error"] * np.where(LINE["n"] == 32, 4, 1))
JUMPED = LINE.assign(test_error=LINE["n"].map({4: 1.0, 8: 1.1, 16: 1.2, 32: 0.1}))
JUMPED["test_error"] += 0.001 * JUMPED["seed"]
STEPPED = cells((2, 4, 8, 16, 32), (1.0,), seeds=20)
NOISE = 0.01 * np.random.default_rng(0).standard_normal(len(STEPPED))
FLATTENED = STEPPED.assign(test_error=0.3 + 1 / STEPPED["n"] ** 2 + NOISE / 100)
STEPPED["test_error"] = np.where(STEPPED["n"] == 32, 0.9, 0.2) + NOISE
BOUNCED = LINE.assign(test_error=LINE["n"].map({4: 1.0, 8: 0.3, 16: 0.5, 32: 0.1}))
BOUNCED["test_error"] += 0.001 * BOUNCED["seed"]
FLOORED = cells((4, 8, 16, 32, 64, 128), (1.0,)).eval("test_error = 0.3 + test_error")
PEAKED = STEPPED.assign(test_error=STEPPED["n"].map({2: 9, 4: 1, 8: 6, 16: 0.6, 32: 0.1}))
PEAKED["test_error"] += 0.001 * PEAKED["seed"]
ABRUPT = ALL.assign(test_error=np.where(ALL["n"] > 16, 0.9, ALL["test_error"]))
TWICE = ALL.assign(test_error=np.where(ALL["snr"] > 1, 0.9, ALL["test_error"]))
MARKED = TWO.assign(method_is=1.0, test_error=100 * (TWO["seed"] > 0))
NAMED = cells((4,), (1.0,), ("none", "ridge")).assign(late_error=0.9, error=0.9, **{"acc (%": 90.0})
RIDGE, NONE = "test_error[method=ridge]", "test_error[method=none]"
LARGEST, SMALLEST = "test_error[n is largest]", "test_error[n is smallest]"
CONTOUR, POWER = "power of n in snr at test_error = 0.1", "power of n in test_error < 0"
FALLS = "mean of test_error falls along n on average"


@pytest.mark.parametrize(
    ("text", "rows", "verdict", "words"),
    [
        ("test_error < 0.05 where snr = 2 and n > 4", ALL, "holds", ""),
        ("test_error < 0.05 where snr = 2 and n > 2", ALL, "fails", ""),
        ("0.05 > test_error where snr = 2, n > 4", ALL, "holds", ""),
        ("test_error is 0.25 within 0.02 where n = 4, snr = 1", ALL, "holds", ""),
        ("test_error is 0.3 within 10% where n = 4, snr = 1", ALL, "fails", ""),
        ("test_error is 0.2 within a factor of 2 where n = 4, snr = 1", ALL, "holds", ""),
        ("test_error falls along snr", ALL, "holds", ""),
        ("test_error rises along snr", ALL, "fails", ""),
        ("test_error falls along n", JUMPED, "fails", "worst is at all but the last value"),
        ("test_error falls along n", STEPPED.assign(n=64 / STEPPED["n"]), "inconclusive", "first"),
        ("test_error falls along n", FLATTENED, "holds", ""),
        ("rank correlation of snr in test_error < -0.9", ALL, "holds", ""),
        ("rank correlation of n in test_error < -0.1", BOUNCED, "holds", ""),
        ("rank correlation of n in test_error < -0.9", BOUNCED, "fails", "the whole line"),
        ("power of n in steps_taken is 1 within 0.1", ALL, "holds", ""),
        ("power of snr in test_error < -1.9", ALL, "holds", ""),
        (f"{CONTOUR} is -0.5 within 0.1", ALL, "holds", ""),
        ("share of seeds with test_error < 0.1 > 0.7 where n * snr**2 > 12", ALL, "holds", ""),
        ("share of seeds with test_error < 0.1 > 70% where n * snr**2 < 9", ALL, "fails", ""),
        ("n * SNR**2 * test_error is 1 within 0.1", ALL, "inconclusive", ""),
        # Two groups, seed by seed
        (f"{RIDGE} < {NONE}", GROUPS, "holds", ""),
        (f"{RIDGE} > {NONE}", GROUPS, "fails", ""),
        (f"{RIDGE} / {NONE} is 0.5 within 10%", GROUPS, "holds", ""),
        # Every setting, their average, and the worst of each seed
        ("test_error < 0.11", UNEVEN, "fails", "The worst is at snr=1.0"),
        ("test_error < 0.11 on average", UNEVEN, "holds", ""),
        ("test_error < 0.9 on average", WORST, "holds", ""),
        ("test_error < 0.9", WORST, "inconclusive", ""),
        ("test_error < 0.9 at worst", WORST, "fails", ""),
        ("test_error is 0.5 within 0.3 at worst", WORST, "fails", "is the most over 2 settings."),
        # Missing cells and seeds; a median bears a cell that is lost
        ("test_error < 0.2", TEN, "holds", ""),
        ("test_error < 0.2", lost(TEN, 4), "inconclusive", ""),
        ("test_error < 0.2", lost(TEN, 1), "holds", ""),
        ("mean of test_error < 0.2", lost(TEN, 1), "inconclusive", ""),
        ("test_error < 0.2", ABSENT, "inconclusive", ""),
        ("test_error < 0.2", FIVE, "inconclusive", "It needs 6 seeds; these cells have 5."),
        # Ends of grids
        ("test_error is 1/32 within 5% where n is largest", LINE, "holds", ""),
        ("test_error is 1/16 within 5% where n < 32 and n is largest", LINE, "holds", ""),
        (f"{SMALLEST} / {LARGEST} is 8 within 10%", LINE, "holds", ""),
        (f"share of seeds with {LARGEST} < {SMALLEST} > 2/3", LINE, "holds", ""),
        ("test_error < 0.2 where method is largest", LINE, "inconclusive", ""),
        # Powers that turn at the end, or that the last value decides
        (f"{POWER} throughout", LINE, "holds", "worst is at the whole line."),
        (POWER, TURNED, "fails", "The worst is at n=16 to 32."),
        (f"{POWER} throughout", TURNED, "fails", "The worst is at its end."),
        (POWER, JUMPED, "fails", "The worst is at n=4 to 8."),
        # A power is one all along a line: a floor, and a peak, are none
        ("power of n in test_error is -0.5 within 0.4", FLOORED, "fails", "It is no power"),
        ("power of n in test_error - 0.3 is -1 within 0.1", FLOORED, "holds", ""),
        (POWER, FLOORED, "holds", "Its pieces have powers from −0.3"),
        (POWER, PEAKED, "fails", "The worst is at n=4 to 8."),
        ("powers of (n) in test_error are (-1) within 0.8", PEAKED, "fails", "It is no power"),
        ("power of n in n is 1 within 0.1", LINE, "vacuous", "No number"),
        ("test_error >= 0 on all seeds", TEN, "holds", ""),
        # Where a quantity has a number: beyond the grid lies a bound, which may refute a law
        ("snr at test_error = 0.25 is 1 within 0.02 where n = 4", ALL, "holds", ""),
        (
            "SNR at test_error = 0.25 is 1 within 2% where n = 4",
            ALL,
            "inconclusive",
            "known: n, snr",
        ),
        ("snr at test_error = 0.25 < 0.6", ALL, "fails", "The worst is at n=4."),
        ("snr at test_error = 0.001 > 1.5 where n = 4", ALL, "holds", "the end of snr is a bound."),
        ("snr at test_error = 0.001 < 1.5 where n = 4", ALL, "fails", ""),
        ("snr at test_error = 0.001 < 3 where n = 4", ALL, "inconclusive", "end of snr"),
        (f"{CONTOUR} is -0.5 within 0.1", ABRUPT, "fails", "At most half of the seeds cross 0.1"),
        (f"{CONTOUR} is -0.5 within 0.1 where n <= 16", ABRUPT, "holds", ""),
        (f"{CONTOUR} is -0.5 within 0.1 where snr >= 1", ALL, "inconclusive", "n=16; n=32"),
        (f"{CONTOUR} is -0.5 within 0.1", TWICE, "inconclusive", "more than once along snr"),
        ("snr at test_error = 0.1 > 0 where n = 16", TWICE, "inconclusive", "more than once"),
        # Two values
        ("share of seeds with method_is = 1 > 0.7", MARKED, "holds", ""),
        ("mean of test_error > 0.5", MARKED, "holds", ""),
        ("mean of -100 * method_is < -60", MARKED, "inconclusive", "Nothing is known"),
        ("mean of method_is[n=4] - method_is[n=8] > -0.1", MARKED, "inconclusive", "is known"),
        # No number makes it fail
        ("test_error**2 >= 0", TEN, "vacuous", "No number that cells can have makes it fail."),
        ("n > 3", TEN, "vacuous", ""),
        ("share of seeds with test_error**2 >= 0 > 0.5", TEN, "vacuous", ""),
        ("test_error <= test_error + n on all seeds", TEN, "vacuous", ""),
        ("method_is <= 1", MARKED.assign(method_is=MARKED["seed"] > 1), "vacuous", ""),
        ("test_error**2 > 0", TEN, "holds", ""),
        # Several quantities, at the level of all
        ("test_error < 0.3; late > 3", LINE, "holds", ""),
        ("mean of test_error < 0.3; share of seeds with late > 3 > 0.7", LINE, "holds", ""),
        ("test_error < 0.3; late > 5", LINE, "fails", ""),
        ("test_error[n=4] < 0.2; late[n=4] > 3", LINE, "fails", "The worst is test_error[n=4]"),
        # Names are no patterns, and may be the ends of others
        (f"{RIDGE} < late_error[method=ridge] where n = 4", NAMED, "holds", ""),
        ("`acc (%` / 90 is 1 within 1% where n = 4", NAMED, "holds", ""),
        ("test_error < 1 where `acc (%` > 3", NAMED, "inconclusive", "choosing cells by it"),
        # Trends on all lines
        (FALLS, grid(-0.3), "holds", ""),
        (FALLS, grid(0.0), "inconclusive", ""),
        (FALLS, grid().assign(test_error=1.0), "inconclusive", ""),
        (FALLS, grid().query("n == 3"), "not run", ""),
        (FALLS, peaked(1.0), "fails", "its turn"),
        (FALLS, peaked(0.01), "holds", ""),
        # What the cells lack
        ("test_error < 1 where nn > 2", ALL, "inconclusive", "did you mean 'n'?"),
        ("test_error falls along method", ALL, "inconclusive", "is a number; known: n, snr."),
        ("power of n in method at late = 1 is 1 within 1", ALL, "inconclusive", "that is a number"),
        (f"{NONE} < test_error", ALL, "inconclusive", "is taken: test_error[method=...]"),
        ("test_error[metod=ridge] < 1", ALL, "inconclusive", "did you mean 'method'?"),
        ("test_error < 1 where snr > 7", ALL, "not run", "these have none"),
        ("power of snr in late is 1 within 1 where snr = 1", ALL, "not run", "3 values of snr"),
        ("geometric mean of test_error - 1 < 1", TEN, "inconclusive", "which has no logarithm."),
    ],
)
def test_a_sentence_is_judged_as_it_reads(
    text: str, rows: pd.DataFrame, verdict: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stated, "TRIALS", 5)
    measured = judged(text, rows)
    assert measured.verdict == verdict
    assert words in measured.note


def test_a_contour_is_not_known_of_a_seed_that_lacks_a_cell() -> None:
    fewer = np.where((ALL["snr"] == 2) & (ALL["seed"] < 4), "failed", "done")
    measured = judged(f"{CONTOUR} is -0.5 within 0.1", ALL.assign(status=fewer))
    assert measured.verdict == "inconclusive"
    assert measured.details["numbers that are not known"] == 4


def test_an_interval_that_decides_is_said_where_the_wider_one_has_no_end() -> None:
    decided = judged("test_error is 0.1 within 0.05 with at least 5 seeds", FIVE)
    assert decided.verdict == "holds"
    assert decided.interval == Interval(-np.inf, np.inf, "95 % by order over 5 seeds")
    assert "The interval at twice the error, [0.0" in decided.note


# What is read


@pytest.mark.parametrize("text", FORMS)
def test_the_forms_that_messages_name_are_claims(text: str) -> None:
    assert read(text).text == text


REFUSED = r"""
no form of a claim | test_error < 0.05 | test_error | a < b < c | < 3
no form of a claim | test_error is 0.5 within 0.02 | test_error is 0.5
no form of a claim | test_error falls along snr | test_error falls
no form of a claim | power of n in steps is 1 | power of n in steps
no form of a claim | share of seeds with | share of seeds with x < 1
not arithmetic of columns | power of n in steps is 1 | the power is 1 within 2
not arithmetic | test_error < 0.05 | __import__('os').system('true') < 1
too large | test_error < 0.05 | x < 1e999
a tolerance is above 0 | test_error is 0.5 within 0.02 | x is 1 within -1
behind one `where` | test_error < 0.05 | x < 1 where
more than 1000 | test_error < 0.05 | LONG < 1
it takes a power, or `any`, for each name | powers of | powers of (n, d) in x are (1) within 1 \
    | powers of (n) in x are (any) within 1
a rank correlation lies below one from -1 to 0 | rank correlation of \
    | rank correlation of n in x < 0.5 | rank correlation of n in x > -0.5 \
    | rank correlation of n in x < -1 | rank correlation of n in x > 0
'a' is no number | powers of | powers of (n) in x are (a) within 0.1
a tolerance is above 0 | powers of | powers of (n) in x are (1) within 0
no brackets | powers of | powers of (n) in x[d=1] are (1) within 1
leave out `at worst` | powers of | powers of (n) in x are (1) within 1 at worst
is no comparison | test_error <= 0.1 on all | x <= 1 on all seeds if n = 1
between 0 and 100 % | test_error <= 0.1 on all | x <= 1 on 100 % of seeds
not arithmetic | test_error <= 0.1 on all | x <= 1 if n <= 1 | x < 1 for all seeds
not arithmetic | test_error <= 0.1 on all | mean of x <= 1 on all seeds
"""
"""Why texts are no claims, how the nearest form begins, and the texts."""


@pytest.mark.parametrize("line", lines(REFUSED))
def test_a_text_that_is_no_claim_is_refused_with_the_nearest_form(line: str) -> None:
    why, form, *texts = line.split(" | ")
    for text in texts:
        with pytest.raises(BadValue, match=rf"claim=.*{why}.*{re.escape(form)}"):
            read(text.replace("LONG", "x" * 1500))


def test_signs_may_be_typeset_and_values_have_commas_beside_other_conditions() -> None:
    assert read("loss is −1 within 0.1") == read("loss is -1 within 0.1")
    assert read("loss ≤ 1 where n ≥ 2 and n ≠ 3") == read("loss <= 1 where n >= 2 and n != 3")
    where = read("test_error < 1 where n = 4,8 and snr > 1, method = none,ridge").where
    assert where == ("n = 4,8", "snr > 1", "method = none,ridge")


STATISTICS: dict[str, Statistic] = {"": "median", "mean of ": "mean"}
OVER = {"": "every", " on average": "average", " at worst": "worst"}
CONDITIONS = ["snr > 2", "n = 10,20", "method = ridge", "d is largest", "n >= 2*d"]


@given(
    number=some.sampled_from(["test_error", "n * loss", "log(steps)", "(a - b) / c"]),
    statistic=some.sampled_from(list(STATISTICS)),
    sign=some.sampled_from(["<", "<=", ">", ">="]),
    end=some.floats(-1e9, 1e9).filter(lambda number: abs(number) > 1e-9),
    over=some.sampled_from(list(OVER)),
    where=some.lists(some.sampled_from(CONDITIONS), max_size=3),
    seeds=some.integers(0, 40),
)
def test_a_level_is_read_as_it_is_written(
    number: str, statistic: str, sign: str, end: float, over: str, where: list[str], seeds: int
) -> None:
    fewest = f" with at least {seeds} seeds" if seeds else ""
    conditions = f" where {' and '.join(where)}" if where else ""
    claimed = read(f"named: {statistic}{number} {sign} {end!r}{over}{fewest}{conditions}")
    (clause,) = claimed.clauses
    assert (clause.statistic, clause.over) == (STATISTICS[statistic], OVER[over])
    way = np.inf if sign[0] == ">" else -np.inf
    beyond = end if sign.endswith("=") else np.nextafter(end, way)
    least, most = sorted([beyond, way])
    assert clause.quantity == Level(read_expression(number, ANY), Margin(least, most))
    assert (claimed.title, claimed.where) == ("named", tuple(where))
    assert claimed.seeds == (seeds or FEWEST[clause.statistic])


def test_a_claim_has_a_name_of_its_own_or_one_made_from_its_text() -> None:
    assert read("learned: test_error < 0.05").name == "learned"
    assert read("test_error < 0.05 where snr > 2").name == "test_error-lt-0.05-where-snr-gt-2"
    stated = claim("learned: test_error < 0.05", STUDY, source="a textbook")
    assert (stated.statement, stated.source) == ("test_error < 0.05", "a textbook")
    assert "below 0.05, at every setting; at least 6 seeds" in stated.holds_where
    assert "its whole interval below 0," in claim(f"{RIDGE} < {NONE}", STUDY).holds_where


# The numbers that are judged


@pytest.mark.parametrize("how", [f"/ {NONE} is 0.5 within 10%", f"< {NONE}"])
def test_a_geometric_mean_is_that_of_ratios(how: str) -> None:
    rows = cells((10,), (1.0,), ("none", "ridge"))
    by_method = rows.pivot(index="seed", columns="method", values="test_error")
    measured = judged(f"geometric mean of {RIDGE} {how}", rows)
    assert measured.verdict == "holds"
    ratio = np.exp(np.log(by_method["ridge"] / by_method["none"]).mean())
    assert measured.value == pytest.approx(ratio)
    assert measured.number.endswith("] 95 % t over 12 seeds")


def test_the_details_have_both_worst_settings_and_a_number_of_each_quantity() -> None:
    both = judged("test_error is 0.5 within 0.3 at worst", WORST)
    assert {"least over 2 settings", "most over 2 settings"} <= set(both.details)
    assert judged("test_error < 0.3; late > 3 where n = 4", LINE).details["late"] == 4.0


def test_a_share_is_of_seeds_that_meet_a_condition_everywhere_where_it_says_so() -> None:
    rows = TWO.assign(test_error=np.where(TWO["seed"] % 3 == TWO["n"] // 8, 1.0, 0.1))
    for condition, of_cells, share in (
        ("test_error < 0.5 everywhere", rows, 1 / 3),
        ("test_error < 0.5", rows, 2 / 3),
        ("test_error < 0.5 and n * test_error > 0.5 everywhere", rows, 0.0),
        # Of the other lost seed it is known: n = 8.
        ("test_error < 0.5 everywhere", lost(rows, 2), (4 + 0.5) / 12),
    ):
        measured = judged(f"share of seeds with {condition} > 0.1", of_cells)
        assert measured.value == pytest.approx(share)


ENDS = {"late": ("waited", "endless")}
"""The columns with the least and the most that a number may be which came too late."""


@pytest.mark.parametrize(
    ("text", "between", "verdict"),
    [
        ("power of n in late > 0.5", {}, "inconclusive"),
        ("power of n in late > 0.5", ENDS, "holds"),
        ("late[n=32] / late[n=4] > 4", ENDS, "holds"),
        ("late[n=32] / late[n=4] < 6", ENDS, "inconclusive"),
        ("share of seeds with late > 19 > 0.6 where n = 32", ENDS, "holds"),
    ],
)
def test_a_number_that_came_too_late_lies_above_what_was_waited_for(
    text: str, between: dict[str, tuple[str, str]], verdict: str
) -> None:
    late = LINE["late"].where(LINE["n"] < 32)  # 32 steps are more than 20
    rows = LINE.assign(late=late, waited=20.0, endless=np.inf)
    measure = Measure(read(text), STUDY.parameters, between=between)
    assert measure(rows).verdict == verdict


def test_the_number_that_a_paper_states_stands_beside_the_end_of_its_margin() -> None:
    stated = read("test_error <= 0.9 at worst").with_target(0)
    measured = Measure(stated, STUDY.parameters)(ALL)
    assert (measured.target, measured.margin) == (0, (-np.inf, 0.9))


# Trends along the lines of a grid are Spearman's


def slow_trend(line: pd.DataFrame) -> float:
    """Spearman's correlation; that of a constant line, which has none, is taken as 0."""
    constant = line["test_error"].nunique() == 1
    return 0.0 if constant else float(spearmanr(line["n"], line["test_error"]).statistic)


def test_the_trend_is_the_mean_over_seeds_of_spearmans_on_each_line() -> None:
    of_lines = grid().groupby(["seed", "snr"])[["n", "test_error"]].apply(slow_trend)
    by_seed = of_lines.groupby("seed").mean().tolist()
    trend, *_ = read(FALLS).parts(cells_of(grid(), STUDY.parameters))
    np.testing.assert_allclose([trend.low, trend.high], [by_seed, by_seed], atol=1e-12)


def test_the_ends_of_a_trend_are_those_of_all_values_that_are_missing() -> None:
    random, x = np.random.default_rng(0), np.arange(6.0)
    for missing in itertools.combinations(range(6), 2):
        values = random.permutation(6).astype(float)
        places = [-1.0, *(values + 0.5)]  # below, between and above all others
        pairs = [*itertools.product(places, places, (-0.1, 0.1))]  # and which of two is larger
        filled = np.tile(values, (len(pairs), 1))
        filled[:, missing] = [(first, second + tie) for first, second, tie in pairs]
        known, ends = _rank_correlations(x, filled)[0], _end_ranks(filled)[0]
        values[list(missing)] = np.nan
        low, high = _rank_correlations(x, values[None])
        assert low[0] <= known.min() + 1e-12
        assert known.max() - 1e-12 <= high[0]
        assert high[0] - low[0] <= known.max() - known.min() + 0.12  # a pair's order
        assert np.ravel(_end_ranks(values[None])) == pytest.approx((ends.min(), ends.max()))


# One claim of several parts, against its parts

PARTS = {
    f"n = {n}": claim(f"mean of test_error[n = {n}] < 1", STUDY, name=f"below-{n}") for n in (2, 4)
}
JOINT = joined(PARTS, name="below", statement="Both are below 1.")


def around(first: float, second: float) -> pd.DataFrame:
    """Ten seeds of n = 2 and n = 4, whose losses lie around these numbers."""
    numbers = np.repeat([first, second], 10) + 0.1 * np.random.default_rng(1).standard_normal(20)
    return cells((2, 4), (1.0,), seeds=10).assign(test_error=numbers)


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
    measured = JOINT.judge(around(first, second))
    assert (measured.verdict, measured.value) == (verdict, measured.details[decisive])
    for name, part in PARTS.items():
        alone = part.judge(around(first, second))
        value, low, high = (measured.details[f"{name}{end}"] for end in ("", ", from", ", to"))
        assert alone.interval == Interval(low, high, "95 % t over 10 seeds")
        assert alone.value == value


def test_a_failure_that_is_none_at_the_level_of_all_is_undecided() -> None:
    part = PARTS["n = 4"].judge(around(0.5, 1.0))
    assert part.interval
    assert part.value
    shifted = around(0.5, 2 - part.value + 1.02 * (part.interval.high - part.value))
    assert PARTS["n = 4"].judge(shifted).verdict == "fails"
    assert JOINT.judge(shifted).verdict == "inconclusive"


def test_the_interval_of_a_mean_of_two_values_is_that_of_a_share() -> None:
    rows = TEN[TEN["seed"] < 10].assign(hit=lambda rows: -1.0 + 2 * (rows["seed"] < 3))
    measured = judged("mean of hit < 0", rows)
    assert measured.interval is not None
    shares = [(end + 1) / 2 for end in (measured.interval.low, measured.interval.high)]
    assert shares == pytest.approx([0.0667, 0.6525], abs=1e-3)  # of 3 in 10
    assert measured.value == pytest.approx(-0.4)


def test_the_difference_of_zeros_and_ones_is_no_share() -> None:
    rows = pd.DataFrame(itertools.product(("none", "ridge"), range(6)), columns=["method", "seed"])
    rows = rows.assign(n=10, snr=1.0, status="done", reason="")
    rows["hit"] = ((rows["method"] == "none") & (rows["seed"] == 3)).astype(float)
    measured = judged("mean of hit[method=ridge] < hit[method=none]", rows)
    assert measured.verdict == "inconclusive"
    assert measured.interval is not None and measured.interval.kind == "95 % t over 6 seeds"


def logged() -> pd.DataFrame:
    """Steps 0, 10, ..., 90: the loss is eˢ of s = −rate·step/100, a seed's noise apart."""
    grid = itertools.product((1.0, 2.0, 4.0), range(8), range(0, 100, 10))
    rows = pd.DataFrame(grid, columns=["snr", "seed", "step"])
    noise = 1 + 0.001 * rows["seed"]
    loss = np.exp(-rows["snr"] * rows["step"] / 100) * noise
    rows = rows.assign(n=10, method="none", loss=loss, status="done", reason="")
    return rows[(rows["snr"] < 4) | (rows["step"] < 60)]  # the fastest ones stop


@pytest.mark.parametrize(
    ("text", "verdict", "words"),
    [
        ("loss[step=50] < 0.62", "holds", ""),
        ("loss[step=50, snr=2] < loss[snr=1, step=50]", "holds", ""),
        ("loss[step=50] is 0.61 within 0.02 where snr = 2", "fails", ""),
        ("loss[step=90] < 0.2 where snr = 4", "inconclusive", "Nothing is known"),
        ("loss[step=55] < 0.2", "not run", "No cell has logged step 55."),
        ("first step with loss < 0.5 is 70 within 5 where snr = 1", "holds", ""),
        ("first step with loss < 0.5/snr > 40", "holds", ""),
        ("first step with loss < 0.5/snr < 95 where snr = 1", "holds", ""),
        ("first step with loss < 0.5 falls along snr", "holds", ""),
        ("power of snr in first step with loss < 0.5 is -1 within 0.2", "holds", ""),
        ("first step with loss < 0.5[snr=2] < first step with loss < 0.5[snr=1]", "holds", ""),
        ("first step with loss < 0.01 > 50 where snr = 4", "inconclusive", ""),
        (
            "first step with loss < 0.01 < 200 where snr = 1",
            "inconclusive",
            "contains the margin's end 200",
        ),
        ("first step with loss < 0.01 >= 50 where snr = 4", "holds", ""),
        ("first step with loss < 0.01 < 40 where snr = 4", "fails", ""),
        ("first step with los < 0.01 < 40", "inconclusive", "did you mean 'loss'?"),
    ],
)
def test_sentences_are_judged_on_logged_steps(text: str, verdict: str, words: str) -> None:
    run = run_of_cells(logged(), STUDY)
    try:
        measured = run.judge(run.claim(text))
    except BadValue as error:
        assert words and words in str(error)
        return
    assert (measured.verdict, words in measured.note) == (verdict, True)
