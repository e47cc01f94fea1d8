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
import json
import os
import platform
import re
import stat
import time
import tomllib
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import platformdirs
from filelock import FileLock

from overfit_cli.core.errors import BadValue, MissingError, MissingValue, UserError
from overfit_cli.core.text import is_text

if TYPE_CHECKING:
    from numpy.typing import NDArray


TEMPORARY_PREFIX = ".part-"
MOST_BYTES = 1 << 30
"""No file of a run directory or of a user is larger."""

MANIFEST = "manifest.json"
"""The file of a run directory that says what was run into it."""


def write_whole(path: Path, content: bytes) -> None:
    """Write `content` to `path` so that a kill at any moment leaves the old file or the new one."""
    temporary = path.with_name(f"{_own_prefix()}{os.getpid()}-{uuid.uuid4().hex}")
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


def _own_prefix() -> str:
    """What temporary files of this machine begin with, before the number of their process."""
    name = platform.node()
    with contextlib.suppress(OSError):  # containers of one name may number their processes alike
        name += str(Path("/proc/self/ns/pid").readlink())
    return f"{TEMPORARY_PREFIX}{re.sub(r'[^A-Za-z0-9]', '', name)}-"


def clear_leftovers(folder: Path) -> None:
    """Remove temporary files of this machine's processes that were killed while they wrote."""
    for path in folder.glob(f"{_own_prefix()}*") if os.name == "posix" else ():
        number = path.name.removeprefix(_own_prefix()).partition("-")[0]
        with contextlib.suppress(OSError, ValueError, OverflowError):  # it is another user's
            try:
                os.kill(int(number), 0)
            except ProcessLookupError:
                path.unlink()


def write_user_file(path: Path, content: bytes, name: str, noun: str = "it") -> None:
    """Write a file that the user names, whole or not at all, and make its folder."""
    with refusing(name, str(path), f"{noun} can't be written there ({{}}); name another folder."):
        if path.exists() and not path.is_file():  # a device would be replaced by a file
            raise BadValue(name, str(path), "that is no file; name a file to write.")
        write_file(path, content)


def write_file(path: Path, content: bytes) -> None:
    """Write a file whole, make its folder, and clear what kills left there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    clear_leftovers(path.parent)
    write_whole(path, content)


def json_text(content: Any) -> str:
    """Return content as JSON; numbers that are not finite are null."""
    finite = json.loads(json.dumps(content), parse_constant=lambda _: None)
    return json.dumps(finite, indent=2) + "\n"


def read_toml(path: Path, name: str = "") -> dict[str, Any]:
    """Return the content of a TOML file."""
    try:
        return tomllib.loads(read_bounded(path).decode())
    except OSError as error:
        problem = f"it can't be read: {error_text(error)}."
    except (ValueError, RecursionError) as error:
        problem = f"it can't be read as TOML: {error}."
    raise BadValue(name, str(path), problem) if name else UserError(f"{path}: {problem}")


def preset_folder() -> Path:
    """Return where the shipped presets lie: in the installed package, or in the checkout."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "experiments"
    return installed if installed.is_dir() else package.parents[1] / "experiments"


def read_bounded(path: Path, limit: int | None = None) -> bytes:
    """Return the content of a regular file of at most `limit` bytes, by default `MOST_BYTES`.

    For a pipe, a device or an endless file it neither waits nor uses more memory than that.
    """
    facts = path.stat()
    if not stat.S_ISREG(facts.st_mode):  # opening a pipe would wait for its writer
        raise OSError(errno.EINVAL, "it isn't a regular file", str(path))
    if facts.st_size > (limit := limit or MOST_BYTES):
        raise OSError(errno.EFBIG, f"it has more than {limit} bytes", str(path))
    return path.read_bytes()


def make_folder(folder: Path, name: str) -> None:
    """Make a folder where there is none."""
    with refusing(name, str(folder), "it can't be made ({}); a directory is needed."):
        folder.mkdir(parents=True, exist_ok=True)


@contextlib.contextmanager
def refusing(name: str, given: object, accepts: str) -> Iterator[None]:
    """Refuse a path at an error of the operating system inside, which `{}` stands for."""
    try:
        yield
    except OSError as error:
        raise BadValue(name, given, accepts.format(error_text(error))) from error


