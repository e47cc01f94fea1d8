"""Parameters of a study: their declaration, their symbols, and values read from texts and rows.

A declaration is the one source of a parameter's option, help, check and column. Its symbol is the
paper's, in mathtext; terminals and documents show it in plain Unicode.
"""

from __future__ import annotations

import functools
import math
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from json.encoder import encode_basestring_ascii
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from overfit_cli.core.text import BadValue, is_plain_number, nearest, shortened

if TYPE_CHECKING:
    import pandas as pd


_SIGNS = {
    "cdot": "·",
    "ell": "ℓ",
    "infty": "∞",
    "langle": "⟨",
    "nabla": "∇",
    "propto": "∝ ",
    "rangle": "⟩",
    "sum": "Σ ",
    "top": "ᵀ",
    "Vert": "‖",
}
_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_ACCENTS = {
    "hat": "\N{COMBINING CIRCUMFLEX ACCENT}",
    "tilde": "\N{COMBINING TILDE}",
    "underline": "\N{COMBINING LOW LINE}",
}


def plain(symbol: str) -> str:
    r"""Return a mathtext symbol in plain Unicode: `\tilde{\sigma}_p` becomes `σ̃_p`.

    Equations too: `{N} \cdot \left(M + 1\right)^{2} = 10^{-3}` becomes `N·(M + 1)² = 10⁻³`.
    """
    text = re.sub(r"\\(left|right)(?![A-Za-z])", "", symbol.replace(r"\|", "‖"))
    text = text.replace(r"\,", " ")
    text = re.sub(r"\\mathrm\{(.*?)\}", r"\1", text.replace(r" \cdot ", r"\cdot "))
    text = re.sub(r"\\frac\{(.*?)\}\{(.*?)\}", r"\1/\2 ", text)
    accents = "|".join(_ACCENTS)
    text = re.sub(rf"\\(?!(?:{accents})\b)([A-Za-z]+)( ?)", _sign, text)
    text = re.sub(rf"\\({accents})(?:\{{(.)\}}| (.))", _accented, text)
    text = re.sub(r"\^(?:\{(-?\d+)\}|(\d))", _raised, text)
    while (inner := _BRACES.sub(_without_braces, text)) != text:
        text = inner
    return text.replace("^ᵀ", "ᵀ").replace(r"\_", "_").replace(r"\,", " ")


_BRACES = re.compile(r"(\^|sqrt)?\{([^{}]*)\}")
"""The innermost braces, with what they are of."""


def _without_braces(found: re.Match[str]) -> str:
    """A root, and an exponent longer than a letter, in parentheses; else what is there."""
    of, inside = found.groups()
    if of == "sqrt":
        return f"√({inside})"
    return f"^({inside})" if of and len(inside) > 1 else f"{of or ''}{inside}"


def _raised(found: re.Match[str]) -> str:
    """A whole exponent in raised digits."""
    return (found[1] or found[2]).translate(_RAISED)


def _sign(found: re.Match[str]) -> str:
    """A sign or a Greek letter by its name; the name of a function as it stands."""
    name, space = found.groups()
    if name in _SIGNS:
        return _SIGNS[name]
    size = "CAPITAL" if name[0].isupper() else "SMALL"
    letter = "LAMDA" if name.lower() == "lambda" else name.upper()
    try:
        return unicodedata.lookup(f"GREEK {size} LETTER {letter}")
    except KeyError:
        return f"{name}{space}"


def _accented(found: re.Match[str]) -> str:
    return f"{found[2] or found[3]}{_ACCENTS[found[1]]}"


Value = int | float | bool | str
Kind = Literal["int", "float", "bool", "literal", "text"]


class StudyParameters(BaseModel):
    """Base of every study's parameters: frozen, every field a `parameter`, no unknown names."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    def refusals(self) -> Iterator[BadValue]:
        """Give an error for each value that can't stand with the others; the first is raised."""
        yield from ()

    @model_validator(mode="after")
    def _can_stand_together(self) -> Self:
        refusal = next(self.refusals(), None)
        if refusal is not None:
            raise ValueError(refusal)  # pydantic passes on what is a ValueError alone
        return self


@functools.lru_cache(maxsize=100_000)
def as_json(parameters: StudyParameters) -> str:
    """Return all values as compact JSON, sorted by name: a part of a cell's key.

    It is kept for a while, because cells of many seeds share their parameters.
    """
    values = parameters.__dict__
    pairs = [f"{name}:{_json(values[field])}" for field, name in _json_names(type(parameters))]
    return "{" + ",".join(pairs) + "}"


Parameters = TypeVar("Parameters", bound=StudyParameters)


