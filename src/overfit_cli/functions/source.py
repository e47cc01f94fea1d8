"""Functions in files and modules: found by a name such as `FILE.py:NAME`, and their source."""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from overfit_cli.errors import UserError, nearest

PREFERRED = "train"
"""The function that a file means where it has several."""

DECORATION = "__overfit__"
"""The attribute of a function that is marked as a study."""


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
        digest: of the code that it stands in, without comments and layout; empty where that isn't
            known.
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
    """Return what changes when what a reference names does: a file's path, time and size."""
    place, _ = _split(reference)
    path = Path(place).resolve()
    try:
        facts = path.stat()
    except OSError:
        return (path,)
    return path, facts.st_mtime_ns, facts.st_size


def find_function(reference: str) -> tuple[Callable[..., Any], Source]:
    """Return the function that a reference names, and where it comes from.

    Raises:
        UserError: if there is no such file, module or function, or it can't be loaded.
    """
    place, name = _split(reference)
    is_file = place.endswith(".py")
    module = _load_file(Path(place)) if is_file else _load_module(place)
    function = _function_in(module, name, reference)
    label = module.__name__.rpartition(".")[2].removeprefix(_PREFIX)
    source = Source(
        place=place,
        reference=f"{Path(place).resolve() if is_file else place}:{function.__name__}",
        module=label,
        function=function.__name__,
        label=label if _implied(module) is function else f"{label}-{function.__name__}",
        digest=_digest(_text_of(module)),
    )
    return function, source


def source_of(function: Callable[..., Any]) -> Source:
    """Return where a function comes from that was given as it is, as in a notebook."""
    name = getattr(function, "__name__", "function")
    module = getattr(function, "__module__", "") or "__main__"
    module = module.rpartition(".")[2].strip("_") or "main"
    try:
        text = inspect.getsource(inspect.unwrap(function))
    except (OSError, TypeError):  # typed in where nothing keeps the text
        text = ""
    return Source(module, "", module, name, name, _digest(text))


_PREFIX = "overfit_file_"


def _split(reference: str) -> tuple[str, str]:
    """The file or module of a reference, and the function's name; empty where it has none."""
    if reference.endswith(".py"):
        return reference, ""
    place, _, name = reference.rpartition(":")
    if not place or not name.isidentifier():
        raise UserError(
            f"{reference}: it takes FILE.py, FILE.py:FUNCTION or package.module:FUNCTION."
        )
    return place, name


def _load_file(path: Path) -> ModuleType:
    """Run a file as a module; others beside it can be imported from it."""
    if not path.is_file():
        raise UserError(f"{path}: there is no such file.")
    name = f"{_PREFIX}{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    if spec is None or spec.loader is None:
        raise UserError(f"{path}: it can't be read as Python.")
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)  # last: a file called numpy.py takes no one's place
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:  # a file may even exit
        del sys.modules[name]
        if isinstance(error, KeyboardInterrupt):
            raise
        raise _unloadable(str(path), error) from error
    return module


def _load_module(name: str) -> ModuleType:
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.append(folder)  # last: a file called numpy.py takes no one's place
    try:
        return importlib.import_module(name)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        raise _unloadable(name, error) from error


def _unloadable(place: str, error: BaseException) -> UserError:
    words = " ".join(str(error).split())
    return UserError(f"{place}: it can't be loaded: {type(error).__name__}: {words}.")


def _public(module: ModuleType) -> dict[str, Callable[..., Any]]:
    """The functions that a module defines itself, by name, without those that begin with _."""
    return {
        name: one
        for name, one in vars(module).items()
        if inspect.isfunction(one) and one.__module__ == module.__name__ and name[0] != "_"
    }


def _implied(module: ModuleType) -> Callable[..., Any] | None:
    """The function that a module means: the only public one, or decorated one, or train."""
    public = _public(module)
    decorated = {name: one for name, one in public.items() if hasattr(one, DECORATION)}
    public = decorated or public
    if PREFERRED in public:
        return public[PREFERRED]
    return next(iter(public.values())) if len(public) == 1 else None


def _function_in(module: ModuleType, name: str, reference: str) -> Callable[..., Any]:
    """The function of that name; without a name the one that the module means.

    Raises:
        UserError: if there is none.
    """
    public = _public(module)
    if name:
        named = getattr(module, name, None)
        if not inspect.isfunction(named):
            raise UserError(f"{reference}: it has no function {name!r}; {nearest(name, public)}")
        return named
    found = _implied(module)
    if found is not None:
        return found
    if not public:
        raise UserError(f"{reference}: it has no function; define train(...) in it.")
    raise UserError(
        f"{reference}: it has {len(public)} functions, and none is called {PREFERRED}; name one, "
        f"such as {reference}:{next(iter(public))}."
    )


def _text_of(module: ModuleType) -> str:
    try:
        return inspect.getsource(module)
    except (OSError, TypeError):
        return ""


def _digest(text: str) -> str:
    """A digest of what code does: comments, layout and documentation don't count."""
    try:
        tree = ast.parse(inspect.cleandoc(text) if text[:1].isspace() else text)
    except (SyntaxError, ValueError):
        return ""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and ast.get_docstring(
            node
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()[:16] if text else ""