def error_text(error: OSError) -> str:
    """Return the operating system's text for an error, without path or number."""
    return error.strerror or type(error).__name__


class _Lock(FileLock):
    """A lock whose errors name its file."""

    def _acquire(self) -> None:
        try:
            super()._acquire()
        except OSError as error:
            lacks = error.errno in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
            why = "the file system has no file locks" if lacks else error_text(error)
            raise OSError(error.errno, why, self.lock_file) from error


def lock_folder(folder: Path) -> FileLock:
    """Return the folder's lock as a context; the end of a process releases it.

    A file that stands for a lock would be left by a kill, and waited for without an end.
    """
    return _Lock(folder / ".lock", fallback_to_soft=False)


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


def cache_folder() -> Path:
    """Return the folder that `OVERFIT_CACHE` names, or the user's; it need not exist."""
    named = os.environ.get("OVERFIT_CACHE")
    return Path(named).expanduser() if named else platformdirs.user_cache_path("overfit")


DATA_VARIABLE = "OVERFIT_DATA"


def set_data_folder(path: Path | None) -> None:
    """Make a folder or an archive of data that of this process and its children.

    Args:
        path: where it lies; None for what the variable names.
    """
    if (path := path or variable_folder()) is None:
        return
    if not path.is_dir() and not (path.is_file() and path.name.endswith(".tar.gz")):
        problem = "there is no such folder, or archive .tar.gz."
        if path == variable_folder():
            raise UserError(f"{DATA_VARIABLE}={path}: {problem}")
        raise BadValue("data", str(path), problem)
    os.environ[DATA_VARIABLE] = str(path.resolve())


def variable_folder() -> Path | None:
    """Return the data folder that the variable names."""
    named = os.environ.get(DATA_VARIABLE)
    return Path(named) if named else None


@contextlib.contextmanager
def keeping_variables(*names: str) -> Iterator[None]:
    """Give variables of the environment their values of before again, at the end of a block."""
    before = {name: os.environ[name] for name in names if name in os.environ}
    try:
        yield
    finally:
        for name in names:
            os.environ.pop(name, None)
        os.environ.update(before)


def data_folder(user: str) -> Path:
    """Return the data folder; `user` is the setting that needs it, such as `source=imdb`."""
    folder = variable_folder()
    if folder is None:
        needs = "needs data: name its folder here, or in the variable"
        raise MissingValue("data", None, f"{user} {needs} {DATA_VARIABLE}.")
    return folder


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
    content = hashlib.sha256()
    for array in arrays:
        content.update(array.tobytes())
    return content.hexdigest()[:24]


def require_extra(package: str, extra: str, user: str) -> None:
    """Check that a package of an extra of overfit-cli is installed, without importing it."""
    if importlib.util.find_spec(package) is None:
        lack = f"{user} needs the package {package}, which isn't installed"
        hint = f"`pip install '.[{extra}]'` in a clone of overfit installs it."
        raise MissingError(f"{lack}: {hint}")


def short_names(paths: Sequence[Path]) -> list[str]:
    """Return the last part of each path, or all of each where two share it."""
    whole = [path.resolve() for path in paths]
    short = [path.name for path in whole]
    return short if len({*short}) == len({*whole}) else [str(path) for path in paths]


def results_folder() -> Path:
    """Return the folder of run directories that `OVERFIT_RESULTS` names, or `results`."""
    if not (named := os.environ.get("OVERFIT_RESULTS")):
        return Path("results")
    if any(part.is_file() for part in (Path(named), *Path(named).parents)):
        raise UserError(f"OVERFIT_RESULTS={named}: that is no folder; a directory is needed.")
    return Path(named)


def usable_path(name: str, given: Any) -> Path:
    """Return the path of a file or a folder, which need not exist."""
    if not isinstance(given, str | Path) or not str(given).strip() or not is_text(str(given)):
        raise BadValue(name, given, "it takes a path, in UTF-8.")
    with refusing(name, given, "it can't be used: {}."):
        Path(given).exists()
    return Path(given)
