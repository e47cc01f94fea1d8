"""Claims in Python: functions that write the sentences that `grammar` reads.

A quantity is `mean("test_error")`, or a bare expression, which stands for its median over seeds. A
comparison makes a claim of it: `below(mean("test_error"), 0.05, where="snr > 2")` is the sentence
`mean of test_error < 0.05 where snr > 2`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypedDict, Unpack

from overfit_cli.claims.everywhere import Over
from overfit_cli.claims.grammar import read
from overfit_cli.claims.sentences import Sentence
from overfit_cli.core.errors import BadValue
from overfit_cli.core.text import suggestion

Number = int | float


@dataclass(frozen=True)
class Quantity:
    """A quantity of a claim; its words are as in a sentence, such as `mean of test_error`."""

    words: str
    throughout: bool = False

    def __str__(self) -> str:
        return self.words


Measured = str | Quantity
"""An expression of columns and parameters, or a quantity."""


class Options(TypedDict, total=False):
    """The options that every claim takes beside its quantity.

    Attributes:
        where: conditions on parameters: `"snr > 2"`, or several in a list.
        over: `every` setting is judged by itself; `average` judges their average, seed by seed, and
            `worst` the worst one of each seed.
        seeds: the fewest seeds that decide; by default those that the statistic takes.
    """

    where: str | Sequence[str]
    over: Over
    seeds: int
    name: str


def median(number: Measured) -> Quantity:
    """Return the median of a number over seeds: valid for numbers of any distribution."""
    return _prefixed("median of", number)


def mean(number: Measured) -> Quantity:
    """Return the mean of a number over seeds, by Student's t."""
    return _prefixed("mean of", number)


def geometric_mean(number: Measured) -> Quantity:
    """Return the geometric mean of a positive number over seeds, by Student's t of logarithms."""
    return _prefixed("geometric mean of", number)


def share(*conditions: str, everywhere: bool = False) -> Quantity:
    """Return the share of seeds that meet all conditions, such as `test_error < 0.1`.

    They do so at each setting by itself, or `everywhere`.
    """
    joined = " and ".join(_text("condition", text) for text in conditions)
    return Quantity(f"share of seeds with {joined}{' everywhere' if everywhere else ''}")


def power(number: Measured, along: str, *, throughout: bool = False) -> Quantity:
    """Return the power p of a number ∝ parameter^p, on every line along the parameter.

    With `throughout` the number must not turn at the end of the line.
    """
    words = f"power of {_text('along', along)} in {_text('number', number)}"
    return Quantity(words, throughout)


@dataclass(frozen=True)
class Boundary:
    """The boundary on which a column has a value: an x for each y."""

    column: str
    value: Number
    x: str
    y: str

    @property
    def power(self) -> Quantity:
        """The power p of x ∝ y^p along the boundary."""
        return Quantity(
            f"power of {_text('y', self.y)} in {_text('x', self.x)} at "
            f"{_text('column', self.column)} = {_number('value', self.value)}"
        )


def boundary(column: str, value: Number, *, x: str, y: str) -> Boundary:
    """Return the boundary on which a column has a value; see `Boundary`."""
    return Boundary(column, value, x, y)


def ratio(over: str, under: str = "", /, **settings: tuple[object, object]) -> str:
    """Return the expression of a ratio: of two expressions, or of a column at two settings.

    Settings are the values over and under: `ratio("loss", method=("ridge", "none"))`.
    """
    for name, pair in settings.items():
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise BadValue(name, pair, "it takes two values in parentheses, over and under.")
    if bool(under) == bool(settings):
        raise BadValue("under", under, "a ratio is of two expressions, or of two settings.")
    if under:
        return f"({_text('over', over)}) / ({_text('under', under)})"
    sides = [
        ", ".join(f"{name}={pair[side]}" for name, pair in settings.items()) for side in (0, 1)
    ]
    return " / ".join(f"{_text('over', over)}[{side}]" for side in sides)


def below(
    number: Measured, most: Number | str, *, strictly: bool = True, **options: Unpack[Options]
) -> Sentence:
    """Return the claim that a quantity is below a number, or below an expression, seed by seed."""
    return _compared(number, "<" if strictly else "<=", most, options)


