"""Defaults of the user: `[tool.overfit]` in the nearest pyproject.toml, and variables `OVERFIT_*`.

An option comes first, then the variable, then the file, then what is built in.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, get_args

from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.files import (
    CACHE_VARIABLE,
    DATA_VARIABLE,
    RESULTS_VARIABLE,
    read_toml,
    refuse_file,
    usable_data,
)
from overfit_cli.core.text import is_plain_number, suggestion
from overfit_cli.core.values import Backend, number_of_jobs, usable_path, valid_choice

FILE = "pyproject.toml"
MOST_BYTES = 1 << 20

DEFAULTS = "overfit.defaults"
"""The key in a context for the defaults that the user sets."""


class Default(NamedTuple):
    """A default that the user sets.

    Attributes:
        value: checked; a path of a file is seen from the working folder.
        origin: the variable or the file that sets it.
    """

    value: Any
    origin: str


def _jobs(given: object) -> int:
    is_number = isinstance(given, str) and is_plain_number(given)
    try:
        return number_of_jobs(int(str(given)) if is_number else given)
    except ValueError:
        return number_of_jobs(given)


def _backend(given: object) -> str:
    return str(valid_choice("backend", given, get_args(Backend)))


def _data(given: object) -> str:
    return str(usable_data(usable_path("data", given)))


def _results(given: object) -> str:
    folder = usable_path("results", given)
    refuse_file(folder, "results")
    return str(folder)


def _style(given: object) -> str:
    path = usable_path("style", given)
    if not path.is_file():
        raise BadValue("style", given, "there is no such file; it takes a .mplstyle file.")
    return str(path)


READERS: Mapping[str, Callable[[object], int | str]] = {
    "backend": _backend,
    "data": _data,
    "jobs": _jobs,
    "results": _results,
    "style": _style,
}
"""What reads and checks the value of each setting, by its name."""

PATHS = ("data", "results", "style")
VARIABLES = {f"OVERFIT_{name.upper()}": name for name in READERS}


def read_defaults() -> dict[str, Default]:
    """The defaults that the user sets, by name: those of variables before those of the file."""
    defaults = {}
    for variable in sorted(name for name in os.environ if name.startswith("OVERFIT_")):
        text = os.environ[variable]
        if variable in VARIABLES and text:
            name = VARIABLES[variable]
            defaults[name] = Default(_read(name, text, f"{variable}={text}"), variable)
        elif variable not in (*VARIABLES, CACHE_VARIABLE) and "_TEST_" not in variable:
            hint = suggestion(variable, [*VARIABLES, CACHE_VARIABLE])
            warnings.warn(f"{variable}: no such variable is read; {hint}", stacklevel=2)
    return {**_of_file(), **defaults}


def _of_file() -> dict[str, Default]:
    try:
        here = Path.cwd()
    except FileNotFoundError:  # the folder has been deleted
        return {}
    folder = next((each for each in (here, *here.parents) if os.path.isfile(each / FILE)), None)  # noqa: PTH113
    if folder is None:
        return {}
    path = Path(os.path.relpath(folder / FILE))
    tool = read_toml(path, MOST_BYTES).get("tool", {})
    table = tool.get("overfit", {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict):
        raise UserError(
            f"{path}: overfit's settings are a table; write [tool.overfit], and keys below it."
        )
    defaults = {}
    for name, given in table.items():
        if name not in READERS:
            hint = suggestion(name, READERS)
            raise UserError(f"{path}: [tool.overfit] has no key {name!r}; {hint}")
        is_path = name in PATHS and isinstance(given, str) and given.strip()
        seen = _seen_from_here(folder, given) if is_path else given
        defaults[name] = Default(
            _read(name, seen, f"{path}: [tool.overfit] {name} = {_as_toml(given)}"), str(path)
        )
    return defaults


def _as_toml(given: object) -> str:
    return str(given).lower() if isinstance(given, bool) else repr(given)


def _seen_from_here(folder: Path, given: str) -> str:
    """A path in a file of `folder`, from the working folder; a full path stays one."""
    path = os.path.expanduser(given)  # noqa: PTH111 (unlike Path's, it leaves an unknown user)
    return path if Path(path).is_absolute() else os.path.relpath(folder / path)


def _read(name: str, given: object, shown: str) -> int | str:
    """The checked value of a setting; an error begins with where it stands."""
    try:
        return READERS[name](given)
    except BadValue as error:
        raise UserError(f"{shown}: {error.accepts}") from None


def set_variables(defaults: Mapping[str, Default]) -> None:
    """Set the variables that the library reads to what the file says."""
    for name, variable in (("results", RESULTS_VARIABLE), ("data", DATA_VARIABLE)):
        if name in defaults and defaults[name].origin != variable:
            value = Path(defaults[name].value)
            os.environ[variable] = str(value.resolve() if name == "data" else value)


def take_defaults(context: Any) -> None:
    """Make the user's defaults those of all commands."""
    defaults = read_defaults()
    set_variables(defaults)
    context.meta[DEFAULTS] = defaults
    context.default_map = {
        command: {
            option.name: defaults[option.name].value
            for option in declared.params
            if option.name in defaults and option.name in ("backend", "jobs", "style")
        }
        for command, declared in context.command.commands.items()
    }


def help_in_force(text: str, defaults: Mapping[str, Default]) -> str:
    """Return an option's help with the user's folders in the place of the built-in ones."""
    if results := defaults.get("results"):
        text = re.sub(r"\bresults(?=[/\]])", lambda _: str(results.value), text)
    data = defaults.get("data")
    if data is not None and data.origin != DATA_VARIABLE:
        text = text.replace(f"${DATA_VARIABLE}", str(data.value))
    return text


def defaults_in_words(defaults: Mapping[str, Default]) -> str:
    """Return which defaults the user sets, and where: `jobs 2 (OVERFIT_JOBS)`; empty for none."""
    each = [f"{name} {value} ({origin})" for name, (value, origin) in sorted(defaults.items())]
    return f"Your defaults: {', '.join(each)}." if each else ""
