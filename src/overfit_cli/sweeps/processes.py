"""Worker processes of this machine: how they start, and when they end."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator

from overfit_cli.display import make_streams_patient
from overfit_cli.ending import end_quickly

_SAFE_PATH, _OURS = "PYTHONSAFEPATH", "overfit"


@contextlib.contextmanager
def safe_path() -> Iterator[None]:
    """Have processes that start inside not import what lies in the working folder.

    Somebody's `json.py` there would take the place of Python's own while a worker starts.
    """
    if _SAFE_PATH in os.environ:
        yield
        return
    os.environ[_SAFE_PATH] = _OURS
    try:
        yield
    finally:
        del os.environ[_SAFE_PATH]


def start_worker(parent: int) -> None:
    """Start a worker process: it doesn't answer Ctrl-C, and ends soon after its parent is gone.

    It must come before the first batch: a worker whose parent is killed while it waits for one
    would wait for good.
    """
    if os.environ.get(_SAFE_PATH) == _OURS:  # what a cell starts is the cell's business
        del os.environ[_SAFE_PATH]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    make_streams_patient()
    end_quickly()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
