"""Equations that a user writes, such as `n * snr**2 = 1000`: parsing, evaluation, typesetting.

Expressions (`2*d`) and comparisons of them (`n >= 2*d`) are read by the same parser.

They are never run as code.
"""

from __future__ import annotations

import ast
import math
import re
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from overfit_cli.core.arrays import Floats
from overfit_cli.core.errors import BadValue
from overfit_cli.core.text import shorten, suggestion

Term = Callable[[Mapping[str, Floats]], Floats]

LONGEST = 200  # characters; keeps parsing and recursion shallow whatever is in the text
FUNCTIONS: Mapping[str, Callable[[Floats], Floats]] = {
    "log": np.log,
    "exp": np.exp,
    "sqrt": np.sqrt,
}
_EXPRESSION_FUNCTIONS: Mapping[str, Callable[[Floats], Floats]] = {
    **FUNCTIONS,
    "round": np.round,
    "floor": np.floor,
    "ceil": np.ceil,
}
OPERATORS: Mapping[type[ast.operator], Callable[[Floats, Floats], Floats]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.Pow: np.power,
}


@dataclass(frozen=True)
class Equation:
    """An equation in the names of a figure's axes.

    Attributes:
        text: the equation as the user wrote it, with single blanks.
        names: the names that occur in it.
        sides: its two sides as Python's syntax trees, in these names.
        left, right: the two sides as functions of the values by name.
    """

    text: str
    names: frozenset[str]
    sides: tuple[ast.expr, ast.expr] = field(repr=False, compare=False)
    left: Term = field(repr=False, compare=False)
    right: Term = field(repr=False, compare=False)

    def difference(self, values: Mapping[str, NDArray[np.generic]]) -> Floats:
        """Return the left side minus the right side, which is zero on its curve.

        Args:
            values: numbers by name, of shapes that broadcast; at least for the equation's names.

        Returns:
            Floats of the shape that all of `values` broadcast to; not finite where a side is not.
        """
        floats = {name: np.asarray(value, dtype=np.float64) for name, value in values.items()}
        shape = np.broadcast_shapes(*(value.shape for value in floats.values()))
        with np.errstate(all="ignore"):
            return np.zeros(shape) + (self.left(floats) - self.right(floats))


class _RefusedError(Exception):
    """The reason why a text is no equation."""


def parse_equation(text: str, names: Collection[str] | Mapping[str, str]) -> Equation:
    """Read an equation: + - * / **, parentheses, numbers, log, exp, sqrt, and `names`.

    Args:
        text: the equation.
        names: the names that may occur; a mapping has the name of each spelling.

    Raises:
        UserError: if it is anything else.
    """
    tidy = " ".join(text.split())
    spellings = names if isinstance(names, Mapping) else {name: name for name in names}
    try:
        left, right = (_tree(side, spellings) for side in _split(tidy, spellings))
        occurring = _names_in((left, right), spellings)
        sides = [_term(side, frozenset(spellings.values())) for side in (left, right)]
        if not occurring:
            raise _RefusedError("it names none of them.")
    except _RefusedError as refused:
        excerpt = tidy if len(tidy) <= 60 else tidy[:57] + "..."
        raise BadValue(
            "law",
            excerpt,
            f"it takes one equation in {' and '.join(sorted({*spellings.values()}))} with numbers, "
            f"+ - * / **, parentheses, log, exp and sqrt, but {refused}",
        ) from None
    return Equation(tidy, occurring, (left, right), *sides)


def _names_in(trees: Sequence[ast.expr], spellings: Mapping[str, str]) -> frozenset[str]:
    nodes = (node for tree in trees for node in ast.walk(tree))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    return frozenset(names & {*spellings.values()})


@dataclass(frozen=True)
class Expression:
    """An expression in the names of parameters, such as `2*d`.

    Attributes:
        text: the expression as the user wrote it, with single blanks.
        names: the names that occur in it.
        value: the expression as a function of the values by name.
    """

    text: str
    names: frozenset[str] = field(compare=False)
    value: Term = field(repr=False, compare=False)

    def __str__(self) -> str:
        return self.text


def parse_expression(name: str, text: str, names: Mapping[str, str]) -> Expression:
    """Read an expression: what an equation's side may be, and round, floor and ceil.

    Args:
        name: whose value it is, for the error.
        text: the expression.
        names: the name of each spelling that may occur.

    Raises:
        BadValue: if it is anything else.
    """
    tidy = " ".join(text.split())
    try:
        _check_characters(tidy, names)
        return _expression(tidy, names)
    except _RefusedError as refused:
        raise BadValue(
            name,
            shorten(tidy),
            "it takes a number, or an expression in other parameters with numbers, + - * / **, "
            f"parentheses, log, exp, sqrt, round, floor and ceil, but {refused}",
        ) from None


