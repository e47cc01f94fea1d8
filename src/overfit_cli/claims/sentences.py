"""Sentences: claims as text, such as `test_error < 0.05 where snr > 2`, which is never run as code.

The forms, where Q is arithmetic of columns and parameters, and X, Y are parameters:

- `Q < NUMBER` (`<=`, `>`, `>=`): the median of Q over seeds, at every setting.
- `Q is NUMBER within 0.02`, `within 10%` or `within a factor of 2`: the same, on both sides.
- `Q[method=ridge] < Q[method=none]`: the difference of two groups, seed by seed; of a geometric
  mean their ratio.
- `Q falls along X`, `Q rises along X`: the rank correlation on every line, without either end too,
  and no run back; `rank correlation of X in Q < -0.5` is the same with a margin of its own.
- `power of X in Q is NUMBER within 0.1`: p of Q ∝ X^p, on every line; `throughout`: the last value
  alone doesn't decide, and Q doesn't turn at the end of the line.
- `X at Q = NUMBER is NUMBER within 0.1`: the X where Q has that value, such as a transition; also
  with `<` and `>`.
- `power of Y in X at Q = NUMBER is NUMBER within 0.1`: p of X ∝ Y^p where Q has that value.
- `powers of (X, Y) in Q are (NUMBER, any) within 0.1`: p and r of Q ∝ X^p Y^r over all settings;
  X and Y may be columns too. `any` power may be any.
- `Q <= B on all seeds if A <= C and D <= E`: one cell that meets the conditions refutes it;
  `on 95 % of seeds`: the share of seeds without such a cell, at every setting.
- `share of seeds with Q < NUMBER > NUMBER`: the share, at every setting; `everywhere` before the
  second sign: of seeds with such a Q at all settings.

Q may be what is logged on the way: `loss[step=100]`, or `first step with Q > B`.

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

from overfit_cli.claims import quantities
from overfit_cli.claims.bounds import Bound, Comparison
from overfit_cli.claims.parts import FEWEST, Margin, Part, Statistic
from overfit_cli.claims.quantities import Crossing, Level, Power, Powers, Quantity, Share, Trend
from overfit_cli.core import expressions
from overfit_cli.core.cells import Cells, NoCellsError, UndefinedError
from overfit_cli.core.claim import BY_CELL, IN_MARGIN, add_remark, inconclusive, not_run
from overfit_cli.core.errors import BadValue
from overfit_cli.core.expressions import Expression, refuse, split
from overfit_cli.core.text import plural
from overfit_cli.stats.intervals import FEW

Over = Literal["every", "average", "worst"]
"""How the numbers at several settings are judged: see `combine`."""


@dataclass(frozen=True)
class Clause:
    """A quantity of a claim, with how it is judged over seeds and over settings."""

    quantity: Quantity | Bound
    statistic: Statistic = "median"
    over: Over = "every"

    def parts(self, cells: Cells, seeds: int) -> list[Part]:
        """Return the numbers that it is judged on."""
        if isinstance(self.quantity, Bound):
            return self.quantity.parts(cells, seeds)
        parts = [
            replace(part, statistic=self.statistic, margin=replace(part.margin, fewest_seeds=seeds))
            for part in self.quantity.parts(cells)
        ]
        if not parts:
            raise not_run("No cell bears on it.")
        if self.statistic == "mean" and isinstance(self.quantity, Level):
            one, *others = self.quantity.measured.refs
            if not others:
                numbers = cells.numbers(one.name, missed=False)
                parts = _of_two_values(parts, {*numbers.abs().dropna()})
            else:  # a difference of zeros and ones has three values
                parts = [replace(part, signed=True) for part in parts]
        if self.statistic == "geometric mean" and any((part.high <= 0).any() for part in parts):
            raise inconclusive("A number is 0 or less, which has no logarithm.")
        return combine(parts, self.over)

    def holds_where(self, *, named: bool = False) -> str:
        """Return the condition on the seeds' numbers in words, with the quantity if wanted."""
        if isinstance(self.quantity, Bound):
            return self.quantity.holds_where()
        if isinstance(self.quantity, Powers):
            return self.quantity.holds_where(self.statistic)
        if isinstance(self.quantity, Trend):
            way = "rises" if self.quantity.rises else "falls"
            size = self.quantity.size
            side = f"{self.quantity.margin}" if size else f"on the side on which it {way}"
            condition = (
                f"the rank correlation{IN_MARGIN}{side}, of four values or more the line {way} "
                "without either end too, its end has not run back by half of its values, and no "
                "turn on it is as large as half of its range"
            )
        else:
            of = f" of {self.quantity}" * named
            condition = f"the {self.statistic} over seeds{of}{IN_MARGIN}{self.quantity.margin}"
        return f"{condition}, {_OVER[self.over]}{self.at_the_end}"

    @property
    def at_the_end(self) -> str:
        """The condition on the end of a line in words; empty without one."""
        if not (isinstance(self.quantity, Power) and self.quantity.throughout):
            return ""
        is_below = math.isinf(self.quantity.margin.least)
        side, turn = ("below", "rise") if is_below else ("above", "fall")
        return (
            f"; between the last two {self.quantity.axis} that power and half of the whole are "
            f"{side} 0: no {turn} half as fast; of four or more, so is the power without the last"
        )


