"""Arrays and networks that are kept in the cache folder, which may be deleted at any time."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from overfit_cli.core.files import lock_folder, write_file

Array = np.ndarray[Any, Any]


def read_arrays(file: Path) -> dict[str, Array]:
    """Return the arrays of a file by name; none where it is absent, torn, or something else."""
    with suppress(Exception), np.load(io.BytesIO(file.read_bytes()), allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays}
    return {}


def keep_arrays(file: Path, **arrays: Any) -> None:
    """Write arrays to a file, where it can be written."""
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, **arrays)
    keep(file, content.getvalue())


def keep(file: Path, content: bytes) -> None:
    """Write a file and its folder, where they can be written."""
    with suppress(OSError):
        write_file(file, content)


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder: another process that makes the same waits for it instead."""
    with contextlib.ExitStack() as stack:
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(lock_folder(folder))
        yield
