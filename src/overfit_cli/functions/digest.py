"""Digest of a plain function's code, which tells cells of two versions of it apart.

It covers the user's own files: the function's and those that it imports, without comments, layout,
documentation, and what only the decorator `experiment` uses. A function that was typed into a
notebook has no file: its own text counts there, with the code and the values that it uses.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import importlib.util
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

_OURS = "overfit_cli"


@dataclass(frozen=True)
class OwnFile:
    """A file with code of the user's, and the package that it is in; empty where it is in none."""

    path: Path
    package: str = ""


def digest_of(function: Callable[..., Any], file: OwnFile | None, name: str) -> str:
    """Return a digest of a function's code in 16 hexadecimal digits.

    Args:
        file: the file that defines it; None for a function of a script or a notebook.
    """
    text = _text_of_files(file, name=name) if file else _text_of_values(function)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


# Functions of files


def own_files(*files: OwnFile) -> list[OwnFile]:
    """Return files and all files of the user's that they import, directly or through another."""
    by_path = {file.path: file for file in files}
    queue = list(files)
    for source in queue:
        for imported in _imports(source):
            if imported.path not in by_path:
                by_path[imported.path] = imported
                queue.append(imported)
    return list(by_path.values())


def _imports(file: OwnFile) -> Iterator[OwnFile]:
    for node in ast.walk(_tree(file.path)):
        names = list[str]()
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and (file.package or not node.level):
            base = importlib.util.resolve_name("." * node.level + (node.module or ""), file.package)
            names = [f"{base}.{alias.name}" for alias in node.names]
        for name in names:
            yield from _files_of_module(name)


def _files_of_module(name: str) -> Iterator[OwnFile]:
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
        installed = {"site-packages", "dist-packages"} & {*path.parts}
        if spec is None or installed or not path.is_absolute():
            return  # before its submodules are looked up, which would import it
        if path.suffix == ".py":
            yield OwnFile(path, spec.parent or "")


def _tree(path: Path) -> ast.Module:
    try:
        return ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return ast.Module([], [])


def _text_of_files(*files: OwnFile, name: str = "") -> str:
    """The code of files and of what they import; their paths don't count."""
    names = {files[0].path: name} if name else {}
    texts = {_file_text(file.path, names.get(file.path, "")) for file in own_files(*files)}
    return "\n".join(sorted(texts))


def _file_text(path: Path, name: str) -> str:
    """The code of a file, without imports of this package and what only a script runs.

    Of the file of a study's function, what only describes it is left out too.
    """
    tree = _tree(path)
    statements = list[ast.stmt]()
    for statement in tree.body:
        if isinstance(statement, ast.If) and "__name__" in ast.unparse(statement.test):
            statements += statement.orelse
        elif not ast.unparse(statement).startswith((f"from {_OURS} ", f"import {_OURS}")):
            statements.append(statement)
    tree.body = _without_descriptions(statements, name) if name else statements
    return _code_text(tree)


def _without_descriptions(statements: list[ast.stmt], name: str) -> list[ast.stmt]:
    """Statements without the definitions that only the decorator `experiment` uses."""
    decorated = {node: _marks(node) for node in statements if isinstance(node, ast.FunctionDef)}
    marks = [mark for found in decorated.values() for mark in found]
    described = _reached(
        set().union(*map(_names_in, marks)),
        [
            node
            for node in statements
            if not (isinstance(node, ast.FunctionDef) and decorated[node])
            and name not in _defined(node)
        ],
    )
    for function, found in decorated.items():
        function.decorator_list = [part for part in function.decorator_list if part not in found]
    others = [node for node in statements if node not in described]
    used = _reached(set().union(*map(_names_in, others)), described)
    return [node for node in statements if node not in described or node in used]


def _marks(function: ast.FunctionDef) -> list[ast.expr]:
    return [mark for mark in function.decorator_list if "experiment" in ast.unparse(mark)]


def _reached(names: set[str], definitions: Sequence[ast.stmt]) -> list[ast.stmt]:
    reached, queue = list[ast.stmt](), list(names)
    for name in queue:
        new = [node for node in definitions if node not in reached and name in _defined(node)]
        reached += new
        queue += [used for node in new for used in _names_in(node)]
    return reached


