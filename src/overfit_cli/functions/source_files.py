"""Source of plain functions: found by a name such as `FILE.py:NAME`, and its digest.

The digest is of the code that a function runs, in its own file and in the user's files that it
imports: it tells cells of one code from those of another. The decorator `experiment` says what a
signature doesn't.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib
import importlib.util
import inspect
import sys
import sysconfig
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Literal, TypeVar

import numpy as np

from overfit_cli.core.cell import Column
from overfit_cli.core.claim import Claim
from overfit_cli.core.registry import (
    sides_problem,
    text_problem,
    threshold_problem,
    version_problem,
)
from overfit_cli.core.text import UserError, nearest

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


Decorated = TypeVar("Decorated", bound=Callable[..., Any])

_ATTRIBUTE = "__overfit__"
_HOLDS: dict[str, Any] = {"columns": Column, "claims": Claim}


@dataclass(frozen=True)
class Description:
    """What `experiment` says of a function; see there."""

    name: str | None = None
    version: int = 1
    title: str | None = None
    headline: str = ""
    threshold: float | None = None
    sides: tuple[str, str] = ("", "")
    columns: tuple[Column, ...] = ()
    claims: tuple[Claim, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what is of another type.

        Raises:
            TypeError: naming it.
        """
        problems = {
            "name": self.name is not None and text_problem(self.name),
            "version": version_problem(self.version),
            "title": not isinstance(self.title, str | None) and "it takes a text",
            "headline": not isinstance(self.headline, str) and "it takes the name of a column",
            "threshold": threshold_problem(self.threshold),
            "sides": sides_problem(self.sides),
        }
        for name, why in problems.items():
            if why:
                raise TypeError(f"experiment({name}={getattr(self, name)!r}): {why}")
        for name, kind in _HOLDS.items():
            for one in getattr(self, name):
                if not isinstance(one, kind):
                    words = f"it takes a list of {kind.__name__}(...)"
                    raise TypeError(f"experiment({name}=[{one!r}]): {words}")


def experiment(
    *without_names: object,
    name: str | None = None,
    version: int = 1,
    title: str | None = None,
    headline: str = "",
    threshold: float | None = None,
    sides: tuple[str, str] = ("", ""),
    columns: Sequence[Column] = (),
    claims: Sequence[Claim] = (),
) -> Callable[[Decorated], Decorated]:
    """Decorate a function that is a study, to say what its signature doesn't.

    Args:
        name: the study's name; by default the module's and the function's.
        version: raised when the same cell would give other numbers; cells of two aren't mixed.
        title: what it is, in a line; by default the first line of its documentation.
        headline: the column shown while a sweep runs; by default the first that it returns.
        threshold: the value of the headline at which a cell changes sides.
        sides: what a cell is called whose headline is up to the threshold, and above it.
        columns: meaning, symbol, unit and label of columns that it returns or yields.
        claims: what its cells can decide; `overfit report` judges them.

    Raises:
        TypeError: if one of them is of another type, or the parentheses are missing.
    """
    if without_names:
        raise TypeError("it is written @experiment(...), with its parentheses and names in them")
    for what, given in (("columns", columns), ("claims", claims)):
        if not isinstance(given, Iterable):
            raise TypeError(f"experiment({what}={given!r}): it takes a list")
    said = Description(
        name, version, title, headline, threshold, sides, tuple(columns), tuple(claims)
    )

    def mark(function: Decorated) -> Decorated:
        setattr(function, _ATTRIBUTE, said)
        return function

    return mark


def description_of(function: Callable[..., Any]) -> Description | None:
    """Return what `experiment` says of a function; None of one that it doesn't decorate."""
    found: Description | None = getattr(function, _ATTRIBUTE, None)
    return found


_TYPE_FORMS = (type(Literal), type(Literal[0]))
"""What typing offers for annotations can be called too, and is no function."""

PREFERRED = "train"
"""The function that a file means where it has several."""


@dataclass(frozen=True)
class Source:
    """Where a function comes from.

    Attributes:
        place: its file or module, as the user named it.
        reference: what finds it again, `/path/FILE.py:NAME` or `package.module:NAME`; empty where
            nothing does, such as a notebook's.
        module: the module's name, for people.
        function: the function's name.
        label: a short name: the module's where that means this function, else with the function's.
        digest: of its code and of what that uses; see `digest_of`.
    """

    place: str
    reference: str
    module: str
    function: str
    label: str
    digest: str


def is_reference(text: str) -> bool:
    """Whether a text names a function: `FILE.py`, `FILE.py:NAME` or `package.module:NAME`."""
    return text.endswith(".py") or ":" in text


def state_of(reference: str) -> tuple[object, ...]:
    """Return what changes when a file does, or one that it imports: paths, times and sizes."""
    place, _ = parts_of(reference)
    path = Path(place).resolve()
    if not path.is_file():
        return (path,)
    _import_beside(path)
    files = [file.path for file in with_imported(OwnFile(path)) if file.path.is_file()]
    return tuple((file, file.stat().st_mtime_ns, file.stat().st_size) for file in files)


def find_function(reference: str) -> tuple[Callable[..., Any], Source]:
    """Return the function that a reference names, and where it comes from.

    Raises:
        UserError: if there is no such file, module or function, or it can't be loaded.
    """
    place, name = parts_of(reference)
    is_file = place.endswith(".py")
    module = _load_file(Path(place)) if is_file else _load_module(place)
    name, function = _function_in(module, name, reference)
    label = Path(place).stem if is_file else place
    source = Source(
        place=place,
        reference=f"{Path(place).resolve() if is_file else place}:{name}",
        module=label,
        function=name,
        label=label if _implied(module) == name else f"{label}-{name}",
        digest=digest_of(function, _file_of(module), name),
    )
    return function, source


