from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from overfit_cli.claims.grammar import FORMS, read
from overfit_cli.claims.stated import Measure, claim
from overfit_cli.core.claim import Claim
from overfit_cli.core.errors import BadValue
from overfit_cli.core.study import AnyStudy
from overfit_cli.functions.function_study import study_of_function

SEEDS = 12


def train(n: int = 10, snr: float = 1.0, method: str = "none", seed: int = 0) -> dict[str, float]:
    """Losses that fall with n and snr, and whose contour is n · snr² = constant."""
    random = np.random.default_rng([seed, n, int(100 * snr), len(method)])
    noise = float(np.exp(0.02 * random.standard_normal()))
    loss = noise / (n * snr**2) * (0.5 if method == "ridge" else 1.0)
    return {"test_error": loss, "steps_taken": noise * 3.0 * n}


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


def verdict(text: str, rows: pd.DataFrame) -> str:
    return claim(text, study()).judge(rows).verdict


def note(text: str, rows: pd.DataFrame) -> str:
    return claim(text, study()).judge(rows).note


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
        ("test_error falls along n", "holds"),
        ("steps_taken rises along n", "holds"),
        ("power of n in steps_taken is 1 within 0.1", "holds"),
        ("power of n in steps_taken is 2 within 0.1", "fails"),
        ("power of snr in test_error < -1.9", "holds"),
        ("power of n in snr at test_error = 0.1 is -0.5 within 0.1", "holds"),
        ("power of n in snr at test_error = 0.1 is -1 within 0.1", "fails"),
        ("share of seeds with test_error < 0.1 > 0.7 where n * snr**2 > 12", "holds"),
        ("share of seeds with test_error < 0.1 > 70% where n * snr**2 < 9", "fails"),
        ("n * snr**2 * test_error is 1 within 0.1", "holds"),
        ("mean of n * snr**2 * test_error is 1 within 0.1", "holds"),
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


def test_a_line_that_turns_at_its_end_does_not_fall() -> None:
    rows = cells(n=(10,), snr=(0.5, 1.0, 2.0, 4.0, 8.0))
    rows.loc[rows["snr"] == 8.0, "test_error"] = 0.35 + 0.001 * rows["seed"]
    assert verdict("test_error falls along snr", rows) == "fails"
    assert "its turn" in note("test_error falls along snr", rows)


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
    assert "It needs 6 seeds; these cells have 5 seeds." in note("test_error < 0.2", rows)


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
        ("test_error = 0.5", "takes a tolerance", "test_error is 0.5 within 0.02"),
        ("test_error is 0.5", "takes a tolerance", "test_error is 0.5 within 0.02"),
        ("test_error falls", "along which parameter it falls", "test_error falls along snr"),
        ("power of n in steps", "what the power is", "power of n in steps is 1"),
        ("the power is 1 within 2", "not arithmetic of columns", "power of n in steps is 1"),
        ("share of seeds with x < 1", "compares twice", "share of seeds with"),
        ("share of seeds with x < 1 > 2", "between 0 and 1", "share of seeds with"),
        ("a < b < c", "more than once", "test_error < 0.05"),
        ("< 3", "one side is empty", "test_error < 0.05"),
        ("x < 1e999", "too large", "test_error < 0.05"),
        ("x is 1 within -1", "a tolerance is above 0", "test_error is 0.5 within 0.02"),
        ("x is 1 within a factor of 0.5", "above 1", "test_error is 0.5 within 0.02"),
        ("x < 1 where", "condition is empty", "test_error < 0.05"),
        ("__import__('os').system('true') < 1", "not arithmetic", "test_error < 0.05"),
        ("x" * 1500 + " < 1", "longer than", "test_error < 0.05"),
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
        ("test_eror < 1", "did you mean 'test_error'?"),
        ("test_error < 1 where nn > 2", "did you mean 'n'?"),
        ("test_error < 1 where test_error < 2", "choosing cells by it would choose outcomes"),
        ("test_error falls along nn", "did you mean 'n'?"),
        ("test_error falls along method", "it takes a parameter that is a number; known: n, snr."),
        ("power of method in test_error is 1 within 1", "a parameter that is a number"),
        ("power of n in method at test_error = 1 is 1 within 1", "a parameter that is a number"),
        ("test_error[method=none] < test_error", "say where it is taken: test_error[method=...]"),
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
