from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from overfit_cli.claims.quantities import _end_ranks, _rank_correlations
from overfit_cli.claims.sentences import FORMS, read
from overfit_cli.claims.stated import Measure, cells_of, claim, stated_claim
from overfit_cli.core.claim import Claim, Measurement
from overfit_cli.core.errors import BadValue
from overfit_cli.core.study import AnyStudy
from overfit_cli.functions.function_study import study_of_function

SEEDS = 12


def train(n: int = 10, snr: float = 1.0, method: str = "none", seed: int = 0) -> dict[str, float]:
    """Losses that fall with n and snr, and whose contour is n · snr² = constant."""
    random = np.random.default_rng([seed, n, int(100 * snr), len(method)])
    noise = float(np.exp(0.02 * random.standard_normal()))
    loss = noise / (n * snr**2) * (0.5 if method == "ridge" else 1.0)
    return {"test_error": loss, "steps_taken": noise * 3.0 * n, "late": float(n)}


def study() -> AnyStudy:
    return study_of_function(train)


def cells(
    n: tuple[int, ...] = (4, 8, 16, 32),
    snr: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0),
    method: tuple[str, ...] = ("none",),
    seeds: int = SEEDS,
) -> pd.DataFrame:
    rows = [
        {"n": a, "snr": b, "method": c, "seed": seed, **train(a, b, c, seed)}
        for a in n
        for b in snr
        for c in method
        for seed in range(seeds)
    ]
    return pd.DataFrame(rows).assign(status="done", reason="", study=study().name)


def along_n(n: tuple[int, ...] = (4, 8, 16, 32)) -> pd.DataFrame:
    return cells(n, snr=(1.0,))


def judged(text: str, rows: pd.DataFrame) -> Measurement:
    return claim(text, study()).judge(rows)


def verdict(text: str, rows: pd.DataFrame) -> str:
    return judged(text, rows).verdict


def note(text: str, rows: pd.DataFrame) -> str:
    return judged(text, rows).note


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("test_error < 0.05 where snr = 2 and n > 4", "holds"),
        ("test_error < 0.05 where snr = 2 and n > 2", "fails"),
        ("0.05 > test_error where snr = 2, n > 4", "holds"),
        ("test_error is 0.25 within 0.02 where n = 4, snr = 1", "holds"),
        ("test_error is 0.3 within 10% where n = 4, snr = 1", "fails"),
        ("test_error is 0.2 within a factor of 2 where n = 4, snr = 1", "holds"),
        ("test_error falls along snr", "holds"),
        ("test_error rises along snr", "fails"),
        ("steps_taken rises along n", "holds"),
        ("power of n in steps_taken is 1 within 0.1", "holds"),
        ("power of n in steps_taken is 2 within 0.1", "fails"),
        ("power of snr in test_error < -1.9", "holds"),
        ("power of n in snr at test_error = 0.1 is -0.5 within 0.1", "holds"),
        ("power of n in snr at test_error = 0.1 is -1 within 0.1", "fails"),
        ("share of seeds with test_error < 0.1 > 0.7 where n * snr**2 > 12", "holds"),
        ("share of seeds with test_error < 0.1 > 70% where n * snr**2 < 9", "fails"),
        ("n * snr**2 * test_error is 1 within 0.1", "holds"),
        ("n * SNR**2 * test_error is 1 within 0.1", "inconclusive"),
    ],
)
def test_a_sentence_is_judged_as_it_reads(text: str, expected: str) -> None:
    assert verdict(text, cells()) == expected


def test_two_groups_are_compared_seed_by_seed() -> None:
    rows = cells(method=("none", "ridge"))
    assert verdict("test_error[method=ridge] < test_error[method=none]", rows) == "holds"
    assert verdict("test_error[method=ridge] > test_error[method=none]", rows) == "fails"
    ratio = "test_error[method=ridge] / test_error[method=none] is 0.5 within 10%"
    assert verdict(ratio, rows) == "holds"


def test_a_claim_is_about_every_setting_unless_it_says_on_average() -> None:
    rows = cells(n=(10,), snr=(1.0, 2.0, 4.0))
    rows.loc[rows["snr"] == 1.0, "test_error"] += 0.02
    assert verdict("test_error < 0.11", rows) == "fails"
    assert verdict("test_error < 0.11 on average", rows) == "holds"
    assert "The worst is at snr=1.0" in note("test_error < 0.11", rows)


