"""Digests of the code that a function runs, which tell cells of one code from those of another."""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import sys
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from overfit_cli.functions.own_files import OwnFile, as_text, code_of, is_own, without_description


def digest_of(function: Callable[..., Any], file: OwnFile | None, name: str) -> str:
    """Return a digest of a function's code, and of all code and values of the user's that it uses.

    Comments, layout and documentation don't count, nor does what only describes the study.

    Args:
        function: the function.
        file: the file that it stands in; None where it was typed in, as in a notebook.
        name: its name in the file.
    """
    found = _Found(function)
    if file is None:
        found.add_code(function)
    else:
        found.add_file(file, name)
        found.add_enclosed(function)
    return hashlib.sha256("\n".join(sorted(found.pieces)).encode()).hexdigest()[:16]


class _Found:
    """The code and the values that were found, as a set of texts."""

    def __init__(self, studied: Callable[..., Any]) -> None:
        self._studied = studied
        self.pieces: set[str] = set()
        self._seen: dict[object, object] = {}

    def _is_new(self, one: object) -> bool:
        """Whether it is looked at for the first time; it is kept, so that no other has its id."""
        name = one if isinstance(one, Path) else id(one)
        new = name not in self._seen
        self._seen[name] = one
        return new

    def add_file(self, file: OwnFile, function: str = "") -> None:
        """Add a file, or one function of it, with the files that it imports."""
        if self._is_new(file.path):
            text, imported = code_of(file, function)
            self.pieces.add(text)
            for other in imported:
                self.add_file(other)

    def add_code(self, one: object) -> None:
        """Add a function, class, module or other callable, with what it uses."""
        if not self._is_new(one):
            return
        file = _own_file(one)
        if file is not None:
            self.add_file(file)
            self.add_enclosed(one)
        elif isinstance(one, FunctionType):
            self.pieces.add(_text_of(one, alone=one is self._studied))
            self.add_enclosed(one)
            for name in sorted(_names_of(one.__code__) & one.__globals__.keys()):
                self.pieces.add(f"{name} = {self._words_of(one.__globals__[name])}")
        elif isinstance(one, type) and one.__module__ == "__main__":
            for member in (*one.__bases__, *vars(one).values()):
                self.add_code(getattr(member, "__func__", member))
        elif isinstance(one, functools.partial | MethodType):
            self.add_code(one.func if isinstance(one, functools.partial) else one.__func__)
            self.add_enclosed(one)
        elif not isinstance(one, type | ModuleType) and type(one).__module__ == "__main__":
            self.add_code(type(one))
            self.add_enclosed(one)

    def add_enclosed(self, one: object) -> None:
        """Add the values that a callable was made with: its closure, object or arguments."""
        if isinstance(one, functools.partial):
            self.add_enclosed(one.func)
            self.pieces.add(self._words_of([one.args, one.keywords]))
        elif isinstance(one, MethodType):
            self.pieces.add(self._words_of(one.__self__))
        elif isinstance(one, FunctionType):
            values = [cell.cell_contents for cell in one.__closure__ or () if _is_filled(cell)]
            self.pieces.add(self._words_of(values))
        elif not isinstance(one, type | ModuleType):
            self.pieces.add(self._words_of(getattr(one, "__dict__", {})))

    def _words_of(self, value: object) -> str:
        """A value in words that are the same in every process; code in it is added as code."""
        if value is None or isinstance(value, bool | int | float | complex | str | bytes | range):
            return repr(value)
        if callable(value) or isinstance(value, ModuleType):
            self.add_code(value)
            return str(getattr(value, "__qualname__", getattr(value, "__name__", "")))
        if not self._is_new(value):
            return "as before"
        if isinstance(value, Mapping):
            pairs = (f"{name!s}: {self._words_of(one)}" for name, one in value.items())
            return f"{{{', '.join(pairs)}}}"
        if isinstance(value, list | tuple | set | frozenset):
            words = [self._words_of(one) for one in value]
            return str(words if isinstance(value, list | tuple) else sorted(words))
        return self._words_of_object(value)

    def _words_of_object(self, value: object) -> str:
        array = _as_array(value)
        if array is not None:
            digest = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
            return f"{array.dtype} {array.shape} {digest}"
        kind = type(value)
        self.add_code(kind)
        own = kind.__module__ == "__main__" or _own_file(kind) is not None
        return kind.__qualname__ + (self._words_of(getattr(value, "__dict__", {})) if own else "")


def _as_array(value: Any) -> np.ndarray[Any, Any] | None:
    """An array or tensor of numbers as NumPy's; None of anything else."""
    if not hasattr(value, "__array__"):
        return None
    try:
        array = np.asarray(value.detach() if hasattr(value, "detach") else value)
    except Exception:  # it may lie on another device
        return None
    return None if array.dtype == object else array


def _is_filled(cell: Any) -> bool:
    """Whether a variable of a closure has a value yet."""
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def _own_file(one: object) -> OwnFile | None:
    """The file of an imported module of the user's, or of a function or class in it."""
    name = getattr(one, "__name__" if isinstance(one, ModuleType) else "__module__", None)
    module = sys.modules.get(str(name))
    file = getattr(module, "__file__", None)
    if module is None or file is None or name == "__main__" or not is_own(Path(file)):
        return None
    return OwnFile(Path(file), module.__package__ or "")


def _text_of(function: FunctionType, *, alone: bool) -> str:
    """A function's code as text, or as what it is compiled to where no text is kept.

    `alone` is whether its defaults and annotations are left out, which are the study's parameters.
    """
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function.__code__)))
    except (OSError, TypeError, SyntaxError, ValueError):
        return _compiled(function.__code__)
    if len(tree.body) != 1 or not isinstance(tree.body[0], ast.FunctionDef):
        return _compiled(function.__code__)  # a lambda: its lines are of other code too
    return as_text(without_description(tree.body[0]) if alone else tree.body[0])


def _compiled(code: CodeType) -> str:
    parts = [one for one in code.co_consts if not isinstance(one, CodeType)]
    constants = [sorted(map(repr, one)) if isinstance(one, frozenset) else one for one in parts]
    inner = [_compiled(one) for one in code.co_consts if isinstance(one, CodeType)]
    return repr((code.co_code, code.co_names, constants, inner))


def _names_of(code: CodeType) -> set[str]:
    inner = [_names_of(one) for one in code.co_consts if isinstance(one, CodeType)]
    return set(code.co_names).union(*inner)
