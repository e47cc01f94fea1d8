"""The user's own files: their code as text, and which of them import which."""

from __future__ import annotations

import ast
import functools
import importlib.util
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

_OURS = "overfit_cli"
_RUNS_SWEEPS = {_OURS, "sweep", "load", "draw", "judge"}
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class OwnFile:
    """A file with code of the user's.

    Attributes:
        path: the file.
        package: the package that it is in; empty where it is in none.
    """

    path: Path
    package: str = ""


def is_own(path: Path) -> bool:
    """Whether a file is the user's: no part of Python or of this package, and not installed."""
    installed = {"site-packages", "dist-packages"} & {*path.parts}
    return path.is_absolute() and not installed and not {*path.parents} & _installed_in()


@functools.cache
def _installed_in() -> set[Path]:
    known = [Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")]
    return {*known, *(one.resolve() for one in known), Path(__file__).resolve().parents[1]}


def code_of(file: OwnFile, function: str = "") -> tuple[str, list[OwnFile]]:
    """Return a file's code, and the user's other files that it imports.

    Args:
        file: the file.
        function: the only one that is wanted, with what it uses; empty for all of the file.
    """
    try:
        tree = ast.parse(file.path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return "", []
    statements = _used_by(function, tree) if function else tree.body
    imported = [other for one in statements for other in _imported(one, file.package)]
    return "\n".join(as_text(one) for one in statements), imported


def with_imported(file: OwnFile) -> list[OwnFile]:
    """Return a file, and all of the user's that it imports, and those import."""
    found = {file.path: file}
    left = [file]
    while left:
        for other in code_of(left.pop())[1]:
            if other.path not in found:
                found[other.path] = other
                left.append(other)
    return list(found.values())


def as_text(tree: ast.AST) -> str:
    """Return code without comments, layout and documentation."""
    for node in ast.walk(tree):
        if isinstance(node, _Definition) and ast.get_docstring(node):
            node.body = node.body[1:] or [ast.Pass()]
    is_documentation = isinstance(tree, ast.Expr) and isinstance(tree.value, ast.Constant)
    return "" if is_documentation else ast.unparse(tree)


def without_description(one: ast.stmt) -> ast.stmt:
    """Return a function without what describes a study: annotations, defaults, `experiment`."""
    if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef):
        one.returns = None
        one.args.defaults, one.args.kw_defaults = [], [None for _ in one.args.kwonlyargs]
        for argument in (*one.args.posonlyargs, *one.args.args, *one.args.kwonlyargs):
            argument.annotation = None
        one.decorator_list = [
            marked for marked in one.decorator_list if "experiment" not in _names_in(marked)
        ]
    return one


def _used_by(function: str, tree: ast.Module) -> list[ast.stmt]:
    """A function of a module, the functions and classes that it uses, and what is no such."""
    known = {one.name: one for one in tree.body if isinstance(one, _Definition)}
    kept = [one for one in _without_sweeps(tree.body) if not isinstance(one, _Definition)]
    if function in known:
        kept.append(without_description(known.pop(function)))
    left = list(kept)
    while left:
        used = _names_in(left.pop()) & known.keys()
        left += [known[name] for name in used]
        kept += [known.pop(name) for name in sorted(used)]
    return kept


def _without_sweeps(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a script but those that run sweeps or use their results."""
    results = set[str]()
    for one in body:
        if isinstance(one, ast.Import | ast.ImportFrom) and _OURS in ast.unparse(one):
            bound = {name.asname or name.name for name in one.names}
            results |= bound if isinstance(one, ast.Import) else bound & _RUNS_SWEEPS
        elif isinstance(one, _Definition):
            yield one
        elif _is_main_guard(one) or _names_in(one) & results:
            results |= {
                name.id
                for name in ast.walk(one)
                if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
            }
        else:
            yield one


def _is_main_guard(one: ast.stmt) -> bool:
    return isinstance(one, ast.If) and "__name__" in _names_in(one.test)


def _names_in(node: ast.AST) -> set[str]:
    found = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    return found | {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)}


def _imported(statement: ast.stmt, package: str) -> Iterator[OwnFile]:
    """The user's own files that a statement imports, however deep in it the import stands."""
    for node in ast.walk(statement):
        names = list[str]()
        if isinstance(node, ast.Import):
            names = [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom) and (package or not node.level):
            base = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            names = [f"{base}.{one.name}" for one in node.names]
        for name in names:
            yield from _files_of_module(name)


def _files_of_module(name: str) -> Iterator[OwnFile]:
    """The file of a module and of the packages around it, where they are the user's own."""
    parts = name.split(".")
    if parts[0] == _OURS or parts[0] in sys.stdlib_module_names:
        return
    for end in range(1, len(parts) + 1):
        try:
            spec = importlib.util.find_spec(".".join(parts[:end]))
        except (ImportError, ValueError, AttributeError):
            return  # what is imported is no module, but something in one
        folder = next(iter(spec.submodule_search_locations or ()), "") if spec else ""
        place = Path((spec.origin if spec else "") or folder)
        if spec is None or not is_own(place):
            return  # before its submodules are looked for: that would import it
        if place.suffix == ".py":
            yield OwnFile(place, spec.parent or "")
