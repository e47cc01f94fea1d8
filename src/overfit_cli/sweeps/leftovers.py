"""Removal of what joblib leaves behind where a sweep is killed with all its processes.

A sweep with worker processes has semaphores and folders of memory maps, whose names have the number
of its process. Joblib has another process take them away when the sweep has ended. If that is
killed too, as by a queue that kills a whole group, they stay, in memory too. So a sweep notes its
number in the user's cache, and the next one takes away what bears the number of a noted process
that is gone. A process of another program, or in another container, is noted by nobody here.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from joblib.externals.loky.backend import resource_tracker

from overfit_cli.core.files import cache_folder, read_bounded
from overfit_cli.core.processes import null_errors

_PATTERNS = ("sem.loky-{}-*", "joblib_memmapping_folder_{}_*")
_LONGEST = 1000
"""The most bytes of a note."""


def clear_leftovers() -> None:
    """Take away what sweeps of this user left that are gone, and note that this process sweeps.

    What can't be done is left; nothing depends on it.
    """
    if os.name != "posix":  # where a semaphore is gone with its process
        return
    for note in _notes().glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError):  # it may be anything
            if not _lives(int(note.name)) and read_bounded(note, _LONGEST) == _here().encode():
                _remove(note.name)
                note.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        _note()


def _notes() -> Path:
    return cache_folder() / "sweeps"


@functools.cache
def quiet_tracker() -> None:
    """Have joblib's process that takes things away write no errors.

    Where a sweep is killed it advises to look for leaks, and where it is killed itself, the next
    one shows a traceback for each thing that it doesn't know.
    """
    tracker = resource_tracker._resource_tracker
    launch = tracker._launch

    def launch_quietly() -> None:
        with null_errors():
            launch()

    tracker._launch = launch_quietly


@functools.cache
def _here() -> str:
    """Where a number means the same process: this machine, or this container on it."""
    with contextlib.suppress(OSError):
        return f"{platform.node()} {Path('/proc/self/ns/pid').readlink()}"
    return platform.node()


def _lives(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # another user's, or no number of a process
        pass
    return True


def _remove(number: str) -> None:
    if sys.platform == "win32":
        return
    for path in _bearing(number):
        with contextlib.suppress(OSError):
            if path.lstat().st_uid != os.geteuid():
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()


def _bearing(number: str) -> Iterator[Path]:
    named = os.environ.get("JOBLIB_TEMP_FOLDER")
    folders = ["/dev/shm", tempfile.gettempdir(), *([named] if named else [])]
    for folder in dict.fromkeys(Path(folder).expanduser() for folder in folders):
        for pattern in _PATTERNS:
            yield from folder.glob(pattern.format(number))


@functools.cache
def _note() -> None:
    _notes().mkdir(parents=True, exist_ok=True)
    note = _notes() / str(os.getpid())
    note.write_bytes(_here().encode())
    atexit.register(note.unlink, missing_ok=True)
