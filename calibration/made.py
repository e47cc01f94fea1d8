"""Made-up worlds of a claim, made from its sentence.

A world begins with the number of the claim's quantity, for each seed and setting. One column of the
quantity is solved for, and the others are constant, so that the cells give that number, with noise.
Where the claim is true the number lies inside its margin, and where it is false at an end of it:
there a claim is as nearly false as it can be. Numbers that a paper's function derives from cells
are given as that function would return them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from calibration.rates import World, Worlds, design
from calibration.worlds import A_THIRD, Numbers, Random, few_seed_world
from overfit_cli.claims.bounds import Bound, Comparison
from overfit_cli.claims.parts import Margin
from overfit_cli.claims.quantities import Power, Powers, Share, Trend
from overfit_cli.claims.sentences import Clause
from overfit_cli.claims.stated import JointMeasure, Measure
from overfit_cli.core.claim import Claim
from overfit_cli.core.expressions import (
    ANY,
    Among,
    Compared,
    Expression,
    Extreme,
    Node,
    Operation,
    Ref,
    compare,
    read_conditions,
)

SPREAD = 0.1
"""The deviation over seeds, in widths of the margin; of one with a single end in that end."""

NOISE = 0.1
"""The deviation of cells beside their seed's, in that."""

TINY = 1e-9
"""Ends of margins that lie nearer to 0 are 0."""

BASE = 1.0
"""The value of a column that is not solved for."""


def worlds_of_sentence(claim: Claim) -> tuple[Claim, Worlds] | None:
    """Return a claim of sentences with its worlds; None where its measure is a function.

    It is the claim as it is, but for functions that derive numbers from cells.
    """
    joint = isinstance(claim.measure, JointMeasure)
    parts = (
        list(claim.measure.parts.values()) if isinstance(claim.measure, JointMeasure) else [claim]
    )
    bare = [_bare(part) for part in parts]
    if None in bare:
        return None
    sentences = [part for part in bare if part is not None]
    told = replace(claim, measure=sentences[0].measure)
    if joint and isinstance(claim.measure, JointMeasure):
        labels = dict(zip(claim.measure.parts, sentences, strict=True))
        told = replace(claim, measure=JointMeasure(labels))
    fewest = max(part.measure.sentence.seeds for part in sentences)  # type: ignore[attr-defined]
    true, false = (
        functools.partial(_world, claims=sentences, is_false=is_false) for is_false in (False, True)
    )
    if not any(part.measure.drawn for part in sentences):  # type: ignore[attr-defined]
        return told, Worlds(true, false, functools.partial(_blank, world=true))
    clauses = [clause for part in sentences for clause in part.measure.sentence.clauses]  # type: ignore[attr-defined]
    if any(isinstance(each.quantity, Bound) and not each.quantity.share for each in clauses):
        # One seed too few tells nothing of a bound, and one more may tell of an exception.
        return told, Worlds(true, false, functools.partial(_few, world=true, seeds=fewest - 1))
    return told, Worlds(true, false, few_seed_world(false, fewest))


def _few(planned: pd.DataFrame, random: Random, world: World, seeds: int) -> pd.DataFrame:
    return world(planned[planned["seed"].isin(np.unique(planned["seed"])[:seeds])], random)


def _blank(planned: pd.DataFrame, random: Random, world: World) -> pd.DataFrame:
    cells = world(planned, random)
    return cells.assign(**dict.fromkeys(cells.columns.difference(planned.columns), np.nan))


def _bare(claim: Claim) -> Claim | None:
    if not isinstance(claim.measure, Measure):
        return None
    return replace(claim, measure=_without_rows(claim.measure), reads="cells")


def _without_rows(measure: Measure) -> Measure:
    """The measure of cells chosen by their parameters, without a function of its own."""
    choose = measure.choose
    if isinstance(choose, functools.partial) and choose.keywords.keys() == {"on", "model", "rows"}:
        cells, model = choose.keywords["on"], measure.model.model_fields.keys()
        told = [text for text in cells.conditions if _names(text) <= model]
        bare = {"rows": None, "on": replace(cells, conditions=tuple(told))}
        choose = functools.partial(choose.func, **choose.keywords | bare)
    return replace(measure, choose=choose)