@dataclass(frozen=True)
class Condition:
    """A comparison of expressions, such as `n >= 2*d` or `1 < n/d <= 4`.

    Attributes:
        text: the comparison as the user wrote it, with single blanks.
        names: the names that occur in it.
        sides: its expressions.
        signs: what stands between them.
    """

    text: str
    names: frozenset[str] = field(compare=False)
    sides: tuple[Expression, ...] = field(repr=False, compare=False)
    signs: tuple[str, ...] = field(repr=False, compare=False)

    def __str__(self) -> str:
        return self.text

    def holds(self, values: Mapping[str, Floats]) -> NDArray[np.bool_]:
        """Return where it holds, of the shape of the values; real numbers may differ by rounding.

        Args:
            values: numbers by name, of one shape.
        """
        with np.errstate(all="ignore"):
            numbers = [side.value(values) for side in self.sides]
            compared = [
                compare(left, sign, right)
                for left, sign, right in zip(numbers, self.signs, numbers[1:], strict=False)
            ]
        holds: NDArray[np.bool_] = np.logical_and.reduce(np.broadcast_arrays(*compared))
        return holds


CLOSE = 1e-9
"""Real numbers that differ by less, relative to themselves, are one value."""


def compare(left: Floats, sign: str, right: Floats) -> NDArray[np.bool_]:
    """Return where `left sign right` holds; nan compares as false.

    Args:
        left, right: numbers of shapes that broadcast.
        sign: `<`, `<=`, `>`, `>=`, `=`, `==` or `!=`.
    """
    if sign in (">", ">="):
        return compare(right, sign.replace(">", "<"), left)
    same = np.isclose(left, right, rtol=CLOSE, atol=0)
    known = ~(np.isnan(left) | np.isnan(right))
    holds = {"<": (left < right) & ~same, "<=": (left < right) | same, "!=": known & ~same}
    chosen: NDArray[np.bool_] = holds.get(sign, same)
    return chosen


def parse_condition(name: str, text: str, names: Mapping[str, str]) -> Condition:
    """Read a comparison of expressions: `n >= 2*d`, or several in a row: `1 < n/d <= 4`.

    Args:
        name: the argument that has it, for the error.
        text: the comparison.
        names: the name of each spelling that may occur.

    Raises:
        BadValue: if it is anything else.
    """
    tidy = " ".join(text.split())
    parts = re.split(r"(<=|>=|==|!=|<|>|=)", tidy)
    try:
        _check_characters(tidy, {*names, "<", ">", "!", "="})
        if len(parts) == 1:
            raise _RefusedError("it compares nothing.")
        if not all(part.strip() for part in parts):
            raise _RefusedError("one side is empty.")
        sides = tuple(_expression(part.strip(), names) for part in parts[::2])
        occurring = frozenset[str]().union(*(side.names for side in sides))
        if not occurring:
            raise _RefusedError("it names no parameter.")
    except _RefusedError as refused:
        raise BadValue(
            name,
            shorten(tidy),
            "it takes a comparison (<, <=, >, >=, = or !=) of expressions in parameters, such as "
            f"'n >= 2*d', but {refused}",
        ) from None
    return Condition(tidy, occurring, sides, tuple(parts[1::2]))


def _expression(text: str, names: Mapping[str, str]) -> Expression:
    tree = _tree(text, names)
    occurring = _names_in([tree], names)
    term = _term(tree, frozenset(names.values()), _EXPRESSION_FUNCTIONS, "a parameter")
    return Expression(text, occurring, term)


def _check_characters(text: str, names: Collection[str]) -> None:
    if len(text) > LONGEST:
        raise _RefusedError(f"it is longer than {LONGEST} characters.")
    for character in text:
        if character == "^":
            raise _RefusedError("powers are written **, not ^.")
        accepted = character.isascii() and (character.isalnum() or character in "_.+-*/() ")
        if not accepted and not any(character in name for name in names):
            raise _RefusedError(f"it has a {character!r}.")
    if re.search(r"(?<!\w)(\d\w*_|0[xob])", text, re.IGNORECASE):
        raise _RefusedError("its numbers aren't written in plain decimals.")


def _split(text: str, names: Collection[str]) -> list[str]:
    _check_characters(text, {*names, "="})
    sides = text.split("=")
    if len(sides) != 2:
        raise _RefusedError(f"it has {len(sides) - 1} equals signs, not one.")
    if not all(side.strip() for side in sides):
        raise _RefusedError("one side is empty.")
    return sides


