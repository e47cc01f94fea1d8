"""References to plain functions: `FILE.py`, `FILE.py:NAME` and `package.module:NAME`.

A file is loaded as a module of its own. A function that Python gives, as in a notebook, has the
names that the command line would give it.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import inspect
import pickle
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from overfit_cli.core.cell import Identity, SourceFile
from overfit_cli.core.errors import UserError, error_in_words
from overfit_cli.core.files import cache_folder, write_whole
from overfit_cli.core.processes import keeping
from overfit_cli.core.text import suggestion
from overfit_cli.functions import source
from overfit_cli.functions.experiment import description_of, without_arguments

Function = Callable[..., Any]

PREFERRED = "train"
"""The function that a file implies where it has several."""


class Source(NamedTuple):
    """The source of a function.

    Attributes:
        where: the file or the module, and the function in it, for messages.
        name: the module and the function.
        label: a short name: the module's where that implies the function, else with its name.
        reference: `/path/FILE.py:NAME` or `package.module:NAME`; empty for a function of a script
            or a notebook, which can't be loaded again.
        code: its digest, and the user's files with it.
    """

    where: str
    name: str
    label: str
    reference: str
    code: Identity


_DRIVE = re.compile(r"\A[A-Za-z]:(?=[\\/])")
"""How a whole path begins on Windows; its colon separates no function."""


def is_reference(text: str) -> bool:
    """Whether a text names a function: `FILE.py`, `FILE.py:NAME` or `package.module:NAME`."""
    return text.endswith(".py") or ":" in _DRIVE.sub("", text, count=1)


def split_reference(reference: str) -> tuple[str, str]:
    """Return the file or module of a reference, and the function's name, empty without one."""
    if reference.endswith(".py"):
        return reference, ""
    where, _, name = reference.rpartition(":")
    if not where or ":" in _DRIVE.sub("", where, count=1) or not name.isidentifier():
        takes = "it takes FILE.py, FILE.py:FUNCTION or package.module:FUNCTION"
        raise UserError(f"{reference!r}: {takes}.")
    return where, name


# Consent: a record names code that its reader may not want


def remember(reference: str, code: Identity) -> None:
    """Note in the user's cache that this user named a function of this code at its place."""
    with contextlib.suppress(*_NO_MARK):  # without it the file has to be named again
        mark, *_ = _mark(reference, code.source)
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.write_text(source.digest_of_all(code.files), "utf-8")


def files_of_own(reference: str, digest: str) -> tuple[SourceFile, ...]:
    """Return the files of a function that this user named on this machine; none of another one.

    It is the very file, its code is still of the digest, and nothing else that it executes has
    changed. Without the mark of `remember` nothing of it is read; nothing is imported.
    """
    before = sys.path[:]
    with contextlib.suppress(*_NO_MARK):  # what nobody has named
        mark, path, package, name = _mark(reference, digest)
        whole = mark.read_text("utf-8")
        import_from(path.parents[len(package.split(".")) if package else 0])
        code = source.code_of_file(path, package, name)
        if (code.source, source.digest_of_all(code.files)) == (digest, whole):
            return code.files
    sys.path[:] = before
    return ()


_NO_MARK = (UserError, OSError, ValueError, RuntimeError)
"""What a place that can't be marked raises, or a cache that has none."""


def _mark(reference: str, digest: str) -> tuple[Path, Path, str, str]:
    """The file in the cache for a function and its code; its own file, its package and its name."""
    where, name = split_reference(reference)
    is_file, folders = where.endswith(".py"), [*sys.path, str(Path.cwd())]
    files = [(Path(where), "")] if is_file else [*source.files_of_import(where, folders)]
    path, package = (files or [(Path(), "")])[-1]
    if path != path.resolve() or not cache_folder().is_absolute():
        # A link leads to a file of the reader's, beside which lies what was sent.
        raise UserError(f"{reference}: it is named by no whole path without links.")
    named = hashlib.sha256(f"{path}\n{where}\n{name}\n{digest}".encode()).hexdigest()
    return cache_folder() / "named" / named, path, package, name


# Loading


def files_of_reference(reference: str) -> tuple[SourceFile, ...]:
    """Return the file of a reference and those of the user's that it imports; none of a module."""
    where, _ = split_reference(reference)
    path = Path(where).resolve() if where.endswith(".py") else None
    if path and not path.is_file():
        raise UserError(f"{where}: there is no such file.")
    importlib.invalidate_caches()
    import_from(path.parent if path else Path.cwd())
    return tuple(source.own_files(path)) if path else ()