def _names(condition: str) -> set[str]:
    return {ref.name for test in read_conditions(condition, ANY) for ref in test.refs}


def _world(
    planned: pd.DataFrame, random: Random, claims: list[Claim], is_false: bool
) -> pd.DataFrame:
    """The cells of all presets of a claim; where it is false one of its clauses is."""
    presets = dict.fromkeys((claim.preset, claim.profile) for claim in claims)
    is_told = len(presets) == 1 and claims[0].profile == "quick"
    plans = [planned] if is_told else [design(*each) for each in presets]
    frame = pd.concat(plans, ignore_index=True).drop_duplicates(ignore_index=True)
    frame = frame[frame["seed"].isin(planned["seed"])].reset_index(drop=True).assign(steps=100.0)
    clauses = [(claim, clause) for claim in claims for clause in claim.measure.sentence.clauses]  # type: ignore[attr-defined]
    wrong, filled = int(random.integers(len(clauses))) if is_false else -1, list[str]()
    for index in sorted(range(len(clauses)), key=lambda each: each == wrong):  # the false one last
        claim, clause = clauses[index]
        measure = claim.measure
        assert isinstance(measure, Measure)
        rows = frame.index if measure.choose is None else measure.choose(frame).index
        parameters = [*measure.model.model_fields]
        given = (parameters, random, filled, 0 if measure.drawn else 6)
        rows = rows[_Made(frame.loc[rows], *given).chosen(clause)]
        made = _Made(frame.loc[rows], *given)
        made.fill(clause, is_false=index == wrong)
        for name in made.columns:
            frame.loc[rows, name] = made.frame[name]
        filled = [*dict.fromkeys([*filled, *made.columns])]
    return frame


