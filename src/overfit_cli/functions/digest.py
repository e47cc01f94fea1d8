"""Digest of a plain function's code, which tells cells of two versions of it apart.

It covers the user's own files: the function's and those that it imports, without comments, layout
and documentation. A function that was typed into a notebook has no file: its own text counts
there, with the code and the values that it uses.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
import inspect
import sys
import sysconfig
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

_OURS = "overfit_cli"


@dataclass(frozen=True)
class OwnFile:
    """A file with code of the user's, and the package that it is in; empty where it is in none."""

    path: Path
    package: str = ""


def digest_of(function: Callable[..., Any], file: OwnFile | None) -> str:
    """Return a digest of a function's code in 16 hexadecimal digits.

    Args:
        function: the function.
        file: the file that defines it; None for a function of a script or a notebook.
    """
    texts = set[str]()
    if file is None:
        texts.add(_describe(function, texts, {}))
    else:
        texts |= {_file_text(path) for path in own_files(file)}
    return hashlib.sha256("\n".join(sorted(texts)).encode()).hexdigest()[:16]


def own_files(file: OwnFile) -> list[OwnFile]:
    """Return a file and all files of the user's that it imports, directly or through another."""
    files = {file.path: file}
    queue = [file]
    for source in queue:
        for imported in _imports(source):
            if imported.path not in files:
                files[imported.path] = imported
                queue.append(imported)
    return list(files.values())


def _tree(path: Path) -> ast.Module:
    try:
        return ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return ast.Module([], [])


def _file_text(file: OwnFile) -> str:
    """The code of a file, without imports of this package and what only a script runs."""
    tree = _tree(file.path)
    statements = list[ast.stmt]()
    for statement in tree.body:
        if isinstance(statement, ast.If) and "__name__" in ast.unparse(statement.test):
            statements += statement.orelse
        elif not ast.unparse(statement).startswith((f"from {_OURS} ", f"import {_OURS}")):
            statements.append(statement)
    tree.body = statements
    return _text(tree)


def _text(tree: ast.AST) -> str:
    """Code without comments, layout, documentation, and the decorator `experiment`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [part for part in node.body if not _is_documentation(part)]
        if isinstance(node, ast.FunctionDef):
            marks = node.decorator_list
            node.decorator_list = [mark for mark in marks if "experiment" not in ast.unparse(mark)]
    return ast.unparse(tree)


def _is_documentation(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _imports(file: OwnFile) -> Iterator[OwnFile]:
    """The user's own files that a file imports, wherever in it the import stands."""
    for node in ast.walk(_tree(file.path)):
        names = list[str]()
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and (file.package or not node.level):
            base = importlib.util.resolve_name("." * node.level + (node.module or ""), file.package)
            names = [f"{base}.{alias.name}" for alias in node.names]
        for name in names:
            yield from _module_files(name)


def _module_files(name: str) -> Iterator[OwnFile]:
    """The file of a module and of the packages around it, where they are the user's own."""
    parts = name.split(".")
    if parts[0] == _OURS or parts[0] in sys.stdlib_module_names:
        return
    for end in range(1, len(parts) + 1):
        try:
            spec = importlib.util.find_spec(".".join(parts[:end]))
        except (ImportError, ValueError, AttributeError):
            return  # the last part is no module, but a name in one
        folder = next(iter(spec.submodule_search_locations or ()), "") if spec else ""
        path = Path((spec.origin if spec else "") or folder)
        if spec is None or not _is_own(path):
            return  # before its submodules are looked up, which would import it
        if path.suffix == ".py":
            yield OwnFile(path, spec.parent or "")


def _is_own(path: Path) -> bool:
    """Whether a file is the user's: neither installed nor a part of Python or of this package."""
    installed = {"site-packages", "dist-packages"} & {*path.parts}
    return path.is_absolute() and not installed and not {*path.parents} & _library_folders()