def import_from(folder: Path) -> None:
    """Let imports find the files of a folder; last, so that a numpy.py there hides no library."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def find_function(reference: str, files: Sequence[SourceFile]) -> tuple[Function, Source]:
    """Return the function that a reference names, and where it comes from.

    Args:
        files: of which modules are made: not of byte code beside them, which may have been sent.
    """
    where, name = split_reference(reference)
    texts = source.Texts(() if where in sys.modules else files, where)
    with telling_why(where), texts.importing(), keeping():
        module = importlib.import_module(texts.main)
    write_for_children(texts)
    for each in texts.files:  # one that it imported inside of a function is of before
        sys.modules.pop(each, None)
    sys.modules.update(texts.modules)
    functions = _functions(module)
    known = name or _implied(functions)
    function = getattr(module, known, None)
    if callable(function) and not inspect.isclass(function):
        return function, _source(function, module, known, where)
    hint = f"{suggestion(name or PREFERRED, functions)} FILE.py:FUNCTION names one."
    raise UserError(f"{reference}: it has no function {name or PREFERRED!r}; {hint}")


def load_sent(
    name: str, reference: str, files: Sequence[SourceFile], pickled: bytes
) -> tuple[source.Texts, Function | None, str]:
    """Load a function that another process sent by value, or else with the texts of its files.

    Returns:
        The modules of the texts; the function; and why there is none, in words.
    """
    where, function = ("", "") if pickled else split_reference(reference)
    if where.endswith(".py"):
        import_from(Path(where).parent)
    texts = source.Texts(files, where)
    write_for_children(texts)
    try:
        with texts.importing(), telling_why(name), keeping():
            if pickled:
                return texts, pickle.loads(pickled), ""
            return texts, getattr(importlib.import_module(texts.main), function), ""
    except UserError as error:
        return texts, None, str(error)


def write_for_children(texts: source.Texts) -> None:
    """Let processes that a cell starts import the module of its file, which no folder has.

    They have this process's `sys.path`: so they find a file in the user's cache that executes the
    text as that of its own file.
    """
    own, cache = texts.files.get(texts.main), cache_folder()
    is_file = texts.main.startswith(source.FILE) and cache.is_absolute()
    if own is None or own.path is None or not is_file:
        return
    code = f"__file__ = {str(own.path)!r}\nexec(compile({own.content!r}, __file__, 'exec'))\n"
    folder = cache / "modules" / hashlib.sha256(code.encode()).hexdigest()[:24]
    with contextlib.suppress(OSError):  # then a pool that is forked works
        if not (path := folder / f"{texts.main}.py").exists():
            folder.mkdir(parents=True, exist_ok=True)
            write_whole(path, code.encode())
        import_from(folder)


@contextlib.contextmanager
def telling_why(where: str) -> Iterator[None]:
    """Say in a sentence that what is loaded inside can't be; it may raise anything."""
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise UserError(f"{where}: it can't be loaded: {error_in_words(error)}.") from error


def _functions(module: ModuleType) -> dict[str, Function]:
    """The functions that a module defines itself, by name: the decorated ones where there are some.

    None begins with _. What is called `train` is among them too if it is made there: decorated, a
    `functools.partial`, or an object that can be called.
    """
    public = dict[str, Function]()
    for name, value in vars(module).items():
        if name[0] == "_" or not callable(value) or inspect.isclass(value):
            continue
        inner = inspect.unwrap(value)
        is_own = inspect.isfunction(inner) and inner.__module__ == module.__name__
        is_made = bool(description_of(value)) or not inspect.isroutine(inner)
        if is_own or (name == PREFERRED and is_made):
            public[name] = value
    return {name: value for name, value in public.items() if description_of(value)} or public


def _implied(functions: Mapping[str, Function]) -> str:
    """The function that a module implies: its only one, or train; empty where it implies none."""
    if len(functions) == 1:
        return next(iter(functions))
    return PREFERRED if PREFERRED in functions else ""


# Sources


def source_of(function: Function) -> Source:
    """Return the source of a function that Python gives, as in a script or notebook.

    A function that a module defines has the names that it has on the command line.
    """
    inner = without_arguments(function)
    name = str(getattr(inner, "__name__", type(inner).__name__)).strip("<>")
    module = sys.modules.get(getattr(inner, "__module__", None) or "", sys.modules["__main__"])
    return _source(function, module, name)


def _source(function: Function, module: ModuleType, name: str, where: str = "") -> Source:
    """The source of a function; `where` is the file or module that the user named it by."""
    file, package = Path(getattr(module, "__file__", None) or ""), module.__package__ or ""
    path = file.resolve() if file.is_file() else None  # a notebook has none
    is_script = module.__name__ == "__main__"
    defined = path is not None and getattr(module, name, None) is function
    label = path.stem if path and (is_script or not package) else module.__name__
    label = label if where else label.strip("_")
    # A script would run again where it is loaded, and may change its own names between two sweeps.
    if path and defined and not is_script:
        named = where if where and not where.endswith(".py") else ""
        reference = f"{named or (module.__name__ if package else path)}:{name}"
        code = source.code_of_file(path, package, name)
    else:
        reference, code = "", source.code_of_session(function, path, package if path else "")
    is_implied = defined and _implied(_functions(module)) == name
    short = label if is_implied else f"{label}-{name}" if defined else name
    return Source(f"{where or label}: {name}", f"{label}:{name}", short, reference, code)