@dataclass(frozen=True)
class Parameter:
    """What a parameter means, and what it takes: `Annotated[int, Parameter("samples")]`.

    Attributes:
        meaning: one phrase for help texts and documents.
        symbol: the paper's symbol, in matplotlib's mathtext without the dollar signs.
        unit: what one counts in; empty for a pure number.
        at_least, above, at_most, below: the bounds of what is accepted.
        label: a few words for axes and legends; empty where the meaning is short enough.
    """

    meaning: str = ""
    symbol: str = ""
    unit: str = ""
    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    below: float | None = None
    label: str = ""

    def __post_init__(self) -> None:
        """Refuse what is of another type, and bounds between which there is nothing.

        Raises:
            TypeError: naming it.
        """
        for name in ("meaning", "symbol", "unit", "label"):
            if not isinstance(given := getattr(self, name), str):
                raise TypeError(f"Parameter({name}={given!r}): it takes a text")
        for name in ("at_least", "above", "at_most", "below"):
            if (given := getattr(self, name)) is not None and not is_finite_number(given):
                raise TypeError(f"Parameter({name}={given!r}): it takes a finite number")
        lows = [low for low in (self.at_least, self.above) if low is not None]
        highs = [high for high in (self.at_most, self.below) if high is not None]
        if lows and highs and max(lows) > min(highs):
            between = f"no number is {max(lows):g} or more and {min(highs):g} or less"
            raise TypeError(f"Parameter: {between}")

    def field(self, default: Value | None, *, real: bool) -> Any:
        """Return it as a field of a `StudyParameters` model.

        Args:
            default: None where the parameter must be given.
            real: whether it is a real number; those take neither nan nor infinity. The bounds of
                others are whole numbers, the nearest inside.
        """

        def bound(given: float | None, whole: Callable[[float], int]) -> float | None:
            return given if real or given is None else whole(given)

        return Field(
            ... if default is None else default,
            description=self.meaning,
            ge=bound(self.at_least, math.ceil),
            gt=bound(self.above, math.floor),
            le=bound(self.at_most, math.floor),
            lt=bound(self.below, math.ceil),
            allow_inf_nan=False if real else None,
            json_schema_extra={"symbol": self.symbol, "unit": self.unit, "label": self.label},
        )


def parameter(
    default: Value,
    meaning: str,
    *,
    symbol: str = "",
    unit: str = "",
    at_least: float | None = None,
    above: float | None = None,
    at_most: float | None = None,
    below: float | None = None,
    label: str = "",
) -> Any:
    """Declare a field of a `StudyParameters` model: the paper's value, and see `Parameter`."""
    declared = Parameter(meaning, symbol, unit, at_least, above, at_most, below, label)
    return declared.field(default, real=isinstance(default, float))


def is_finite_number(given: object) -> bool:
    """Return whether something is a whole or real number other than nan and infinity."""
    if isinstance(given, bool) or not isinstance(given, int | float):
        return False
    return math.isfinite(given)


@functools.cache
def _json_names(model: type[StudyParameters]) -> list[tuple[str, str]]:
    """The model's fields in order, each with its name in JSON."""
    return [(name, encode_basestring_ascii(name)) for name in sorted(model.model_fields)]


def _json(value: Value) -> str:
    # What json.dumps gives, without what it takes to find out: a sweep makes many keys.
    if isinstance(value, str):
        return encode_basestring_ascii(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)


@dataclass(frozen=True)
class ParameterInfo:
    """What a parameter's model says of it, for people.

    `kind` is `int`, `float`, `bool`, `literal` or `text`; `accepts` says in words what is accepted.
    The default is None where the parameter must be given. `label` is never empty.
    """

    name: str
    kind: Kind
    default: Value | None
    meaning: str
    symbol: str
    unit: str
    choices: tuple[str, ...]
    accepts: str
    label: str = ""

    @property
    def spelled_symbols(self) -> set[str]:
        """The symbol as it may be typed: as terminals show it, `SNR` or `σ_p`, and `eta` for η."""
        letters = self.symbol.replace("\\", "")
        return {plain(self.symbol), *([letters] if letters.isidentifier() else [])} - {""}


def describe(model: type[StudyParameters]) -> Mapping[str, ParameterInfo]:
    """Return every parameter of `model` by name, in the order of its declaration."""
    return _described(model)


@functools.cache
def _described(model: type[StudyParameters]) -> Mapping[str, ParameterInfo]:
    found = {name: _describe_one(model, name) for name in model.model_fields}
    return MappingProxyType(found)


def _describe_one(model: type[StudyParameters], name: str) -> ParameterInfo:
    field = model.model_fields[name]
    extra = field.json_schema_extra
    assert isinstance(extra, dict), f"{name} is declared without parameter()"
    kind, choices = _kind(field.annotation)
    assert kind is not None, f"{name} has a type that no parameter can have"
    return ParameterInfo(
        name=name,
        kind=kind,
        default=None if field.is_required() else field.default,
        meaning=field.description or "",
        symbol=str(extra["symbol"]),
        unit=str(extra["unit"]),
        choices=choices,
        accepts=_accepts(kind, choices, field.metadata),
        label=str(extra["label"]) or field.description or name.replace("_", " "),
    )


def parameter_named(model: type[StudyParameters], text: str) -> str:
    """Return the name of the parameter that `text` is the name or the symbol of.

    A symbol is taken as terminals show it, `SNR` or `σ_p`, or as `sigma_p`, where one parameter
    alone has it. What is neither comes back as it is.
    """
    return named_among(describe(model), text)


