"""Ctrl-C: its handling, and how it is told from an exception that a study raises."""

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
    with _handling(_interrupt):
        yield


@contextlib.contextmanager
def ignoring_interrupts() -> Iterator[None]:
    """Pass over Ctrl-C while inside; processes that are started inside do so for good."""
    with _handling(signal.SIG_IGN):
        yield


@contextlib.contextmanager
def delaying_interrupts() -> Iterator[None]:
    """Answer Ctrl-C at the end of what happens inside: half a picture couldn't be taken back."""
    came = threading.Event()
    with _handling(lambda number, frame: came.set()):
        yield
    if came.is_set():
        signal.raise_signal(signal.SIGINT)


@contextlib.contextmanager
def _handling(handler: Any) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise Interrupted