@functools.cache
def _library_folders() -> set[Path]:
    folders = [Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")]
    resolved = [folder.resolve() for folder in folders]
    return {*folders, *resolved, Path(__file__).resolve().parents[1]}


def _describe(value: Any, texts: set[str], seen: dict[int, object]) -> str:
    """A value as text that is the same in every process.

    Args:
        value: a value or code.
        texts: takes the text of the user's files whose code the value holds.
        seen: the objects that were described already, by their id; they are kept alive.
    """
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | range):
        return repr(value)
    if id(value) in seen:
        return "described above"
    seen[id(value)] = value
    describe = functools.partial(_describe, texts=texts, seen=seen)
    if isinstance(value, Mapping):
        return str({str(name): describe(item) for name, item in value.items()})
    if isinstance(value, list | tuple | set | frozenset):
        items = [describe(item) for item in value]
        return str(items if isinstance(value, list | tuple) else sorted(items))
    array = _as_array(value)
    if array is not None:
        digest = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
        return f"{array.dtype} {array.shape} {digest}"
    code = value if isinstance(value, FunctionType | type | ModuleType) else type(value)
    file = _imported_file(code)
    if file is not None:
        texts |= {_file_text(imported) for imported in own_files(file)}
    typed_in = file is None and _is_typed_in(code)
    name = str(getattr(code, "__qualname__", code.__name__))
    parts = _parts(value, code, typed_in=typed_in, own=typed_in or file is not None)
    return str([name, *(describe(part) for part in parts)])


def _parts(value: Any, code: Any, *, typed_in: bool, own: bool) -> list[object]:
    """The values that code or an object depends on.

    Args:
        value: a function, class, module or object.
        code: the value itself, or the class of an object.
        typed_in: whether the code has no file.
        own: whether the code is the user's.
    """
    if isinstance(value, functools.partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, FunctionType):
        typed = [_function_text(value), _globals_of(value)] if typed_in else []
        return [_closure(value), *typed]
    if isinstance(value, type):
        members = [getattr(member, "__func__", member) for member in vars(value).values()]
        return [*value.__bases__, *members] if typed_in else []
    if code is value:  # a module
        return []
    return [code, getattr(value, "__dict__", {})] if own else []


def _imported_file(code: Any) -> OwnFile | None:
    """The file of an imported module of the user's, or of a function or class in it."""
    name = code.__name__ if isinstance(code, ModuleType) else code.__module__
    module = sys.modules.get(str(name))
    file = getattr(module, "__file__", None)
    if module is None or file is None or name == "__main__" or not _is_own(Path(file)):
        return None
    return OwnFile(Path(file), module.__package__ or "")


def _is_typed_in(code: Any) -> bool:
    """Whether a function or class is of a notebook, a script, or of no module that is known."""
    name = getattr(code, "__module__", "")
    return name == "__main__" or name not in sys.modules


def _function_text(function: FunctionType) -> str:
    """A function's code as text; what it is compiled to where no text of it alone is kept."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function.__code__)))
    except (OSError, TypeError, SyntaxError, ValueError):
        return _compiled_text(function.__code__)
    alone = len(tree.body) == 1 and isinstance(tree.body[0], ast.FunctionDef)
    return _text(tree) if alone else _compiled_text(function.__code__)


def _compiled_text(code: CodeType) -> str:
    constants = [
        _compiled_text(constant)
        if isinstance(constant, CodeType)
        else repr(sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant)
        for constant in code.co_consts
    ]
    return repr((code.co_code, code.co_names, constants))


def _closure(function: FunctionType) -> list[object]:
    values = list[object]()
    for cell in function.__closure__ or ():
        try:
            values.append(cell.cell_contents)
        except ValueError:  # the variable has no value yet
            continue
    return values


def _globals_of(function: FunctionType) -> dict[str, object]:
    """The global names that a function's code uses, with their values."""
    names, codes = set[str](), [function.__code__]
    for code in codes:
        names |= {*code.co_names}
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return {name: function.__globals__[name] for name in sorted(names & {*function.__globals__})}


def _as_array(value: Any) -> np.ndarray[Any, Any] | None:
    """An array or tensor of numbers as NumPy's; None of anything else."""
    if not hasattr(value, "__array__"):
        return None
    try:
        array = np.asarray(value.detach() if hasattr(value, "detach") else value)
    except Exception:  # it may lie on another device
        return None
    return None if array.dtype == object else array
