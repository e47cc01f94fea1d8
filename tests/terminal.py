"""Runs the real command line on a real pseudo-terminal."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.command import environment

termios = pytest.importorskip("termios", reason="there are no pseudo-terminals here")

_PATIENCE = 60.0
"""Seconds without a word after which a process is given up."""


def on_a_terminal(
    *arguments: str, cwd: Path, interrupt_at: str = "", env: Mapping[str, str] | None = None
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
    output, awaited = b"", interrupt_at.encode()
    try:
        with contextlib.suppress(OSError):  # how Linux says that everybody has left
            while select.select([ours], [], [], _PATIENCE)[0] and (piece := os.read(ours, 65536)):
                output += piece
                if awaited and awaited in output:
                    os.killpg(process.pid, signal.SIGINT)
                    awaited = b""
        return process.wait(timeout=10), output.decode()
    finally:
        process.kill()
        process.wait()
        os.close(ours)