def test_missing_cells_count_at_both_extremes() -> None:
    rows = cells(n=(10,), snr=(1.0,))
    assert verdict("test_error < 0.2", rows) == "holds"
    lost = rows.assign(status=["failed"] * 4 + ["done"] * (SEEDS - 4))
    assert verdict("test_error < 0.2", lost) == "inconclusive"
    one_lost = rows.assign(status=["failed"] + ["done"] * (SEEDS - 1))
    assert verdict("test_error < 0.2", one_lost) == "holds"  # a median bears one
    assert verdict("mean of test_error < 0.2", one_lost) == "inconclusive"
    absent = pd.concat([rows, cells(n=(10,), snr=(2.0,), seeds=5)])
    assert verdict("test_error < 0.2", absent) == "inconclusive"


def test_a_contour_is_not_known_of_a_seed_that_lacks_a_cell() -> None:
    text = "power of n in snr at test_error = 0.1 is -0.5 within 0.1"
    rows = cells()
    lost = rows.assign(status=np.where((rows["snr"] == 2) & (rows["seed"] < 4), "failed", "done"))
    assert verdict(text, rows) == "holds"
    assert verdict(text, lost) == "inconclusive"
    measured = claim(text, study()).judge(lost)
    assert measured.details["numbers that are not known"] == 4


def test_values_with_commas_stand_beside_other_conditions() -> None:
    where = read("test_error < 1 where n = 4,8 and snr > 1, method = none,ridge").where
    assert where == ("n = 4,8", "snr > 1", "method = none,ridge")


def test_an_open_end_at_zero_is_written_zero() -> None:
    words = claim("test_error[method=ridge] < test_error[method=none]", study()).holds_where
    assert "its whole interval below 0," in words


def test_an_interval_that_decides_is_said_where_the_wider_one_has_no_end() -> None:
    rows = cells(n=(10,), snr=(1.0,), seeds=6)
    text = "test_error is 0.1 within 0.05 with at least 5 seeds"
    decided = claim(text, study()).judge(rows[rows["seed"] < 5])
    assert decided.verdict == "holds"
    assert decided.interval is not None
    assert (decided.interval.low, decided.interval.high) == (-np.inf, np.inf)
    assert "The interval at twice the error, [0.0" in decided.note


def test_too_few_seeds_decide_nothing() -> None:
    rows = cells(n=(10,), snr=(1.0,), seeds=5)
    assert verdict("test_error < 0.2", rows) == "inconclusive"
    assert "It needs 6 seeds; these cells have 5." in note("test_error < 0.2", rows)


def test_a_function_without_draws_is_decided_by_its_numbers() -> None:
    def quadratic(rate: float = 0.1) -> dict[str, float]:
        return {"factor": abs(1 - rate)}

    unseeded = study_of_function(quadratic)
    rows = pd.DataFrame({"rate": [0.1, 0.2], "factor": [0.9, 0.8], "seed": 0})
    rows = rows.assign(status="done", reason="")
    measured = claim("factor is 0.9 within 0.01", unseeded).judge(rows)
    assert measured.verdict == "fails"
    assert measured.value == 0.8
    assert claim("factor < 0.95", unseeded).judge(rows).verdict == "holds"
    assert claim("factor < 0.85", unseeded).judge(rows[:1]).verdict == "fails"


@pytest.mark.parametrize("text", FORMS)
def test_the_forms_that_messages_name_are_claims(text: str) -> None:
    assert read(text).text == text


@pytest.mark.parametrize(
    ("text", "why", "form"),
    [
        ("test_error", "compares nothing", "test_error < 0.05"),
        ("test_error is 0.5", "takes a tolerance", "test_error is 0.5 within 0.02"),
        ("test_error falls", "along which parameter it falls", "test_error falls along snr"),
        ("power of n in steps", "what the power is", "power of n in steps is 1"),
        ("the power is 1 within 2", "not arithmetic of columns", "power of n in steps is 1"),
        ("share of seeds with x < 1", "compares twice", "share of seeds with"),
        ("a < b < c", "more than once", "test_error < 0.05"),
        ("< 3", "one side is empty", "test_error < 0.05"),
        ("x < 1e999", "too large", "test_error < 0.05"),
        ("x is 1 within -1", "a tolerance is above 0", "test_error is 0.5 within 0.02"),
        ("x < 1 where", "condition is empty", "test_error < 0.05"),
        ("__import__('os').system('true') < 1", "not arithmetic", "test_error < 0.05"),
        ("x" * 1500 + " < 1", "more than 1000", "test_error < 0.05"),
    ],
)
def test_a_text_that_is_no_claim_is_refused_with_the_nearest_form(
    text: str, why: str, form: str
) -> None:
    with pytest.raises(BadValue, match="claim=") as refused:
        read(text)
    assert why in str(refused.value)
    assert form in str(refused.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("test_error < 1 where nn > 2", "did you mean 'n'?"),
        ("test_error falls along method", "it takes a parameter that is a number; known: n, snr."),
        ("power of n in method at test_error = 1 is 1 within 1", "a parameter that is a number"),
        (
            "test_error[method=none] < test_error",
            "say where test_error is taken: test_error[method=...]",
        ),
        ("test_error[metod=ridge] < 1", "did you mean 'method'?"),
        ("test_error < 1 where snr > 7", "these have none"),
        ("power of snr in test_error is 1 within 1 where snr = 1", "It needs 3 values of snr"),
    ],
)
def test_names_and_designs_that_the_cells_lack_are_said(text: str, words: str) -> None:
    measured = claim(text, study()).judge(cells())
    assert measured.verdict in ("inconclusive", "not run")
    assert words in measured.note


