"""Cells under signals: what a signal did is no result, and what the cell's own code raised is."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.command import ended, python, start, wait_for
from tests.toy_runs import parts_in, rows

pytestmark = pytest.mark.unix

STUBBORN = """
import time
from pathlib import Path

def train(n: int = 1, seed: int = 0):
    if n == 3:
        return {"test_loss": 3.0}
    try:
        Path("waits").touch()
        time.sleep(60)
    except KeyboardInterrupt:
        SAYS
    return {"test_loss": -1.0}
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("says", ["pass", "raise RuntimeError('stopped early')"])
@pytest.mark.one_in(3)
def test_a_cell_that_catches_an_interrupt_gives_no_result(
    tmp_path: Path, number: signal.Signals, says: str
) -> None:
    (tmp_path / "mine.py").write_text(STUBBORN.replace("SAYS", says))
    grid = ("mine.py", "--n=3,2,1", "--seeds=1", "--jobs=1", "--out=out")
    process = start("sweep", *grid, cwd=tmp_path)
    wait_for((tmp_path / "waits").exists)
    process.send_signal(number)
    assert "Interrupted" in ended(process, 130)
    if parts_in(tmp_path / "out" / "cells"):
        assert set(rows(tmp_path / "out")["n"]) == {3}


def test_a_signal_that_is_ignored_from_the_start_stays_so(tmp_path: Path) -> None:
    """As under nohup, where a terminal is closed."""
    script = tmp_path / "script.py"
    script.write_text(
        "import os, signal, overfit_cli\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "def train(n: int = 1, seed: int = 0):\n"
        "    os.kill(os.getpid(), signal.SIGHUP)\n"
        "    return {'test_loss': 1.0}\n"
        "overfit_cli.sweep(train, n=[1, 2], seeds=1, jobs=1, out='out', quiet=True)\n"
    )
    python(script, cwd=tmp_path)
    assert set(rows(tmp_path / "out")["status"]) == {"done"}


WORKER = """
import os, signal, sys, threading
import cloudpickle
from overfit_cli.core.registry import find_study
from overfit_cli.core.training import Execution
from overfit_cli.sweeps.grid import Grid
from overfit_cli.sweeps.worker import VERSIONS, Work, run_remotely

signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
toy = find_study("toy")
cells = Grid.read(toy, {"mood": MOOD, "pause": PAUSE}, (0,)).cells()
if PAUSE != "0":
    threading.Timer(0.5, os.kill, (os.getpid(), signal.NUMBER)).start()
try:
    task = cloudpickle.dumps({0: cells})
    record = run_remotely(VERSIONS, cloudpickle.dumps(Work(toy, Execution())), task)
except BaseException as error:
    print(type(error).__name__, error)
else:
    print(*record.failed.values())
"""


@pytest.mark.parametrize(
    ("mood", "number", "said"),
    [
        ("well", "SIGTERM", "SystemExit 1"),
        ("well", "SIGINT", "KeyboardInterrupt"),
        ("exits", "", "error: SystemExit: enough"),
        ("interrupts", "", "error: KeyboardInterrupt"),
    ],
)
@pytest.mark.one_in(2)
def test_a_worker_of_a_cluster_answers_signals_as_it_did_and_records_no_cell(
    tmp_path: Path, mood: str, number: str, said: str
) -> None:
    """Such as one of ray, which raises SystemExit in the midst of a cell."""
    text = WORKER.replace("MOOD", repr(mood)).replace("PAUSE", repr("30" if number else "0"))
    done = python("-", text=text.replace("NUMBER", number or "SIGTERM"), cwd=tmp_path)
    assert done.stdout.startswith(said)
