"""Equations, expressions and comparisons: `n * snr**2 = 1000`, `n / d`, `n >= 2*d`.

A user writes them. They are parsed, evaluated and typeset, and never run as code.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import math
import re
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import cast

import numpy as np
from numpy.typing import NDArray

from overfit_cli.core.arrays import Floats
from overfit_cli.core.errors import BadValue
from overfit_cli.core.text import shorten, suggestion

Term = Callable[[Mapping[str, Floats]], Floats]
Functions = Mapping[str, Callable[[Floats], Floats]]

LONGEST = 200  # characters; keeps parsing and recursion shallow whatever is in the text
FUNCTIONS: Functions = {
    "log": np.log,
    "exp": np.exp,
    "sqrt": np.sqrt,
}
_VALUE_FUNCTIONS: Functions = {
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
class Expression:
    """Arithmetic of numbers and names.

    Attributes:
        names: the names that occur in it, expressions that are names among them.
        tree: the expression as Python's syntax tree, with the names of parameters and columns.
        term: the expression as a function of the values by name.
    """

    text: str
    names: frozenset[str] = field(compare=False)
    tree: ast.expr = field(repr=False, compare=False)
    term: Term = field(repr=False, compare=False)

    def __str__(self) -> str:
        return self.text

    def value(self, values: Mapping[str, NDArray[np.generic]]) -> Floats:
        """Return its value, not finite where it is not defined.

        Args:
            values: numbers by name, of shapes that broadcast; at least for the names in it.
        """
        floats = {name: np.asarray(value, dtype=np.float64) for name, value in values.items()}
        shape = np.broadcast_shapes(*(value.shape for value in floats.values()))
        with np.errstate(all="ignore"):
            return np.zeros(shape) + self.term(floats)


@dataclass(frozen=True)
class Equation:
    """An equation in the names of a figure's axes, and of constants.

    Attributes:
        text: the equation as the user wrote it, with single blanks, without its label.
        label: what the user calls it; empty for nothing.
    """

    text: str
    left: Expression
    right: Expression
    label: str = ""

    @property
    def names(self) -> frozenset[str]:
        """The names that occur in it."""
        return self.left.names | self.right.names

    def difference(self, values: Mapping[str, NDArray[np.generic]]) -> Floats:
        """Return the left side minus the right side, which is zero on its curve.

        Args:
            values: numbers by name, of shapes that broadcast; at least for the equation's names.

        Returns:
            Floats of the shape that all of `values` broadcast to; not finite where a side is not.
        """
        with np.errstate(all="ignore"):
            return self.left.value(values) - self.right.value(values)


class _RefusedError(Exception):
    """The reason why a text is no equation."""


_ARITHMETIC = "+ - * / **, parentheses, log, exp and sqrt"


def parse_equation(
    text: str,
    names: Collection[str] | Mapping[str, str],
    constants: Mapping[str, str] = MappingProxyType({}),
) -> Equation:
    """Read an equation: + - * / **, parentheses, numbers, log, exp, sqrt, names and constants.

    Args:
        text: the equation, after its label and a colon if it has one: `interpolation: m = n`.
        names: the names of axes; a mapping has the name of each spelling. A spelling may be an
            expression, such as `n / d`.
        constants: the name of each spelling of a constant.
    """
    label, _, tidy = (part.strip() for part in " ".join(text.split()).rpartition(":"))
    axes = names if isinstance(names, Mapping) else {name: name for name in names}
    spellings = {**constants, **axes}
    unknown = "is neither an axis nor a constant here" if constants else "is not an axis here"
    try:
        left, right = (_expression(side, spellings, unknown) for side in _split(tidy, spellings))
        if not (left.names | right.names) & {*axes.values()}:
            raise _RefusedError("it names none of them.")
    except _RefusedError as refused:
        raise BadValue(
            "law",
            shorten(tidy),
            f"it takes one equation in {' and '.join(sorted({*axes.values()}))} with numbers, "
            f"{'constants, ' if constants else ''}{_ARITHMETIC}, but {refused}",
        ) from None
    return Equation(tidy, left, right, label)


def parse_expression(option: str, text: str, names: Mapping[str, str], noun: str) -> Expression:
    """Read an expression: + - * / **, parentheses, numbers, log, exp, sqrt, and `names`."""
    tidy = " ".join(text.split())
    try:
        _check_text(tidy, names)
        expression = _expression(tidy, names, f"is none of the {noun} here")
        if not expression.names:
            raise _RefusedError("it names none of them.")
    except _RefusedError as refused:
        takes = f"it takes arithmetic of {noun} with {_ARITHMETIC}"
        raise BadValue(option, shorten(tidy), f"{takes}, but {refused}") from None
    return expression


def parse_derived_value(name: str, text: str, names: Mapping[str, str]) -> Expression:
    """Read a parameter's value that is an expression; it may round too."""
    tidy = " ".join(text.split())
    try:
        _check_text(tidy, names)
        return _expression(tidy, names, "is not a parameter", _VALUE_FUNCTIONS)
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
    """

    text: str
    sides: tuple[Expression, ...] = field(repr=False, compare=False)
    signs: tuple[str, ...] = field(repr=False, compare=False)

    def __str__(self) -> str:
        return self.text

    @property
    def names(self) -> frozenset[str]:
        """The names that occur in it."""
        return frozenset[str]().union(*(side.names for side in self.sides))

    def holds(self, values: Mapping[str, Floats]) -> NDArray[np.bool_]:
        """Where it holds, of the shape of the values; real numbers may differ by rounding."""
        numbers = [side.value(values) for side in self.sides]
        with np.errstate(all="ignore"):
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
    """Read a comparison of expressions: `n >= 2*d`, or several in a row: `1 < n/d <= 4`."""
    tidy = " ".join(text.split())
    parts = re.split(r"(<=|>=|==|!=|<|>|=)", tidy)
    try:
        _check_text(tidy, {*names, "<", ">", "!"})
        if len(parts) == 1:
            raise _RefusedError("it compares nothing.")
        if not all(part.strip() for part in parts):
            raise _RefusedError("one side is empty.")
        sides = tuple(
            _expression(part.strip(), names, "is not a parameter", _VALUE_FUNCTIONS)
            for part in parts[::2]
        )
        condition = Condition(tidy, sides, tuple(parts[1::2]))
        if not condition.names:
            raise _RefusedError("it names no parameter.")
    except _RefusedError as refused:
        raise BadValue(
            name,
            shorten(tidy),
            "it takes a comparison (<, <=, >, >=, = or !=) of expressions in parameters, such as "
            f"'n >= 2*d', but {refused}",
        ) from None
    return condition


def _check_text(text: str, names: Collection[str]) -> None:
    if len(text) > LONGEST:
        raise _RefusedError(f"it is longer than {LONGEST} characters.")
    for character in text:
        if character == "^":
            raise _RefusedError("powers are written **, not ^.")
        accepted = character.isascii() and (character.isalnum() or character in "_.+-*/() =")
        if not accepted and not any(character in name for name in names):
            raise _RefusedError(f"it is not arithmetic: it has a {character!r}.")
    if re.search(r"(?<!\w)(\d\w*_|0[xob])", text, re.IGNORECASE):
        raise _RefusedError("its numbers aren't written in plain decimals.")


def _split(text: str, names: Collection[str]) -> list[str]:
    _check_text(text, names)
    sides = text.split("=")
    if len(sides) != 2:
        raise _RefusedError(f"it has {len(sides) - 1} equals signs, not one.")
    if not all(side.strip() for side in sides):
        raise _RefusedError("one side is empty.")
    return sides


def _expression(
    text: str, spellings: Mapping[str, str], unknown: str, functions: Functions = FUNCTIONS
) -> Expression:
    tree = _tree(text, spellings)
    replaced = tree
    for name in (name for name in spellings if not name.isidentifier()):
        with contextlib.suppress(_RefusedError):  # a name such as "test error" can't be written
            part = ast.dump(_tree(name, spellings))
            transformed = _Replaced(part, spellings[name]).visit(copy.deepcopy(replaced))
            replaced = cast("ast.expr", transformed)
    names = frozenset(spellings.values())
    term = _term(replaced, names, unknown, functions)
    return Expression(text, names & _names(replaced), tree, term)


def _names(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _tree(text: str, names: Mapping[str, str]) -> ast.expr:
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


class _Replaced(ast.NodeTransformer):
    """Puts a name in the place of each part of an expression that is this one."""

    def __init__(self, part: str, name: str) -> None:
        self.part, self.name = part, name

    def visit(self, node: ast.AST) -> ast.AST:
        if ast.dump(node) == self.part:
            return ast.Name(self.name, ast.Load())
        return cast("ast.AST", super().visit(node))


def _term(node: ast.expr, names: Collection[str], unknown: str, functions: Functions) -> Term:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return _constant(number)
        case ast.Name(id=name) if name in names:
            return lambda values: values[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            negated = _term(operand, names, unknown, functions)
            return lambda values: -negated(values)
        case ast.BinOp(op=op) if type(op) in OPERATORS:
            operate = OPERATORS[type(op)]
            left, right = (
                _term(side, names, unknown, functions) for side in (node.left, node.right)
            )
            return lambda values: operate(left(values), right(values))
        case ast.Call(func=ast.Name(id=name), args=[operand], keywords=[]) if name in functions:
            function, argument = functions[name], _term(operand, names, unknown, functions)
            return lambda values: function(argument(values))
        case ast.Name(id=name) | ast.Call(func=ast.Name(id=name)) if name in functions:
            raise _RefusedError(f"{name} takes one number in parentheses.")
        case ast.Call(func=ast.Name(id=name)):
            raise _RefusedError(f"{name!r} is not a function; {suggestion(name, functions)}")
        case ast.Name(id=name):
            raise _RefusedError(f"{name!r} {unknown}; {suggestion(name, names)}")
        case _:
            raise _RefusedError(f"{ast.unparse(node)!r} is not arithmetic.")


def _constant(number: float) -> Term:
    value = np.asarray(number, dtype=np.float64)
    if not math.isfinite(number):
        raise _RefusedError("it has a number too large to compute with.")
    return lambda values: value


_SUM, _SIGNED, _PRODUCT, _POWER, _ATOM = range(5)
"""Precedence of an expression: one of lower precedence than required stands in parentheses.