def test_signs_may_be_typeset() -> None:
    assert read("loss is −1 within 0.1") == read("loss is -1 within 0.1")
    assert read("loss ≤ 1 where n ≥ 2 and n ≠ 3") == read("loss <= 1 where n >= 2 and n != 3")


def test_a_claim_has_a_name_of_its_own_or_one_made_from_its_text() -> None:
    assert read("learned: test_error < 0.05").name == "learned"
    assert read("test_error < 0.05 where snr > 2").name == "test_error-lt-0.05-where-snr-gt-2"
    stated = claim("learned: test_error < 0.05", study(), source="a textbook")
    assert isinstance(stated, Claim)
    assert isinstance(stated.measure, Measure)
    assert (stated.statement, stated.source) == ("test_error < 0.05", "a textbook")
    assert "below 0.05, at every setting; at least 6 seeds" in stated.holds_where


# Ends of grids, worst settings, turns and late steps


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("test_error is 1/32 within 5% where n is largest", "holds"),
        ("test_error is 1/4 within 5% where n is smallest", "holds"),
        ("test_error is 1/16 within 5% where n < 32 and n is largest", "holds"),
        ("test_error[n is smallest] / test_error[n is largest] is 8 within 10%", "holds"),
        ("test_error[n = 8] < test_error[n is smallest]", "holds"),
        ("share of seeds with test_error[n is largest] < test_error[n is smallest] > 2/3", "holds"),
        ("test_error < 0.2 where method is largest", "inconclusive"),
    ],
)
def test_a_claim_may_be_about_the_ends_of_a_grid(text: str, expected: str) -> None:
    assert judged(text, along_n()).verdict == expected


def test_a_geometric_mean_is_that_of_ratios() -> None:
    rows = cells(n=(10,), snr=(1.0,), method=("none", "ridge"))
    by_method = rows.pivot(index="seed", columns="method", values="test_error")
    mean = float(np.exp(np.log(by_method["ridge"] / by_method["none"]).mean()))
    for text in (
        "geometric mean of test_error[method=ridge] / test_error[method=none] is 0.5 within 10%",
        "geometric mean of test_error[method=ridge] < test_error[method=none]",
    ):
        measured = judged(text, rows)
        assert measured.verdict == "holds"
        assert measured.value == pytest.approx(mean)
        assert measured.interval is not None
        assert measured.interval.kind == "95 % t over 12 seeds"
    negative = judged("geometric mean of test_error - 1 < 1", rows)
    assert (negative.verdict, negative.note) == (
        "inconclusive",
        "A number is 0 or less, which has no logarithm.",
    )


def test_the_worst_setting_of_each_seed_is_judged_where_a_claim_says_so() -> None:
    rows = along_n((4, 8))
    rows["test_error"] = np.where((rows["n"] == 4) == (rows["seed"] % 2 == 0), 1.0, 0.1)
    rows["test_error"] += 0.001 * rows["seed"]
    assert judged("test_error < 0.9 on average", rows).verdict == "holds"
    assert judged("test_error < 0.9", rows).verdict == "inconclusive"  # each n exceeds it on half
    assert judged("test_error < 0.9 at worst", rows).verdict == "fails"
    assert judged("test_error > 0.09 at worst", rows).verdict == "holds"
    both = judged("test_error is 0.5 within 0.3 at worst", rows)
    assert both.verdict == "fails"
    assert {"least over 2 settings", "most over 2 settings"} <= set(both.details)
    assert "The worst is the most over 2 settings." in both.note


