"""Parameters of a study: their declaration, their symbols, and values read from texts and rows.

A declaration is the one source of a parameter's option, help, check and column. Its symbol is the
paper's, in mathtext; terminals and documents show it in plain Unicode. Matplotlib's own parser
decides what figures can typeset. It takes a third of a second to import, so a formula of letters,
Greek names, indices, powers and common commands is accepted without it.
"""

from __future__ import annotations

import functools
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from json import JSONEncoder
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from overfit_cli.core.errors import BadValue
from overfit_cli.core.text import RAISED, shorten, spaced, suggestion, visible

if TYPE_CHECKING:
    import pandas as pd

_NAMES = (
    "alpha|beta|gamma|delta|epsilon|varepsilon|zeta|eta|theta|iota|kappa|lambda|mu|nu|xi|pi|rho|"
    "sigma|tau|upsilon|phi|varphi|chi|psi|omega|Gamma|Delta|Theta|Lambda|Xi|Pi|Sigma|Phi|Psi|Omega|"
    "cos|ell|exp|infty|langle|log|max|min|nabla|rangle|sin|sum|top|Vert"
)
_SIGN = re.compile(rf"\\(?:(?:{_NAMES})(?![A-Za-z])|\||(?:hat|bar|tilde) ?[A-Za-z])")
_LETTER = r"[A-Za-z0-9,()+*/|-]"
_LINE = rf" *(?:{_LETTER}(?:_{_LETTER}(?:\^{_LETTER})?|\^{_LETTER}(?:_{_LETTER})?|')? *)+"
_GROUP = re.compile(
    rf"\\frac\{{{_LINE}\}}\{{{_LINE}\}}"
    rf"|(?:\\(?:hat|bar|tilde|underline|mathrm|sqrt))?\{{{_LINE}\}}"
)
_DOLLAR = re.compile(r"(?<!\\)\$")


def text_problem(name: str, text: object) -> str:
    r"""Return why figures can't typeset a text of a declaration; empty if they can.

    A `symbol` is a formula. Other texts have formulas between dollar signs; an odd number of these
    are signs of money. One in words with a formula is written `\$`.
    """
    if not isinstance(text, str) or visible(text) != text:
        return "it takes a text of characters that can be drawn"
    pieces = _DOLLAR.split(text)
    formulas = [text] * bool(text) if name == "symbol" else pieces[1::2] * (len(pieces) % 2)
    for formula in formulas:
        if not formula or not (is_plain(formula) or _parses(formula)):
            takes = r"it takes mathtext, without dollar signs in a symbol, such as r'\sigma_p'"
            return f"matplotlib can't typeset the formula {shorten(formula)!r}; {takes}"
    return ""


def with_money(words: str) -> str:
    r"""Return words for a figure: signs of money, an odd number of dollar signs, become `\$`."""
    return _DOLLAR.sub(r"\\$", words) if len(_DOLLAR.findall(words)) % 2 else words


def is_plain(symbol: str) -> bool:
    """Return whether a symbol is one that is known to be typeset without asking matplotlib."""
    text = _SIGN.sub("x", symbol.replace(r"\,", " "))
    # Each pass turns innermost groups into letters.
    while (inner := _GROUP.sub("x", text)) != text:
        text = inner
    return re.fullmatch(_LINE, text) is not None


_TEXTS = ("meaning", "symbol", "unit", "label")
"""The texts of a declaration that figures show."""


def check_texts(declared: object) -> None:
    """Refuse a `Parameter` or a `Column` with texts that figures can't typeset."""
    for name in _TEXTS:
        text = getattr(declared, name)
        if problem := text_problem(name, text):
            where = f"{type(declared).__name__}({name}={shorten(repr(text))})"
            raise TypeError(f"{where}: {problem}")


