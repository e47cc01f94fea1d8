"""Claims as sentences: `test_error < 0.05 where snr > 2`, read and never run as code.

The forms, where Q is arithmetic of columns and parameters, and X, Y are parameters:

- `Q < NUMBER` (`<=`, `>`, `>=`): the median of Q over seeds, at every setting.
- `Q is NUMBER within 0.02`, `within 10%` or `within a factor of 2`: the same, on both sides.
- `Q[method=ridge] < Q[method=none]`: the difference of two groups, seed by seed.
- `Q falls along X`, `Q rises along X`: the rank correlation on every line, and no run back.
- `power of X in Q is NUMBER within 0.1`: p of Q ∝ X^p, on every line.
- `power of Y in X at Q = NUMBER is NUMBER within 0.1`: p of X ∝ Y^p where Q has that value.
- `share of seeds with Q < NUMBER > NUMBER`: the share, at every setting.

Before it may stand a name, `learned:`, and before a quantity `mean of`. After it may stand `on
average`, for the average over settings seed by seed, and `where` with conditions on parameters.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from overfit_cli.claims.everywhere import FEWEST, average, judge_parts
from overfit_cli.claims.measured import Measured, Table
from overfit_cli.claims.quantities import (
    ContourPower,
    Level,
    Part,
    Power,
    Quantity,
    Share,
    Statistic,
    Trend,
)
from overfit_cli.claims.rules import Margin
from overfit_cli.core.claim import Claim, Measurement, add_remark, inconclusive, not_run
from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.parameters import symbol_spellings
from overfit_cli.core.study import AnyStudy
from overfit_cli.core.text import plural, shorten

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

LONGEST = 400
_SIGN = r"(?:<=|>=|<|>)"
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_NAME = r"[^\W\d]\w*"


@dataclass(frozen=True)
class Sentence:
    """A claim that was read.

    Attributes:
        name: what it is called; by default made from the text.
        text: the sentence, with single blanks.
        quantity: what is measured, with its margin.
        statistic: what is judged over seeds.
        on_average: whether settings are averaged, seed by seed.
        where: conditions on parameters.
    """

    name: str
    text: str
    quantity: Quantity
    statistic: Statistic = "median"
    on_average: bool = False
    where: tuple[str, ...] = ()

    def parts(self, table: Table) -> list[Part]:
        """Return the numbers that the claim is judged on.

        Raises:
            BadValue: for a name that the cells do not have.
            UndecidedError: where the cells do not bear on it.
        """
        chosen = table.chosen(self.where) if self.where else table
        if left := len(table.cells) - len(chosen.cells):
            add_remark(f"{plural(left, 'cell')} left out, as it says.")
        parts = self.quantity.parts(chosen)
        if not parts:
            raise not_run("No cell bears on it.")
        return average(parts) if self.on_average and len(parts) > 1 else parts

    def measure(self, table: Table, *, drawn: bool = True) -> Measurement:
        """Return the measurement; see `parts`.

        Args:
            table: the cells.
            drawn: whether the study has seeds.
        """
        return judge_parts(self.parts(table), self.statistic, drawn=drawn)

    def holds_where(self) -> str:
        """Return the condition in words."""
        if isinstance(self.quantity, Trend):
            way = "rises" if self.quantity.rises else "falls"
            condition = (
                f"the rank correlation has its whole interval on the side on which it {way}, and "
                "the end has not run back by half"
            )
        else:
            condition = f"the {self.statistic} over seeds has its whole interval {self._margin}"
        place = "averaged over settings, seed by seed" if self.on_average else "at every setting"
        return f"{condition}, {place}; at least {FEWEST[self.statistic]} seeds"

    @property
    def _margin(self) -> Margin:
        assert not isinstance(self.quantity, Trend)
        return self.quantity.margin


@dataclass(frozen=True)
class Measure:
    """The function that measures a sentence on a study's cells."""

    sentence: Sentence
    study: AnyStudy

    def table(self, cells: pd.DataFrame) -> Table:
        """Return cells with what their columns are called."""
        return Table(cells, self.study.parameters, column_symbols(self.study))

    def __call__(self, cells: pd.DataFrame) -> Measurement:
        """Return the measurement; `inconclusive` where a name is unknown."""
        try:
            return self.sentence.measure(self.table(cells), drawn=self.study.seeded)
        except UserError as error:
            raise inconclusive(f"{error}") from error


def column_symbols(study: AnyStudy) -> dict[str, str]:
    """Return the names of a study's measured columns by the spellings of their symbols."""
    return {
        spelling: column.name
        for column in study.columns
        for spelling in symbol_spellings(column.symbol)
    }


