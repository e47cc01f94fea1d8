"""Sentences: claims as text, such as `test_error < 0.05 where snr > 2`, which is never run as code.

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
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

import numpy as np

from overfit_cli.claims.parts import (
    FEWEST,
    Margin,
    Part,
    Statistic,
    factor_margin,
    tolerance_margin,
)
from overfit_cli.claims.quantities import (
    Level,
    Power,
    Quantity,
    Share,
    Trend,
    axes_of,
    number_parameter,
    references,
)
from overfit_cli.core.cells import Cells, NoCellsError
from overfit_cli.core.claim import IN_MARGIN, add_remark, inconclusive, not_run
from overfit_cli.core.errors import BadValue
from overfit_cli.core.expressions import (
    AND,
    ANY,
    Expression,
    Ref,
    read_conditions,
    read_expression,
    refuse,
    split,
    tidied,
)
from overfit_cli.core.text import plural

Over = Literal["every", "average", "worst"]
"""How the numbers at several settings are judged: see `combine`."""


@dataclass(frozen=True)
class Clause:
    """A quantity of a claim, with how it is judged over seeds and over settings."""

    quantity: Quantity
    statistic: Statistic = "median"
    over: Over = "every"

    def parts(self, cells: Cells, seeds: int) -> list[Part]:
        """Return the numbers that it is judged on."""
        parts = [
            replace(
                part,
                statistic=self.statistic,
                margin=replace(part.margin, fewest_seeds=seeds),
            )
            for part in self.quantity.parts(cells)
        ]
        if not parts:
            raise not_run("No cell bears on it.")
        if self.statistic == "geometric mean" and any((part.high <= 0).any() for part in parts):
            raise inconclusive("A number is 0 or less, which has no logarithm.")
        return combine(parts, self.over)

    def holds_where(self) -> str:
        """Return the condition on the seeds' numbers in words."""
        if isinstance(self.quantity, Trend):
            way = "rises" if self.quantity.rises else "falls"
            condition = (
                f"the rank correlation has its whole interval on the side on which it {way}, the "
                "end has not run back by half of the line's values, and no turn on the line is as "
                "large as half of its range"
            )
        else:
            condition = f"the {self.statistic} over seeds{IN_MARGIN}{self.quantity.margin}"
        return f"{condition}, {_OVER[self.over]}{self.at_the_end}"

    @property
    def at_the_end(self) -> str:
        """The condition on the end of a line in words; empty without one."""
        if not (isinstance(self.quantity, Power) and self.quantity.throughout):
            return ""
        side, turn = (
            ("below", "rise") if math.isinf(self.quantity.margin.least) else ("above", "fall")
        )
        return (
            f"; between the last two {self.quantity.axis} that power and half of the whole are "
            f"{side} 0: no {turn} half as fast; of four or more, so is the power without the last"
        )


def combine(parts: Sequence[Part], over: Over) -> list[Part]:
    """Return parts over all settings in the place of those at each, seed by seed.

    Args:
        over: `every` leaves them as they are; `average` has the average of each seed's numbers;
            `worst` the one nearest to the margin's end, or beyond it, of two ends both.
    """
    if over == "every" or len(parts) < 2:
        return list(parts)
    from scipy.stats import gmean

    combined = []
    for margin in dict.fromkeys(part.margin for part in parts):
        alike = [part for part in parts if part.margin == margin]
        aspect, *others = {part.place.rpartition(", ")[2] for part in alike}
        called = "" if others or "=" in aspect or not aspect else f", {aspect}"
        in_logs = alike[0].statistic == "geometric mean"
        ways: dict[str, Any] = {"mean": gmean if in_logs else np.mean}
        if over == "worst":
            both = (("least", np.min, margin.least), ("most", np.max, margin.most))
            ways = {name: reduce for name, reduce, end in both if math.isfinite(end)}
        for way, reduce in ways.items():
            numbers = [[getattr(part, end) for part in alike] for end in ("low", "high")]
            low, high = (
                reduce(np.maximum(each, 0.0) if in_logs else each, axis=0) for each in numbers
            )
            place = f"{way} over {plural(len(alike), 'setting')}{called}"
            combined.append(replace(alike[0], place=place, low=low, high=high))
    return combined


