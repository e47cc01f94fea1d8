"""Code of a plain function: the user's files with it, their digest, their import elsewhere.

The digest tells cells of two versions of the code apart. It covers the text of the function's file
and of those that it imports, without comments, layout, documentation and what only describes the
function. A function that was typed into a notebook has no file: its own text counts there, with the
code and the values that it uses.

Workers make modules of the text that they are sent. Pickled by value, a module would lose what it
sets when it is imported, such as PyTorch's default dtype, and its caches; an import inside of a
function would fail there, and a module with a lock couldn't be sent.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import inspect
import re
import sys
import textwrap
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.abc import MetaPathFinder, SourceLoader
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec, resolve_name, spec_from_file_location
from itertools import chain
from pathlib import Path
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from overfit_cli.core.cell import Identity, SourceFile
from overfit_cli.core.errors import is_installed
from overfit_cli.functions.experiment import without_arguments

_OURS = "overfit_cli"

_MARK = "-2"
"""Ends the digests that are made as here; those of before have none."""


def _digest(texts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16] + _MARK


def code_of_file(path: Path, package: str, function: str) -> Identity:
    """Return the digest of a function that a file defines, and the user's files with it.

    Args:
        package: the one that the file is in; empty where it is in none.
    """

    def code(file: SourceFile) -> ast.Module:
        return _code(file, function if file.path == path else "")

    texts = {ast.unparse(tree) for tree in own_files(path, package, code).values()}
    return Identity(_digest(sorted(texts)), files=tuple(own_files(path, package)))


def code_of_program(places: Iterable[tuple[Path, str]]) -> Identity:
    """Return the same of a program: all of its code counts, and other languages by their text.

    Args:
        places: its files, with the packages that they are in.
    """
    found = dict[SourceFile, ast.Module]()
    for place in places:
        found |= own_files(*place)
    texts = {
        ast.unparse(tree) if tree.body and file.name.endswith(".py") else repr(file.content)
        for file, tree in found.items()
    }
    return Identity(_digest(sorted(texts)) if texts else "", files=tuple(found))


def code_of_session(function: Any, script: Path | None, package: str) -> Identity:
    """Return the same of a function that is made in a script, or typed into a notebook."""
    files = list[SourceFile]()
    inner = without_arguments(function)
    with contextlib.suppress(OSError, TypeError):
        text = inspect.getsource(inner)
        files.append(SourceFile(f"{inner.__name__.strip('<>')}.py", text.encode()))
    digest = _digest(_texts(function, {}, files))
    found = own_files(script, package) if script else dict.fromkeys(files)
    return Identity(digest, files=tuple(found))


# The user's files


def parse(file: SourceFile) -> ast.Module:
    """Return a file's syntax; nothing where it is not Python."""
    try:
        return ast.parse(file.content)
    except (SyntaxError, ValueError):
        return ast.Module([], [])


def own_files(
    path: Path, package: str = "", read: Callable[[SourceFile], ast.Module] = parse
) -> dict[SourceFile, ast.Module]:
    """Return a file and those of the user's that it imports, directly or through another."""
    found = dict[Path, tuple[SourceFile, ast.Module]]()
    queue = [(path, package), *_places(package)]
    for place, its_package in queue:
        if place not in found:
            depth = len(its_package.split(".")) if its_package else 0
            name = place.relative_to(place.parents[depth]).as_posix()  # from where imports find it
            file = SourceFile(name, place.read_bytes(), place)
            found[place] = file, read(file)
            queue += chain.from_iterable(map(_places, _imports(found[place][1], its_package)))
    return dict(found.values())


