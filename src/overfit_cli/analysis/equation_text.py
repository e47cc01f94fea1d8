"""Equations as a paper prints them: N·SNR² = 1000, in mathtext."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from overfit_cli.analysis.equation import Equation

_SUM, _PRODUCT, _POWER, _ATOM = range(4)
"""How tightly an expression holds together: what holds less is put in parentheses."""


def equation_in_mathtext(equation: Equation, symbols: Mapping[str, str]) -> str:
    """Return an equation in mathtext, with its dollar signs.

    Args:
        equation: in names.
        symbols: of the names, in mathtext without dollar signs.
    """
    left, right = (_write(side, symbols)[0] for side in equation.sides)
    return f"${left} = {right}$"


_SIGNS: Mapping[type[ast.operator], tuple[str, int, int]] = {
    ast.Add: (" + ", _SUM, _PRODUCT),
    ast.Sub: (" - ", _SUM, _PRODUCT),
    ast.Mult: (r" \cdot ", _PRODUCT, _POWER),
    ast.Div: (" / ", _PRODUCT, _POWER),
}
"""Of an operator, its sign, and how tightly its two sides must hold together."""


def _write(node: ast.expr, symbols: Mapping[str, str]) -> tuple[str, int]:
    """A tree in mathtext, and how tightly it holds together."""
    match node:
        case ast.Constant(value=int() | float() as number):
            return _number(number)
        case ast.Name(id=name):
            return f"{{{symbols[name]}}}", _ATOM
        case ast.UnaryOp(operand=operand):
            return f"-{_within(operand, _PRODUCT, symbols)}", _SUM
        case ast.BinOp(left=base, op=ast.Pow(), right=exponent):
            return f"{_within(base, _ATOM, symbols)}^{{{_write(exponent, symbols)[0]}}}", _POWER
        case ast.BinOp(left=left, op=operator, right=right):
            sign, first, second = _SIGNS[type(operator)]
            return f"{_within(left, first, symbols)}{sign}{_within(right, second, symbols)}", first
        case ast.Call(func=ast.Name(id=name), args=[only]):
            inside = _write(only, symbols)[0]
            text = rf"\sqrt{{{inside}}}" if name == "sqrt" else rf"\{name}\left({inside}\right)"
            return text, _ATOM
        case _:
            raise AssertionError("an equation has no other expressions")


def _within(node: ast.expr, least: int, symbols: Mapping[str, str]) -> str:
    """A part of an expression, in parentheses where it holds together less than is needed."""
    text, tightness = _write(node, symbols)
    return text if tightness >= least else rf"\left({text}\right)"


def _number(number: float) -> tuple[str, int]:
    mantissa, _, exponent = f"{number:.6g}".partition("e")
    if not exponent:
        return mantissa, _ATOM
    power = f"10^{{{int(exponent)}}}"
    return (power, _POWER) if mantissa == "1" else (rf"{mantissa} \cdot {power}", _PRODUCT)