A product with a minus before it is signed.
"""


def equation_in_mathtext(equation: Equation, symbol: Callable[[str], str]) -> str:
    """Return an equation in mathtext, with its dollar signs.

    Args:
        symbol: gives the symbol of a name, in mathtext without dollar signs.
    """
    left, right = (expression_in_mathtext(side, symbol) for side in (equation.left, equation.right))
    return f"${left} = {right}$"


def expression_in_mathtext(expression: Expression, symbol: Callable[[str], str]) -> str:
    """Return an expression in mathtext, without dollar signs; see `equation_in_mathtext`."""
    return _write(expression.tree, symbol)[0]


_SIGNS: Mapping[type[ast.operator], tuple[str, int, int]] = {
    ast.Add: (" + ", _SUM, _PRODUCT),
    ast.Sub: (" - ", _SUM, _PRODUCT),
    ast.Mult: (r" \cdot ", _SIGNED, _POWER),
    ast.Div: (" / ", _SIGNED, _POWER),
}
"""The sign of an operator, and the precedence that its two sides require."""


def _write(node: ast.expr, symbol: Callable[[str], str]) -> tuple[str, int]:
    match node:
        case ast.Constant(value=int() | float() as number):
            return _number(number)
        case ast.Name(id=name):
            return f"{{{symbol(name)}}}", _ATOM
        case ast.UnaryOp(operand=operand):
            return f"-{_operand(operand, _PRODUCT, symbol)}", _SIGNED
        case ast.BinOp(left=base, op=ast.Pow(), right=exponent):
            return _write_power(base, exponent, symbol), _POWER
        case ast.BinOp(left=left, op=operator, right=right):
            sign, first, second = _SIGNS[type(operator)]
            text = f"{_operand(left, first, symbol)}{sign}{_operand(right, second, symbol)}"
            product = _SIGNED if text.startswith("-") else _PRODUCT
            return text, _SUM if first == _SUM else product
        case ast.Call(func=ast.Name(id=name), args=[operand]):
            content = _write(operand, symbol)[0]
            text = rf"\sqrt{{{content}}}" if name == "sqrt" else rf"\{name}\left({content}\right)"
            return text, _ATOM
        case _:
            raise AssertionError("an equation has no other expressions")


def _write_power(base: ast.expr, exponent: ast.expr, symbol: Callable[[str], str]) -> str:
    """A power in mathtext: log²(x), since behind the parenthesis it would seem to be x's."""
    power = _write(exponent, symbol)[0]
    match base, exponent:
        case ast.Call(func=ast.Name(id="log"), args=[operand]), ast.Constant():
            return rf"\log^{{{power}}}\left({_write(operand, symbol)[0]}\right)"
        case _:
            return f"{_operand(base, _ATOM, symbol)}^{{{power}}}"


def _operand(node: ast.expr, required: int, symbol: Callable[[str], str]) -> str:
    text, precedence = _write(node, symbol)
    return text if precedence >= required else rf"\left({text}\right)"


def _number(number: float) -> tuple[str, int]:
    mantissa, _, exponent = f"{number:.6g}".partition("e")
    if not exponent:
        return mantissa, _ATOM
    power = f"10^{{{int(exponent)}}}"
    return (power, _POWER) if mantissa == "1" else (rf"{mantissa} \cdot {power}", _PRODUCT)