def _defined(node: ast.stmt) -> set[str]:
    """The names that a statement does nothing but define; an import only of this package's."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{_OURS}."):
        return {alias.asname or alias.name for alias in node.names}
    targets = node.targets if isinstance(node, ast.Assign) else []
    targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
    names = {target.id for target in targets if isinstance(target, ast.Name)}
    return names if len(names) == len(targets) else set()


def _names_in(node: ast.AST) -> set[str]:
    names = set[str]()
    for part in ast.walk(node):
        names |= {part.id} if isinstance(part, ast.Name) else set()
        names |= {*part.names} if isinstance(part, ast.Global) else set()
        annotation = getattr(part, "annotation", None)
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            names |= {*re.findall(r"\w+", annotation.value)}
    return names


def _code_text(tree: ast.AST) -> str:
    """Code without comments, layout, documentation, and the decorator `experiment`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [part for part in node.body if not _is_documentation(part)]
        if isinstance(node, ast.FunctionDef):
            marks = _marks(node)
            node.decorator_list = [mark for mark in node.decorator_list if mark not in marks]
    return ast.unparse(tree)


def _is_documentation(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


# Functions of scripts and notebooks


def _text_of_values(function: Callable[..., Any]) -> str:
    texts, numbers = list[str](), dict[int, int]()
    queue: list[object] = [function]  # it keeps the values alive, so that no id is used twice
    for number, value in enumerate(queue):
        if value is None or isinstance(value, bool | int | float | complex | str | bytes | range):
            texts.append(repr(value))
        elif numbers.setdefault(id(value), number) < number:
            texts.append(f"value {numbers[id(value)]}")
        else:
            parts = _parts(value)
            name = getattr(value, "__name__", type(value).__name__)
            texts.append(f"{name} of {len(parts)} parts")
            queue += parts
    return "\n".join(texts)


def _parts(value: Any) -> list[object]:
    if isinstance(value, Mapping):
        return [*value, *value.values()]
    if isinstance(value, list | tuple):
        return [*value]
    if isinstance(value, set | frozenset):
        return sorted(value, key=repr)
    if isinstance(value, functools.partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, MethodType):
        return [value.__func__, value.__self__]
    return _array_parts(value) if hasattr(value, "__array__") else _parts_of_code(value)


def _array_parts(value: Any) -> list[object]:
    with contextlib.suppress(Exception):  # it may lie on another device
        array = np.asarray(value.detach() if hasattr(value, "detach") else value)
        if array.dtype != object:
            return [str(array.dtype), array.shape, hashlib.sha256(array.tobytes()).hexdigest()]
    return []


def _parts_of_code(value: Any) -> list[object]:
    """Return what code uses; for an object of the user's, its class and its state.

    Code in a file of the user's counts with the whole file, and code of a library by its name.
    """
    if isinstance(value, ModuleType):
        return [_text_of_files(*_files_of_module(value.__name__))]
    code = value if isinstance(value, FunctionType | type) else type(value)
    module = sys.modules.get(code.__module__)
    typed_in = module in (None, sys.modules["__main__"])
    if isinstance(value, FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or () if cell != CellType()]
        made_with = [value.__defaults__, value.__kwdefaults__, *cells]
        return [*made_with, *(_code_and_globals(value) if typed_in else [module])]
    if isinstance(value, type):
        defined = {
            name: member
            for name, member in vars(value).items()
            if isinstance(member, FunctionType) or not name.startswith("__")
        }
        return [*value.__bases__, defined] if typed_in else [module]
    if typed_in or any(_files_of_module(code.__module__)):
        return [code, getattr(value, "__dict__", {})]
    return [getattr(value, "__wrapped__", None)]  # of a static method, or a cached function


def _code_and_globals(function: FunctionType) -> list[object]:
    """A function's code, and the global values that it names, by their names.

    The code is its text; what it is compiled to where no text of it alone is kept.
    """
    codes = [function.__code__]
    for code in codes:
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    names = {name for code in codes for name in code.co_names} & {*function.__globals__}
    values = {name: function.__globals__[name] for name in sorted(names)}
    with contextlib.suppress(OSError, TypeError, SyntaxError, ValueError):
        [definition] = ast.parse(textwrap.dedent(inspect.getsource(function.__code__))).body
        if isinstance(definition, ast.FunctionDef):
            return [_code_text(definition), values]
    return [[(code.co_code, code.co_names, code.co_consts) for code in codes], values]
