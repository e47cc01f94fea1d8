"""Expressions, conditions and equations: the one language of names, numbers and comparisons.

    n / d                   arithmetic: + - * / **, log, exp, sqrt, round, floor, ceil
    loss[kernel=softmax]    a column where parameters have chosen values; [best learning_rate] too
    n >= 2*d, 1 < n/d <= 4  comparisons of expressions
    n = 10,20               any of several values; kernel != softmax
    n = 5:20                a range with both its ends; one of them may be left out
    n is largest            the largest value of a parameter among the cells left, or the smallest
    n * snr**2 = 1000       an equation, behind its label if it has one: `boundary: n = d`

Conditions are joined by `and` or by commas. A name is the name of a parameter or a column, or its
symbol, and stands in backquotes where it has blanks or signs in it. A text is parsed, evaluated
and typeset, and never run as code.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from overfit_cli.core.errors import BadValue
from overfit_cli.core.options import finite_number
from overfit_cli.core.parameters import ParameterInfo
from overfit_cli.core.text import listed, shorten, suggestion

Values = Mapping[str, Any]
"""Numbers and words, or arrays of them, by the texts of references, of shapes that broadcast."""


class Names(dict[str, ParameterInfo]):
    """What each spelling stands for.

    Attributes:
        inside: what spellings in the brackets behind a name stand for; None where none has them.
    """

    inside: Names | None = None

    @functools.cached_property
    def trees(self) -> dict[Node, ParameterInfo]:
        """The spellings that are expressions, such as the column `n / d`."""
        found: dict[Node, ParameterInfo] = {}
        for spelling in (each for each in self if not re.fullmatch(_NAME, each)):
            with suppress(_RefusedError):  # "test error" is written in backquotes
                found[_read_tree(spelling, self, {})] = self[spelling]
        return found

    def among(self, names: Collection[str]) -> Names:
        """Return the spellings of some of the names, without brackets."""
        return Names({text: named for text, named in self.items() if named.name in names})

    def with_brackets(self, inside: Names) -> Names:
        """Return the names, which may have brackets."""
        names = Names(self)
        names.inside = inside
        return names

    def of(self, text: str) -> ParameterInfo:
        """Return what a spelling stands for."""
        named = self.get(text) or self.get(name := text.strip("` "))
        return named or refuse(f"{name!r} is no name here; {suggestion(name, self)}")


LONGEST, MOST_SIGNS = 1000, 200  # characters of a text, and names, numbers and signs of a side
CLOSE = 1e-9
"""Real numbers that differ by less, relative to themselves, are one value."""

FUNCTIONS = ("log", "exp", "sqrt", "round", "floor", "ceil")
_SIGNS = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "**": np.power}
_SIGN_OF = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**"}
_UNREADABLE = "it can't be read; it takes names, numbers, + - * / ** and parentheses."

_NAME = r"[^\s\d.+\-*/()\[\]<>=!,:;^`'\"][^\s+\-*/()\[\]<>=!,:;^`'\"]*"
_NUMBER = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
_TOKEN = re.compile(
    rf"\s*(?:(?P<number>{_NUMBER})|(?P<function>{_NAME})(?=\s*\()"
    rf"|(?P<name>`[^`]+`|{_NAME})(?:\s*\[(?P<inside>[^\[\]]*)\])?|(?P<sign>\*\*|[-+*/()]))"
)
SIGN = r"<=|>=|==|!=|<|>|="
_UP_TO_AND = r"(?:(?!\band\b)[^,<>=!])*"
AND = rf"\band\b|,(?={_UP_TO_AND}[<>=!]|{_UP_TO_AND} is (?:largest|smallest)\b|\s*best )"
"""What joins conditions; another comma joins values: `n = 10,20`."""
_TYPESET = str.maketrans({"−": "-", "≤": "<=", "≥": ">=", "≠": "!=", "·": "*"})


# Trees


@dataclass(frozen=True)
class Ref:
    """A parameter or a column, and the tests `at` in its brackets, whose text is `inside`."""

    name: str
    inside: str = ""
    at: tuple[Test, ...] = ()

    @property
    def pins(self) -> frozenset[str]:
        """The parameters whose values its brackets choose."""
        return frozenset(ref.name for test in self.at for ref in test.refs)

    def __str__(self) -> str:
        return f"{self.name}[{self.inside}]" if self.inside else self.name


class _AnyNames(Names):
    """Names of which nothing is known yet: each stands for itself."""

    def get(self, text: str, default: Any = None) -> Any:
        return SimpleNamespace(name=text, is_number=True, parse=str)


ANY = _AnyNames()
ANY.inside = ANY


class _OfRefs:
    """What has references in it, each once."""

    @property
    def refs(self) -> tuple[Ref, ...]:
        """The references in it, each once."""
        return tuple(dict.fromkeys(_refs(self)))

    @property
    def names(self) -> frozenset[str]:
        """The names in it."""
        return frozenset(ref.name for ref in self.refs)


@dataclass(frozen=True)
class Operation:
    """Arithmetic of operands."""

    sign: str  # of arithmetic, or the name of a function
    operands: tuple[Node, ...]


Node = float | Ref | Operation


@dataclass(frozen=True)
class Expression(_OfRefs):
    """Arithmetic of numbers and references."""

    text: str
    tree: Node

    def __str__(self) -> str:
        return self.text

    def value(self, values: Values) -> NDArray[np.float64]:
        """Its value, not finite where it is not defined, of the shape of all values together."""
        shape = np.broadcast_shapes(*(np.shape(value) for value in values.values()))
        with np.errstate(all="ignore"):
            return np.asarray(_value(self.tree, values) + np.zeros(shape))

    def mathtext(self, symbol: Callable[[str], str]) -> str:
        """The expression in mathtext, without dollar signs."""
        return _write(self.tree, symbol)[0]


@dataclass(frozen=True)
class Compared(_OfRefs):
    """Expressions with signs between them, such as `1 < n/d <= 4`, or a labelled equation."""

    sides: tuple[Expression, ...]
    signs: tuple[str, ...]
    label: str = ""

    @property
    def text(self) -> str:
        """It without its label."""
        pairs = zip(("", *self.signs), self.sides, strict=True)
        return " ".join(f"{sign} {side}" for sign, side in pairs).strip()

    def holds(self, values: Values) -> NDArray[np.bool_]:
        """Where it holds."""
        numbers = [side.value(values) for side in self.sides]
        pairs = zip(numbers, self.signs, numbers[1:], strict=False)
        return np.asarray(np.logical_and.reduce([compare(*pair) for pair in pairs]))

    def difference(self, values: Values) -> NDArray[np.float64]:
        """The left side less the right side, which is 0 on the curve of an equation."""
        with np.errstate(invalid="ignore"):
            return self.sides[0].value(values) - self.sides[1].value(values)

    def mathtext(self, symbol: Callable[[str], str]) -> str:
        """It in mathtext, without dollar signs."""
        signs = [_WRITTEN.get(sign, sign) for sign in ("", *self.signs)]
        sides = [side.mathtext(symbol) for side in self.sides]
        return " ".join(f"{sign} {side}" for sign, side in zip(signs, sides, strict=True)).strip()


@dataclass(frozen=True)
class Among(_OfRefs):
    """A name and its values: `kernel = softmax`, `n = 10,20`, `kernel != softmax`."""

    name: str
    values: tuple[Any, ...]
    excludes: bool = False

    def holds(self, values: Values) -> NDArray[np.bool_]:
        """Where it holds."""
        here = np.asarray(values[self.name])
        if isinstance(self.values[0], str | bool):
            return np.isin(here, self.values, invert=self.excludes)
        chosen = compare(here[:, None], "=", np.array(self.values, np.float64)).any(axis=1)
        return np.asarray(~np.isnan(here) & (chosen ^ self.excludes))


@dataclass(frozen=True)
class Extreme(_OfRefs):
    """The `largest` or `smallest` value of a parameter; in brackets also the `best`."""

    name: str
    which: str

    def holds(self, values: Values) -> NDArray[np.bool_]:
        """Where it holds."""
        here = np.asarray(values[self.name])
        extreme = max if self.which == "largest" else min
        return np.asarray(here == extreme(here.tolist(), default=0))


Test = Compared | Among | Extreme


def quoted(name: str) -> str:
    """Return a name as it is written in an expression."""
    return name if re.fullmatch(_NAME, name) else f"`{name}`"


def compare(left: Any, sign: str, right: Any) -> NDArray[np.bool_]:
    """Where `left sign right` holds; nan compares as false, and real numbers up to `CLOSE`."""
    if sign in (">", ">="):
        return compare(right, sign.replace(">", "<"), left)
    same = np.isclose(left, right, rtol=CLOSE, atol=0)
    known = ~(np.isnan(left) | np.isnan(right))
    holds = {"<": (left < right) & ~same, "<=": (left < right) | same, "!=": known & ~same}
    return np.asarray(holds.get(sign, same))


def _refs(part: Any) -> Iterator[Ref]:
    match part:
        case Ref():
            yield part
        case Among() | Extreme():
            yield Ref(part.name)
        case Expression():
            yield from _refs(part.tree)
        case Operation(_, parts) | Compared(parts):
            for inner in parts:
                yield from _refs(inner)


def _value(node: Node, values: Values) -> Any:
    match node:
        case Operation("-", (operand,)):
            return -_value(operand, values)
        case Operation(sign, operands):
            function = _SIGNS.get(sign) or getattr(np, "rint" if sign == "round" else sign)
            return function(*(_value(operand, values) for operand in operands))
        case _:
            return values[str(node)] if isinstance(node, Ref) else node


# Reading: the form of a text, and then what its names are


class _RefusedError(Exception):
    """The reason why a text is not of the language, as a sentence."""


def refuse(reason: str) -> NoReturn:
    """Say why a text is not of the language, to `tidied`."""
    raise _RefusedError(reason)


@contextmanager
def tidied(text: str, option: str, hint: Callable[[str], str] = lambda tidy: "") -> Iterator[str]:
    """The text with single blanks and plain signs; a refusal names the option and the text."""
    tidy = " ".join(text.translate(_TYPESET).split())
    try:
        yield tidy if len(tidy) <= LONGEST else refuse(f"it has more than {LONGEST} characters.")
    except _RefusedError as refused:
        raise BadValue(option, shorten(text), f"{refused}{hint(tidy)}") from None


def read_expression(text: str, names: Names, option: str = "value") -> Expression:
    """Read arithmetic: `test_loss / n`, `loss[kernel=softmax] - loss[kernel=gaussian]`."""
    with tidied(text, option) as tidy:
        return _side(tidy, names)


def read_number(given: Any, option: str) -> float:
    """Return a finite number; a text may be an expression of numbers, such as `1/20`."""
    if isinstance(given, str):
        given = float(read_expression(given, Names(), option).value({}))
    return finite_number(option, given)


def read_equation(text: str, names: Names, option: str = "law") -> Compared:
    """Read an equation, behind its label if it has one."""
    with tidied(text, option) as tidy:
        *label, equation = tidy.rsplit(":", 1)
        sides = split(equation, SIGN)
        if sides[1::2] != ["="]:
            refuse("an equation has one equals sign, as in 'n * snr**2 = 1000'.")
        return _compared(sides, names, "".join(label).strip())


def read_conditions(text: str, names: Names, option: str = "where") -> list[Test]:
    """Read conditions joined by `and` or commas; those on largest and smallest come last."""
    with tidied(text, option) as tidy:
        tests = _tests(tidy, names)
        if any(isinstance(test, Extreme) and test.which == "best" for test in tests):
            refuse("the best is written in brackets: loss[best NAME].")
        return sorted(tests, key=lambda test: isinstance(test, Extreme))


def _side(text: str, names: Names) -> Expression:
    side = Expression(text, _read_tree(text, names, names.trees))
    known = {each.name for each in names.values()}
    for name in (ref.name for ref in side.refs if ref.name not in known):
        names.of(name)  # a name in the text of one that is an expression need not be known
    return side


def _compared(parts: Sequence[str], names: Names, label: str = "") -> Compared:
    sides = tuple(_side(side, names) for side in parts[::2])
    found = Compared(sides, tuple(parts[1::2]), label)
    return found if found.refs else refuse("it names no parameter and no column.")


def _tests(text: str, names: Names) -> list[Test]:
    return [_test(part, names) for part in split(text, AND)[::2]]


def _test(text: str, names: Names) -> Test:
    if match := re.fullmatch(r"best (.+)|(.+) is (largest|smallest)", text):
        ordered = names.of(match[1] or match[2])
        if not ordered.is_number:
            refuse(f"{ordered.name} is no number: none of its values is largest or smallest.")
        return Extreme(ordered.name, match[3] or "best")
    parts = split(text, SIGN)
    if len(parts) == 1 or not all(parts) or parts[-1] == ":":
        refuse("write NAME=VALUE, NAME=LOW:HIGH, NAME=A,B or a comparison such as 'n >= 2*d'.")
    left, sign, right = parts[:3]
    named = names.get(left.strip("`"))
    if named is None or len(parts) > 3 or sign not in ("=", "==", "!="):
        return _compared(parts, names)
    if named.is_number and right.count(":") == 1 and sign != "!=":
        low, high = (end.strip() for end in right.split(":"))
        return _compared([*[low, "<="] * bool(low), left, *["<=", high] * bool(high)], names)
    if not named.is_number or "," in right or re.fullmatch(rf"[-+]?{_NUMBER}", right):
        try:
            return Among(named.name, tuple(map(named.parse, listed(right))), sign == "!=")
        except BadValue as error:
            refuse(error.accepts)
    return _compared(parts, names)


def split(text: str, separator: str) -> list[str]:
    """Parts and the separators between them, in turn; what is in brackets stays together."""
    masked = re.sub(r"\[[^\[\]]*\]|`[^`]*`", lambda match: "_" * len(match[0]), text)
    parts, start = list[str](), 0
    for match in re.finditer(separator, masked):
        parts += [text[start : match.start()].strip(), match[0].strip()]
        start = match.end()
    return [*parts, text[start:].strip()]


def _read_tree(text: str, names: Names, trees: Mapping[Node, ParameterInfo]) -> Node:
    """The tree of a text; `trees` are names that are expressions.

    Python's parser reads the text with a placeholder for each operand, so no name is one of its.
    """
    words, operands, at = list[str](), list[Node](), 0
    while match := _TOKEN.match(text, at):
        at = match.end()
        if word := match["sign"] or match["function"]:
            words.append(word)
            if match["function"] and word not in FUNCTIONS:
                refuse(f"{word!r} is not a function; {suggestion(word, FUNCTIONS)}")
        else:
            words.append(f"_{len(operands)}")
            operands.append(_operand(match, names))
    if len(words) > MOST_SIGNS:  # keeps the recursion shallow
        refuse(f"it has more than {MOST_SIGNS} names, numbers and signs.")

    def tree(part: ast.expr) -> Node:
        match part:
            case ast.Name(word):
                return operands[int(word.removeprefix("_"))]
            case ast.Call(ast.Name(word), [operand]) if word in FUNCTIONS:
                return Operation(word, (tree(operand),))
            case ast.UnaryOp(ast.USub(), operand):
                return Operation("-", (tree(operand),))
            case ast.BinOp(left, sign, right):
                found = Operation(_SIGN_OF[type(sign)], (tree(left), tree(right)))
                return Ref(trees[found].name) if found in trees else found
        refuse(_UNREADABLE)

    try:
        parsed = ast.parse(" ".join(words) if at == len(text.rstrip()) else "", mode="eval")
    except SyntaxError:
        refuse(_UNREADABLE)
    return tree(parsed.body)


def _operand(match: re.Match[str], names: Names) -> Node:
    if number := match["number"]:
        return float(number) if float(number) < np.inf else refuse(f"{number} is too large.")
    name, inside = match["name"].strip("`"), match["inside"]
    if named := names.get(name):
        name = named.name
        if not named.is_number:
            refuse(f"{name} is no number; write {name}=VALUE or {name}=A,B.")
    if inside is None:
        return Ref(name)
    if names.inside is None:
        refuse("names have no brackets here.")
    return Ref(name, inside.strip(), tuple(_tests(inside.strip(), names.inside)))


# Typesetting: how close a text binds, in numbers; one that binds less than required stands in ()

_SUM, _SIGNED, _PRODUCT, _POWER, _ATOM = range(5)
_WRITTEN = {"==": "=", "!=": r"\neq", "<=": r"\leq", ">=": r"\geq"}
_SUMS = {"+": " + ", "-": " - "}
_PRODUCTS = {"*": r" \cdot ", "/": " / "}
_AROUND = {"sqrt": r"\sqrt{%s}", "floor": r"\lfloor %s\rfloor", "ceil": r"\lceil %s\rceil"}


def _write(node: Node, symbol: Callable[[str], str]) -> tuple[str, int]:  # noqa: PLR0911
    """A tree in mathtext, and how close it binds."""

    def within(part: Node, required: int = _SUM) -> str:
        text, binding = _write(part, symbol)
        return text if binding >= required else rf"\left({text}\right)"

    match node:
        case Ref(name, inside):
            chosen = rf"\,[\mathrm{{{inside}}}]".replace("_", r"\_") if inside else ""
            return f"{{{symbol(name)}}}{chosen}", _ATOM
        case Operation("-", (operand,)):
            return f"-{within(operand, _PRODUCT)}", _SIGNED
        case Operation("**", (Operation("log", (inner,)), float() as power)):
            # log²(x): behind the parenthesis the power would seem to be x's
            return rf"\log^{{{within(power)}}}\left({within(inner)}\right)", _POWER
        case Operation("**", (base, power)):
            return f"{within(base, _ATOM)}^{{{within(power)}}}", _POWER
        case Operation(sign, (left, right)) if sign in _SUMS:
            return f"{within(left)}{_SUMS[sign]}{within(right, _PRODUCT)}", _SUM
        case Operation(sign, (left, right)):
            text = f"{within(left, _SIGNED)}{_PRODUCTS[sign]}{within(right, _POWER)}"
            return text, _SIGNED if text[0] == "-" else _PRODUCT
        case Operation(name, (operand,)):
            plain = rf"\{name if name in ('log', 'exp') else 'mathrm{round}'}\left(%s\right)"
            return _AROUND.get(name, plain) % within(operand), _ATOM
        case _:
            digits, _, exponent = f"{node:.6g}".partition("e")
            of_ten = f"10^{{{int(exponent or 0)}}}"
            if not exponent:
                return digits, _ATOM
            return (of_ten, _POWER) if digits == "1" else (rf"{digits} \cdot {of_ten}", _PRODUCT)
