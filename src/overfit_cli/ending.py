"""The end of a process that has imported PyTorch."""

from __future__ import annotations

import atexit
import functools
import gc


@functools.cache
def end_quickly() -> None:
    """Have this process not go through all its objects once more when it ends.

    With PyTorch imported, Python's last search for garbage takes half a second. Buffers are written
    and files closed all the same.
    """
    atexit.register(gc.freeze)