def _of_two_values(parts: Sequence[Part], sizes: set[float]) -> list[Part]:
    """Return parts with the limits of their numbers, where all of these have one of two values.

    These are 0 and 1, or −1 and 1, by the sizes of a column; or there are many numbers.
    """
    known = [part.low[part.low == part.high] for part in parts]
    values, count = np.unique(np.concatenate(known)), sum(map(len, known))
    is_few = count < FEW and not sizes <= {0.0, 1.0}
    if len(values) != 2 or np.isinf(values).any() or is_few:
        return list(parts)
    within = float(values[0]), float(values[1])
    return [part if part.unknown else replace(part, within=within) for part in parts]


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
        ends = np.array([(part.low, part.high) for part in alike])  # (settings, ends, seeds)
        ways: dict[str, Any] = {"mean": gmean if in_logs else np.mean}
        if over == "worst":
            both = (("least", np.min, margin.least), ("most", np.max, margin.most))
            ways = {name: reduce for name, reduce, end in both if math.isfinite(end)}
        for way, reduce in ways.items():
            low, high = reduce(np.maximum(ends, 0.0) if in_logs else ends, axis=0)
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
    def references(self) -> list[expressions.Ref]:
        """What it names: columns and parameters, some at chosen values of parameters."""
        return [ref for clause in self.clauses for ref in quantities.references(clause.quantity)]

    def axes(self, cells: Cells) -> dict[str, int]:
        """Return the parameters along which it is told, with the fewest values of each."""
        axes = [quantities.axes_of(clause.quantity) for clause in self.clauses]
        return {quantities.number_parameter(cells, x): each[x] for each in axes for x in each}

    def parts(self, cells: Cells) -> list[Part]:
        """Return the numbers that the claim is judged on."""
        judged = chosen(cells, self.where)
        if left := len(cells.frame) - len(judged.frame):
            are, them = ("is", "it") if left == 1 else ("are", "them")
            add_remark(f"{plural(left, 'cell')} {are} left out because the claim excludes {them}.")
        try:
            return [
                replace(part, quantity=str(clause.quantity)) if len(self.clauses) > 1 else part
                for clause in self.clauses
                for part in clause.parts(judged, self.seeds)
            ]
        except NoCellsError as error:
            raise not_run(f"It needs cells of {error.value}: {error.accepts}") from None
        except UndefinedError as error:
            raise inconclusive(f"{error.value}: {error.accepts}") from None

    def local(self, cells: Cells, *, together: bool) -> list[Part]:
        """Return the powers of pieces of lines, which a power has all along them.

        Args:
            together: whether powers that are fitted together have pieces, too.
        """
        judged = chosen(cells, self.where)
        return [
            part
            for clause in self.clauses
            if isinstance(clause.quantity, (Power, Powers) if together else Power)
            for parts in clause.quantity.local(judged)
            for part in combine(parts, clause.over)
        ]

    def with_target(self, target: float) -> Sentence:
        """Return the sentence with the number that it states beside the end of its margin."""
        first, *others = self.clauses
        quantity: Any = first.quantity
        stated = replace(quantity, margin=replace(quantity.margin, target=target))
        return replace(self, clauses=(replace(first, quantity=stated), *others))

    def holds_where(self, number: str = "", because: str = "", *, named: bool = False) -> str:
        """Return the condition in words, by default on what is judged over seeds.

        Args:
            named: whether to name the quantity, where a claim's statement is not the sentence.
        """
        several, origin = len(self.clauses) > 1, f" ({because})" if because else ""
        told = list[str]()
        for clause in self.clauses:
            words = clause.holds_where(named=named or several)
            is_bound = several and isinstance(clause.quantity, Bound)
            told.append(f"{clause.quantity}: {words}" if is_bound else words)
        if number:
            first = self.clauses[0]
            margin = replace(first.quantity.margin, because=because, fewest_seeds=self.seeds)
            bounds = [words for words in told[1:] if BY_CELL in words]
            return "; ".join([f"{margin.in_words(number)}{first.at_the_end}", *bounds])
        return f"{'; '.join(told)}{origin}; at least {plural(self.seeds, 'seed')}"


