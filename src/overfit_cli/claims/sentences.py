"""Sentences: claims about quantities of a run's cells; `grammar` has the forms of their text."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from overfit_cli.claims.parts import FEWEST, Part, Statistic
from overfit_cli.claims.quantities import (
    Power,
    Quantity,
    Trend,
    axes_of,
    number_parameter,
    references,
)
from overfit_cli.core.cells import Cells, NoCellsError
from overfit_cli.core.claim import IN_MARGIN, add_remark, inconclusive, not_run
from overfit_cli.core.errors import BadValue
from overfit_cli.core.expressions import Ref, read_conditions
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
    lacking = f"It needs cells where {' and '.join(conditions)}; these have none."
    try:
        left = cells.where(*conditions)
    except NoCellsError:
        raise not_run(lacking) from None
    if conditions and left.frame.empty:
        raise not_run(lacking)
    return left


def _slug(claimed: str) -> str:
    words = {"<=": " le ", ">=": " ge ", "<": " lt ", ">": " gt ", "=": " "}
    words |= {"%": " percent ", "/": " over "}
    for sign, word in words.items():
        claimed = claimed.replace(sign, word)
    return re.sub(r"[^\w.*/+-]+", "-", claimed).strip("-")