def test_a_share_is_of_seeds_that_meet_a_condition_everywhere_where_it_says_so() -> None:
    rows = along_n((4, 8))
    rows["test_error"] = np.where((rows["n"] == 4) & (rows["seed"] % 3 == 0), 1.0, 0.1)
    rows.loc[(rows["n"] == 8) & (rows["seed"] % 3 == 1), "test_error"] = 1.0
    everywhere = judged("share of seeds with test_error < 0.5 everywhere > 0.1", rows)
    assert everywhere.value == pytest.approx(1 / 3)
    assert judged("share of seeds with test_error < 0.5 > 0.1", rows).value == pytest.approx(2 / 3)
    both = judged(
        "share of seeds with test_error < 0.5 and n * test_error > 0.5 everywhere > 0.1", rows
    )
    assert both.value == 0.0
    lost = rows.assign(status=["failed"] * 2 + ["done"] * (len(rows) - 2))
    one_unknown = judged("share of seeds with test_error < 0.5 everywhere > 0.1", lost)
    assert one_unknown.value == pytest.approx((4 + 0.5) / 12)  # of the other it is known: n = 8


def test_a_power_that_turns_at_the_end_is_none_throughout() -> None:
    rows = along_n()
    measured = judged("power of n in test_error < 0 throughout", rows)
    assert measured.verdict == "holds"
    assert measured.note == "The worst is at the whole line."
    rows.loc[rows["n"] == 32, "test_error"] *= 4
    assert judged("power of n in test_error < 0", rows).verdict == "holds"
    turned = judged("power of n in test_error < 0 throughout", rows)
    assert turned.verdict == "fails"
    assert "The worst is at its end." in turned.note
    but_for_the_last = rows.assign(test_error=rows["n"].map({4: 1.0, 8: 1.1, 16: 1.2, 32: 0.1}))
    but_for_the_last["test_error"] += 0.001 * but_for_the_last["seed"]
    assert judged("power of n in test_error < 0", but_for_the_last).verdict == "holds"
    jumped = judged("power of n in test_error < 0 throughout", but_for_the_last)
    assert jumped.verdict == "fails"
    assert "The worst is at all but the last value." in jumped.note
    rising = rows.assign(test_error=1 / rows["test_error"])
    assert judged("power of n in test_error > 0 throughout", rising).verdict == "fails"


def test_several_quantities_are_judged_together_at_the_level_of_all() -> None:
    rows = along_n()
    for text, expected in (
        ("test_error < 0.3; late > 3", "holds"),
        ("mean of test_error < 0.3; share of seeds with late > 3 > 0.7", "holds"),
        ("test_error < 0.3; late > 5", "fails"),
        ("test_error < 0.3; late > 5 where n >= 8", "holds"),
        ("test_error[n=4] < 0.2; late[n=4] > 3", "fails"),
    ):
        assert judged(text, rows).verdict == expected, text
    measured = judged("test_error < 0.3; late > 3 where n = 4", rows)
    assert measured.details["late"] == 4.0
    assert judged("test_error[n=4] < 0.2; late[n=4] > 3", rows).note.startswith(
        "The worst is test_error[n=4]"
    )


ENDS = {"late": ("waited", "endless")}


def test_a_number_that_came_too_late_lies_above_what_was_waited_for() -> None:
    rows = along_n().assign(waited=20.0, endless=np.inf)
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


def test_the_number_that_a_paper_states_stands_beside_the_end_of_its_margin() -> None:
    stated = read("test_error <= 0.9 at worst").with_target(0)
    model = study().parameters
    small = stated_claim(lambda rows: rows, model, stated, name="a", source="", statement="a")
    measured = small.judge(cells())
    assert measured.margin is not None
    assert (measured.target, measured.margin[1]) == (0, 0.9)


def test_names_are_no_patterns_and_may_be_the_ends_of_others() -> None:
    rows = cells(n=(4,), snr=(1.0,), method=("none", "ridge"))
    rows[["late_error", "error", "acc (%"]] = [0.9, 0.9, 90.0]
    pinned = "test_error[method=ridge] < {}[method=ridge]"
    for text in (
        pinned.format("late_error"),
        pinned.format("error"),
        "`acc (%` / 90 is 1 within 1%",
    ):
        assert verdict(f"{text} where n = 4", rows) == "holds", text
    assert "choosing cells by it" in note("test_error < 1 where `acc (%` > 3", rows)