def without_bad_texts(kept: Any) -> Any:
    """Return a declaration that a manifest has, without the texts that figures can't typeset."""
    texts = {name: kept.get(name) for name in _TEXTS} if isinstance(kept, dict) else {}
    bad = [name for name, text in texts.items() if text and text_problem(name, text)]
    return {**kept, **dict.fromkeys(bad, "")} if bad else kept


def _parses(symbol: str) -> bool:
    if _DOLLAR.search(symbol):
        return False
    from matplotlib.mathtext import MathTextParser

    try:
        MathTextParser("path").parse(f"${symbol}$")
    except Exception:  # of many kinds, of the parser and of its fonts
        return False
    return True


_SIGNS = {
    **{"cdot": "·", "ell": "ℓ", "infty": "∞", "langle": "⟨", "nabla": "∇", "propto": "∝ "},
    **{"rangle": "⟩", "sum": "Σ ", "top": "ᵀ", "Vert": "‖"},
    **{"bar": "\u0304", "hat": "\u0302", "tilde": "\u0303", "underline": "\u0332"},
}
"""Signs by their names in mathtext; the last line has accents, which combine with a letter."""

_ACCENT = r"\\(bar|hat|tilde|underline)"
_BRACES = re.compile(r"(\^|sqrt)?\{([^{}]*)\}")
"""The innermost braces, with the caret or the root before them."""


def symbol_text(symbol: str) -> str:
    r"""Return a mathtext symbol in plain Unicode: `\tilde{\sigma}_p` becomes `σ̃_p`.

    Equations too: `{N} \cdot \left(M + 1\right)^{2} = 10^{-3}` becomes `N·(M + 1)² = 10⁻³`.
    """
    text = re.sub(r"\\(left|right)(?![A-Za-z])", "", symbol.replace(r"\|", "‖"))
    text = text.replace(r"\,", " ").replace(r" \cdot ", r"\cdot ")
    text = re.sub(r"\\mathrm\{(.*?)\}", r"\1", text)
    text = re.sub(r"\\frac\{(.*?)\}\{(.*?)\}", r"\1/\2 ", text)
    text = re.sub(rf"(?!{_ACCENT}\b)\\([A-Za-z]+)( ?)", lambda m: _letter(m[2], m[3]), text)
    text = re.sub(rf"{_ACCENT}(?:\{{(.)\}}| (.))", lambda m: f"{m[2] or m[3]}{_SIGNS[m[1]]}", text)
    text = re.sub(r"\^(?:\{(-?\d+)\}|(\d))", lambda m: (m[1] or m[2]).translate(RAISED), text)
    while (inner := _BRACES.sub(_without_braces, text)) != text:
        text = inner
    return text.replace("^ᵀ", "ᵀ").replace(r"\_", "_")


def _letter(name: str, space: str) -> str:
    if name in _SIGNS:
        return _SIGNS[name]
    size = "CAPITAL" if name[0].isupper() else "SMALL"
    letter = "LAMDA" if name.lower() == "lambda" else name.upper()
    try:
        return unicodedata.lookup(f"GREEK {size} LETTER {letter}")
    except KeyError:
        return f"{name}{space}"


def _without_braces(match: re.Match[str]) -> str:
    prefix, content = match.groups()
    if prefix == "sqrt":
        return f"√({content})"
    return f"^({content})" if prefix and len(content) > 1 else f"{prefix or ''}{content}"


_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,4})?", re.ASCII | re.IGNORECASE)
"""A number as a user types it; Python would accept `1_0` and `２` too."""

Value = int | float | bool | str
Kind = Literal["int", "float", "bool", "literal", "text"]


