"""Files: written whole, kept in the cache, found in the user's data folder; optional packages.

A file is whole or not there: it is written aside, synced and renamed. The cache can be deleted at
any time. The data folder is named by `data`, or by the variable OVERFIT_DATA.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import importlib.util
import os
import stat
import tempfile
import tomllib
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import platformdirs
from filelock import FileLock

from overfit_cli.core.text import BadValue, MissingError, MissingValue, UserError

if TYPE_CHECKING:
    from numpy.typing import NDArray


TEMPORARY_PREFIX = ".part-"
SET_ASIDE = "set-aside"
"""The folder of a run directory for files that it holds no more."""

_WITHOUT_WAITING = getattr(os, "O_NONBLOCK", 0)


def write_whole(path: Path, content: bytes) -> None:
    """Write `content` to `path` so that a kill at any moment leaves the old file or the new one.

    Raises:
        OSError: if it can't be written; nothing is left behind then.
    """
    temporary = path.with_name(f"{TEMPORARY_PREFIX}{uuid.uuid4().hex}")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def write_named(path: Path, content: bytes, name: str, what: str = "it") -> None:
    """Write a file that the user names, whole or not at all, in a folder that is made for it.

    Args:
        path: the file.
        content: what it will hold.
        name: the argument that names it, for messages.
        what: what can't be written there, for messages.

    Raises:
        UserError: if it can't be written, or something lies there that is no file.
    """
    try:
        if path.exists() and not path.is_file():  # a device would be replaced by a file
            raise BadValue(name, str(path), "that is no file; name a file to write.")
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content)
    except OSError as error:
        raise BadValue(
            name,
            str(path),
            f"{what} can't be written there ({reason_of(error)}); name a file in a folder that "
            "takes it.",
        ) from None


def read_toml(path: Path, most: int) -> dict[str, Any]:
    """Return what a TOML file of at most `most` bytes holds.

    Args:
        path: the file.
        most: how many bytes it may have.

    Raises:
        UserError: if it can't be read.
    """
    try:
        return tomllib.loads(read_bounded(path, most).decode())
    except OSError as error:
        raise UserError(f"{path}: it can't be read: {reason_of(error)}.") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: it can't be read as TOML: {error}.") from error


def read_bounded(path: Path, most: int) -> bytes:
    """Return the content of a regular file of at most `most` bytes.

    Whatever lies at `path` (a pipe, a device, a file without end), this neither waits nor takes
    more memory than that.

    Raises:
        OSError: if it is anything else, or can't be read.
    """
    # Opening a pipe would wait for its writer.
    descriptor = os.open(path, os.O_RDONLY | _WITHOUT_WAITING)
    with os.fdopen(descriptor, "rb") as file:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise OSError(errno.EINVAL, "it isn't a regular file", str(path))
        if facts.st_size > most:
            raise OSError(errno.EFBIG, f"it has more than {most} bytes", str(path))
        return file.read(facts.st_size)


def make_folder(folder: Path, name: str) -> None:
    """Make a folder that can be written to.

    Args:
        folder: the folder.
        name: the argument that names it, for messages.

    Raises:
        BadValue: if it can't be made or written to.
    """
    try:
        for part in (folder, *folder.parents):
            if part.exists() and not part.is_dir():
                raise BadValue(name, str(folder), f"{part} is a file; a directory is needed.")
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        accepts = f"it can't be made: {reason_of(error)}."
        raise BadValue(name, str(folder), accepts) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise BadValue(name, str(folder), "the directory can't be written to.")


def reason_of(error: OSError) -> str:
    """Return the operating system's words for an error, without path or number."""
    return error.strerror or type(error).__name__


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock; a killed holder lets go of it."""
    with FileLock(folder / ".lock"):
        yield


def set_aside(path: Path, aside: Path) -> None:
    """Move a file to the folder `aside`, under a name that is free there."""
    aside.mkdir(parents=True, exist_ok=True)
    free = aside / path.name
    number = 0
    while free.exists():
        number += 1
        free = aside / f"{path.name}.{number}"
    path.replace(free)


def _sync_folder(folder: Path) -> None:
    """Make a rename in `folder` last through a power cut, where the system can."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


CACHE_VARIABLE = "OVERFIT_CACHE"


def cache_folder() -> Path:
    """Return the folder that `OVERFIT_CACHE` names, else the user's own; it need not exist."""
    named = os.environ.get(CACHE_VARIABLE)
    return Path(named).expanduser() if named else platformdirs.user_cache_path("overfit")


@contextlib.contextmanager
def temporary_cache() -> Iterator[None]:
    """Keep what is made in the meantime for the meantime only."""
    before = os.environ.get(CACHE_VARIABLE)
    with tempfile.TemporaryDirectory() as folder:
        os.environ[CACHE_VARIABLE] = folder
        try:
            yield
        finally:
            if before is None:
                del os.environ[CACHE_VARIABLE]
            else:
                os.environ[CACHE_VARIABLE] = before


DATA_VARIABLE = "OVERFIT_DATA"


def set_data_folder(path: Path) -> None:
    """Make `path` the data folder of this process and of those that it starts.

    Raises:
        UserError: if there is nothing there.
    """
    if not path.exists():
        raise BadValue("data", str(path), "there is no such folder or file.")
    os.environ[DATA_VARIABLE] = str(path.resolve())


def data_folder(asked_by: str) -> Path:
    """Return the data folder.

    Args:
        asked_by: what needs data, for the message, such as `source=imdb`.

    Raises:
        MissingError: if none was named.
    """
    given = os.environ.get(DATA_VARIABLE)
    if not given:
        raise MissingValue(
            "data",
            None,
            f"{asked_by} needs data: name its folder here, or in the variable {DATA_VARIABLE}.",
        )
    return Path(given)


@contextlib.contextmanager
def naming_data(folder: Path) -> Iterator[None]:
    """Make errors about missing or malformed data name the argument `data` and its value.

    Raises:
        MissingValue, BadValue: for a `MissingError` or another `UserError` raised inside.
    """
    try:
        yield
    except UserError as error:
        kind = MissingValue if isinstance(error, MissingError) else BadValue
        sentence = str(error).removeprefix(f"{folder}: ")
        raise kind("data", str(folder), sentence, exit_code=error.exit_code) from error


def fingerprint(*arrays: NDArray[Any]) -> str:
    """Return a name for what the arrays hold: the same for the same numbers."""
    import numpy as np

    found = hashlib.sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()[:24]


def require_extra(package: str, extra: str, asked_by: str) -> None:
    """Say what to install where a package isn't there; nothing is imported.

    Args:
        package: the one that is needed.
        extra: the extra of this package that has it.
        asked_by: what needs it, for the message.

    Raises:
        MissingError: if it isn't installed.
    """
    try:
        installed = importlib.util.find_spec(package) is not None
    except ValueError:  # something else was put in its place
        installed = False
    if not installed:
        raise MissingError(
            f"{asked_by} needs the package {package}, which isn't installed: "
            f"`pip install 'overfit-cli[{extra}]'` installs it."
        )


RESULTS = Path("results")
