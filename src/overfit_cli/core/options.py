"""Options as data, and the readers of values that users give.

Options are fields of a dataclass, for the command line and for Python alike. Typer turns the words
of a command line into numbers, paths and choices; the readers hold these, and what Python gives, to
what is accepted.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from overfit_cli.core.errors import BadValue
from overfit_cli.core.files import DATA_VARIABLE, usable_path
from overfit_cli.core.text import suggestion

DeviceChoice = Literal["auto", "cpu", "cuda"]
Backend = Literal["loky", "threading", "dask", "ray"]
ProfileName = Literal["quick", "paper"]
Mean = Literal["arithmetic", "geometric", "median"]
Band = Literal["interval", "sd", "quartiles", "seeds"]

LARGEST = 2**63 - 1
"""The largest whole number that a file of cells holds."""

NUMBERS = {int: "a whole number", float: "a finite number"}


def whole_number(name: str, given: Any, at_least: int, others: str = "") -> int:
    """Return a whole number, of any library; the message tells what else is accepted."""
    is_whole = isinstance(given, Integral) and not isinstance(given, bool)
    if not is_whole or not at_least <= given <= LARGEST:
        raise BadValue(name, given, f"it takes {NUMBERS[int]} of at least {at_least}{others}.")
    return int(given)


def finite_number(name: str, given: Any, above: float = -math.inf) -> float:
    """Return a finite number, of any library."""
    is_number = isinstance(given, Real) and not isinstance(given, bool)
    if not is_number or not math.isfinite(given) or given <= above:
        accepts = NUMBERS[float] if above == -math.inf else f"a number above {above:g}"
        raise BadValue(name, given, f"it takes {accepts}.")
    return float(given)


def list_of_texts(name: str, given: Any) -> list[str]:
    """Return one text, or several, as a list."""
    several = isinstance(given, Iterable) and not isinstance(given, str)
    texts = list(given) if several else [given]
    if not all(isinstance(text, str) for text in texts):
        raise BadValue(name, given, "it takes a text, or several.")
    return texts


def alternatives(choices: Iterable[object]) -> str:
    """Return names as alternatives: `auto, cpu or cuda`."""
    *others, last = [str(choice) for choice in choices]
    return f"{', '.join(others)} or {last}" if others else last


SEVERAL = (Sequence[str], tuple[str, ...] | None)
"""The types of options that are given several times."""

_Options = TypeVar("_Options")
_Function = TypeVar("_Function", bound=Callable[..., Any])


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


def several(takes: str, meaning: str) -> Any:
    """Declare an option that may be given several times, as a field of a dataclass."""
    return option(takes, f"{meaning}; may be repeated.", default=())


def declared(options: Any) -> dict[str, Option]:
    """Return the options of a dataclass by name, each with its type in a command line."""
    hints, lists = get_type_hints(options), dict.fromkeys(SEVERAL, list[str] | None)
    told = {each.name: each.metadata["option"] for each in fields(options)}
    typed = {name: each.typed or lists.get(hints[name], hints[name]) for name, each in told.items()}
    return {name: replace(each, typed=typed[name]) for name, each in told.items()}


def read_options(options: type[_Options], given: Mapping[str, Any]) -> _Options:
    """Return options that are given in Python, each held to its type."""
    hints = get_type_hints(options)
    for name in given.keys() - hints.keys():
        raise BadValue(name, given[name], f"there is no such option; {suggestion(name, hints)}")
    return options(**{name: checked(name, value, hints[name]) for name, value in given.items()})


def with_arguments(options: type) -> Callable[[_Function], _Function]:
    """Show the fields of options among the named arguments of a function that takes any as `**`.

    A `**` that is called `options` takes nothing else.
    """

    def show(function: _Function) -> _Function:
        signature = inspect.signature(function)
        *own, others = signature.parameters.values()
        named = others.replace(kind=others.KEYWORD_ONLY)
        own += [named.replace(name=each.name, default=each.default) for each in fields(options)]
        own += [others] * (others.name != "options")
        function.__signature__ = signature.replace(parameters=own)  # type: ignore[attr-defined]
        return function

    return show


def checked(name: str, given: Any, kind: Any) -> Any:
    """Return what Python gives for a name of few, a truth value, a text, a path or several texts.

    None is none, but of several texts whose default is no None.
    """
    kinds = (kind, *get_args(kind))
    named = [get_args(each) for each in kinds if get_origin(each) is Literal]
    if named and given not in named[0] and (given is not None or type(None) not in kinds):
        raise BadValue(name, given, f"it takes {alternatives(named[0])}.")
    if given is None and kind != Sequence[str]:
        return None
    if kind is bool and not isinstance(given, bool):
        raise BadValue(name, given, "it takes True or False.")
    if kind in (str, str | None) and not isinstance(given, str):
        raise BadValue(name, given, "it takes a text.")
    if kind in (Path, Path | None):
        return usable_path(name, given)
    return list_of_texts(name, given) if kind in SEVERAL else given


@dataclass(frozen=True)
class SweepOptions:
    """The options of a sweep.

    `together`, `only` and `seeds` are as `Grid.read` takes them, besides what a preset sets.
    """

    together: Sequence[str] = several(
        "NAME,NAME", "Step through the lists of these parameters together"
    )
    only: Sequence[str] = several(
        "CONDITION", "Only points of the grid that meet this, such as 'n >= 2*d'"
    )
    seeds: Any = option(
        "SEEDS",
        "Number of seeds (5), or a list (3:7 or 0,4,9).  [default: 3, or the preset's]",
        typed=str | None,
    )
    profile: ProfileName | None = option("quick|paper", "Size of a preset.  [default: quick]")
    read: str | None = option(
        "FILE",
        "File with the numbers of a command line, .json or .csv.  [default: what it prints last]",
    )
    out: Path | None = option("DIR", "Run directory.  [default: results/NAME]")
    data: Path | None = option("DIR", "Folder of real data.", variable=DATA_VARIABLE)
    jobs: int = option(
        "N",
        "Cells to train at the same time; -1 means one per core, or all workers.",
        variable="OVERFIT_JOBS",
        default=-1,
    )
    backend: Backend = option(
        "loky|threading|dask|ray",
        "Processes (loky) or threads of this machine, or a cluster.",
        variable="OVERFIT_BACKEND",
        default="loky",
    )
    address: str | None = option(
        "ADDRESS",
        "With the backend dask its scheduler (tcp://10.0.0.1:8786), with ray the cluster "
        "(10.0.0.1:6379, or auto).",
    )
    shard: str | None = option("I/N", "Run the I-th of N equal parts of the sweep.")
    device: DeviceChoice = option("auto|cpu|cuda", "Device to train on.", default="auto")
    trajectories: bool = switch("Log every step of every cell.")
    dry_run: bool = switch("Print what would run and for how long; run nothing.")
    fresh: bool = switch("Run finished cells again.")
    retry_failed: bool = switch("Run failed cells again.")
    adopt: Sequence[str] = several(
        "NAME=VALUE",
        "Keep cells from before a function's parameter NAME was added: it had this value then",
    )
    fail_fast: bool = switch("Stop at the first failed cell; running cells finish.")
    time_limit: float | None = option("SECONDS", "Longest time of a cell; a slower one fails.")
    check: int | None = option(
        "K",
        "Train K finished cells a second time, at the end and in a new process, and compare their "
        "numbers.  [default: up to 3 of your own code, if the sweep takes over 20 s]",
    )
    refine: int | None = option(
        "ROUNDS", "Run the grid with two seeds, then add cells where the boundary is uncertain."
    )
    threshold: float | str | None = option(
        "T", "With refinement: the value at the boundary.  [default: the study's]", typed=str | None
    )
    claim: Sequence[str] = several(
        "SENTENCE",
        "A claim, such as 'test_error < 0.05 where snr > 2', to write into the manifest before "
        "the first cell",
    )


DEFAULTS = SweepOptions()
