"""The package on Windows: it needs nothing that Windows lacks, and reads its paths."""

from __future__ import annotations

import ast
import contextlib
import os
import re
from pathlib import Path

import pytest

import overfit_cli
from overfit_cli.core import files
from overfit_cli.functions.references import is_reference, split_reference
from overfit_cli.sweeps.presets import named_after
from tests.command import python

PACKAGE = Path(overfit_cli.__file__).parent

WITHOUT_UNIX = """
import importlib, os, pkgutil, signal, sys

def import_all():
    import overfit_cli
    for module in pkgutil.walk_packages(overfit_cli.__path__, "overfit_cli."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    return [name for name in sys.modules if name.split(".")[0] == "overfit_cli"]

names = import_all()  # the libraries below stay, as these are others' builds on Windows
for name in names:
    del sys.modules[name]
for module in ("fcntl", "termios", "tty", "pty", "resource", "pwd", "grp", "syslog", "curses"):
    sys.modules[module] = None
gone = {}
OS = (
    "O_NONBLOCK O_DIRECTORY O_NOFOLLOW fork forkpty killpg setsid setpgid getpgid getpgrp getuid "
    "geteuid getgid getloadavg sysconf mkfifo mknod chown fchmod fchown nice sched_getaffinity "
    "sched_setaffinity uname ttyname pread pwrite sync"
)
SIGNALS = "SIGALRM SIGHUP SIGKILL SIGQUIT SIGUSR1 SIGUSR2 SIGCHLD SIGPIPE ITIMER_REAL"
for module, names_there in ((os, OS), (signal, SIGNALS)):
    for name in names_there.split():
        if hasattr(module, name):
            gone[name] = getattr(module, name)
            delattr(module, name)
del signal.setitimer, signal.alarm
assert sorted(import_all()) == sorted(names)
"""

USE = """
for name in ("O_NONBLOCK", "O_NOFOLLOW", "fchmod"):  # filelock's build for Unix uses them
    setattr(os, name, gone[name])
from overfit_cli.cli.app import main
SWEEP = "sweep toy --jobs=1 --n=1:3 --snr=1:2:3 --seeds=2 --out=run"
commands = [SWEEP, f"{SWEEP} --dry-run", "plot heatmap --from=run", "verify run"]
commands += ["report run --out=page", "compare run run", "runs run", "compact run"]
for arguments in commands:
    sys.argv = ["overfit", *arguments.split()]
    try:
        main()
    except SystemExit as ended:
        assert not ended.code, (arguments, ended.code)
"""


@pytest.mark.unix
@pytest.mark.slow
def test_every_module_is_imported_and_a_sweep_is_drawn_and_judged_without_what_only_unix_has(
    tmp_path: Path,
) -> None:
    done = python("-c", WITHOUT_UNIX + USE, cwd=tmp_path)
    assert "18 trained" in done.stdout
    assert (tmp_path / "run" / "figures" / "heatmap.png").is_file()
    assert (tmp_path / "page" / "index.html").is_file()


def unnamed_encodings(code: str) -> list[str]:
    """Calls that read or write text in the encoding of the system; Click's formatter does not."""
    calls = [one for one in ast.walk(ast.parse(code)) if isinstance(one, ast.Call)]
    texts = [(ast.unparse(one.func), ast.unparse(one)) for one in calls]
    return [
        text
        for name, text in texts
        if (re.search(r"(?<!formatter)\.(read|write)_text$", name) and "'utf-8'" not in text)
        or (name.startswith("subprocess.") and re.search(r"\b(text|universal_newlines)=", text))
    ]


@pytest.mark.slow
def test_no_file_is_read_in_the_encoding_of_the_system() -> None:
    assert len(unnamed_encodings("a.read_text()\nb(c).write_text('x')\n")) == 2
    assert not [
        call for path in PACKAGE.rglob("*.py") for call in unnamed_encodings(path.read_text())
    ]


def test_a_function_in_a_file_on_a_drive_has_its_name_behind_the_last_colon() -> None:
    for where in (r"C:\lab\mine.py", "d:/lab/mine.py", "c"):
        assert is_reference(f"{where}:train")
        assert split_reference(f"{where}:train") == (where, "train")
    assert is_reference(r"C:\lab\mine.py") and not is_reference(r"C:\lab\results\mine")
    assert split_reference(r"C:\lab\mine.py") == (r"C:\lab\mine.py", "")


def test_the_name_of_a_run_directory_has_no_character_that_some_system_refuses() -> None:
    name = named_after("mine", {"data": ['a<b>:c"d|e?f*g/h\\i']})
    assert name.startswith("mine-dataa_b__c_d_e")
    assert not set('<>:"/\\|?*') & set(name)


@pytest.mark.parametrize(("tries", "written"), [(3, ["manifest.json"]), (1, [])])
def test_a_rename_waits_for_a_reader_that_windows_lets_hold_the_file_and_not_elsewhere(
    tries: int, written: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.name != "nt" and tries == 1:
        assert files._TRIES == 1
    monkeypatch.setattr(files, "_TRIES", tries)
    refusals = iter([PermissionError(), PermissionError()])
    rename = Path.replace

    def refuse_at_first(path: Path, target: Path) -> Path:
        for refusal in refusals:
            raise refusal
        return rename(path, target)

    monkeypatch.setattr(Path, "replace", refuse_at_first)
    with contextlib.nullcontext() if written else pytest.raises(PermissionError):
        files.write_whole(tmp_path / "manifest.json", b"{}")
    assert [path.name for path in tmp_path.iterdir()] == written
