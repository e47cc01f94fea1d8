"""A process that trains tasks of several sweeps: what is global in it belongs to one at a time."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Hashable, Iterator


class Stage:
    """Sets a process up for one sweep at a time.

    Threads that train tasks of the same sweep go on side by side. A task of another one waits until
    they have ended.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._sweep: Hashable = None
        self._acting = 0

    @contextlib.contextmanager
    def set_for(self, sweep: Hashable, prepare: Callable[[], None]) -> Iterator[None]:
        """Be set up for a sweep while inside.

        Args:
            sweep: which; equal ones share what is set up.
            prepare: sets the process up, when it wasn't for this sweep.
        """
        with self._changed:
            self._changed.wait_for(lambda: not self._acting or self._sweep == sweep)
            if self._sweep != sweep:
                self._sweep = None  # where preparing fails
                prepare()
                self._sweep = sweep
            self._acting += 1
        try:
            yield
        finally:
            with self._changed:
                self._acting -= 1
                self._changed.notify_all()
