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
_RUNS_SWEEPS = {"sweep", "load", "draw", "judge"}
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
    """The statements of a module that a function of it depends on, in their order.

    They are the function, whatever binds a name that one of them uses, and those that bind none,
    such as a call that sets a library up; but not those that run sweeps or use their results.
    """
    binding: dict[str, list[int]] = {}
    body, left = _without_sweeps(tree.body), list[int]()
    for place, one in enumerate(body):
        names = _bound_by(one)
        for name in names:
            binding.setdefault(name, []).append(place)
        if not names and not _is_print(one):
            left.append(place)
    left += binding.get(function, [])
    kept = set[int]()
    while left:
        place = left.pop()
        if place not in kept:
            kept.add(place)
            if function in _bound_by(body[place]):
                body[place] = without_description(body[place])
            used = _names_in(body[place])
            left += [other for name in used for other in binding.get(name, [])]
    return [body[place] for place in sorted(kept)]


def _bound_by(one: ast.stmt) -> set[str]:
    """The names that a statement does nothing else than bind; none of one that may do more."""
    if isinstance(one, _Definition):
        return {one.name}
    if isinstance(one, ast.Import | ast.ImportFrom):
        names = {name.asname or name.name.partition(".")[0] for name in one.names}
        return set() if "*" in names else names
    targets = one.targets if isinstance(one, ast.Assign) else []
    targets = [one.target] if isinstance(one, ast.AnnAssign) else targets
    plain = [part for target in targets for part in ast.walk(target)]
    if any(isinstance(part, ast.Attribute | ast.Subscript) for part in plain):
        return set()
    return {part.id for part in plain if isinstance(part, ast.Name)}


def _is_print(one: ast.stmt) -> bool:
    called = (
        one.value.func if isinstance(one, ast.Expr) and isinstance(one.value, ast.Call) else None
    )
    return isinstance(called, ast.Name) and called.id == "print"


def _without_sweeps(body: Iterable[ast.stmt]) -> list[ast.stmt]:
    """The statements of a script but those that run sweeps, or use their results."""
    modules, results, kept = set[str](), set[str](), list[ast.stmt]()
    for one in body:
        if isinstance(one, ast.Import):
            modules |= {name.asname or _OURS for name in one.names if name.name == _OURS}
            one.names = [name for name in one.names if name.name != _OURS]
            kept += [one] if one.names else []
        elif isinstance(one, ast.ImportFrom) and one.module == _OURS:
            results |= {name.asname or name.name for name in one.names if name.name in _RUNS_SWEEPS}
        elif isinstance(one, _Definition):
            kept.append(one)
        elif _is_main_guard(one):
            kept += one.orelse if isinstance(one, ast.If) else []
        elif _runs_sweeps(one, modules, results):
            results |= {
                name.id
                for name in ast.walk(one)
                if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
            }
        else:
            kept.append(one)
    return kept


def _runs_sweeps(one: ast.stmt, modules: set[str], results: set[str]) -> bool:
    """Whether a statement sweeps, draws or judges, or uses what that gave."""
    nodes = list(ast.walk(one))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    attributes = {
        node.attr
        for node in nodes
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in modules
    }
    return bool(names & results or attributes & _RUNS_SWEEPS)


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