def chosen(cells: Cells, conditions: Sequence[str]) -> Cells:
    """Return the cells that meet conditions, which are on parameters alone."""
    for text in conditions:
        for test in expressions.read_conditions(text, cells.schema.placed):
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

FORMS = {
    "share of seeds with test_error < 0.1 > 0.8": "share",
    "power of n in snr at test_error = 0.1 is -0.5 within 0.1": r"(power|slope|exponent).* at ",
    "snr at test_error = 0.1 is 0.5 within 0.05": r"at \S+ = \S+ (is|<|>)",
    "power of n in steps is 1 within 0.1": "power|slope|exponent|scales",
    "powers of (n, snr) in steps are (1, -2) within 0.1": "powers",
    "test_error <= 0.1 on all seeds if train_error <= 0.01": ".* (on|for|all) .*seeds?|.* if",
    "rank correlation of snr in test_error < -0.5": ".*correlation",
    "test_error falls along snr": r"falls?|decreas\w*|drops?",
    "test_error rises along snr": r"rises?|increas\w*|grows?",
    "test_error[method=ridge] < test_error[method=none] where n >= 10": r".*\[",
    "test_error is 0.5 within 0.02 where snr = 0.1": "is|equals|.*=",
    "test_error < 0.05 where snr > 2": ".*",
}
"""One sentence of each form, for messages and documents; and the words of a text that meant it."""

_SIGN = r"(?:<=|>=|<|>)"
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?:/\d+)?"
"""A number, or a fraction such as 2/3."""
_NAME = r"[^\W\d]\w*"
_MARGIN = (
    rf"(?:{_SIGN}\s*{_NUMBER}|\bis {_NUMBER} within (?:a factor of {_NUMBER}|{_NUMBER}(?:\s*%)?))"
)


def read(text: str) -> Sentence:
    """Read a claim; see the table above."""
    with expressions.tidied(str(text), "claim", _nearest) as tidy:
        return _read(tidy)


def _nearest(tidy: str) -> str:
    words = {form: rf"(?<!\w)(?:{words})(?!\w)" for form, words in FORMS.items()}
    nearest = next(form for form in words if re.search(words[form], tidy.lower()))
    return f" The nearest form is {nearest!r}."


def _read(tidy: str) -> Sentence:
    named = re.fullmatch(r"(\w[\w .-]*?)\s*:\s*(.+)", tidy)
    title, claimed = named.groups() if named else ("", tidy)
    body, *conditions = re.split(r"\bwhere\b", claimed)
    # Conditions are joined by `and`; a comma may join values: `n = 10,20`.
    where = tuple(split(conditions[0], expressions.AND)[::2]) if conditions else ()
    if len(conditions) > 1 or not all(where):
        refuse("conditions stand behind one `where` at its end, with `and` between them.")
    body = _of_steps(body)
    body, *seeds = re.split(r"\s+with at least (\d+) seeds?\s*$", body)
    clauses = tuple(_clause(part.strip()) for part in body.split(";"))
    return Sentence(clauses, where, int(seeds[0]) if seeds else 0, title, claimed)


STEP_COLUMN = re.compile(r"(.+) at step (\d+)|first step with (.+)")
"""The columns of cells that are made of their logged steps."""

_SIDE = r"[^<>=;`\[\]]+?"
_FIRST = (
    rf"(?<!`)first step with ({_SIDE}{_SIGN}{_SIDE})"
    r"(?=\s*(?:[\[;<>=]|$)|\s+(?:is|falls|rises|on|at|everywhere|and|if)\b)"
)
_AT_STEP = rf"(`[^`]+`|{_NAME})\[([^\[\]]*)\bstep\s*=\s*(\d+)([^\[\]]*)\]"