def above(
    number: Measured, least: Number | str, *, strictly: bool = True, **options: Unpack[Options]
) -> Sentence:
    """Return the claim that a quantity is above a number, or above an expression; see `below`."""
    return _compared(number, ">" if strictly else ">=", least, options)


def near(
    number: Measured,
    value: Number,
    *,
    within: Number | str = "",
    factor: Number = 0,
    **options: Unpack[Options],
) -> Sentence:
    """Return the claim that a quantity is a number, up to a tolerance or a factor.

    The tolerance `within` is a number, or `10%` of `value`; the factor is on both sides.
    """
    if bool(within) == bool(factor):
        raise BadValue("within", within, "give a tolerance, or a factor.")
    if factor:
        margin = f"a factor of {_number('factor', factor)}"
    else:
        margin = within if isinstance(within, str) else _number("within", within)
    return _claim(number, f"is {_number('value', value)} within {margin}", options)


def falls(number: Measured, along: str, **options: Unpack[Options]) -> Sentence:
    """Return the claim that a number falls along a parameter, on every line."""
    return _claim(number, f"falls along {_text('along', along)}", options)


def rises(number: Measured, along: str, **options: Unpack[Options]) -> Sentence:
    """Return the claim that a number rises along a parameter, on every line."""
    return _claim(number, f"rises along {_text('along', along)}", options)


def together(*claims: Sentence, **options: Unpack[Options]) -> Sentence:
    """Return the claim that several are true: it fails where one does, at the level of all.

    They have no conditions, seeds and names of their own.
    """
    for claim in claims:
        if not isinstance(claim, Sentence):
            raise BadValue("claims", claim, "it takes claims, such as below('test_error', 0.05).")
        if claim.where or claim.fewest or claim.title:
            raise BadValue("claims", claim, "give where, seeds and name to all of them together.")
    return _written("; ".join(claim.text for claim in claims), options)


def _prefixed(words: str, number: Measured) -> Quantity:
    text = f"{words} {_text('number', number)}"
    return replace(number, words=text) if isinstance(number, Quantity) else Quantity(text)


def _compared(number: Measured, sign: str, end: Number | str, options: Options) -> Sentence:
    side = end if isinstance(end, str) else _number("number", end)
    return _claim(number, f"{sign} {side}", options)


_ENDINGS: dict[Over, str] = {"every": "", "average": " on average", "worst": " at worst"}


def _claim(number: Measured, relation: str, options: Options) -> Sentence:
    over = options.get("over", "every")
    if over not in _ENDINGS:
        raise BadValue("over", over, f"it takes {', '.join(_ENDINGS)}.")
    throughout = " throughout" if isinstance(number, Quantity) and number.throughout else ""
    body = f"{_text('number', number)} {relation}{throughout}{_ENDINGS[over]}"
    return _written(body, options)


def _written(body: str, options: Options) -> Sentence:
    for given, value in options.items():
        if given not in Options.__annotations__:
            accepted = suggestion(given, Options.__annotations__)
            raise BadValue(given, value, f"it is none of a claim's options; {accepted}")
    name, where, seeds = options.get("name"), options.get("where", ()), options.get("seeds", 0)
    if isinstance(seeds, bool) or not isinstance(seeds, int) or seeds < 0:
        raise BadValue("seeds", seeds, "it takes a number of seeds.")
    conditions = [where] if isinstance(where, str) else list(where)
    parts = [
        f"{_text('name', name)}:" if name is not None else "",
        body,
        f"with at least {seeds} seeds" if seeds else "",
        f"where {' and '.join(_text('where', text) for text in conditions)}" if conditions else "",
    ]
    return read(" ".join(filter(None, parts)))


def _text(name: str, value: object) -> str:
    if not isinstance(value, str | Quantity) or not str(value).strip():
        raise BadValue(name, value, "it takes a text.")
    return str(value)


def _number(name: str, value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise BadValue(name, value, "it takes a number.")
    return repr(value)
