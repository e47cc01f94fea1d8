"""Runs the real command line on a real pseudo-terminal."""

from __future__ import annotations

import codecs
import contextlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.command import environment

termios = pytest.importorskip("termios", reason="there are no pseudo-terminals here")

_PATIENCE = 60.0
"""Seconds without a word after which a process is given up."""


def pieces(descriptor: int) -> Iterator[str]:
    """What is written to a terminal, until everybody has left it."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with contextlib.suppress(OSError):  # how Linux says that they have
        while select.select([descriptor], [], [], _PATIENCE)[0] and (
            piece := os.read(descriptor, 65536)
        ):
            yield decoder.decode(piece)


def on_a_terminal(
    *arguments: str,
    cwd: Path,
    interrupt_at: str = "",
    env: Mapping[str, str] | None = None,
) -> tuple[int, str]:
    """Run `overfit` on a terminal and return its exit code and output.

    It is interrupted when it shows a text, if one is given; the interrupt goes to the whole
    process group, as a terminal sends it.
    """
    ours, theirs = os.openpty()
    termios.tcsetwinsize(theirs, (40, 80))
    process = subprocess.Popen(
        [sys.executable, "-m", "overfit_cli", *arguments],
        cwd=cwd,
        env=environment(**{"TERM": "xterm", "LINES": "40", **(env or {})}),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    output, interrupted = "", not interrupt_at
    try:
        for piece in pieces(ours):
            output += piece
            if interrupt_at in output and not interrupted:
                os.killpg(process.pid, signal.SIGINT)
                interrupted = True
        return process.wait(timeout=10), output
    finally:
        process.kill()
        process.wait()
        os.close(ours)