# Trends along the lines of a grid are Spearman's


def grid(slope: float = 0.1, seeds: int = 5) -> pd.DataFrame:
    """Noise with ties, and a trend along n; one line is constant."""
    random = np.random.default_rng(0)
    rows = [
        (n, snr, seed, round(random.normal() + slope * n, 1))
        for n in range(2, 14)
        for snr in range(8)
        for seed in range(seeds)
    ]
    frame = pd.DataFrame(rows, columns=["n", "snr", "seed", "test_error"])
    frame.loc[(frame["snr"] == 3) & (frame["seed"] == 1), "test_error"] = 1.0
    return frame.assign(method="none", status="done", reason="").sample(frac=1, random_state=0)


FALLS = "mean of test_error falls along n on average"


def trend_of(rows: pd.DataFrame) -> Measurement:
    return judged(FALLS, rows)


def slow_trend(line: pd.DataFrame) -> float:
    """Spearman's correlation; that of a constant line, which has none, is taken as 0."""
    constant = line["test_error"].nunique() == 1
    return 0.0 if constant else float(spearmanr(line["n"], line["test_error"]).statistic)


def test_the_trend_is_the_mean_over_seeds_of_spearmans_on_each_line() -> None:
    frame, by_seed = grid(), []
    for _, of_seed in frame.groupby("seed"):
        by_seed.append(np.mean([slow_trend(line) for _, line in of_seed.groupby("snr")]))
    trend, *_ = read(FALLS).parts(cells_of(frame, study().parameters))
    np.testing.assert_allclose(trend.low, by_seed, atol=1e-12)
    np.testing.assert_allclose(trend.high, by_seed, atol=1e-12)


def test_a_trend_is_told_from_none() -> None:
    assert trend_of(grid(-0.3)).verdict == "holds"
    assert trend_of(grid(0.3)).verdict == "fails"
    assert trend_of(grid(0.0)).verdict == "inconclusive"
    assert trend_of(grid().assign(test_error=1.0)).verdict == "inconclusive"
    assert trend_of(grid().query("n == 3")).verdict == "not run"


def test_a_trend_on_few_lines_does_not_stand_for_all() -> None:
    """Constant lines count: else one that falls would decide for seven that don't."""
    frame = grid(-0.3)
    frame.loc[frame["snr"] > 0, "test_error"] = 1.0
    measured = trend_of(frame)
    assert measured.value is not None
    assert measured.value > -0.15


def test_the_ends_of_a_trend_are_those_of_all_values_that_are_missing() -> None:
    random = np.random.default_rng(0)
    x = np.arange(6.0)
    for missing in itertools.combinations(range(6), 2):
        values = random.permutation(6).astype(float)
        places = [-1.0, *(values + 0.5)]  # below, between and above all others
        filled = []
        for pair in itertools.product(places, repeat=2):
            for tie in (-0.1, 0.1):
                row = values.copy()
                row[list(missing)] = pair[0], pair[1] + tie
                filled.append(row)
        known = _rank_correlations(x, np.array(filled))[0]
        ends = _end_ranks(np.array(filled))[0]
        values[list(missing)] = np.nan
        low, high = _rank_correlations(x, values[None])
        assert low[0] <= known.min() + 1e-12
        assert known.max() - 1e-12 <= high[0]
        assert high[0] - low[0] <= known.max() - known.min() + 0.12  # a pair's order
        assert np.ravel(_end_ranks(values[None])) == pytest.approx((ends.min(), ends.max()))


def test_a_trend_depends_on_order_alone() -> None:
    frame = grid(-0.3)
    scaled = frame.assign(test_error=np.exp(frame["test_error"]), n=frame["n"] ** 3)
    first, second = trend_of(frame), trend_of(scaled.sample(frac=1, random_state=1))
    for name in ("the whole line", "its end"):
        numbers = [
            {key: each for key, each in measured.details.items() if name in key}
            for measured in (first, second)
        ]
        assert numbers[0] == pytest.approx(numbers[1])
        assert numbers[0]


def test_a_line_that_rises_between_two_falls_does_not_fall() -> None:
    frame = grid(-0.3, seeds=20)
    peak = frame["n"].map({6: 8.0, 7: 16.0, 8: 8.0}).fillna(0.0)
    turned = trend_of(frame.assign(test_error=frame["test_error"] + peak))
    assert turned.verdict == "fails"
    assert "its turn" in turned.note
    assert trend_of(frame.assign(test_error=frame["test_error"] + 0.01 * peak)).verdict == "holds"
