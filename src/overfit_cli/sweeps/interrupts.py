"""Ctrl-C: its handling, and how it is told from an exception that a study raises.

A queue that ends a job, such as SLURM's, sends SIGTERM first; it is answered like Ctrl-C.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any, NoReturn


class Interrupted(KeyboardInterrupt):
    """The user's own interrupt; a bare `KeyboardInterrupt` inside a cell is the study's doing."""


@contextlib.contextmanager
def answering_interrupts() -> Iterator[None]:
    """Raise `Interrupted` at Ctrl-C while inside; in the main thread only, where signals arrive."""
    with _handling(signal.SIGINT, _interrupt), _handling(signal.SIGTERM, _interrupt):
        yield


@contextlib.contextmanager
def ignoring_interrupts() -> Iterator[None]:
    """Pass over Ctrl-C while inside; processes that are started inside do so for good."""
    with _handling(signal.SIGINT, signal.SIG_IGN):
        yield


@contextlib.contextmanager
def delaying_interrupts() -> Iterator[None]:
    """Answer Ctrl-C at the end of what happens inside: half a picture couldn't be taken back."""
    came = list[int]()

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)

    with _handling(signal.SIGINT, note), _handling(signal.SIGTERM, note):
        yield
    if came:
        signal.raise_signal(came[0])


@contextlib.contextmanager
def _handling(number: signal.Signals, handler: Any) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise Interrupted
