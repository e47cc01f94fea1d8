"""A look at a worker of a cluster. It travels by value: the worker may have nothing of ours."""

from __future__ import annotations

import functools
import importlib
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import cloudpickle

Seen = tuple[str, bool]
"""The end of a sentence about what keeps a worker from training, empty where nothing does; and
whether it sees the file."""


class Asked(NamedTuple):
    """What a worker must have.

    Attributes:
        version: of this package, which it must have too.
        python: the version of Python, which must be the same: functions travel as byte code.
        module: the module of the study, which it must be able to import.
        device: what it must train on.
        token: the path of a file that it may see.
    """

    version: str
    python: tuple[int, int]
    module: str
    device: str
    token: str


def traveller(asked: Asked) -> Callable[[], Seen]:
    """Return a function that looks at the process in which it is called.

    It needs Python and cloudpickle there, and nothing of this package.
    """
    this_module = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(this_module)
    try:
        pickled = cloudpickle.dumps(functools.partial(look, asked))
    finally:
        cloudpickle.unregister_pickle_by_value(this_module)

    def look_there() -> Seen:
        found: Seen = pickle.loads(pickled)()
        return found

    return look_there


def look(asked: Asked) -> Seen:
    """Return what keeps this process from training, and whether it sees the file."""
    return _problem(asked), Path(asked.token).exists()


def _problem(asked: Asked) -> str:
    if sys.version_info[:2] != asked.python:
        found, wanted = (".".join(map(str, one)) for one in (sys.version_info[:2], asked.python))
        return f"has Python {found}, and this is {wanted}"
    try:
        installed = importlib.import_module("overfit_cli").__version__
    except Exception as error:  # whatever a module raises
        return f"can't import overfit-cli ({type(error).__name__}: {error})"
    if installed != asked.version:
        return f"has overfit {installed}, and this is {asked.version}"
    try:
        importlib.import_module(asked.module)
    except Exception as error:  # whatever a module raises
        return f"can't import {asked.module} ({type(error).__name__}: {error})"
    if asked.device == "cuda" and not importlib.import_module("torch").cuda.is_available():
        return "has no CUDA device"
    return ""