def named_among(known: Mapping[str, ParameterInfo], text: str) -> str:
    """Return the name of one of these parameters as `parameter_named` does."""
    if text in known:
        return text
    named = [name for name, info in known.items() if text in info.spelled_symbols]
    return named[0] if len(named) == 1 else text


def _kind(annotation: Any) -> tuple[Kind | None, tuple[str, ...]]:
    """The kind of a type, and what is chosen from; None where it is no parameter's type."""
    if get_origin(annotation) is not Literal:
        kinds: dict[Any, Kind] = {int: "int", float: "float", bool: "bool"}
        return kinds.get(annotation, "text" if annotation is str else None), ()
    choices = get_args(annotation)
    if all(isinstance(choice, str) for choice in choices):
        return "literal", choices
    whole = all(isinstance(choice, int) and not isinstance(choice, bool) for choice in choices)
    return ("int" if whole else None), tuple(str(choice) for choice in choices)


def _accepts(kind: Kind, choices: tuple[str, ...], constraints: list[Any]) -> str:
    if choices:
        return "one of " + ", ".join(choices)
    if kind == "text":
        return "a text"
    if kind == "bool":
        return "true or false"
    words = {"ge": "of at least", "gt": "above", "le": "up to", "lt": "below"}
    bounds = [
        f"{word} {getattr(constraint, short):.15g}"
        for constraint in constraints
        for short, word in words.items()
        if getattr(constraint, short, None) is not None
    ]
    noun = "a whole number" if kind == "int" else "a number"
    return f"{noun} {' and '.join(bounds)}".strip()


Result = TypeVar("Result")


def parse_value(info: ParameterInfo, text: str) -> Value:
    """Turn one `text` into a value of the parameter's kind; bounds are left to `build`.

    Raises:
        BadValue: if the text isn't of that kind.
    """
    text = text.strip()
    said = shortened(text)
    refusal = BadValue(info.name, said, f"{info.name} takes {info.accepts}, not {said!r}.")
    if info.kind == "text":
        return text
    if info.kind == "literal":
        if text not in info.choices:
            raise refusal
        return text
    if info.kind == "bool":
        if text.lower() not in ("true", "false"):
            raise refusal
        return text.lower() == "true"
    try:
        number = Decimal(text if is_plain_number(text) else "")
    except InvalidOperation:
        raise refusal from None
    # The exponent first: arithmetic with a huge one overflows.
    if not number.is_finite() or number.adjusted() > 300 or abs(number) > Decimal("1e300"):
        raise refusal
    if info.kind == "float":
        return float(number) + 0.0  # -0 is 0: the same cell has one name
    if number != number.to_integral_value() or abs(number) >= 2**63:
        raise refusal
    return int(number)


def of_row(model: type[Parameters], row: Mapping[str, Any] | pd.Series[Any]) -> Parameters:
    """Return the parameters of a cell, given its row; the row's other columns are passed over."""
    return model.model_validate({name: row[name] for name in model.model_fields})


def of_rows(
    model: type[Parameters], cells: pd.DataFrame, function: Callable[[Parameters], Result]
) -> list[Result]:
    """Return a function of each cell's parameters; it is called once for all cells that share them.

    Args:
        model: the study's parameters.
        cells: one row per cell.
        function: of the parameters.
    """
    names = list(model.model_fields)
    found: dict[tuple[Any, ...], Result] = {}
    points = list(zip(*(cells[name].tolist() for name in names), strict=True))
    for point in points:
        if point not in found:
            found[point] = function(model.model_validate(dict(zip(names, point, strict=True))))
    return [found[point] for point in points]


def build(model: type[StudyParameters], values: Mapping[str, Value]) -> StudyParameters:
    """Make the parameters, with defaults for what `values` leaves out.

    Raises:
        BadValue: naming the parameter, its value and what would be accepted.
    """
    known = describe(model)
    for name in values:
        if name not in known:
            raise unknown_parameter(name, known)
    for name, info in known.items():
        if info.default is None and name not in values:
            raise BadValue(name, None, f"it has no default; give {info.accepts}.")
    try:
        return model(**values)
    except ValidationError as error:
        raise _refusal(error.errors()[0], known) from None


def unknown_parameter(name: str, known: Mapping[str, ParameterInfo]) -> BadValue:
    """Return the error for a parameter that the study doesn't have, with the nearest one."""
    return BadValue(name, None, f"the study has no parameter {name!r}; {nearest(name, known)}")


def _refusal(error: ErrorDetails, known: Mapping[str, ParameterInfo]) -> BadValue:
    """The error of a value that pydantic refuses, or a study's own refusal."""
    if not error["loc"]:
        refusal = error["ctx"]["error"].args[0]
        if isinstance(refusal, BadValue):
            return refusal
        return BadValue("parameters", None, str(refusal))
    name, value = str(error["loc"][0]), error["input"]
    return BadValue(name, value, f"{name} takes {known[name].accepts}, not {value}.")