def claim(text: str, study: AnyStudy, **fields: Any) -> Claim:
    """Return the claim of a sentence.

    Args:
        text: the sentence, such as one of `FORMS`.
        study: the study whose cells it is judged on.
        **fields: further attributes of the claim, such as `kind` and `source`.

    Raises:
        BadValue: if it is no sentence; with the nearest form.
    """
    sentence = read(text)
    given: dict[str, Any] = {
        "name": sentence.name,
        "source": "",
        "statement": sentence.text,
        "holds_where": sentence.holds_where(),
    }
    return Claim(**{**given, **fields}, measure=Measure(sentence, study))


def claims_of_study(stated: Iterable[Claim | str], study: AnyStudy) -> list[Claim]:
    """Return claims of which some are stated as sentences."""
    return [claim(item, study) if isinstance(item, str) else item for item in stated]


# Reading


class _NoClaimError(Exception):
    """The reason why a text is no claim."""


def read(text: str) -> Sentence:
    """Read a claim; see the table above.

    Raises:
        BadValue: if it is none, with the nearest form.
    """
    tidy = " ".join(str(text).split())
    try:
        if len(tidy) > LONGEST:
            raise _NoClaimError(f"it is longer than {LONGEST} characters.")
        return _read(tidy)
    except _NoClaimError as refused:
        form = _nearest(tidy)
        raise BadValue("claim", shorten(tidy), f"{refused} The nearest form is {form!r}.") from None


def _read(tidy: str) -> Sentence:
    name, claimed = _named(tidy)
    body, *conditions = re.split(r"\bwhere\b", claimed)
    if len(conditions) > 1:
        raise _NoClaimError("it has two wheres; join conditions by `and`.")
    where = _conditions(conditions[0]) if conditions else ()
    stripped = re.sub(r"\s+on average\s*$", "", body)
    on_average = stripped != body
    quantity, statistic = _quantity(stripped.strip())
    return Sentence(name or _slug(claimed), claimed, quantity, statistic, on_average, where)


def _named(tidy: str) -> tuple[str, str]:
    """The name before a colon, and the rest."""
    match = re.fullmatch(r"([\w][\w .-]*?)\s*:\s*(.+)", tidy)
    return (match[1], match[2]) if match else ("", tidy)


def _slug(claimed: str) -> str:
    """A name made from the text: `test_error-lt-0.05-where-snr-gt-2`."""
    words = {"<=": " le ", ">=": " ge ", "<": " lt ", ">": " gt ", "=": " ", "%": " percent "}
    for sign, word in words.items():
        claimed = claimed.replace(sign, word)
    return re.sub(r"[^\w.*/+-]+", "-", claimed).strip("-")


def _conditions(text: str) -> tuple[str, ...]:
    """Conditions joined by `and`; a comma may join values: `n = 10,20`."""
    joined = re.split(r"\band\b", text)
    parts = tuple(p.strip() for part in joined for p in re.split(r",(?=[^,<>=]*[<>=!])", part))
    if not all(parts):
        raise _NoClaimError("a condition is empty.")
    return parts


def _quantity(body: str) -> tuple[Quantity, Statistic]:
    """The quantity of a sentence without its name and conditions, and what is judged of seeds."""
    if match := re.fullmatch(r"share of seeds with (.+)", body):
        return _share(match[1]), "share"
    statistic: Statistic = "median"
    if match := re.fullmatch(r"(mean|median) of (.+)", body):
        statistic, body = ("mean" if match[1] == "mean" else "median"), match[2]
    if match := re.fullmatch(rf"(.+?) (falls|rises)(?: along ({_NAME}))?", body):
        if match[3] is None:
            raise _NoClaimError(f"it does not say along what it {match[2]}.")
        return Trend(_measured(match[1]), match[3], match[2] == "rises"), statistic
    if match := re.fullmatch(rf"power of ({_NAME}) in (.+)", body):
        return _power(match[1], match[2]), statistic
    return _level(body), statistic


def _power(axis: str, rest: str) -> Quantity:
    contour = re.fullmatch(rf"({_NAME}) at (.+?) = ({_NUMBER}) ((?:is|{_SIGN}) .+)", rest)
    if contour:
        x, measured, threshold, relation = contour.groups()
        return ContourPower(x, axis, _measured(measured), float(threshold), _relation(relation))
    match = re.fullmatch(rf"(.+?) ((?:is|{_SIGN}) .+)", rest)
    if match is None:
        raise _NoClaimError("it does not say what the power is.")
    return Power(_measured(match[1]), axis, _relation(match[2]))


