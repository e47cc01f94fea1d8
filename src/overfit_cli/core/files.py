"""Files: written whole, kept in the cache, found in the user's data folder; optional packages.

A file is written under a temporary name, synced and renamed: it is whole or absent.
The cache can be deleted at any time. The data folder is named by the variable OVERFIT_DATA, which
`--data` sets, and the folder of run directories by OVERFIT_RESULTS.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import importlib.util
import os
import stat
import tempfile
import time
import tomllib
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import platformdirs
from filelock import FileLock

from overfit_cli.core.errors import BadValue, MissingError, MissingValue, UserError

if TYPE_CHECKING:
    from numpy.typing import NDArray


TEMPORARY_PREFIX = ".part-"
MANIFEST = "manifest.json"
"""The file of a run directory that says what was run into it."""

SET_ASIDE = "set-aside"
"""The folder of a run directory for files that are no longer part of it."""

_NONBLOCKING = getattr(os, "O_NONBLOCK", 0)


def write_whole(path: Path, content: bytes) -> None:
    """Write `content` to `path` so that a kill at any moment leaves the old file or the new one."""
    temporary = path.with_name(f"{TEMPORARY_PREFIX}{uuid.uuid4().hex}")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        _rename(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def write_user_file(path: Path, content: bytes, name: str, noun: str = "it") -> None:
    """Write a file that the user names, whole or not at all, and make its folder."""
    try:
        if path.exists() and not path.is_file():  # a device would be replaced by a file
            raise BadValue(name, str(path), "that is no file; name a file to write.")
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content)
    except OSError as error:
        raise BadValue(
            name,
            str(path),
            f"{noun} can't be written there ({error_text(error)}); name a file in a folder that "
            "takes it.",
        ) from None


def read_toml(path: Path, limit: int, name: str = "") -> dict[str, Any]:
    """Return the content of a TOML file of at most `limit` bytes."""
    try:
        return tomllib.loads(read_bounded(path, limit).decode())
    except OSError as error:
        problem = f"it can't be read: {error_text(error)}."
    except (ValueError, RecursionError) as error:
        problem = f"it can't be read as TOML: {error}."
    raise BadValue(name, str(path), problem) if name else UserError(f"{path}: {problem}")


def read_bounded(path: Path, limit: int) -> bytes:
    """Return the content of a regular file of at most `limit` bytes.

    For a pipe, a device or an endless file it neither waits nor uses more memory than that.
    """
    # Opening a pipe would wait for its writer.
    descriptor = os.open(path, os.O_RDONLY | _NONBLOCKING)
    with os.fdopen(descriptor, "rb") as file:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise OSError(errno.EINVAL, "it isn't a regular file", str(path))
        if facts.st_size > limit:
            raise OSError(errno.EFBIG, f"it has more than {limit} bytes", str(path))
        return file.read(facts.st_size)


def make_folder(folder: Path, name: str) -> None:
    """Make a writable folder."""
    refuse_file(folder, name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        accepts = f"it can't be made: {error_text(error)}."
        raise BadValue(name, str(folder), accepts) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise BadValue(name, str(folder), "the directory can't be written to.")


def refuse_file(folder: Path, name: str) -> None:
    """Refuse a file where a folder, or a parent of it, is or will be."""
    for part in (folder, *folder.parents):
        with contextlib.suppress(OSError):  # of a parent that can't be read nothing is known
            if part.exists() and not part.is_dir():
                raise BadValue(name, str(folder), f"{part} is a file; a directory is needed.")


def error_text(error: OSError) -> str:
    """Return the operating system's text for an error, without path or number."""
    return error.strerror or type(error).__name__


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Hold the folder's lock; the end of a process releases it."""
    with FileLock(folder / ".lock"):
        yield


def set_aside(path: Path, folder: Path) -> None:
    """Move a file to a folder, under a name that is not in use there."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / path.name
    number = 0
    while target.exists():
        number += 1
        target = folder / f"{path.name}.{number}"
    _rename(path, target)


_TRIES = 100 if os.name == "nt" else 1
"""How often a rename is tried: Windows refuses it while another process reads the file."""


def _rename(path: Path, target: Path) -> None:
    for _ in range(_TRIES - 1):
        with contextlib.suppress(PermissionError):
            path.replace(target)
            return
        time.sleep(0.01)
    path.replace(target)


def _sync_folder(folder: Path) -> None:
    """Make a rename in `folder` survive a power cut, where the system can."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


