"""References to plain functions: `FILE.py`, `FILE.py:NAME` and `package.module:NAME`.

A file is loaded as a module of its own. A function that Python gives, as in a notebook, has the
names that the command line would give it.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass
from importlib.machinery import PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Literal

from overfit_cli.core.cell import (
    SourceFile,
)
from overfit_cli.core.errors import UserError
from overfit_cli.core.failures import error_in_words
from overfit_cli.core.files import MANIFEST
from overfit_cli.core.text import suggestion
from overfit_cli.functions.digest import OwnFile, digest_of, own_files
from overfit_cli.functions.experiment import (
    description_of,
)

_TYPE_FORMS = (type(Literal), type(Literal[0]))
"""Types of `typing` that can be called, and are no functions."""

PREFERRED = "train"
"""The function that a file implies where it has several."""


@dataclass(frozen=True)
class Source:
    """The source of a function.

    Attributes:
        reference: `/path/FILE.py:NAME` or `package.module:NAME`; empty for a function of a script
            or a notebook, which can't be loaded again.
        module: the module's name, for people.
        label: a short name: the module's where that implies the function, else with its name.
    """

    file: str
    reference: str
    module: str
    function: str
    label: str
    digest: str


_DRIVE = re.compile(r"\A[A-Za-z]:(?=[\\/])")
"""How a whole path begins on Windows; its colon separates no function."""


def is_reference(text: str) -> bool:
    """Whether a text names a function: `FILE.py`, `FILE.py:NAME` or `package.module:NAME`."""
    return text.endswith(".py") or ":" in _DRIVE.sub("", text, count=1)


def state_of(reference: str) -> tuple[object, ...]:
    """Return what changes with a function's file, or one that it imports: paths, times, sizes."""
    path = Path(split_reference(reference)[0]).resolve()
    if not path.is_file():
        return (path,)
    _import_beside(path)
    files = [file.path for file in own_files(OwnFile(path)) if file.path.is_file()]
    return tuple((file, file.stat().st_mtime_ns, file.stat().st_size) for file in files)


def refuse_sent_code(reference: str) -> None:
    """Refuse a reference that a run directory recorded, if its code may have come with one.

    A sweep records the whole path of a file. Code in a run directory came with it, or is the copy
    that it keeps; neither is executed. Nothing is imported here.
    """
    where, _ = split_reference(reference)
    is_file = where.endswith(".py")
    if is_file and not Path(where).is_absolute():
        raise UserError(
            f"{where}: a run directory names this file without its folder, which no sweep does; "
            "the file is not loaded."
        )
    for path in [Path(where)] if is_file else _paths_of_module(where):
        for folder in (*path.parents, *path.resolve().parents):
            if (folder / MANIFEST).exists():
                raise UserError(
                    f"{path}: it lies in the run directory {folder}, and code there is executed "
                    "only when you sweep it by its name; move the file out and sweep it again."
                )


def _paths_of_module(name: str) -> list[Path]:
    """The files that an import of a module would run, those of its packages first."""
    paths, folders, whole = list[Path](), [*sys.path, str(Path.cwd())], ""
    for part in name.split("."):
        whole = f"{whole}.{part}".lstrip(".")
        spec = PathFinder.find_spec(whole, folders)
        if spec is None:
            break
        folders = list(spec.submodule_search_locations or ())
        # A folder without __init__.py is a package too, with no file of its own.
        paths += [Path(spec.origin)] if spec.has_location and spec.origin else []
    return paths


def find_function(reference: str) -> tuple[Callable[..., Any], Source]:
    """Return the function that a reference names, and where it comes from."""
    where, name = split_reference(reference)
    is_file = where.endswith(".py")
    module = _load_file(Path(where)) if is_file else _load_module(where)
    name, function = _select_function(module, name, reference)
    label = Path(where).stem if is_file else where
    source = Source(
        file=where,
        reference=f"{Path(where).resolve() if is_file else where}:{name}",
        module=label,
        function=name,
        label=label if _implied_name(module) == name else f"{label}-{name}",
        digest=digest_of(function, _file_of(module), name),
    )
    return function, source


def source_of(function: Callable[..., Any]) -> Source:
    """Return the source of a function that Python gives, as in a script or notebook.

    A function that a module defines has the names that it has on the command line.
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
    short = label if defined and _implied_name(module) == name else long
    # A script may change its own names between two sweeps.
    digest = digest_of(function, file if defined and not is_script else None, name)
    return Source(label, reference, label, name, short, digest)


def _file_of(module: ModuleType) -> OwnFile | None:
    """The file of a module; None for a notebook or a session."""
    file = getattr(module, "__file__", None)
    if file is None or not Path(file).is_file():
        return None
    return OwnFile(Path(file).resolve(), module.__package__ or "")


_PREFIX = "overfit_file_"


def split_reference(reference: str) -> tuple[str, str]:
    """The file or module of a reference, and the function's name, empty where it has none."""
    if reference.endswith(".py"):
        return reference, ""
    where, _, name = reference.rpartition(":")
    if not where or ":" in _DRIVE.sub("", where, count=1) or not name.isidentifier():
        raise UserError(
            f"{reference!r}: it takes FILE.py, FILE.py:FUNCTION or package.module:FUNCTION."
        )
    return where, name