def _tree(text: str, names: Mapping[str, str]) -> ast.expr:
    """A side as a tree, each name spelled as its parameter is."""
    text = text.strip()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's advice on odd literals is not for our user
            tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise _RefusedError(f"{text!r} is not arithmetic.") from None
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = names.get(node.id, node.id)
    return tree


def _term(
    node: ast.expr,
    names: Collection[str],
    functions: Mapping[str, Callable[[Floats], Floats]] = FUNCTIONS,
    noun: str = "an axis here",
) -> Term:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return _constant(number)
        case ast.Name(id=name) if name in names:
            return lambda values: values[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            negated = _term(operand, names, functions, noun)
            return lambda values: -negated(values)
        case ast.BinOp(op=op) if type(op) in OPERATORS:
            operate = OPERATORS[type(op)]
            left, right = (_term(side, names, functions, noun) for side in (node.left, node.right))
            return lambda values: operate(left(values), right(values))
        case ast.Call(func=ast.Name(id=name), args=[operand], keywords=[]) if name in functions:
            function, argument = functions[name], _term(operand, names, functions, noun)
            return lambda values: function(argument(values))
        case ast.Name(id=name) | ast.Call(func=ast.Name(id=name)) if name in functions:
            raise _RefusedError(f"{name} takes one number in parentheses.")
        case ast.Call(func=ast.Name(id=name)):
            raise _RefusedError(f"{name!r} is not a function; {suggestion(name, functions)}")
        case ast.Name(id=name):
            raise _RefusedError(f"{name!r} is not {noun}; {suggestion(name, names)}")
        case _:
            raise _RefusedError(f"{ast.unparse(node)!r} is not arithmetic.")


def _constant(number: float) -> Term:
    value = np.asarray(number, dtype=np.float64)
    if not math.isfinite(number):
        raise _RefusedError("it has a number too large to compute with.")
    return lambda values: value


_SUM, _PRODUCT, _POWER, _ATOM = range(4)
"""Precedence of an expression: one of lower precedence than required stands in parentheses."""


def equation_in_mathtext(equation: Equation, symbols: Mapping[str, str]) -> str:
    """Return an equation in mathtext, with its dollar signs.

    Args:
        equation: the equation.
        symbols: the symbols of its names, in mathtext without dollar signs.
    """
    left, right = (_write(side, symbols)[0] for side in equation.sides)
    return f"${left} = {right}$"


_SIGNS: Mapping[type[ast.operator], tuple[str, int, int]] = {
    ast.Add: (" + ", _SUM, _PRODUCT),
    ast.Sub: (" - ", _SUM, _PRODUCT),
    ast.Mult: (r" \cdot ", _PRODUCT, _POWER),
    ast.Div: (" / ", _PRODUCT, _POWER),
}
"""The sign of an operator, and the precedence that its two sides require."""


def _write(node: ast.expr, symbols: Mapping[str, str]) -> tuple[str, int]:
    """A tree in mathtext, and its precedence."""
    match node:
        case ast.Constant(value=int() | float() as number):
            return _number(number)
        case ast.Name(id=name):
            return f"{{{symbols[name]}}}", _ATOM
        case ast.UnaryOp(operand=operand):
            return f"-{_operand(operand, _PRODUCT, symbols)}", _SUM
        case ast.BinOp(left=base, op=ast.Pow(), right=exponent):
            return f"{_operand(base, _ATOM, symbols)}^{{{_write(exponent, symbols)[0]}}}", _POWER
        case ast.BinOp(left=left, op=operator, right=right):
            sign, first, second = _SIGNS[type(operator)]
            return (
                f"{_operand(left, first, symbols)}{sign}{_operand(right, second, symbols)}",
                first,
            )
        case ast.Call(func=ast.Name(id=name), args=[operand]):
            content = _write(operand, symbols)[0]
            text = rf"\sqrt{{{content}}}" if name == "sqrt" else rf"\{name}\left({content}\right)"
            return text, _ATOM
        case _:
            raise AssertionError("an equation has no other expressions")


def _operand(node: ast.expr, required: int, symbols: Mapping[str, str]) -> str:
    """A part of an expression, in parentheses where its precedence is lower than required."""
    text, precedence = _write(node, symbols)
    return text if precedence >= required else rf"\left({text}\right)"


def _number(number: float) -> tuple[str, int]:
    mantissa, _, exponent = f"{number:.6g}".partition("e")
    if not exponent:
        return mantissa, _ATOM
    power = f"10^{{{int(exponent)}}}"
    return (power, _POWER) if mantissa == "1" else (rf"{mantissa} \cdot {power}", _PRODUCT)