CACHE_VARIABLE = "OVERFIT_CACHE"


def cache_folder() -> Path:
    """Return the folder that `OVERFIT_CACHE` names, or the user's; it need not exist."""
    named = os.environ.get(CACHE_VARIABLE)
    return Path(named).expanduser() if named else platformdirs.user_cache_path("overfit")


def check_cache() -> None:
    """Warn if nothing can be kept in the folder that `OVERFIT_CACHE` names."""
    if not os.environ.get(CACHE_VARIABLE):
        return
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        words = f"nothing can be kept there ({error_text(error)}), so generated data is made again"
        warnings.warn(f"{CACHE_VARIABLE}={folder}: {words}.", UserWarning, stacklevel=2)


@contextlib.contextmanager
def temporary_cache() -> Iterator[None]:
    """Use an empty temporary folder as the cache inside."""
    previous = os.environ.get(CACHE_VARIABLE)
    with tempfile.TemporaryDirectory() as folder:
        os.environ[CACHE_VARIABLE] = folder
        try:
            yield
        finally:
            if previous is None:
                del os.environ[CACHE_VARIABLE]
            else:
                os.environ[CACHE_VARIABLE] = previous


DATA_VARIABLE = "OVERFIT_DATA"


def set_data_folder(path: Path) -> None:
    """Make `path` the data folder of this process and of its child processes."""
    os.environ[DATA_VARIABLE] = str(usable_data(path).resolve())


def usable_data(path: Path) -> Path:
    """Return a folder of data, or an archive of it."""
    if not path.exists():
        raise BadValue("data", str(path), "there is no such folder or file.")
    if not path.is_dir() and not path.name.endswith(".tar.gz"):
        raise BadValue("data", str(path), "it is a file; name a folder, or an archive .tar.gz.")
    return path


def check_data_variable() -> None:
    """Check the data folder that the variable names, if it names one."""
    if value := os.environ.get(DATA_VARIABLE):
        with name_variable_in_errors(DATA_VARIABLE):
            usable_data(Path(value))


@contextlib.contextmanager
def name_variable_in_errors(variable: str) -> Iterator[None]:
    """Make an error about a value name the environment's variable that has it."""
    try:
        yield
    except BadValue as error:
        raise UserError(f"{variable}={os.environ[variable]}: {error.accepts}") from None


def data_folder(user: str) -> Path:
    """Return the data folder; `user` is the setting that needs it, such as `source=imdb`."""
    value = os.environ.get(DATA_VARIABLE)
    if not value:
        raise MissingValue(
            "data",
            None,
            f"{user} needs data: name its folder here, or in the variable {DATA_VARIABLE}.",
        )
    return Path(value)


@contextlib.contextmanager
def name_data_in_errors(folder: Path) -> Iterator[None]:
    """Make errors about missing or malformed data name the argument `data` and its value."""
    try:
        yield
    except UserError as error:
        kind = MissingValue if isinstance(error, MissingError) else BadValue
        sentence = str(error).removeprefix(f"{folder}: ")
        raise kind("data", str(folder), sentence, exit_code=error.exit_code) from error


def fingerprint(*arrays: NDArray[Any]) -> str:
    """Return a name for the content of arrays: the same for the same numbers."""
    import numpy as np

    content = hashlib.sha256()
    for array in arrays:
        content.update(np.ascontiguousarray(array).data)
    return content.hexdigest()[:24]


def require_extra(package: str, extra: str, user: str) -> None:
    """Check that a package of an extra of overfit-cli is installed, without importing it."""
    try:
        installed = importlib.util.find_spec(package) is not None
    except ValueError:  # a module without a spec was put in its place
        installed = False
    if not installed:
        raise MissingError(
            f"{user} needs the package {package}, which isn't installed: "
            f"`pip install '.[{extra}]'` in a clone of overfit installs it."
        )


RESULTS_VARIABLE = "OVERFIT_RESULTS"


def results_folder() -> Path:
    """Return the folder of run directories that `OVERFIT_RESULTS` names, or `results`."""
    value = os.environ.get(RESULTS_VARIABLE)
    if not value:
        return Path("results")
    with name_variable_in_errors(RESULTS_VARIABLE):
        refuse_file(Path(value), "results")
    return Path(value)