class _FromSource(SourceFileLoader):
    """A loader that compiles each time.

    Python matches cached byte code to a source by length and whole seconds, so that it may be of
    the file before an edit.
    """

    def get_code(self, fullname: str) -> CodeType:
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
        forget({str(file.path) for file in own_files(OwnFile(path.resolve()))})
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
    """Let imports find the files beside a path; last, so that a numpy.py there hides no library."""
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)


def forget(files: Collection[str]) -> None:
    """Make Python read these files again when they are imported next."""
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


def _unloadable(where: str, error: BaseException) -> UserError:
    hint = ""
    if isinstance(error, ImportError) and "relative import" in str(error):
        hint = " A file of a package is named package.module:FUNCTION."
    return UserError(f"{where}: it can't be loaded: {error_in_words(error)}.{hint}")


def _public(module: ModuleType) -> dict[str, Callable[..., Any]]:
    """The functions that a module defines itself, by name, without those that begin with _.

    What is called `train` is among them too if it is made there: decorated, a `functools.partial`,
    or an object that can be called.
    """
    return {
        name: value
        for name, value in vars(module).items()
        if name[0] != "_"
        and (_is_defined_in(value, module) or (name == PREFERRED and _is_made(value)))
    }


def _is_made(value: object) -> bool:
    if not callable(value) or inspect.isclass(value) or isinstance(value, _TYPE_FORMS):
        return False
    return bool(description_of(value)) or not inspect.isroutine(inspect.unwrap(value))


def _is_defined_in(value: object, module: ModuleType) -> bool:
    inner = inspect.unwrap(value) if callable(value) else value
    return inspect.isfunction(inner) and inner.__module__ == module.__name__


def _implied_name(module: ModuleType) -> str:
    """The function that a module implies: its only public or decorated one, or train.

    Empty where it implies none.
    """
    public = _public(module)
    decorated = {name: value for name, value in public.items() if description_of(value)}
    public = decorated or public
    if PREFERRED in public:
        return PREFERRED
    return next(iter(public)) if len(public) == 1 else ""


def _select_function(
    module: ModuleType, name: str, reference: str
) -> tuple[str, Callable[..., Any]]:
    public = _public(module)
    if name:
        named = getattr(module, name, None)
        if not callable(named) or inspect.isclass(named) or isinstance(named, _TYPE_FORMS):
            raise UserError(f"{reference}: it has no function {name!r}; {suggestion(name, public)}")
        return name, named
    if implied := _implied_name(module):
        return implied, public[implied]
    if not public:
        raise UserError(f"{reference}: it has no function; define train(...) in it.")
    raise UserError(
        f"{reference}: it has {len(public)} functions, and none is called {PREFERRED}; name one, "
        f"such as {reference}:{next(iter(public))}."
    )


def file_of_function(reference: str, function: Any) -> OwnFile | None:
    """The file that a function is loaded from; None where it has none."""
    where = split_reference(reference)[0] if reference else ""
    if where.endswith(".py"):
        path, package = Path(where), ""
    else:
        module = sys.modules.get(getattr(_inner_function(function), "__module__", None) or "")
        path = Path(getattr(module, "__file__", None) or "")
        package = getattr(module, "__package__", None) or ""
    return OwnFile(path.resolve(), package) if path.is_file() else None


def _inner_function(function: Any) -> Any:
    return function.func if isinstance(function, functools.partial) else function


def folder_of_function(reference: str, function: Any) -> Path:
    """The folder of a function's file; the working folder where it has none."""
    where = split_reference(reference)[0] if reference else ""
    if where.endswith(".py"):  # a worker of a cluster may lack the file, and share the folder
        return Path(where).parent
    file = file_of_function(reference, function)
    return Path.cwd() if file is None else file.path.parent


def read_files(reference: str, function: Any) -> tuple[SourceFile, ...]:
    """The files that a function is loaded from, its own first; of one without a file its text."""
    file = file_of_function(reference, function)
    if file is None:
        with contextlib.suppress(OSError, TypeError):
            text = inspect.getsource(_inner_function(function))
            name = str(_inner_function(function).__name__).strip("<>")
            return (SourceFile(f"{name}.py", text.encode()),)
        return ()
    try:
        return tuple(
            SourceFile(_path_in_root(file).as_posix(), file.path.read_bytes(), file.path)
            for file in own_files(file)
            if file.path.is_file()
        )
    except OSError as error:
        raise UserError(f"{error.filename}: it can't be read ({error.strerror}).") from error


def _path_in_root(file: OwnFile) -> Path:
    """The path of a file from the folder that imports find it in: the parent of its package."""
    depth = len(file.package.split(".")) if file.package else 0
    return file.path.relative_to(file.path.parents[depth])