def source_of(function: Callable[..., Any]) -> Source:
    """Return where a function comes from that was given as it is, as in a script or notebook.

    Of one that a module defines, the names are those that it has on the command line.
    """
    inner: Any = function.func if isinstance(function, functools.partial) else function
    name = str(getattr(inner, "__name__", type(inner).__name__)).strip("<>")
    module = sys.modules.get(getattr(inner, "__module__", None) or "", sys.modules["__main__"])
    file, is_script = _file_of(module), module.__name__ == "__main__"
    defined = file is not None and getattr(module, name, None) is function
    label = file.path.stem if file and (is_script or not file.package) else module.__name__
    reference = ""
    if file and defined and not is_script:  # a script would run again where it is loaded
        reference = f"{module.__name__ if file.package else file.path}:{name}"
    label = label.strip("_")
    long = f"{label}-{name}" if defined else name
    short = label if defined and _implied(module) == name else long
    # A script may change its own names between two sweeps.
    digest = digest_of(function, file if defined and not is_script else None, name)
    return Source(label, reference, label, name, short, digest)


def _file_of(module: ModuleType) -> OwnFile | None:
    """The file of a module; None where what it has was typed in."""
    file = getattr(module, "__file__", None)
    if file is None or not Path(file).is_file():
        return None
    return OwnFile(Path(file).resolve(), module.__package__ or "")


_PREFIX = "overfit_file_"


def parts_of(reference: str) -> tuple[str, str]:
    """Return the file or module of a reference, and the function's name, empty where it has none.

    Raises:
        UserError: if it names neither.
    """
    if reference.endswith(".py"):
        return reference, ""
    place, _, name = reference.rpartition(":")
    if not place or ":" in place or not name.isidentifier():
        raise UserError(
            f"{reference!r}: it takes FILE.py, FILE.py:FUNCTION or package.module:FUNCTION."
        )
    return place, name


class _FromSource(SourceFileLoader):
    """A loader that compiles each time, without Python's byte code.

    Byte code is told from its source by length and whole seconds: it may be of the file's state
    before.
    """

    def get_code(self, fullname: str) -> CodeType:
        """Return the compiled file."""
        return self.source_to_code(self.get_data(self.path), self.path)


def _load_file(path: Path) -> ModuleType:
    """Run a file as a module; others beside it can be imported from it."""
    if not path.is_file():
        raise UserError(f"{path}: there is no such file.")
    name = f"{_PREFIX}{path.stem}"
    loader = _FromSource(name, str(path.resolve()))
    spec = importlib.util.spec_from_file_location(name, path.resolve(), loader=loader)
    if spec is None:
        raise UserError(f"{path}: it can't be read as Python.")
    _import_beside(path)
    if name in sys.modules:  # it has changed, or what it imports
        forget({str(file.path) for file in with_imported(OwnFile(path.resolve()))})
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        loader.exec_module(module)
    except BaseException as error:  # a file may even exit
        del sys.modules[name]
        if isinstance(error, KeyboardInterrupt):
            raise
        raise _unloadable(str(path), error) from error
    return module


def _import_beside(path: Path) -> None:
    """Have imports find what lies beside a path; last, so that numpy.py takes no one's place."""
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)


def forget(files: Collection[str]) -> None:
    """Have these files imported anew, when they are next."""
    importlib.invalidate_caches()
    for name, module in list(sys.modules.items()):
        if module is not sys.modules["__main__"] and vars(module).get("__file__") in files:
            del sys.modules[name]


def _load_module(name: str) -> ModuleType:
    _import_beside(Path.cwd() / name)
    try:
        return importlib.import_module(name)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        raise _unloadable(name, error) from error


def _unloadable(place: str, error: BaseException) -> UserError:
    words = " ".join(str(error).split())
    hint = ""
    if isinstance(error, ImportError) and "relative import" in words:
        hint = " A file of a package is named package.module:FUNCTION."
    return UserError(f"{place}: it can't be loaded: {type(error).__name__}: {words}.{hint}")


def _public(module: ModuleType) -> dict[str, Callable[..., Any]]:
    """The functions that a module defines itself, by name, without those that begin with _."""
    return {
        name: one
        for name, one in vars(module).items()
        if name[0] != "_" and _is_defined_in(one, module)
    }


def _is_defined_in(one: object, module: ModuleType) -> bool:
    """Whether it is a function of the module's own, such as one that is cached."""
    inner = inspect.unwrap(one) if callable(one) else one
    return inspect.isfunction(inner) and inner.__module__ == module.__name__


def _implied(module: ModuleType) -> str:
    """The name of the function that a module means: the only public or decorated one, or train.

    Empty where it means none.
    """
    public = _public(module)
    decorated = {name: one for name, one in public.items() if description_of(one)}
    public = decorated or public
    if PREFERRED in public:
        return PREFERRED
    return next(iter(public)) if len(public) == 1 else ""


def _function_in(module: ModuleType, name: str, reference: str) -> tuple[str, Callable[..., Any]]:
    """The function of that name, with its name; without one, the function that the module means.

    Raises:
        UserError: if there is none.
    """
    public = _public(module)
    if name:
        named = getattr(module, name, None)
        if not callable(named) or inspect.isclass(named) or isinstance(named, _TYPE_FORMS):
            raise UserError(f"{reference}: it has no function {name!r}; {nearest(name, public)}")
        return name, named
    if implied := _implied(module):
        return implied, public[implied]
    if not public:
        raise UserError(f"{reference}: it has no function; define train(...) in it.")
    raise UserError(
        f"{reference}: it has {len(public)} functions, and none is called {PREFERRED}; name one, "
        f"such as {reference}:{next(iter(public))}."
    )