class StudyParameters(BaseModel):
    """Base of every study's parameters: frozen, every field a `parameter`, no unknown names."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    def refusals(self) -> Iterator[BadValue]:
        """Yield an error for each value that contradicts the others; the first is raised."""
        yield from ()

    def refuse(self, name: str, accepts: str) -> BadValue:
        """Return the error for the value of a parameter, with what that accepts."""
        return BadValue(name, getattr(self, name), accepts)

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        refusal = next(self.refusals(), None)
        if refusal is not None:
            raise ValueError(refusal)  # pydantic passes on a ValueError only
        return self


@functools.lru_cache(maxsize=100_000)
def parameters_json(parameters: StudyParameters) -> str:
    """Return all values as compact JSON, sorted by name: a part of a cell's key.

    It is cached, because cells of many seeds share their parameters.
    """
    return _COMPACT.encode(parameters.__dict__)


_COMPACT = JSONEncoder(sort_keys=True, separators=(",", ":"))


Parameters = TypeVar("Parameters", bound=StudyParameters)


Bound = Annotated[float, Field(allow_inf_nan=False)] | None
"""An end of what a parameter accepts, finite also where a record holds it."""


LONGEST_LABEL = 28


def short_label(name: str, meaning: str, label: str) -> str:
    """Return a few words for axes: the label, a meaning that is as short, or the name in words."""
    return label or (meaning if len(meaning) <= LONGEST_LABEL else "") or spaced(name)


@dataclass(frozen=True)
class Parameter:
    """The meaning and the bounds of a parameter: `Annotated[int, Parameter("samples")]`.

    The symbol is the paper's, in mathtext without dollar signs; `label` is a few words for axes, by
    default the meaning where that is short, else the name.
    """

    meaning: str = ""
    symbol: str = ""
    label: str = ""
    unit: str = ""
    at_least: Bound = None
    above: Bound = None
    at_most: Bound = None
    below: Bound = None

    def __post_init__(self) -> None:
        check_texts(self)

    def field(self, default: Value | None, *, real: bool, **shown: Any) -> Any:
        """Return the parameter as a field of a `StudyParameters` model.

        Args:
            real: whether it is a real number, which is then finite; bounds of whole numbers are
                rounded inwards.
            shown: `value_labels`, what axes and legends call values, where that is not the value
                itself, and `shades` of a positive number: the values of the first and the last
                shade of the colour map, in every figure; without, those that are drawn.
        """

        def bound(value: float | None, rounding: Callable[[float], int]) -> float | None:
            return value if real or value is None else rounding(value)

        extra: Any = {"about": self, "value_labels": {}, "shades": None, **shown}
        return Field(
            ... if default is None else default,
            ge=bound(self.at_least, math.ceil),
            gt=bound(self.above, math.floor),
            le=bound(self.at_most, math.floor),
            lt=bound(self.below, math.ceil),
            allow_inf_nan=False if real else None,
            json_schema_extra=extra,
        )


_INTERVAL = re.compile(r"(?P<from>[\[(]) *(?P<low>[^ ,]+) *, *(?P<high>[^ ,]+) *(?P<to>[\])])")
_LOW, _HIGH = {"[": "at_least", "(": "above"}, {"]": "at_most", ")": "below"}


def parameter(
    default: Value, meaning: str, symbol: str = "", label: str = "", within: str = "", **other: Any
) -> Any:
    """Declare a field of a `StudyParameters` model: the paper's value, and see `Parameter`.

    `within` says the bounds as an interval: `[0, 1]`, `(0, 100]` or `[1, inf)`.
    """
    shown = {name: other.pop(name) for name in ("value_labels", "shades") if name in other}
    if within:
        found = _INTERVAL.fullmatch(within)
        assert found is not None, f"{within} is no interval"
        ends = {_LOW[found["from"]]: found["low"], _HIGH[found["to"]]: found["high"]}
        other |= {end: float(text) for end, text in ends.items() if "inf" not in text}
    about, real = Parameter(meaning, symbol, label, **other), isinstance(default, float)
    return about.field(default, real=real, **shown)


def parameter_of(model: type[StudyParameters], name: str, default: Value) -> Any:
    """Declare a parameter that another model has, with a default of its own."""
    extra: Any = model.model_fields[name].json_schema_extra
    return extra["about"].field(default, real=isinstance(default, float), **extra)


@dataclass(frozen=True)
class ParameterInfo:
    """The description of a parameter for help texts, tables and figures; see `Parameter`.

    Attributes:
        kind: `int`, `float`, `bool`, `literal` or `text`.
        choices: the accepted values of a `literal`, and of an `int` that has choices.
        accepts: the accepted values in words.
        limits: the accepted values in signs: `≥ 1, ≤ 5`, or the choices.
    """

    name: str
    kind: Kind = "float"
    default: Value | None = None
    meaning: str = ""
    symbol: str = ""
    unit: str = ""
    choices: tuple[str, ...] = ()
    accepts: str = "a number"
    label: str = ""
    value_labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    shades: tuple[float, float] | None = None
    limits: str = ""

    @property
    def is_number(self) -> bool:
        """Whether its values are numbers."""
        return self.kind in ("int", "float")

    def parse(self, text: str) -> Value:
        """Convert a text to a value of this kind; `build` checks the bounds."""
        text = text.strip()
        if self.kind == "text" or (self.kind == "literal" and text in self.choices):
            return text
        if self.kind == "bool" and text.lower() in ("true", "false"):
            return text.lower() == "true"
        if self.is_number and _NUMBER.fullmatch(text):
            number = Decimal(text)
            if self.kind == "float" and abs(number) <= Decimal("1e300"):
                return float(number) + 0.0  # -0 becomes 0: a cell has one key
            if self.kind == "int" and abs(number) < 2**63 and number == number.to_integral_value():
                return int(number)
        given = shorten(text)
        raise BadValue(self.name, given, f"{self.name} takes {self.accepts}, not {given!r}.")


@functools.cache
def symbol_spellings(symbol: str) -> frozenset[str]:
    """Return the spellings of a symbol: as terminals show it, `SNR` or `σ_p`, and `eta` for η."""
    letters = symbol.replace("\\", "")
    words = (symbol_text(symbol), letters if letters.isidentifier() else "")
    return frozenset(filter(None, words))


SEED = ParameterInfo("seed", "int", 0, "seed", accepts="a whole number of at least 0")
"""The seed, described as the parameters are that it stands beside."""


def describe(model: type[StudyParameters]) -> Mapping[str, ParameterInfo]:
    """Return every parameter of `model` by name, in the order of its declaration."""
    return _parameter_infos(model)


@functools.cache  # not of `describe`: mypy would then refuse a model as no Hashable
def _parameter_infos(model: type[StudyParameters]) -> Mapping[str, ParameterInfo]:
    return MappingProxyType({name: _parameter_info(model, name) for name in model.model_fields})


def _parameter_info(model: type[StudyParameters], name: str) -> ParameterInfo:
    declared = model.model_fields[name]
    extra: Any = declared.json_schema_extra
    assert extra is not None, f"{name} is declared without parameter()"
    kind, choices = kind_of(declared.annotation)
    assert kind is not None, f"{name} has a type that no parameter can have"
    assert extra["value_labels"].keys() <= set(choices), f"{name} has labels of other values"
    accepts, limits = _accepts(kind, choices, declared.metadata)
    about: Parameter = extra["about"]
    default = None if declared.is_required() else declared.default
    label = short_label(name, about.meaning, about.label)
    named = name, kind, default, about.meaning, about.symbol, about.unit, choices, accepts, label
    return ParameterInfo(*named, extra["value_labels"], extra["shades"], limits)


def parameter_named(model: type[StudyParameters], text: str) -> str:
    """Return the name of the parameter that `text` is the name or the symbol of, else `text`."""
    return spellings(describe(model)).get(text, text)


TRAINING_STEPS = "training_steps"


def spellings(parameters: Mapping[str, ParameterInfo]) -> dict[str, str]:
    """Return the name of each parameter by its name, and by its symbol if no other has that.

    A symbol is spelled `SNR`, `σ_p` or `sigma_p`. `steps`, a column of every row, names the
    parameter `training_steps`.
    """
    spelled = [
        (text, info.name) for info in parameters.values() for text in symbol_spellings(info.symbol)
    ]
    counts = Counter(text for text, _ in spelled)
    names = {text: name for text, name in spelled if counts[text] == 1}
    if TRAINING_STEPS in parameters and "steps" not in counts:
        names["steps"] = TRAINING_STEPS
    return names | {name: name for name in parameters}


def kind_of(annotation: Any) -> tuple[Kind | None, tuple[str, ...]]:
    """Return the kind of a type that a parameter can have, else None, and the choices as texts."""
    if get_origin(annotation) is not Literal:
        kinds: dict[Any, Kind] = {int: "int", float: "float", bool: "bool", str: "text"}
        return kinds.get(annotation), ()
    choices = get_args(annotation)
    types = {type(choice) for choice in choices}
    if types == {str}:
        return "literal", choices
    return ("int" if types == {int} else None), tuple(map(str, choices))


_BOUNDS = {
    "ge": ("of at least", "≥"),
    "gt": ("above", ">"),
    "le": ("up to", "≤"),
    "lt": ("below", "<"),
}


def _accepts(kind: Kind, choices: tuple[str, ...], constraints: list[Any]) -> tuple[str, str]:
    """The accepted values in words, and in signs."""
    if choices:
        return "one of " + ", ".join(choices), ", ".join(choices)
    nouns = {"text": "a text", "bool": "true or false", "int": "a whole number"}
    bounds = [
        (word, sign, f"{getattr(constraint, short):.15g}")
        for constraint in constraints
        for short, (word, sign) in _BOUNDS.items()
        if getattr(constraint, short, None) is not None
    ]
    noun = nouns.get(kind, "a number")
    words = " and ".join(f"{word} {end}" for word, _, end in bounds)
    signs = ", ".join(f"{sign} {end}" for _, sign, end in bounds)
    return f"{noun} {words}".strip(), signs or noun


Result = TypeVar("Result")


def parameters_from_row(
    model: type[Parameters], row: Mapping[str, Any] | pd.Series[Any]
) -> Parameters:
    """Return the parameters of a cell from its row, which may have further columns."""
    return model.model_validate({name: row[name] for name in model.model_fields})


def map_parameters(
    model: type[Parameters], cells: pd.DataFrame, function: Callable[[Parameters], Result]
) -> list[Result]:
    """Return a function's result for each cell's parameters; it is called once for equal ones."""
    names = list(model.model_fields)

    @functools.cache
    def result(*values: Any) -> Result:
        return function(model.model_validate(dict(zip(names, values, strict=True))))

    return [result(*values) for values in cells[names].itertuples(index=False, name=None)]


def build(model: type[StudyParameters], values: Mapping[str, Value]) -> StudyParameters:
    """Make the parameters; those that `values` does not have take their defaults."""
    try:
        return model(**values)
    except ValidationError as error:
        raise _refusal(error.errors()[0], describe(model)) from None


def unknown_parameter(name: str, declared: Mapping[str, ParameterInfo]) -> BadValue:
    """Return the error for an unknown parameter, with the nearest name."""
    lack = f"the study has no parameter {name!r}"
    return BadValue(name, None, f"{lack}; {suggestion(name, declared)}")


def _refusal(error: ErrorDetails, declared: Mapping[str, ParameterInfo]) -> BadValue:
    if not error["loc"]:
        refusal = error["ctx"]["error"].args[0]
        if isinstance(refusal, BadValue):
            return refusal
        return BadValue("parameters", None, str(refusal))
    name, value = str(error["loc"][0]), error["input"]
    if name not in declared:
        return unknown_parameter(name, declared)
    if error["type"] == "missing":
        return BadValue(name, None, f"it has no default; give {declared[name].accepts}.")
    return BadValue(name, value, f"{name} takes {declared[name].accepts}, not {value}.")