def _of_steps(body: str) -> str:
    """Write what is read of logged steps as columns: `` `loss at step 100` ``, see above."""

    def at_step(match: re.Match[str]) -> str:
        others = re.sub(r"^(\s|,|and\b)+|(\s|,|\band)+$", "", match[2] + match[4])
        brackets = f"[{others}]" if others else ""
        return f"`{match[1].strip('`')} at step {int(match[3])}`{brackets}"

    return re.sub(_AT_STEP, at_step, re.sub(_FIRST, r"`first step with \1`", body))


def comparison(text: str) -> Comparison:
    """Read a comparison of two sides, such as `sharpness > 2/eta`."""
    with expressions.tidied(text, "claim") as tidy:
        return _compared(tidy)


def _clause(text: str) -> Clause:
    share = rf"share of seeds with (.+?)(\s+everywhere)?\s*({_SIGN})\s*({_NUMBER})(\s*%)?"
    if match := re.fullmatch(share, text):
        return Clause(_share(*match.groups()), "share")
    if match := re.fullmatch(rf"(.+?) on (?:all|({_NUMBER}) ?% of) seeds(?: if (.+))?", text):
        return Clause(_bound(*match.groups()), "no exception")
    body, *said = re.split(r"\s+(on average|at worst)$", text)
    over = cast("Over", said[0].split()[1]) if said else "every"
    statistic: Statistic = "median"
    if match := re.fullmatch(r"(mean|median|geometric mean) of (.+)", body):
        statistic, body = cast("Statistic", match[1]), match[2]
    quantity = _quantity(body, in_ratios=statistic == "geometric mean")
    if said and isinstance(quantity, Powers):
        refuse(f"`powers of` are fitted over all settings; leave out `{said[0]}`.")
    return Clause(quantity, statistic, over)


def _quantity(body: str, *, in_ratios: bool) -> Quantity:
    """The quantity of a clause without what is judged of settings and seeds."""
    if trend := _trend(body):
        return trend
    if crossing := _crossing(body):
        return crossing
    if match := re.fullmatch(rf"powers of \((.+)\) in (.+?) are \((.+)\) within ({_NUMBER})", body):
        causes = tuple(map(_measured, match[1].split(",")))
        texts = map(str.strip, match[3].split(","))
        stated = tuple(None if text == "any" else _number(text) for text in texts)
        if len(causes) != len(stated) or stated == (None,) * len(stated):
            refuse("it takes a power, or `any`, for each name, and at least one that is a number.")
        powers = Powers(_measured(match[2]), causes, stated, _number(match[4]))
        if any(ref.at for ref in quantities.references(powers)):
            refuse("`powers of` takes no brackets; `where` at its end chooses cells.")
        return powers if powers.tolerance > 0 else refuse("a tolerance is above 0.")
    if match := re.fullmatch(rf"power of ({_NAME}) in (.+?) ({_MARGIN})( throughout)?", body):
        power = Power(_measured(match[2]), match[1], _margin(match[3]), match[4] is not None)
        if power.throughout and not (power.margin.least >= 0) ^ (power.margin.most <= 0):
            refuse("throughout takes a power below 0, or one above 0.")
        return power
    if match := re.fullmatch(rf"(.+?)\s*({_MARGIN})", body):
        return Level(_measured(match[1]), _margin(match[2]))
    return _comparison(*_sides(body), in_ratios=in_ratios)


def _crossing(body: str) -> Crossing | Power | None:
    """Where a quantity has a number, or the power of that in another parameter."""
    crossing = rf"(?:power of ({_NAME}) in )?({_NAME}) at (.+?) ?= ?({_NUMBER}) ?({_MARGIN})"
    if not (match := re.fullmatch(crossing, body)):
        return None
    axis, x, column, number, ends = match.groups()
    measured, threshold, margin = _measured(column), _number(number), _margin(ends)
    if axis:
        return Power(measured, axis, margin, contour=(x, threshold))
    return Crossing(measured, x, threshold, margin)


def _trend(body: str) -> Trend | None:
    if match := re.fullmatch(rf"(.+?) (falls|rises) along ({_NAME})", body):
        return Trend(_measured(match[1]), match[3], match[2] == "rises")
    correlation = rf"rank correlation of ({_NAME}) in (.+?)\s*({_SIGN})\s*({_NUMBER})"
    if match := re.fullmatch(correlation, body):
        axis, column, sign, number = match.groups()
        rises, size = sign[0] == ">", abs(_number(number))
        if not 0 < size < 1 or rises == number.startswith("-"):
            refuse("a rank correlation lies below one from -1 to 0, or above one from 0 to 1.")
        return Trend(_measured(column), axis, rises, size)
    return None


