"""Options as data: fields of a dataclass, for the command line and for Python alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from overfit_cli.core.errors import BadValue
from overfit_cli.core.values import list_of_texts, usable_path

SEVERAL = (Sequence[str], tuple[str, ...] | None)
"""The types of options that are given several times."""

_Options = TypeVar("_Options")


@dataclass(frozen=True)
class Option:
    """What a field of options says beside its default.

    Attributes:
        takes: what stands in its help for a value; empty where it takes none.
        typed: the type of what a command line gives; None where it is the field's.
        variable: the variable of the environment that sets it.
    """

    takes: str
    meaning: str
    typed: Any = None
    variable: str | None = None


def option(takes: str, meaning: str, default: Any = None, **more: Any) -> Any:
    """Declare an option, as a field of a dataclass; see `Option`."""
    return field(default=default, metadata={"option": Option(takes, meaning, **more)})


def switch(meaning: str) -> Any:
    """Declare an option without a value, as a field of a dataclass."""
    return option("", meaning, default=False)


def declared(options: Any) -> dict[str, Option]:
    """Return the options of a dataclass by name, each with its type in a command line."""
    hints, result = get_type_hints(options), dict[str, Option]()
    for each in fields(options):
        told, hint = each.metadata["option"], hints[each.name]
        several = list[str] | None if hint in SEVERAL else hint
        result[each.name] = replace(told, typed=told.typed or several)
    return result


def read_options(options: type[_Options], given: Mapping[str, Any]) -> _Options:
    """Return options that are given in Python, each held to its type."""
    hints = get_type_hints(options)
    return options(**{name: checked(name, value, hints[name]) for name, value in given.items()})


def checked(name: str, given: Any, kind: Any) -> Any:
    """Return what Python gives for a truth value, a text, a path or several texts; None is none."""
    if given is None:
        return None
    if kind is bool and not isinstance(given, bool):
        raise BadValue(name, given, "it takes True or False.")
    if kind in (str, str | None) and not isinstance(given, str):
        raise BadValue(name, given, "it takes a text.")
    if kind in (Path, Path | None):
        return usable_path(name, given)
    return list_of_texts(name, given) if kind in SEVERAL else given