class _Made:
    """Cells whose columns are filled so that a clause's quantity has a chosen number."""

    def __init__(
        self,
        frame: pd.DataFrame,
        parameters: list[str],
        random: Random,
        filled: list[str],
        beyond: int,
    ) -> None:
        self.frame, self.parameters, self.random = frame.copy(), parameters, random
        self.columns = [name for name in filled if frame[name].notna().all()]  # on these rows
        self.bases = dict[str, float]()
        self.beyond = beyond  # how many deviations outside its margin a false number lies

    def fill(self, clause: Clause, *, is_false: bool) -> None:
        """Fill the columns of a clause."""
        quantity, logs = clause.quantity, clause.statistic == "geometric mean"
        match quantity:
            case Bound():
                for condition in quantity.conditions:
                    self._compare(condition, np.full(len(self.frame), False), keep=True)
                share = 1 - quantity.share if quantity.share else A_THIRD
                if is_false or not self._is_met(quantity.bound):
                    self._compare(quantity.bound, self._on_seeds(share if is_false else 0.0))
            case Share():
                end = max(quantity.margin.least, 1 - quantity.margin.most)
                met = ~self._on_seeds((1 - end) if is_false else 0.0)
                met = met if math.isfinite(quantity.margin.least) else ~met
                for excess, sign in quantity.conditions:
                    side = np.where(met == (sign[0] == "<"), -1.0, 1.0)
                    self._solve(excess, side)
            case Trend():
                x = self.frame[quantity.axis].rank(method="dense").to_numpy(float)
                noise = self.random.standard_normal(len(x))
                pearson = 2 * math.sin(math.pi * quantity.size / 6)  # of normal numbers
                at_end = pearson / (x.std() * math.sqrt(1 - pearson**2))
                slope = (at_end if is_false else 10) * (1.0 if quantity.rises else -1.0)
                self._solve(quantity.measured, 100 + slope * x + noise)
            case Power():
                p = self._numbers(quantity.margin, is_false=is_false, cells=False)
                self._solve(quantity.measured, self._along(quantity, p))
            case Powers():
                logs_of_cells = np.zeros(len(self.frame))
                for cause in quantity.causes:
                    if not {*cause.names} <= {*self.parameters}:
                        self._solve(cause, np.exp(self.random.standard_normal(len(self.frame))))
                for index, margin in quantity.margins():
                    p = self._numbers(margin, is_false=is_false, cells=False)
                    logs_of_cells += p * np.log(self._value(quantity.causes[index].tree))
                self._solve(quantity.measured, np.exp(logs_of_cells))
            case _:
                numbers = self._numbers(quantity.margin, is_false=is_false, logs=logs)
                self._solve(quantity.measured, numbers)

    def _along(self, quantity: Power, p: Numbers) -> Numbers:
        """Numbers that go as y^p, or whose contour does, with a little noise of each cell."""
        y = np.log(self.frame[quantity.axis].to_numpy(float))
        noise = 0.01 * self.random.standard_normal(len(p))
        if quantity.contour is None:
            return np.exp(p * y + noise)
        name, threshold = quantity.contour
        x = np.log(self.frame[name].to_numpy(float))
        return threshold + x - x.mean() - p * (y - y.mean()) + noise

    def _of_seeds(self, draw: Any) -> Numbers:
        seeds, index = np.unique(self.frame["seed"], return_inverse=True)
        return np.asarray(draw(len(seeds)))[index]

    def _on_seeds(self, share: float) -> Any:
        return self._of_seeds(lambda count: self.random.random(count) < share)

    def _numbers(
        self, margin: Margin, *, is_false: bool, cells: bool = True, logs: bool = False
    ) -> Numbers:
        """Numbers inside a margin, or about one of its ends, the same of a seed but for noise."""
        ends = [end for end in (margin.least, margin.most) if math.isfinite(end)]
        ends = [math.log(end) if logs else end for end in ends if not logs or end > 0]
        sizes = (abs(ends[-1] - ends[0]), abs(ends[0]))
        width = next((size for size in sizes if size > TINY), 1.0)
        spread, inward = SPREAD * width, 1.0 if margin.least > -math.inf else -1.0
        inside = sum(ends) / 2 if len(ends) == 2 else ends[0] + 6 * inward * spread
        centre = float(self.random.choice(ends)) if is_false else inside
        if is_false:
            is_most = math.isfinite(margin.most) and centre == ends[-1]
            centre += self.beyond * spread * (1.0 if is_most else -1.0)
        numbers = centre + spread * self._of_seeds(self.random.standard_normal)
        if cells:
            numbers = numbers + NOISE * spread * self.random.standard_normal(len(numbers))
        return np.exp(numbers) if logs else numbers

    def _compare(self, stated: Comparison, broken: Any, *, keep: bool = False) -> None:
        """Have a comparison met by a factor of 2 or by 1, and broken by as much where it is.

        Its left side is solved for, or the right one where that has columns alone; between
        parameters the design decides.
        """
        solved, given = stated.left, stated.right
        larger = np.where(broken, -1.0, 1.0) * (1.0 if stated.sign[0] == "<" else -1.0)
        if not self._free(solved):
            solved, given, larger = given, solved, -larger
        if not self._free(solved):
            return
        for ref in given.refs:
            self._at_base(ref)
        other = self._value(given.tree)
        numbers = np.where(other > 0, other * 2.0**-larger, other - larger)
        self._solve(solved, numbers, keep=keep)

    def chosen(self, clause: Clause) -> Any:
        """Return which cells meet the conditions of a bound that are on parameters alone."""
        chosen = np.ones(len(self.frame), dtype=bool)
        for stated in clause.quantity.conditions if isinstance(clause.quantity, Bound) else ():
            if not self._free(stated.left) and not self._free(stated.right):
                left, right = self._value(stated.left.tree), self._value(stated.right.tree)
                chosen &= compare(left, stated.sign, right)
        return chosen

    def _is_met(self, stated: Comparison) -> bool:
        """Whether columns that are filled already meet a comparison in every cell, with room."""
        if any(ref.name not in {*self.columns, *self.parameters} for ref in stated.refs):
            return False
        left, right = self._value(stated.left.tree), self._value(stated.right.tree)
        return bool(np.all(compare(left, stated.sign, right) & ~np.isclose(left, right)))

    def _free(self, expression: Expression) -> list[Ref]:
        return [ref for ref in expression.refs if ref.name not in self.parameters]

    # One column is solved for

    def _solve(self, expression: Expression, numbers: Numbers, *, keep: bool = False) -> None:
        """Give a column the values with which an expression has these numbers.

        Args:
            keep: whether a smaller value that the column has already stays.
        """
        free = self._free(expression)
        unset = [ref for ref in free if ref.name not in self.columns]
        chosen = (unset or free)[0]
        for ref in free:
            if ref != chosen:
                self._at_base(ref)
        values = self._inverse(expression.tree, chosen, numbers)
        if keep and chosen.name in self.columns:
            values = np.minimum(values, self.frame[chosen.name].to_numpy(float))
        self._assign(chosen, values)

    def _at_base(self, ref: Ref) -> None:
        """Give a column its base; those in brackets have others each, so that nothing cancels."""
        if ref.name not in self.parameters and (ref.at or ref.name not in self.columns):
            if ref.at:
                self.bases.setdefault(str(ref), BASE * 2.0 ** (1 + len(self.bases)))
            self._assign(ref, np.full(len(self.frame), self.bases.get(str(ref), BASE)))

    def _assign(self, ref: Ref, values: Numbers) -> None:
        rows, factor = np.ones(len(self.frame), dtype=bool), np.ones(len(self.frame))
        for test in ref.at:
            if isinstance(test, Compared):  # of a word, which has no meaning before there are cells
                name, value = (side.text for side in test.sides)
                rows &= (self.frame[name].astype(str) == value).to_numpy()
            elif isinstance(test, Among):
                column = self.frame[test.name]
                kind = float if column.dtype.kind in "if" else str  # 2 is 2.0
                rows &= column.map(kind).isin([kind(value) for value in test.values]).to_numpy()
            elif isinstance(test, Extreme):
                swept = np.unique(self.frame[test.name])
                at = {"largest": -1, "smallest": 0}.get(test.which, len(swept) // 2)
                is_there = (self.frame[test.name] == swept[at]).to_numpy()
                if test.which == "best":
                    factor = np.where(is_there, 1.0, 1.5)
                else:
                    rows &= is_there
        before = self.frame[ref.name].to_numpy(float) if ref.name in self.frame else np.nan
        self.frame[ref.name] = np.where(rows, values * factor, before)
        self.columns.append(ref.name)

    def _value(self, node: Node) -> Any:
        """The value of a tree in each row; a column that is not solved for is at its base."""
        names = {str(ref): ref for ref in _refs(node)}
        known = {
            text: self.frame[ref.name].to_numpy(float)
            if ref.name in self.parameters
            else self.bases.get(text, BASE)
            for text, ref in names.items()
        }
        for text, ref in names.items():
            if ref.name in self.columns and not ref.at:
                known[text] = self.frame[ref.name].to_numpy(float)
        return Expression("", node).value(known) if known else float(Expression("", node).value({}))

    def _inverse(self, node: Node, free: Ref, numbers: Any) -> Numbers:
        """The values of one reference with which a tree has these numbers."""
        if node == free:
            return np.asarray(numbers)
        assert isinstance(node, Operation)
        at = next(index for index, each in enumerate(node.operands) if free in [*_refs(each)])
        inner, others = (
            node.operands[at],
            [self._value(o) for o in node.operands if o is not node.operands[at]],
        )
        other = others[0] if others else 0.0
        solved: Mapping[str, Any] = {
            "+": lambda: numbers - other,
            "-": lambda: (
                -numbers if not others else (numbers + other if at == 0 else other - numbers)
            ),
            "*": lambda: numbers / other,
            "/": lambda: numbers * other if at == 0 else other / numbers,
            "**": lambda: numbers ** (1 / other) if at == 0 else np.log(numbers) / np.log(other),
            "log": lambda: np.exp(numbers),
            "exp": lambda: np.log(numbers),
            "sqrt": lambda: numbers**2,
        }
        return self._inverse(inner, free, solved[node.sign]())


def _refs(node: Node) -> Iterator[Ref]:
    if isinstance(node, Ref):
        yield node
    elif isinstance(node, Operation):
        for operand in node.operands:
            yield from _refs(operand)