def _share(rest: str) -> Share:
    match = re.fullmatch(rf"(.+?)\s*({_SIGN})\s*(.+?)\s*({_SIGN})\s*({_NUMBER})(\s*%)?", rest)
    if match is None:
        raise _NoClaimError("a share compares twice: the number of a seed, and the share.")
    left, sign, right, relation, number, percent = match.groups()
    share = float(number) / (100 if percent else 1)
    if not 0 < share < 1:
        raise _NoClaimError(f"a share lies between 0 and 1, not at {share:g}.")
    return Share(_difference(left, right), sign, _one_side(relation, share))


def _level(body: str) -> Level:
    equivalence = re.fullmatch(rf"(.+?) (is {_NUMBER}.*)", body)
    if equivalence and not re.search(_SIGN, body):
        return Level(_measured(equivalence[1]), _relation(equivalence[2]))
    sides = re.split(rf"\s*({_SIGN})\s*", body)
    if len(sides) == 1:
        if re.search(r"(?<![<>=!])=(?!=)", re.sub(r"\[[^\]]*\]", "", body)):
            raise _NoClaimError("equality takes a tolerance: `is NUMBER within TOLERANCE`.")
        raise _NoClaimError("it compares nothing.")
    if len(sides) > 3:
        raise _NoClaimError("it compares more than once.")
    left, sign, right = sides
    if not left or not right:
        raise _NoClaimError("one side is empty.")
    if re.fullmatch(_NUMBER, right):
        return Level(_measured(left), _one_side(sign, float(right)))
    if re.fullmatch(_NUMBER, left):
        flipped = sign.translate(str.maketrans("<>", "><"))
        return Level(_measured(right), _one_side(flipped, float(left)))
    return Level(_difference(left, right), _one_side(sign, 0.0))


def _difference(left: str, right: str) -> Measured:
    """The left side of a comparison less its right side; one of them may be a number."""
    sides = [
        side if re.fullmatch(_NUMBER, side) else _measured(side).text for side in (left, right)
    ]
    _measured(" - ".join(sides))
    return Measured(f"{sides[0]} - ({sides[1]})")


def _measured(text: str) -> Measured:
    """An expression; its names are looked up when there are cells."""
    stripped = text.strip()
    outside = re.sub(r"\[[^\[\]]*\]", "", stripped)
    if not stripped or not re.search(r"[^\W\d]", outside):
        raise _NoClaimError(f"{stripped!r} names no column.")
    if odd := re.search(r"[^\w\s.+\-*/(),]", outside):
        raise _NoClaimError(f"{stripped!r} is not arithmetic: it has a {odd[0]!r}.")
    if re.search(rf"{_NAME} +{_NAME}|\d +{_NAME}|{_NAME} +\d", outside):
        raise _NoClaimError(f"{stripped!r} is not arithmetic of columns.")
    return Measured(stripped)


def _relation(text: str) -> Margin:
    """A margin: `is 1 within 0.1`, `is 1 within 10%`, `is 1 within a factor of 2`, `< 3`."""
    if match := re.fullmatch(rf"({_SIGN})\s*({_NUMBER})", text):
        return _one_side(match[1], float(match[2]))
    match = re.fullmatch(rf"is ({_NUMBER})(?: within (?:(a factor of )?({_NUMBER})(\s*%)?))?", text)
    if match is None:
        raise _NoClaimError(f"{text!r} is no margin.")
    value, factor, tolerance, percent = match.groups()
    if tolerance is None:
        raise _NoClaimError("equality takes a tolerance: `is NUMBER within TOLERANCE`.")
    number, width = float(value), float(tolerance)
    if factor:
        if percent or width <= 1 or number <= 0:
            raise _NoClaimError("a factor is above 1, of a number above 0.")
        return Margin(number / width, number * width, "as stated")
    width = abs(number) * width / 100 if percent else width
    if not (math.isfinite(width) and width > 0):
        raise _NoClaimError("a tolerance is above 0.")
    return Margin(number - width, number + width, "as stated")


def _one_side(sign: str, number: float) -> Margin:
    """A margin with one end; that of `<` and `>` does not contain its end."""
    if not math.isfinite(number):
        raise _NoClaimError("it has a number too large to compute with.")
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
    """The form that is most like a text."""
    for words, form in _KEYWORDS:
        if re.search(rf"(?<!\w)(?:{words})(?!\w)", tidy.lower()):
            return form
    return FORMS[0]
