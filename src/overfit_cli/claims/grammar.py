"""Reading of claims that are sentences: `test_error < 0.05 where snr > 2`, never run as code.

The forms, where Q is arithmetic of columns and parameters, and X, Y are parameters:

- `Q < NUMBER` (`<=`, `>`, `>=`): the median of Q over seeds, at every setting.
- `Q is NUMBER within 0.02`, `within 10%` or `within a factor of 2`: the same, on both sides.
- `Q[method=ridge] < Q[method=none]`: the difference of two groups, seed by seed; of a geometric
  mean their ratio.
- `Q falls along X`, `Q rises along X`: the rank correlation on every line, and no run back.
- `power of X in Q is NUMBER within 0.1`: p of Q ∝ X^p, on every line; `throughout`: the last value
  alone doesn't decide, and Q doesn't turn at the end of the line.
- `power of Y in X at Q = NUMBER is NUMBER within 0.1`: p of X ∝ Y^p where Q has that value.
- `share of seeds with Q < NUMBER > NUMBER`: the share, at every setting; `everywhere` before the
  second sign: of seeds with such a Q at all settings.

Before a quantity may stand `mean of` or `geometric mean of`, and after it `on average` or `at
worst`: of the settings, seed by seed. Several quantities are judged together, with `;` between
them. After all may stand `with at least N seeds`, and `where` with conditions on parameters, such
as `n is largest`. A name may stand before: `learned:`.
"""

from __future__ import annotations

import math
import re
from typing import cast

from overfit_cli.claims.parts import Margin, Statistic, factor_margin, tolerance_margin
from overfit_cli.claims.quantities import ContourPower, Level, Power, Quantity, Share, Trend
from overfit_cli.claims.sentences import Clause, Over, Sentence
from overfit_cli.core.errors import BadValue
from overfit_cli.core.expressions import (
    AND,
    ANY,
    Expression,
    read_expression,
    refuse,
    split,
    tidied,
)

FORMS = (
    "test_error < 0.05 where snr > 2",
    "test_error is 0.5 within 0.02 where snr = 0.1",
    "test_error falls along snr",
    "test_error rises along snr",
    "test_error[method=ridge] < test_error[method=none] where n >= 10",
    "power of n in steps is 1 within 0.1",
    "power of n in snr at test_error = 0.1 is -0.5 within 0.1",
    "share of seeds with test_error < 0.1 > 0.8",
)
"""One sentence of each form, for messages and documents."""

_SIGN = r"(?:<=|>=|<|>)"
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?:/\d+)?"
"""A number, or a fraction such as 2/3."""
_NAME = r"[^\W\d]\w*"
_IS = rf"(?:is(?= {_NUMBER})|{_SIGN})"
"""The word or the sign after which a margin begins."""


def read(text: str) -> Sentence:
    """Read a claim; see the table above."""
    with tidied(str(text), "claim", _nearest) as tidy:
        return _read(tidy)


def _read(tidy: str) -> Sentence:
    named = re.fullmatch(r"([\w][\w .-]*?)\s*:\s*(.+)", tidy)
    title, claimed = named.groups() if named else ("", tidy)
    body, *conditions = re.split(r"\bwhere\b", claimed)
    if len(conditions) > 1:
        refuse("it has two wheres; join conditions by `and`, and put them last.")
    # Conditions are joined by `and`; a comma may join values: `n = 10,20`.
    where = tuple(split(conditions[0], AND)[::2]) if conditions else ()
    if not all(where):
        refuse("a condition is empty.")
    seeds = re.search(r"\s+with at least (\d+) seeds?\s*$", body)
    if seeds:
        body = body[: seeds.start()]
    clauses = tuple(_clause(part.strip()) for part in body.split(";"))
    return Sentence(clauses, where, int(seeds[1]) if seeds else 0, title, claimed)


def _clause(text: str) -> Clause:
    body, *said = re.split(r"\s+(on average|at worst)$", text)
    if re.search(r"\s(on average|at worst)$", body):
        refuse("settings are judged on average or at worst, not both.")
    over: Over = "every" if not said else "average" if said[0] == "on average" else "worst"
    if match := re.fullmatch(r"share of seeds with (.+)", body):
        if said:
            refuse("a share counts seeds; write `everywhere` after its condition.")
        return Clause(_share(match[1]), "share")
    statistic: Statistic = "median"
    if match := re.fullmatch(r"(mean|median|geometric mean) of (.+)", body):
        statistic, body = cast("Statistic", match[1]), match[2]
    return Clause(_quantity(body, in_ratios=statistic == "geometric mean"), statistic, over)


def _quantity(body: str, *, in_ratios: bool) -> Quantity:
    """The quantity of a clause without what is judged of settings and seeds."""
    if match := re.fullmatch(rf"(.+?) (falls|rises)(?: along ({_NAME}))?", body):
        if match[3] is None:
            refuse(f"it does not say along which parameter it {match[2]}.")
        return Trend(_measured(match[1]), match[3], match[2] == "rises")
    if match := re.fullmatch(rf"power of ({_NAME}) in (.+)", body):
        return _power(match[1], match[2])
    return _level(body, in_ratios)


def _power(axis: str, rest: str) -> Quantity:
    contour = re.fullmatch(rf"({_NAME}) at (.+?) = ({_NUMBER}) ({_IS} .+)", rest)
    if contour:
        x, measured, threshold, relation = contour.groups()
        margin = _relation(relation)
        return ContourPower(_measured(measured), x, axis, _number(threshold), margin)
    match = re.fullmatch(rf"(.+?) ({_IS} .+?)( throughout)?", rest)
    if match is None:
        refuse("it does not say what the power is.")
    margin = _relation(match[2])
    if match[3] and not (margin.least >= 0) ^ (margin.most <= 0):
        refuse("throughout takes a power below 0, or one above 0.")
    return Power(_measured(match[1]), axis, margin, match[3] is not None)


