"""Ctrl-C while the command's modules are imported, and while Python ends, shows no traceback."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.command import start

pytestmark = pytest.mark.unix

STRIKE = "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(5)\n"


# As an import takes its locks: Python passes over what is raised there.
IN_A_CALLBACK = (
    "import weakref\n"
    "class Lock: ...\n"
    "lock = Lock()\n"
    "def strike(_):\n"
    + "".join(f"    {line}\n" for line in STRIKE.splitlines())
    + "watched = weakref.ref(lock, strike)\n"
    "del lock\n"
)


@pytest.mark.parametrize("module", ["typer", "platformdirs", "pyarrow"])
@pytest.mark.parametrize("strike", [STRIKE, IN_A_CALLBACK], ids=["anywhere", "in a callback"])
def test_ctrl_c_while_a_library_is_imported(tmp_path: Path, module: str, strike: str) -> None:
    (tmp_path / "early").mkdir()
    (tmp_path / "early" / f"{module}.py").write_text(strike)
    env = {"PYTHONPATH": str(tmp_path / "early")}
    process = start("sweep", "benign-vit", "--n=2", "--jobs=1", cwd=tmp_path, env=env)
    output, errors = process.communicate(timeout=20)
    assert (process.returncode, output, errors) == (130, "", "")


@pytest.mark.slow
def test_ctrl_c_while_python_ends(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import atexit\n"
        "def strike():\n"
        + "".join(f"    {line}\n" for line in STRIKE.splitlines())
        + "atexit.register(strike)\n"
        "def train(n: int = 1, seed: int = 0):\n"
        "    return {'test_loss': 1.0}\n"
    )
    process = start("sweep", "mine.py", "--n=1", "--jobs=1", cwd=tmp_path)
    output, errors = process.communicate(timeout=20)
    assert "Done: 3 trained" in output
    assert (process.returncode, errors) == (-signal.SIGINT, "")
