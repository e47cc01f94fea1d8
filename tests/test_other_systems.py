"""The package on Windows: it needs nothing that Windows lacks, and reads its paths."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest

import overfit_cli
from overfit_cli.core import files
from overfit_cli.core.errors import UserError
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
for name in (
    "O_NONBLOCK O_DIRECTORY O_NOFOLLOW fork forkpty killpg setsid setpgid getpgid getpgrp getuid "
    "geteuid getgid getloadavg sysconf mkfifo mknod chown fchmod fchown nice sched_getaffinity "
    "sched_setaffinity uname ttyname pread pwrite sync"
).split():
    if hasattr(os, name):
        gone[name] = getattr(os, name)
        delattr(os, name)
for name in "SIGALRM SIGHUP SIGKILL SIGQUIT SIGUSR1 SIGUSR2 SIGCHLD SIGPIPE ITIMER_REAL".split():
    delattr(signal, name)
del signal.setitimer, signal.alarm
assert sorted(import_all()) == sorted(names)
"""

USE = """
for name in ("O_NONBLOCK", "O_NOFOLLOW", "fchmod"):  # filelock's build for Unix uses them
    setattr(os, name, gone[name])
from overfit_cli.cli.app import main
for arguments in (
    ["sweep", "toy", "--jobs=1", "--n=1:3", "--snr=1:2:3", "--seeds=2", "--out=run"],
    ["sweep", "toy", "--jobs=1", "--n=1:3", "--snr=1:2:3", "--seeds=2", "--out=run", "--dry-run"],
    ["plot", "heatmap", "--from=run"],
    ["verify", "run"],
    ["report", "run", "--out=page"],
    ["compare", "run", "run"],
    ["runs", "run"],
    ["compact", "run"],
):
    sys.argv = ["overfit", *arguments]
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


def unnamed_encodings(tree: ast.AST) -> list[int]:
    """Lines that read or write text in the encoding of the system."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [
        call.lineno
        for call in calls
        if (
            isinstance(call.func, ast.Attribute)
            and call.func.attr in ("read_text", "write_text")
            and getattr(call.func.value, "id", "") != "formatter"  # Click's, of help texts
            and not any(keyword.arg == "encoding" for keyword in call.keywords)
            and len(call.args) < (1 if call.func.attr == "read_text" else 2)
        )
        or (
            any(keyword.arg in ("text", "universal_newlines") for keyword in call.keywords)
            and isinstance(call.func, ast.Attribute)
            and getattr(call.func.value, "id", "") == "subprocess"
        )
    ]


def test_no_file_is_read_in_the_encoding_of_the_system() -> None:
    assert unnamed_encodings(ast.parse("a.read_text()\nb.write_text('x')\n")) == [1, 2]
    lines = {
        path.relative_to(PACKAGE).as_posix(): numbers
        for path in PACKAGE.rglob("*.py")
        if (numbers := unnamed_encodings(ast.parse(path.read_bytes())))
    }
    assert not lines


@pytest.mark.parametrize(
    ("text", "where", "name"),
    [
        (r"C:\lab\mine.py:train", r"C:\lab\mine.py", "train"),
        ("d:/lab/mine.py:train", "d:/lab/mine.py", "train"),
        (r"C:\lab\mine.py", r"C:\lab\mine.py", ""),
        ("c:train", "c", "train"),
    ],
)
def test_a_function_in_a_file_on_a_drive_has_its_name_behind_the_last_colon(
    text: str, where: str, name: str
) -> None:
    assert is_reference(text)
    assert split_reference(text) == (where, name)


def test_a_folder_on_a_drive_names_no_function() -> None:
    assert not is_reference(r"C:\lab\results\mine")
    with pytest.raises(UserError, match=r"it takes FILE\.py"):
        split_reference(r"C:\lab\results\mine")


def test_the_name_of_a_run_directory_has_no_character_that_some_system_refuses() -> None:
    name = named_after("mine", {"data": ['a<b>:c"d|e?f*g/h\\i']})
    assert name.startswith("mine-dataa_b__c_d_e")
    assert not set('<>:"/\\|?*') & set(name)


def test_a_rename_waits_for_a_reader_that_windows_lets_hold_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals = iter([PermissionError(), PermissionError()])
    rename = Path.replace

    def refuse_at_first(path: Path, target: Path) -> Path:
        for refusal in refusals:
            raise refusal
        return rename(path, target)

    monkeypatch.setattr(Path, "replace", refuse_at_first)
    monkeypatch.setattr(files, "_TRIES", 3)
    files.write_whole(tmp_path / "manifest.json", b"{}")
    assert os.listdir(tmp_path) == ["manifest.json"]  # noqa: PTH208


@pytest.mark.skipif(os.name == "nt", reason="there it is tried again")
def test_a_rename_that_is_refused_is_reported_at_once_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = list[Path]()

    def refuse(path: Path, target: Path) -> Path:
        calls.append(target)
        raise PermissionError

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(PermissionError):
        files.write_whole(tmp_path / "manifest.json", b"{}")
    assert calls == [tmp_path / "manifest.json"]
    assert not [*tmp_path.iterdir()]
