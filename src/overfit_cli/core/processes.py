"""Processes: interrupts, the start of workers, patient standard streams, a quick end.

SIGTERM, which a queue such as SLURM's sends before it ends a job, and SIGHUP, which a terminal
sends that is closed, are answered like Ctrl-C.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import functools
import gc
import io
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any, NoReturn, TextIO, cast

_STREAMS = ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w"))


class PatientStream:
    """A text stream that passes over what can't be written: a display error is never data.

    After the first failure, which is its `problem`, everything goes to the null device.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.problem: OSError | None = None

    def write(self, text: str) -> int:
        """Write `text`, if that can be."""
        try:
            self._stream.write(text)
        except OSError as error:
            self._give_up(error)
        return len(text)

    def flush(self) -> None:
        """Write what is held back, if that can be."""
        try:
            self._stream.flush()
        except OSError as error:
            self._give_up(error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _give_up(self, error: OSError) -> None:
        self.problem = self.problem or error
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, self._stream.fileno())  # What is still held back goes there too.
        os.close(null)


def make_streams_patient() -> None:
    """Make the process's output streams patient, and open those that were closed at its start.

    A closed descriptor would be given to the next file that is opened.
    """
    for descriptor, name, mode in _STREAMS:
        try:
            os.fstat(descriptor)
        except OSError:
            _open_null(descriptor)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(descriptor, mode, closefd=False))
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            # A terminal without our letters gets a ?. What Windows redirects lacks half of them.
            encoding = "utf-8" if os.name == "nt" and not stream.isatty() else None
            stream.reconfigure(encoding=encoding, errors="replace")
        if not isinstance(stream, PatientStream):
            setattr(sys, name, cast("TextIO", PatientStream(stream)))


def output_problem() -> OSError | None:
    """Return why standard output couldn't be written; None if its reader has just left."""
    sys.stdout.flush()
    problem = getattr(sys.stdout, "problem", None)
    return None if problem is None or problem.errno in _READER_LEFT else problem


_READER_LEFT = {errno.EPIPE, errno.EINVAL} if os.name == "nt" else {errno.EPIPE}


def _open_null(descriptor: int) -> None:
    opened = os.open(os.devnull, os.O_RDWR)
    if opened != descriptor:
        os.dup2(opened, descriptor)
        os.close(opened)
    os.set_inheritable(descriptor, True)


@contextlib.contextmanager
def null_errors() -> Iterator[None]:
    """Have processes that start inside write their errors to the null device."""
    try:
        kept = os.dup(2)
    except OSError:  # it is closed
        yield
        return
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(null)


@functools.cache
def end_quickly() -> None:
    """Skip Python's last garbage collection, half a second with PyTorch, when this process ends."""
    atexit.register(gc.freeze)


_SAFE_PATH, _OURS = "PYTHONSAFEPATH", "overfit"


@contextlib.contextmanager
def safe_path() -> Iterator[None]:
    """Have processes that start inside not import what lies in the working folder."""
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

    It must come before the first batch, for which a worker would wait for good.
    """
    if os.environ.get(_SAFE_PATH) == _OURS:  # what a cell starts is the cell's business
        del os.environ[_SAFE_PATH]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    make_streams_patient()
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
def answering_interrupts() -> Iterator[None]:
    """Raise `Interrupted` at Ctrl-C while inside; in the main thread only, where signals arrive."""
    with _handling(_interrupt):
        if _in_main_thread():
            _interrupts.clear()
        try:
            yield
        finally:
            if _in_main_thread():
                _interrupts.clear()


@contextlib.contextmanager
def passing_interrupts_on() -> Iterator[None]:
    """Raise `Interrupted` at Ctrl-C while inside, and then do what this process does at it.

    It is for a process of another program, such as a worker of a cluster.
    """
    came = list[int]()
    try:
        with answering_interrupts():
            try:
                yield
            finally:
                came += _interrupts if _in_main_thread() else ()
    finally:
        if came:
            signal.raise_signal(came[0])


def check_interrupts() -> None:
    """Raise `Interrupted` if an interrupt has come, even if a cell's code has caught it.

    What such a code returns or raises then is no result.
    """
    if _interrupts and _in_main_thread():
        raise Interrupted


_ENDING = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
"""The signals that ask a process to end: by the user, by a queue, by a terminal that is closed."""

_interrupts = list[int]()
"""The signals that came since `answering_interrupts` was entered."""


@contextlib.contextmanager
def ignoring_interrupts() -> Iterator[None]:
    """Pass over Ctrl-C while inside; processes that are started inside do so for good."""
    with _handling(signal.SIG_IGN, [signal.SIGINT]):
        yield


@contextlib.contextmanager
def delaying_interrupts() -> Iterator[None]:
    """Answer Ctrl-C at the end of what happens inside: half a picture couldn't be taken back."""
    came = list[int]()

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)

    with _handling(note):
        yield
    if came:
        signal.raise_signal(came[0])


@contextlib.contextmanager
def keeping_sigterm() -> Iterator[None]:
    """Hold SIGTERM back while inside, and keep its answer: ray would answer it with a stack."""
    if sys.platform == "win32" or not _in_main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


@contextlib.contextmanager
def _handling(handler: Any, numbers: Sequence[signal.Signals] | None = None) -> Iterator[None]:
    """Answer signals by `handler` while inside, in the main thread; `nohup` stays in force."""
    with contextlib.ExitStack() as restoring:
        for number in (numbers or _ENDING) if _in_main_thread() else ():
            before = signal.getsignal(number)
            if number == signal.SIGINT or before != signal.SIG_IGN:
                restoring.callback(signal.signal, number, before or signal.SIG_DFL)
                signal.signal(number, handler)
        yield


@contextlib.contextmanager
def alarm(deadline: float, error: type[BaseException]) -> Iterator[None]:
    """Raise an error inside at a time of `time.monotonic`, and every second after it.

    In the main thread only, where signals arrive. Compiled code ends first, and so does an import:
    a library that is imported by half can't be used in this process any more.
    """
    if not _in_main_thread() or not hasattr(signal, "SIGALRM"):
        yield
        return

    is_over = False

    def ring(number: int, frame: FrameType | None) -> None:
        if not is_over and not _is_importing(frame):
            raise error

    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, max(deadline - time.monotonic(), 1e-6), 1.0)
        yield
    finally:
        is_over = True
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


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
