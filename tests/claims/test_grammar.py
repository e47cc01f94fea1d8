"""Any sentence on a level is read to the margin, the conditions and the seeds that it states."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as some

from overfit_cli.claims.parts import FEWEST, Statistic
from overfit_cli.claims.quantities import Level
from overfit_cli.claims.sentences import read

NUMBERS = some.floats(-1e9, 1e9).filter(lambda number: abs(number) > 1e-9)
CONDITIONS = some.lists(
    some.sampled_from(["snr > 2", "n = 10,20", "method = ridge", "d is largest", "n >= 2*d"]),
    max_size=3,
)
STATISTICS: dict[str, Statistic] = {"": "median", "mean of ": "mean"}
OVER = {"": "every", " on average": "average", " at worst": "worst"}


@given(
    number=some.sampled_from(["test_error", "n * loss", "log(steps)", "(a - b) / c"]),
    statistic=some.sampled_from(list(STATISTICS)),
    sign=some.sampled_from(["<", "<=", ">", ">="]),
    end=NUMBERS,
    over=some.sampled_from(list(OVER)),
    where=CONDITIONS,
    seeds=some.integers(0, 40),
)
def test_a_level_is_read_as_it_is_written(
    number: str, statistic: str, sign: str, end: float, over: str, where: list[str], seeds: int
) -> None:
    fewest = f" with at least {seeds} seeds" if seeds else ""
    conditions = f" where {' and '.join(where)}" if where else ""
    claim = read(f"named: {statistic}{number} {sign} {end!r}{over}{fewest}{conditions}")
    (clause,) = claim.clauses
    assert isinstance(clause.quantity, Level)
    assert (clause.quantity.measured.text, clause.statistic, clause.over) == (
        number,
        STATISTICS[statistic],
        OVER[over],
    )
    way = math.inf if sign[0] == ">" else -math.inf
    beyond = end if sign.endswith("=") else math.nextafter(end, way)
    ends = (clause.quantity.margin.least, clause.quantity.margin.most)
    assert ends == ((beyond, math.inf) if way > 0 else (-math.inf, beyond))
    assert claim.where == tuple(where)
    assert claim.seeds == (seeds or FEWEST[clause.statistic])
    assert claim.title == "named"
