"""Standard streams that a program can rely on: there, and never a reason to stop."""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import Any, TextIO, cast

_STREAMS = ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w"))


class PatientStream:
    """A text stream that passes over what can't be written: a display error is never data.

    After the first failure everything goes to the null device. All else is the stream's own.

    Attributes:
        problem: the first failure; None where there was none.
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
        """Leave everything else to the stream itself."""
        return getattr(self._stream, name)

    def _give_up(self, error: OSError) -> None:
        self.problem = self.problem or error
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, self._stream.fileno())  # What is still held back goes there too.
        os.close(null)


def make_streams_patient() -> None:
    """Make the process's output streams patient, and open those that were closed at its start.

    A closed descriptor would be given to the next file that is opened, and what is printed would
    go into that file.
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
            stream.reconfigure(errors="replace")  # A terminal without our letters gets a ?.
        if not isinstance(stream, PatientStream):
            setattr(sys, name, cast(TextIO, PatientStream(stream)))


def output_problem() -> OSError | None:
    """Return why standard output couldn't be written; None if it could, or its reader has left.

    A reader that leaves (`| head`) has read what it wanted.
    """
    sys.stdout.flush()
    problem = getattr(sys.stdout, "problem", None)
    return None if problem is None or problem.errno == errno.EPIPE else problem


def _open_null(descriptor: int) -> None:
    opened = os.open(os.devnull, os.O_RDWR)
    if opened != descriptor:
        os.dup2(opened, descriptor)
        os.close(opened)
    os.set_inheritable(descriptor, True)