def _imports(tree: ast.AST, package: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (package or not node.level):
            base = resolve_name("." * node.level + (node.module or ""), package)
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _places(name: str) -> Iterator[tuple[Path, str]]:
    """The user's files that importing a name runs, with their packages."""
    if name.partition(".")[0] in {_OURS, "__main__", *sys.stdlib_module_names}:
        return
    for path, package in files_of_import(name):
        if is_installed(path):
            return
        if path.suffix == ".py" and path.is_file():  # it may be imported once, and gone
            yield path, package


def files_of_import(name: str, folders: Sequence[str] | None = None) -> Iterator[tuple[Path, str]]:
    """Yield the files that importing a name runs, with their packages; it imports nothing.

    Args:
        folders: where it is looked for; None for wherever imports find it.
    """
    module, spec = "", None
    for part in name.split("."):
        with contextlib.suppress(ImportError, ValueError, AttributeError):
            # Looked up by its whole name, a module has its packages imported.
            spec = find_spec(part) if folders is None else PathFinder.find_spec(part, folders)
        if spec is None:
            return  # the last part is no module, but a name in one
        package, module = module, f"{module}.{part}".lstrip(".")
        if spec.has_location and spec.origin:  # a folder without __init__.py has no file
            yield Path(spec.origin), module if spec.submodule_search_locations else package
        folders, spec = list(spec.submodule_search_locations or ()), None


# Their code


def _code(file: SourceFile, function: str = "") -> ast.Module:
    """A file's code, without what only a script runs and what only describes a function."""
    tree = parse(file)
    body, tree.body = tree.body, []
    for statement in body:
        if isinstance(statement, ast.If) and is_guard(statement):
            tree.body += statement.orelse
        elif not re.match(rf"(from|import) {_OURS}\b", ast.unparse(statement)):
            tree.body.append(statement)
    descriptions = _Descriptions(function)
    descriptions.visit(tree)
    descriptions.leave_out_definitions(tree.body)
    return tree


def is_guard(statement: ast.stmt) -> bool:
    """Whether a statement is `if __name__ == "__main__":`, which only a script runs."""
    return isinstance(statement, ast.If) and "__name__" in ast.unparse(statement.test)


class _Descriptions(ast.NodeTransformer):
    """Removal of documentation, of what `experiment` says, and of the annotations of its functions.

    `names` are those used in the latter two.
    """

    def __init__(self, function: str) -> None:
        self.functions, self.names = {function}, set[str]()

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if isinstance(node.value, ast.Constant) else self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> Any:
        """Leave the function of `experiment(...)(function)`."""
        if isinstance(node.func, ast.Call) and "experiment" in ast.unparse(node.func.func):
            self.names |= _names_in(node.func)
            return self.visit(node.args[0])
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        said = [mark for mark in node.decorator_list if "experiment" in ast.unparse(mark)]
        node.decorator_list = [mark for mark in node.decorator_list if mark not in said]
        if said or node.name in self.functions:
            self.functions.add(node.name)
            arguments = [part for part in ast.walk(node.args) if isinstance(part, ast.arg)]
            said += filter(None, [node.returns, *(each.annotation for each in arguments)])
            node.returns = None
            for each in arguments:
                each.annotation = None
        self.names = self.names.union(*map(_names_in, said))
        return self.generic_visit(node)

    def leave_out_definitions(self, statements: list[ast.stmt]) -> None:
        """Remove definitions that nothing else names."""
        words = {node: {*re.findall(r"\w+", ast.unparse(node))} for node in statements}
        for node in statements:
            others = set[str]().union(*(words[other] for other in statements if other != node))
            defined = _defined(node)
            if defined and defined <= self.names - others - self.functions:
                statements.remove(node)
                self.names |= _names_in(node)
                return self.leave_out_definitions(statements)
        return None


def _names_in(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _defined(node: ast.stmt) -> set[str]:
    """The names that a statement does nothing but define."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            return {(alias.asname or alias.name).partition(".")[0] for alias in aliases}
        case ast.Assign(targets=targets) if all(isinstance(each, ast.Name) for each in targets):
            return set[str]().union(*map(_names_in, targets))
        case ast.AnnAssign(target=ast.Name(id=name)):
            return {name}
    return set()


def digest_of_all(files: Iterable[SourceFile]) -> str:
    """Return a digest of all that the code of files executes.

    Of what `experiment` takes, what executes nothing is left out, such as texts of claims.
    """
    texts = list[str]()
    for file in files:
        tree = parse(file)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("experiment"):
                node.keywords = [each for each in node.keywords if not _executes_nothing(each)]
        texts.append(f"{file.name}\n{ast.unparse(tree)}")
    return hashlib.sha256("\n".join(sorted(texts)).encode()).hexdigest()


def _executes_nothing(keyword: ast.keyword) -> bool:
    plain = (ast.Constant, ast.Name, ast.List, ast.Tuple, ast.expr_context)
    return all(isinstance(node, plain) for node in ast.walk(keyword.value))


# Functions of scripts and notebooks


def _texts(value: Any, seen: dict[int, object], files: list[SourceFile]) -> Iterator[str]:
    """What a value is made of, each object once; code of a library counts by its name.

    Code in a file of the user's counts with the whole file, which is added to `files`.
    """
    yield getattr(value, "__name__", type(value).__name__)
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | range):
        yield repr(value)
    elif id(value) not in seen:
        seen[id(value)] = value  # it is kept alive, so that no id is used twice
        if isinstance(value, ModuleType):
            for place in _places(value.__name__):
                found = own_files(*place, _code)
                files += found
                yield from sorted(map(ast.unparse, found.values()))
        for part in _parts(value):
            yield from _texts(part, seen, files)


def _parts(value: Any) -> Iterable[object]:
    for kind, parts in _PARTS.items():
        if isinstance(value, kind):
            return parts(value)
    if hasattr(value, "__array__"):
        return _array_parts(value)
    if any(_places(_module_of(type(value)).__name__)) or _is_typed_in(type(value)):
        return type(value), getattr(value, "__dict__", {})
    return (getattr(value, "__wrapped__", None),)  # of a static method, or a cached function


def _parts_of_function(function: FunctionType) -> Iterable[object]:
    """A function's defaults, what it closes over, and its code: where it is in a file, the file."""
    cells = [cell.cell_contents for cell in function.__closure__ or () if cell != CellType()]
    used = _code_and_globals(function) if _is_typed_in(function) else _module_of(function)
    return function.__defaults__, function.__kwdefaults__, cells, used


def _parts_of_class(kind: type) -> Iterable[object]:
    members = {
        name: member
        for name, member in vars(kind).items()
        if isinstance(member, FunctionType) or not name.startswith("__")
    }
    return kind.__bases__, members if _is_typed_in(kind) else {}, _module_of(kind)


_PARTS: Mapping[Any, Callable[[Any], Iterable[object]]] = {
    Mapping: lambda value: chain(value, value.values()),
    list | tuple: iter,
    set | frozenset: lambda value: sorted(value, key=repr),
    functools.partial: lambda value: (value.func, value.args, value.keywords),
    MethodType: lambda value: (value.__func__, value.__self__),
    FunctionType: _parts_of_function,
    type: _parts_of_class,
}
"""What values of a kind are made of."""


def _module_of(code: Any) -> ModuleType:
    return sys.modules.get(code.__module__ or "", sys.modules["__main__"])


def _is_typed_in(code: Any) -> bool:
    return _module_of(code) is sys.modules["__main__"]


def _array_parts(value: Any) -> Iterable[object]:
    import joblib
    import numpy as np

    with contextlib.suppress(Exception):  # it may lie on another device
        return (joblib.hash(np.asarray(value.detach() if hasattr(value, "detach") else value)),)
    return ()


def _code_and_globals(function: FunctionType) -> tuple[object, ...]:
    """A function's code, and the global values that it names, by their names.

    The code is its text; what it is compiled to where no text of it alone is kept.
    """
    codes = [function.__code__]
    for code in codes:
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    names = {name for code in codes for name in code.co_names} & {*function.__globals__}
    values = {name: function.__globals__[name] for name in sorted(names)}
    with contextlib.suppress(OSError, TypeError):
        text = textwrap.dedent(inspect.getsource(function.__code__)).encode()
        code_text = ast.unparse(_code(SourceFile("", text), function.__name__))
        if code_text.startswith(("def ", "@")):
            return code_text, values
    return [(code.co_code, code.co_names, code.co_consts) for code in codes], values


# Modules that are made of texts


class _Loader(SourceLoader):
    """A loader of a text that was read: not of the file as it is now, nor of its byte code.

    Python matches byte code to a source by length and whole seconds, so that it may be of the file
    before an edit.
    """

    def __init__(self, file: SourceFile) -> None:
        self.file = file

    def get_filename(self, fullname: str) -> str:
        """Return the path of the text."""
        return str(self.file.path)

    def get_data(self, path: str) -> bytes:
        """Return the text, and other files beside it from the disk."""
        return self.file.content if path == str(self.file.path) else Path(path).read_bytes()


FILE = "overfit_file_"
"""How the name of the module of a file begins."""


class Texts(MetaPathFinder):
    """The user's modules, made of texts that were read here or sent by another process.

    Attributes:
        main: the name of the module with the function. A file is a module of its own, because it
            may have the name of a library.
        files: the texts, by the names of their modules.
        modules: those that were made, by name.
    """

    def __init__(self, files: Sequence[SourceFile] = (), where: str = "") -> None:
        names = [file.name.removesuffix(".py").removesuffix("/__init__") for file in files]
        self.main = where
        if where.endswith(".py"):
            names[0] = self.main = f"{FILE}{names[0].replace('.', '_')}"
        self.files = dict(zip([name.replace("/", ".") for name in names], files, strict=True))
        self.modules = dict[str, ModuleType]()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of one of the modules, or of a folder without `__init__.py` with some."""
        if file := self.files.get(fullname):
            return spec_from_file_location(fullname, loader=_Loader(file))
        if any(name.startswith(f"{fullname}.") for name in self.files):
            here = PathFinder.find_spec(fullname, path)
            return here or ModuleSpec(fullname, None, is_package=True)
        return None

    @contextlib.contextmanager
    def importing(self) -> Iterator[None]:
        """Let imports find these modules, and none of the same names from elsewhere."""
        if not self.files:
            yield
            return
        with _IMPORTS:
            hidden = self._exchange(self.modules)
            sys.meta_path.insert(0, self)
            try:
                yield
            finally:
                sys.meta_path.remove(self)
                self.modules = self._exchange(hidden)

    def _exchange(self, modules: Mapping[str, ModuleType]) -> dict[str, ModuleType]:
        roots = {name.partition(".")[0] for name in self.files}
        names = [name for name in sys.modules if name.partition(".")[0] in roots]
        taken = {name: sys.modules.pop(name) for name in names}
        sys.modules.update(modules)
        return taken


_IMPORTS = threading.RLock()
"""Held while imports find these modules: those that Python knows are the whole process's."""