def _share(rest: str) -> Share:
    match = re.fullmatch(rf"(.+?)(\s+everywhere)?\s*({_SIGN})\s*({_NUMBER})(\s*%)?", rest)
    sides = [split(text, _SIGN) for text in split(match[1], r"\sand\s")[::2]] if match else []
    if match is None or any(len(parts) != 3 or not all(parts) for parts in sides):
        refuse("a share compares twice: the number of a seed, and the share.")
    _, everywhere, relation, number, percent = match.groups()
    share = _number(number) / (100 if percent else 1)
    if not 0 < share < 1:
        refuse(f"a share lies between 0 and 1, not at {share:g}.")
    conditions = tuple((_difference(left, right), sign) for left, sign, right in sides)
    return Share(conditions, _one_side(relation, share), everywhere is not None)


def _level(body: str, in_ratios: bool) -> Level:
    equivalence = re.fullmatch(rf"(.+?) (is {_NUMBER}.*)", body)
    if equivalence and not re.search(_SIGN, body):
        return Level(_measured(equivalence[1]), _relation(equivalence[2]))
    sides = split(body, _SIGN)
    if len(sides) == 1:
        if len(split(body, "=")) > 1:
            refuse("equality takes a tolerance: `is NUMBER within TOLERANCE`.")
        refuse("it compares nothing.")
    if len(sides) > 3:
        refuse("it compares more than once.")
    left, sign, right = sides
    if not left or not right:
        refuse("one side is empty.")
    if re.fullmatch(_NUMBER, left) and not re.fullmatch(_NUMBER, right):
        left, sign, right = right, sign.translate(str.maketrans("<>", "><")), left
    if re.fullmatch(_NUMBER, right):
        return Level(_measured(left), _one_side(sign, _number(right)))
    if in_ratios:
        ratio = _measured(f"({_measured(left)}) / ({_measured(right)})")
        return Level(ratio, _one_side(sign, 1.0))
    return Level(_difference(left, right), _one_side(sign, 0.0))


def _difference(left: str, right: str) -> Expression:
    """The left side of a comparison less its right side; one of them may be a number."""
    sides = [
        side if re.fullmatch(_NUMBER, side) else str(_measured(side)) for side in (left, right)
    ]
    return _measured(f"{sides[0]} - ({sides[1]})")


def _measured(text: str) -> Expression:
    """An expression; its names are looked up when there are cells."""
    try:
        expression = read_expression(text, ANY, "claim")
    except BadValue as error:
        refuse(f"{text.strip()!r} is not arithmetic of columns: {error.accepts}")
    if not expression.refs:
        refuse(f"{text.strip()!r} names no column.")
    return expression


def _number(text: str) -> float:
    """A number, or a fraction of two: `2/3`."""
    above, _, below = text.partition("/")
    divisor = float(below or 1)
    value = float(above) / divisor if divisor else math.inf
    if not math.isfinite(value):
        refuse("it has a number too large to compute with.")
    return value


def _relation(text: str) -> Margin:
    """A margin: `is 1 within 0.1`, `is 1 within 10%`, `is 1 within a factor of 2`, `< 3`."""
    if match := re.fullmatch(rf"({_SIGN})\s*({_NUMBER})", text):
        return _one_side(match[1], _number(match[2]))
    match = re.fullmatch(rf"is ({_NUMBER})(?: within (?:(a factor of )?({_NUMBER})(\s*%)?))?", text)
    if match is None:
        refuse(f"{text!r} is no margin.")
    value, factor, tolerance, percent = match.groups()
    if tolerance is None:
        refuse("equality takes a tolerance: `is NUMBER within TOLERANCE`.")
    number, width = _number(value), _number(tolerance)
    if factor:
        if percent or width <= 1 or number <= 0:
            refuse("a factor is above 1, of a number above 0.")
        return factor_margin(number, width, "as stated")
    width = abs(number) * width / 100 if percent else width
    if not (math.isfinite(width) and width > 0):
        refuse("a tolerance is above 0.")
    return tolerance_margin(number, width, "as stated")


def _one_side(sign: str, number: float) -> Margin:
    """A margin with one end; that of `<` and `>` does not contain its end."""
    towards = {"<": -math.inf, ">": math.inf}.get(sign, number)
    end = math.nextafter(number, towards)
    if sign[0] == "<":
        return Margin(most=end, because="as stated")
    return Margin(least=end, because="as stated")


_KEYWORDS = (
    (r"share", FORMS[7]),
    (r"(power|slope|exponent).* at ", FORMS[6]),
    (r"power|slope|exponent|scales", FORMS[5]),
    (r"falls?|decreas\w*|drops?", FORMS[2]),
    (r"rises?|increas\w*|grows?", FORMS[3]),
    (r".*\[", FORMS[4]),
    (r"is|equals|.*=", FORMS[1]),
)
"""Words that tell which form a text was meant to have."""


def _nearest(tidy: str) -> str:
    for words, form in _KEYWORDS:
        if re.search(rf"(?<!\w)(?:{words})(?!\w)", tidy.lower()):
            return f" The nearest form is {form!r}."
    return f" The nearest form is {FORMS[0]!r}."
