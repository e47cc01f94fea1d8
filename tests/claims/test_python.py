"""Claims in Python and claims as sentences are two spellings of one thing."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as some

import overfit_cli
from overfit_cli import claims, experiment
from overfit_cli.claims.everywhere import FEWEST, Over
from overfit_cli.claims.grammar import read
from overfit_cli.claims.python import Measured
from overfit_cli.claims.quantities import ContourPower, Level, Power, Share, Statistic, Trend
from overfit_cli.claims.sentences import Sentence
from overfit_cli.core.errors import UserError

SPELLINGS = [
    (claims.near("test_error", 0.5, within="10%"), "test_error is 0.5 within 10%"),
    (claims.near("test_error", 0.5, factor=2), "test_error is 0.5 within a factor of 2"),
    (
        claims.rises(claims.mean("test_error"), "snr", over="average"),
        "mean of test_error rises along snr on average",
    ),
    (
        claims.above(claims.share("a < 0.1", "b > c", everywhere=True), 0.5, seeds=20),
        "share of seeds with a < 0.1 and b > c everywhere > 1/2 with at least 20 seeds",
    ),
    (
        claims.below(
            claims.geometric_mean(claims.ratio("loss", method=("ridge", "none"))),
            1,
            strictly=False,
            where=["n is largest", "d = 10,20"],
        ),
        "geometric mean of loss[method=ridge] / loss[method=none] <= 1 where n is largest and "
        "d = 10,20",
    ),
    (
        claims.together(
            claims.above(claims.mean("loss[n is smallest]"), 2.0),
            claims.below(claims.median(claims.ratio("loss", "theory")), 1.5, over="worst"),
            name="both",
            seeds=10,
        ),
        "both: mean of loss[n is smallest] > 2; median of (loss) / (theory) < 1.5 at worst "
        "with at least 10 seeds",
    ),
]


@pytest.mark.parametrize(("in_python", "text"), SPELLINGS)
def test_a_claim_in_python_is_that_of_its_sentence(in_python: Sentence, text: str) -> None:
    assert in_python == read(text)
    assert read(str(in_python)) == in_python


PAGE = Path(__file__).parents[2] / "docs" / "your-own-claims.md"
ROWS = re.findall(r"^\| `([a-z]+\(.*?\))`.* \| `(.+)` \|$", PAGE.read_text(), re.MULTILINE)


def test_the_page_has_many_claims_in_both_spellings() -> None:
    assert len(ROWS) >= 10
    written = " ".join(in_python for in_python, _ in ROWS)
    unwritten = {name for name in claims.__all__ if f"{name}(" not in written}
    assert unwritten <= {"median", "rises"}  # as mean and falls


@pytest.mark.parametrize(("in_python", "text"), ROWS)
def test_what_the_page_writes_in_python_is_its_sentence(in_python: str, text: str) -> None:
    names = {name: getattr(claims, name) for name in claims.__all__}
    assert eval(in_python, names) == read(text)


def test_a_claim_says_which_rule_its_quantity_has() -> None:
    shares = claims.above(claims.share("a < 1"), 2 / 3)
    assert shares.holds_where().endswith("above 0.666667, at every setting; at least 6 seeds")
    worst = claims.near(claims.geometric_mean("a"), 1, factor=2, over="worst", seeds=12)
    assert "the geometric mean over seeds has its whole interval from 0.5 to 2" in (
        worst.holds_where()
    )
    assert worst.holds_where().endswith("at the worst setting of each seed; at least 12 seeds")


NUMBERS = some.floats(-1e9, 1e9).filter(lambda number: abs(number) > 1e-9)
NAMES = some.sampled_from(["test_error", "loss2", "n * loss", "log(steps)", "(a - b) / c"])
CONDITIONS = some.lists(
    some.sampled_from(["snr > 2", "n = 10,20", "method = ridge", "d is largest", "n >= 2*d"]),
    max_size=3,
)
STATISTICS: dict[Statistic, Callable[[str], Measured]] = {
    "median": claims.median,
    "mean": claims.mean,
    "geometric mean": claims.geometric_mean,
}


@given(
    number=NAMES,
    statistic=some.sampled_from(list(STATISTICS)),
    end=NUMBERS,
    strictly=some.booleans(),
    is_above=some.booleans(),
    over=some.sampled_from(["every", "average", "worst"]),
    where=CONDITIONS,
    seeds=some.integers(0, 40),
    name=some.none() | some.sampled_from(["learned", "law 2", "a-b.c"]),
)
def test_levels_are_read_as_they_are_written(
    number: str,
    statistic: Statistic,
    end: float,
    strictly: bool,
    is_above: bool,
    over: Over,
    where: list[str],
    seeds: int,
    name: str | None,
) -> None:
    compare = claims.above if is_above else claims.below
    named: Any = {} if name is None else {"name": name}
    quantity = STATISTICS[statistic](number)
    claim = compare(quantity, end, strictly=strictly, over=over, where=where, seeds=seeds, **named)
    assert read(str(claim)) == claim
    (clause,) = claim.clauses
    assert isinstance(clause.quantity, Level)
    assert (clause.quantity.measured.text, clause.statistic, clause.over) == (
        number,
        statistic,
        over,
    )
    ends = (clause.margin.least, clause.margin.most)
    beyond = math.nextafter(end, math.inf if is_above else -math.inf) if strictly else end
    assert ends == ((beyond, math.inf) if is_above else (-math.inf, beyond))
    assert claim.where == tuple(where)
    assert claim.seeds == (seeds or FEWEST[statistic])
    assert claim.title == (name or "")


@given(number=NAMES, value=NUMBERS, width=some.floats(1e-6, 1e6), threshold=NUMBERS)
def test_powers_and_boundaries_are_read_as_they_are_written(
    number: str, value: float, width: float, threshold: float
) -> None:
    line = claims.near(claims.power(number, "n"), value, within=width)
    edge = claims.near(
        claims.boundary(number, threshold, x="snr", y="n").power, value, within=width
    )
    for claim in (line, edge):
        assert read(str(claim)) == claim
        margin = claim.clauses[0].margin
        assert (margin.least, margin.most) == (value - width, value + width)
    assert isinstance(line.clauses[0].quantity, Power)
    contour = edge.clauses[0].quantity
    assert isinstance(contour, ContourPower)
    assert (contour.x, contour.y, contour.threshold) == ("snr", "n", threshold)


@given(
    conditions=some.lists(
        some.sampled_from(["a < 1", "b >= c", "2*a > 0.5", "a[m=x] < a[m=y]"]),
        min_size=1,
        max_size=3,
    ),
    end=some.floats(0.001, 0.999),
    everywhere=some.booleans(),
)
def test_shares_and_trends_are_read_as_they_are_written(
    conditions: list[str], end: float, everywhere: bool
) -> None:
    claim = claims.above(claims.share(*conditions, everywhere=everywhere), end)
    assert read(str(claim)) == claim
    share = claim.clauses[0].quantity
    assert isinstance(share, Share)
    assert (len(share.conditions), share.everywhere) == (len(conditions), everywhere)
    both = claims.together(claim, claims.falls("a", "n"))
    assert read(str(both)) == both
    assert isinstance(both.clauses[1].quantity, Trend)


untyped: Any = claims
"""The functions for what a type checker would refuse."""


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (lambda: untyped.below("x", math.nan), "number=nan: it takes a number."),
        (lambda: untyped.below("x", 1, wher="n > 2"), "did you mean 'where'?"),
        (lambda: untyped.below("x", 1, over="all"), "over='all': it takes every, average, worst."),
        (lambda: untyped.below("x", 1, seeds=-1), "seeds=-1: it takes a number of seeds."),
        (lambda: untyped.below("x y", 1), "not arithmetic of columns"),
        (lambda: untyped.near("x", 1), "give a tolerance, or a factor"),
        (lambda: untyped.near("x", 1, within="a bit"), "is no margin"),
        (lambda: untyped.above(untyped.share("x < 1"), 2), "between 0 and 1"),
        (lambda: untyped.above(untyped.share("x < 1"), 0.5, over="worst"), "a share counts seeds"),
        (lambda: untyped.near(untyped.power("x", "n", throughout=True), 0, within=1), "throughout"),
        (lambda: untyped.ratio("x", method="ridge"), "it takes two values"),
        (lambda: untyped.together("x < 1"), "it takes claims"),
        (
            lambda: untyped.together(untyped.below("x", 1, where="n > 2")),
            "give where, seeds and name to all of them",
        ),
    ],
)
def test_a_bad_argument_gets_one_sentence(write: Callable[[], Sentence], words: str) -> None:
    with pytest.raises(UserError) as refused:
        write()
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


@experiment(claims=[claims.below("test_error", 0.2, where="n >= 8"), "rate: n * test_error < 1.2"])
def train(n: int = 10, seed: int = 0) -> dict[str, float]:
    """An error that falls as 1/n."""
    return {"test_error": float(np.random.default_rng([n, seed]).uniform(0.9, 1.1)) / n}


def test_an_experiment_and_judge_take_either_spelling() -> None:
    cells = pd.DataFrame(
        [{"n": n, "seed": seed, **train(n, seed)} for n in (4, 8, 16) for seed in range(8)]
    )
    assert [judged.claim.name for judged in overfit_cli.judge(cells, study=train)] == [
        "test_error-lt-0.2-where-n-ge-8",
        "rate",
    ]
    in_python = claims.near(claims.mean(claims.power("test_error", "n")), -1, within=0.1)
    for stated in (in_python, str(in_python)):
        (judged,) = overfit_cli.judge(cells, stated, study=train)
        assert judged.measurement.verdict == "holds"
        assert judged.claim.statement == "mean of power of n in test_error is -1 within 0.1"


def test_claims_are_imported_when_they_are_used() -> None:
    code = (
        "import sys; from overfit_cli import claims; assert 'numpy' not in sys.modules; "
        "claims.below('x', 1); assert 'numpy' in sys.modules; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