def _comparison(left: str, sign: str, right: str, *, in_ratios: bool) -> Level:
    if re.fullmatch(_NUMBER, left):
        turned = sign.translate(str.maketrans("<>", "><"))
        return Level(_measured(right), _one_side(turned, _number(left)))
    if in_ratios:
        return Level(_measured(f"({_measured(left)}) / ({_measured(right)})"), _one_side(sign, 1.0))
    return Level(_difference(left, right), _one_side(sign, 0.0))


def _bound(bound: str, percent: str | None, conditions: str | None) -> Bound:
    met = split(conditions, r"\sand\s")[::2] if conditions else ()
    share = _number(percent) / 100 if percent else 0.0
    if percent and not 0 < share < 1:
        refuse(f"a share of seeds lies between 0 and 100 %, not at {100 * share:g} %.")
    return Bound(_compared(bound), tuple(map(_compared, met)), share)


def _compared(text: str) -> Comparison:
    sides = split(text, _SIGN)
    if len(sides) != 3:
        refuse(f"{text!r} is no comparison of two sides by <, <=, > or >=.")
    left, right = map(_arithmetic, sides[::2])
    if not left.refs:
        refuse(f"{text!r} begins with no name.")
    return Comparison(left, sides[1], right)


def _share(conditions: str, everywhere: str, relation: str, number: str, percent: str) -> Share:
    sides = [_sides(text, f"{_SIGN}|=") for text in split(conditions, r"\sand\s")[::2]]
    share = _number(number) / (100 if percent else 1)
    if not 0 < share < 1:
        refuse(f"a share lies between 0 and 1, not at {share:g}.")
    met = tuple((_difference(left, right), sign) for left, sign, right in sides)
    return Share(met, _one_side(relation, share), everywhere is not None)


def _sides(text: str, signs: str = _SIGN) -> list[str]:
    """The left side of a comparison, its sign, and its right side."""
    sides = split(text, signs)
    return sides if len(sides) == 3 and all(sides) else refuse("it has no form of a claim.")


def _difference(left: str, right: str) -> Expression:
    """The left side of a comparison less its right side; one of them may be a number."""
    both = (side if re.fullmatch(_NUMBER, side) else str(_measured(side)) for side in (left, right))
    return _measured("{} - ({})".format(*both))


def _measured(text: str) -> Expression:
    """An expression; its names are looked up when there are cells."""
    expression = _arithmetic(text)
    return expression if expression.refs else refuse(f"{text.strip()!r} names no column.")


def _arithmetic(text: str) -> Expression:
    try:
        return expressions.read_expression(text, expressions.ANY, "claim")
    except BadValue as error:
        refuse(f"{text.strip()!r} is not arithmetic of columns: {error.accepts}")


def _number(text: str) -> float:
    """A number, or a fraction of two: `2/3`."""
    if not re.fullmatch(_NUMBER, text):
        refuse(f"{text!r} is no number.")
    above, _, below = text.partition("/")
    value = float(above) / float(below or 1) if float(below or 1) else math.inf
    return value if math.isfinite(value) else refuse("it has a number too large to compute with.")


def _margin(text: str) -> Margin:
    """A margin: `is 1 within 0.1`, `is 1 within 10%`, `is 1 within a factor of 2`, `< 3`."""
    if match := re.fullmatch(rf"({_SIGN})\s*({_NUMBER})", text):
        return _one_side(match[1], _number(match[2]))
    number, width = map(_number, re.findall(_NUMBER, text))
    if "factor" in text and number > 0 and width > 1:
        return Margin(number / width, number * width, target=number)
    width = abs(number) * width / 100 if "%" in text else width
    if "factor" in text or not 0 < width < math.inf:
        refuse("a tolerance is above 0; a factor is above 1, of a number above 0.")
    return Margin(number - width, number + width, target=number)


def _one_side(sign: str, number: float) -> Margin:
    """A margin with one end; that of `<` and `>` does not contain its end."""
    end = math.nextafter(number, {"<": -math.inf, ">": math.inf}.get(sign, number))
    return Margin(most=end) if sign[0] == "<" else Margin(least=end)
