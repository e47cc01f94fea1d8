"""Processes: interrupts, the start of workers, a quick end.

SIGTERM, which a queue such as SLURM's sends before it ends a job, and SIGHUP, which a terminal
sends that is closed, are answered like Ctrl-C.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import io
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any, NoReturn


def write_any_letter() -> None:
    """Give a terminal without our letters a ? for each; what Windows redirects is UTF-8."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            encoding = "utf-8" if os.name == "nt" and not stream.isatty() else None
            stream.reconfigure(encoding=encoding, errors="replace")


@functools.cache
def end_quickly() -> None:
    """Skip Python's last garbage collection, half a second with PyTorch, when this process ends."""
    atexit.register(gc.freeze)


SAFE_PATH = "PYTHONSAFEPATH"
"""The variable with which Python imports nothing from the working folder."""


def start_worker(parent: int, safe_path: str | None) -> None:
    """Start a worker process: it doesn't answer Ctrl-C, and ends soon after its parent is gone.

    It must come before the first batch, for which a worker would wait for good.

    Args:
        safe_path: the parent's `SAFE_PATH`: what a cell starts is the cell's business.
    """
    if safe_path is None:
        os.environ.pop(SAFE_PATH, None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):  # see `starting_workers`
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    write_any_letter()
    end_quickly()

    def watch() -> None:
        _wait_for_end(parent)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _wait_for_end(parent: int) -> None:
    if sys.platform == "win32":  # a child keeps its parent's number there
        import _winapi

        with contextlib.suppress(OSError):  # it has ended
            handle = _winapi.OpenProcess(_winapi.SYNCHRONIZE, False, parent)
            _winapi.WaitForSingleObject(handle, _winapi.INFINITE)
        return
    while os.getppid() == parent:
        time.sleep(0.5)


class Interrupted(KeyboardInterrupt):
    """The user's own interrupt; a bare `KeyboardInterrupt` inside a cell is the study's doing."""


@contextlib.contextmanager
def answering_interrupts(*, passing_on: bool = False) -> Iterator[None]:
    """Raise `Interrupted` at Ctrl-C while inside; in the main thread only, where signals arrive.

    Args:
        passing_on: whether to do at the end what this process does at it: one of another program,
            such as a worker of a cluster.
    """
    if not _in_main_thread():
        yield
        return
    _interrupts.clear()
    try:
        with _handling(_interrupt):
            yield
    finally:
        came, _interrupts[:] = [*_interrupts], []
        if passing_on and came:
            signal.raise_signal(came[0])


def check_interrupts() -> None:
    """Raise `Interrupted` if an interrupt has come, even if a cell's code has caught it.

    What such a code returns or raises then is no result.
    """
    if _interrupts and _in_main_thread():
        raise Interrupted


_ENDING = [each for each in signal.Signals if each.name in ("SIGINT", "SIGTERM", "SIGHUP")]
"""The signals that ask a process to end: by the user, by a queue, by a terminal that is closed."""

_interrupts = list[int]()
"""The signals that came since `answering_interrupts` was entered."""


@contextlib.contextmanager
def starting_workers() -> Iterator[None]:
    """Keep Ctrl-C from processes that start inside; this process answers it at the end."""
    if hasattr(signal, "pthread_sigmask"):
        from multiprocessing import resource_tracker

        from joblib.externals.loky.backend import resource_tracker as of_loky

        # Where workers start it, it lets Ctrl-C through; it outlives a terminal that hangs up.
        with holding_back(signal.SIGHUP):
            resource_tracker.ensure_running()
            of_loky.ensure_running()
    with holding_back(signal.SIGINT):
        yield


@contextlib.contextmanager
def holding_back(number: signal.Signals) -> Iterator[None]:
    """Hold a signal back while inside, and keep its answer: ray gives SIGTERM one with a stack."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before, mask = signal.getsignal(number), signal.pthread_sigmask(signal.SIG_BLOCK, {number})
    try:
        yield
    finally:
        if _in_main_thread():
            signal.signal(number, before or signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


@contextlib.contextmanager
def delaying_interrupts() -> Iterator[None]:
    """Answer Ctrl-C at the end of what happens inside: half a picture couldn't be taken back."""
    came = list[int]()
    with _handling(lambda number, _: came.append(number)):
        yield
    if came:
        signal.raise_signal(came[0])


@contextlib.contextmanager
def _handling(handler: Any, *numbers: signal.Signals) -> Iterator[None]:
    """Answer signals by `handler` while inside, in the main thread; `nohup` stays in force."""
    with contextlib.ExitStack() as restoring:
        for number in (numbers or _ENDING) if _in_main_thread() else ():
            before = signal.getsignal(number)
            if numbers or number == signal.SIGINT or before != signal.SIG_IGN:
                restoring.callback(signal.signal, number, before or signal.SIG_DFL)
                signal.signal(number, handler)
        yield


@contextlib.contextmanager
def alarm(deadline: float, error: type[BaseException]) -> Iterator[None]:
    """Raise an error inside at a time of `time.monotonic`, and every second after it.

    In the main thread only, where signals arrive. Compiled code ends first, and so does an import:
    a library that is imported by half can't be used in this process any more.
    """
    if deadline == math.inf or not _in_main_thread() or not hasattr(signal, "SIGALRM"):
        yield
        return

    is_over = False

    def ring(number: int, frame: FrameType | None) -> None:
        if not is_over and not _is_importing(frame):
            raise error

    with _handling(ring, signal.SIGALRM):
        try:
            signal.setitimer(signal.ITIMER_REAL, max(deadline - time.monotonic(), 1e-6), 1.0)
            yield
        finally:
            is_over = True
            signal.setitimer(signal.ITIMER_REAL, 0)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def interrupt_or_end(number: int, frame: FrameType | None) -> NoReturn:
    """Answer Ctrl-C where nothing trains; a process that imports ends at once.

    Python would pass over an exception that is raised where an import takes its locks.
    """
    if _is_importing(frame):
        os._exit(130)
    raise KeyboardInterrupt


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    _interrupts.append(number)
    raise Interrupted