_OVER: dict[Over, str] = {
    "every": "at every setting",
    "average": "averaged over settings, seed by seed",
    "worst": "at the worst setting of each seed",
}


@dataclass(frozen=True)
class Sentence:
    """A claim: it holds where all of its clauses do, and fails where one does.

    Attributes:
        fewest: the fewest seeds that decide; 0 for those that its statistics take.
        title: what it is called; empty where it is called after its text.
    """

    clauses: tuple[Clause, ...]
    where: tuple[str, ...] = ()
    fewest: int = 0
    title: str = ""
    text: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"{self.title}: {self.text}" if self.title else self.text

    @property
    def name(self) -> str:
        """The name of the claim; by default made from the text."""
        return self.title or _slug(self.text)

    @property
    def seeds(self) -> int:
        """The fewest seeds that decide."""
        return self.fewest or max(FEWEST[clause.statistic] for clause in self.clauses)

    @property
    def references(self) -> list[Ref]:
        """What it names: columns and parameters, some at chosen values of parameters."""
        return [ref for clause in self.clauses for ref in references(clause.quantity)]

    def axes(self, cells: Cells) -> dict[str, int]:
        """Return the parameters along which it is told, with the fewest values of each."""
        named = [item for each in self.clauses for item in axes_of(each.quantity).items()]
        return {number_parameter(cells, name): fewest for name, fewest in named}

    def parts(self, cells: Cells) -> list[Part]:
        """Return the numbers that the claim is judged on."""
        judged = chosen(cells, self.where)
        if left := len(cells.frame) - len(judged.frame):
            are, them = ("is", "it") if left == 1 else ("are", "them")
            add_remark(f"{plural(left, 'cell')} {are} left out because the claim excludes {them}.")
        several = len(self.clauses) > 1
        return [
            replace(part, quantity=str(clause.quantity)) if several else part
            for clause in self.clauses
            for part in clause.parts(judged, self.seeds)
        ]

    def with_target(self, target: float) -> Sentence:
        """Return the sentence with the number that it states beside the end of its margin."""
        first, *others = self.clauses
        quantity: Any = first.quantity
        margin = replace(quantity.margin, target=target)
        clause = replace(first, quantity=replace(quantity, margin=margin))
        return replace(self, clauses=(clause, *others))

    def holds_where(self, number: str = "", because: str = "") -> str:
        """Return the condition in words, by default on what is judged over seeds."""
        if number:
            margin = replace(
                self.clauses[0].quantity.margin, because=because, fewest_seeds=self.seeds
            )
            return f"{margin.in_words(number)}{self.clauses[0].at_the_end}"
        conditions = "; ".join(clause.holds_where() for clause in self.clauses)
        return f"{conditions}; at least {plural(self.seeds, 'seed')}"


def chosen(cells: Cells, conditions: Sequence[str]) -> Cells:
    """Return the cells that meet conditions, which are on parameters alone."""
    for text in conditions:
        for test in read_conditions(text, cells.schema.placed):
            for name in (ref.name for ref in test.refs):
                if cells.schema[name].role != "parameter":
                    accepts = f"{name} is measured: choosing cells by it would choose outcomes."
                    raise BadValue("where", text, accepts)
    try:
        return cells.where(*conditions)
    except NoCellsError:
        lacking = f"It needs cells where {' and '.join(conditions)}; these have none."
        raise not_run(lacking) from None


def _slug(claimed: str) -> str:
    words = {"<=": " le ", ">=": " ge ", "<": " lt ", ">": " gt ", "=": " "}
    words |= {"%": " percent ", "/": " over "}
    for sign, word in words.items():
        claimed = claimed.replace(sign, word)
    return re.sub(r"[^\w.*/+-]+", "-", claimed).strip("-")


# Reading

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
        return Power(_measured(measured), axis, margin, contour=(x, _number(threshold)))
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
        return factor_margin(number, width)
    width = abs(number) * width / 100 if percent else width
    if not (math.isfinite(width) and width > 0):
        refuse("a tolerance is above 0.")
    return tolerance_margin(number, width)


def _one_side(sign: str, number: float) -> Margin:
    """A margin with one end; that of `<` and `>` does not contain its end."""
    towards = {"<": -math.inf, ">": math.inf}.get(sign, number)
    end = math.nextafter(number, towards)
    return Margin(most=end) if sign[0] == "<" else Margin(least=end)


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
