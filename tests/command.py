"""Runs the real command line, in a process of its own or in this one."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import shlex
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TypeVar
from unittest import mock

import typer.main

from overfit_cli.cli import app

Case = TypeVar("Case")

TOY = Path(__file__).parent / "toy"

SEARCH = os.environ.get("OVERFIT_FUZZ", "")
"""How many examples a search takes that has time; without one, tests take few cases."""

# Typer builds its commands anew for each call: most of the time of a command that is refused.
_get_command = functools.cache(typer.main.get_command)


def environment(**extra: str) -> dict[str, str]:
    """The environment of a process that finds the toy study."""
    # An empty path would be the working folder.
    path = os.pathsep.join(filter(None, [str(TOY), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, "COLUMNS": "80", "NO_COLOR": "1", **extra}


def start(
    *arguments: str, cwd: Path, new_session: bool = False, env: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    """Start `overfit` with these arguments."""
    return subprocess.Popen(
        [sys.executable, "-m", "overfit_cli", *arguments],
        cwd=cwd,
        env=environment(**(env or {})),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=new_session,
    )


def run(
    *arguments: str,
    cwd: Path,
    expect: int = 0,
    env: Mapping[str, str] | None = None,
    apart: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run `overfit` to its end and hold it to an exit code.

    What starts workers, or depends on the environment, runs in a process of its own, and so does
    what is to run `apart`; the rest runs in this one, which is quicker.
    """
    words = " ".join(arguments)
    alone = any(how in words for how in ("--jobs=1", "--jobs 1", "--dry-run", "--help"))
    if not apart and env is None and (alone or expect == 2 or arguments[:1] != ("sweep",)):
        return call(*arguments, cwd=cwd, expect=expect)
    done = python("-m", "overfit_cli", *arguments, cwd=cwd, expect=expect, env=env)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def call(
    *arguments: str, cwd: Path, expect: int | Collection[int] = 0
) -> subprocess.CompletedProcess[str]:
    """Run `overfit` in this process and hold it to an exit code, or to several."""
    output, errors, code = io.StringIO(), io.StringIO(), 1
    with (
        contextlib.chdir(cwd),
        mock.patch.dict(os.environ, {"COLUMNS": "80", "NO_COLOR": "1"}),
        mock.patch.object(typer.main, "get_command", _get_command),
        mock.patch.object(sys, "argv", ["overfit", *arguments]),
        mock.patch.object(sys, "excepthook", sys.__excepthook__),
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(errors),
        warnings.catch_warnings(),
    ):
        warnings.resetwarnings()  # as in a process that was just started
        for category in (DeprecationWarning, PendingDeprecationWarning, ResourceWarning):
            warnings.simplefilter("ignore", category)
        try:
            app.main()
        except SystemExit as ended:
            code = int(ended.code or 0)
        except Exception as error:
            if sys.excepthook is sys.__excepthook__:
                raise
            sys.excepthook(type(error), error, error.__traceback__)  # what a user's function raises
    texts = (output.getvalue(), errors.getvalue())
    expected = {expect} if isinstance(expect, int) else {*expect}
    assert code in expected, f"{arguments}: {code}\n{texts[0]}\n{texts[1]}"
    return subprocess.CompletedProcess(arguments, code, *texts)


def said(line: str, cwd: Path, expect: int | Collection[int] = 0) -> str:
    """What a command line, such as `runs --failed`, prints in this process."""
    return call(*shlex.split(line), cwd=cwd, expect=expect).stdout


def python(
    *arguments: str | Path,
    cwd: Path | None = None,
    text: str | None = None,
    expect: int = 0,
    env: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run Python with these arguments, and a text as its input, and hold it to an exit code."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env=environment(**(env or {})),
        input=text,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=300,
        check=False,
    )
    words = f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert done.returncode == expect, words
    return done


def ended(process: subprocess.Popen[str], expect: int = 0, seconds: float = 60) -> str:
    """The output of a process that ends with an exit code, and without a word of errors."""
    output, errors = process.communicate(timeout=seconds)
    assert (process.returncode, errors) == (expect, ""), output
    return output


def wait_for(condition: Callable[[], object], seconds: float = 60) -> None:
    """Wait until the condition is true."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.02)


def few(cases: Sequence[Case], share: int, first: int = 0) -> Sequence[Case]:
    """One of so many cases, from the first of these; all of them in a search."""
    return cases if SEARCH else cases[first % share :: share]
