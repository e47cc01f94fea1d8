"""Answers to shells that ask how a command line goes on, in the words that each shell knows.

Typer reads the question from the environment and writes the answer. Two things are mended on the
way: bash takes `=` and `:` for words of their own, and all shells take `--option=value` for one.
And nothing is said where something fails, because it would stand in somebody's prompt.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import warnings
from collections.abc import Callable

_VARIABLE = "_OVERFIT_COMPLETE"
_ASKS = "complete_"
NOTHING = 1
"""The exit code that leaves it to the shell to complete names of files."""


def is_asking() -> bool:
    """Whether this process was started by a shell that completes a command line."""
    return os.environ.get(_VARIABLE, "").startswith(_ASKS)


def answer(run: Callable[[], object]) -> int:
    """Print how the command line goes on, and return the exit code.

    Args:
        run: the command line, which Typer answers from.
    """
    shell = os.environ[_VARIABLE].removeprefix(_ASKS)
    said, unsaid, code = io.StringIO(), io.StringIO(), 0
    try:
        with (
            contextlib.redirect_stdout(said),
            contextlib.redirect_stderr(unsaid),
            warnings.catch_warnings(action="ignore"),
        ):
            mend = _MENDS[shell]() if shell in _MENDS else str
            run()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else NOTHING
    except BaseException:
        return NOTHING
    sys.stdout.write(mend(said.getvalue()))
    return code


def _bash() -> Callable[[str], str]:
    """Join what bash took apart; return what takes the same parts off an answer."""
    last = int(os.environ["COMP_CWORD"])
    words = [*os.environ["COMP_WORDS"].split("\n"), ""][: last + 1]
    line, _ = _with_option_apart(re.sub(r"\n?([=:]+)\n?", r"\1", "\n".join(words)), "\n")
    os.environ["COMP_WORDS"], os.environ["COMP_CWORD"] = line, str(line.count("\n"))
    typed = re.sub(r"\\(.)", r"\1", line.rpartition("\n")[2])
    known = max(typed.rfind("="), typed.rfind(":")) + 1

    def mend(text: str) -> str:
        # Bash puts a word into the line as it is: what it would obey is escaped.
        found = (re.sub(r"[^\w@%+=:,./-]", r"\\\g<0>", one[known:]) for one in text.splitlines())
        return "".join(f"{one}\n" for one in found if one)

    return mend


def _zsh() -> Callable[[str], str]:
    """Set an option apart from its value; return what joins them again."""
    option = _set_option_apart()
    return lambda text: re.sub(r'(?m)^(_arguments .*\(\()?"', lambda one: f"{one[0]}{option}", text)


def _fish() -> Callable[[str], str]:
    """Set an option apart from its value; return what joins them again."""
    option = _set_option_apart()
    return lambda text: "".join(f"{option}{line}\n" for line in text.splitlines() if line)


_MENDS = {"bash": _bash, "zsh": _zsh, "fish": _fish}


def _set_option_apart() -> str:
    """Change the question of zsh or fish; return the option with its `=`, empty without one."""
    line = os.environ.get("_TYPER_COMPLETE_ARGS", "")
    os.environ["_TYPER_COMPLETE_ARGS"], option = _with_option_apart(line, " ")
    return option


def _with_option_apart(line: str, blank: str) -> tuple[str, str]:
    """A line whose last word is split in two if it is `--option=value`, and the option with `=`."""
    found = re.search(rf"{blank}(--[\w-]+=)([^{blank}]*)\Z", line)
    if found is None:
        return line, ""
    return f"{line[: found.start(1)]}{found[1][:-1]}{blank}{found[2]}", found[1]
