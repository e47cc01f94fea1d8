"""A kill or an error at every file operation of what a function does to a folder.

Python's audit events announce each operation: at the one that is chosen the process is killed, or
the operation fails. Each try is a process of its own, forked from one that has imported everything.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

Strike = Literal["kill", "error"]

_READING = {"os.listdir", "os.scandir"}
_CHANGING = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.utime", "os.fsync"}
_WRITABLE = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_MET, _ENDED, _BROKEN = 0, 3, 4
"""Exit codes of a try: its error was met with a sentence, no operation was left, a bug."""


def strikes(how: Strike, folder: Path, act: Callable[[], object], stride: int = 1) -> Iterator[int]:
    """Strike at one file operation in `folder` after another; yield its number after each strike.

    Before each the folder is brought to its first state. A kill is tried only at what changes the
    folder, since one before a reading leaves what one before it did.

    Args:
        how: whether the process is killed, or the operation fails.
        folder: the folder whose files count.
        act: what is done; an `Exception` that it raises after the strike is its answer.
        stride: take only each operation of so many.
    """
    with tempfile.TemporaryDirectory() as first:
        shutil.copytree(folder, first, dirs_exist_ok=True)
        number = 0
        while (code := _try(how, folder, act, number)) != _ENDED:
            assert code != _BROKEN, f"{how} at operation {number}"
            yield number
            number += stride
            shutil.rmtree(folder)
            shutil.copytree(first, folder)
        assert number > stride, "it has so few operations that hardly one was struck"


def _try(how: Strike, folder: Path, act: Callable[[], object], number: int) -> int:
    """Strike at one operation, in a process of its own; return how that ended."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of threads: what is forked computes in its own
        child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status)
    code = _BROKEN
    try:
        struck = _arm(how, folder, number)
        try:
            act()
        except Exception:
            if not struck:
                raise
        code = _MET if struck else _ENDED
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _arm(how: Strike, folder: Path, number: int) -> list[str]:
    """Have the operation of this number struck; return a list that then says which it was."""
    struck, seen = list[str](), 0
    fsync = os.fsync

    def announced(descriptor: Any) -> None:
        sys.audit("os.fsync", str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        fsync(descriptor)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal seen
        if struck or not _counts(event, arguments, folder, reading=how == "error"):
            return
        if seen == number:
            struck.append(event)
            if how == "kill":
                os._exit(_MET)
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(arguments[0]))
        seen += 1

    os.fsync = announced  # type: ignore[assignment]
    sys.addaudithook(hook)
    return struck


def _counts(event: str, arguments: tuple[Any, ...], folder: Path, *, reading: bool) -> bool:
    """Whether an event is an operation on a file in the folder, of the kind that is struck."""
    if event not in {"open", *_CHANGING, *_READING}:
        return False
    changes = bool(arguments[2] & _WRITABLE) if event == "open" else event in _CHANGING
    path = arguments[0]
    inside = isinstance(path, str | os.PathLike) and os.fspath(path).startswith(str(folder))
    return inside and (changes or reading)
