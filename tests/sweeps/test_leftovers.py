"""What a killed sweep leaves in memory is taken away by the next one, and no living one's."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import psutil
import pytest

from overfit_cli.sweeps import leftovers
from tests.command import run, start, wait_for

SHARED = Path("/dev/shm")
TRACKER = "loky.backend.resource_tracker"

pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="needs Linux's /dev/shm")

FUNCTION = """
import time
import numpy as np

DATA = np.ones(400_000)  # so large that joblib shares it

def train(n: int = 1, seed: int = 0):
    time.sleep(0.1)
    return {"test_loss": float(DATA[n])}
"""
GRID = ("mine.py", "--seeds=1", "--jobs=2")


def left_by(process: subprocess.Popen[str]) -> set[str]:
    """The kinds of things that bear a process's number."""
    number = process.pid
    kinds = {"semaphores": f"sem.loky-{number}-*", "maps": f"joblib_memmapping_folder_{number}_*"}
    return {kind for kind, pattern in kinds.items() if any(SHARED.glob(pattern))}


def begin(folder: Path, out: str, cells: int) -> subprocess.Popen[str]:
    """Start a sweep in a process group of its own, and wait for its first cell."""
    grid = (*GRID, f"--n=1:{cells}", "--out", out)
    env = {"OVERFIT_CACHE": str(folder / "cache")}
    process = start("sweep", *grid, cwd=folder, new_session=True, env=env)
    wait_for(lambda: any((folder / out / "cells").glob("*.parquet")))
    return process


def sweep(folder: Path, out: str, cache: str = "cache") -> None:
    env = {"OVERFIT_CACHE": str(folder / cache)}
    run("sweep", *GRID, "--n=1:3", "--out", out, cwd=folder, env=env)


@pytest.mark.slow
def test_what_a_killed_sweep_left_is_taken_away_and_a_living_one_keeps_its_own(
    tmp_path: Path,
) -> None:
    (tmp_path / "mine.py").write_text(FUNCTION)
    living, killed = begin(tmp_path, "living", 1000), begin(tmp_path, "killed", 1000)
    try:
        os.killpg(killed.pid, signal.SIGKILL)
        killed.communicate(timeout=20)
        assert left_by(killed) == left_by(living) == {"semaphores", "maps"}
        sweep(tmp_path, "other", cache="another-users")
        assert left_by(killed) == {"semaphores", "maps"}, "nobody noted it there"
        sweep(tmp_path, "next")
        assert left_by(killed) == set()
        assert left_by(living) == {"semaphores", "maps"}
        notes = tmp_path / "cache" / "sweeps"
        assert [path.name for path in notes.iterdir()] == [str(living.pid)]
    finally:
        os.killpg(living.pid, signal.SIGTERM)
        _, errors = living.communicate(timeout=20)
    assert errors == ""
    wait_for(lambda: left_by(living) == set())


def test_notes_of_others_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of another machine or container with the same cache, where a number means another process."""
    monkeypatch.setenv("OVERFIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("JOBLIB_TEMP_FOLDER", str(tmp_path))
    gone = subprocess.Popen(["true"])
    gone.wait()
    folder = tmp_path / f"joblib_memmapping_folder_{gone.pid}_a_b"
    folder.mkdir()
    note = tmp_path / "cache" / "sweeps" / str(gone.pid)
    note.parent.mkdir(parents=True)
    note.write_text("another machine")
    leftovers.clear_leftovers()
    assert folder.exists()
    assert note.exists()
    note.write_text(leftovers._here())
    leftovers.clear_leftovers()
    assert not folder.exists()
    assert not note.exists()


def test_a_cache_that_takes_no_note_is_no_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "odd" / "sweeps" / "99999999999999999999").mkdir(parents=True)
    (tmp_path / "odd" / "sweeps" / "4194999").write_bytes(b"\xff")
    monkeypatch.setenv("OVERFIT_CACHE", str(tmp_path / "odd"))
    leftovers.clear_leftovers()
    monkeypatch.setenv("OVERFIT_CACHE", str(tmp_path / "file"))
    leftovers._note.cache_clear()
    leftovers.clear_leftovers()
    leftovers._note.cache_clear()


@pytest.mark.slow
def test_a_killed_sweep_leaves_no_advice_and_a_killed_tracker_no_traceback(tmp_path: Path) -> None:
    """Joblib's tracker writes to the same terminal, after the sweep has ended."""
    (tmp_path / "mine.py").write_text(FUNCTION)
    process = begin(tmp_path, "killed", 200)
    process.kill()
    assert process.communicate(timeout=20)[1] == ""
    process = begin(tmp_path, "struck", 40)
    children = psutil.Process(process.pid).children(recursive=True)
    [tracker] = [child for child in children if TRACKER in " ".join(child.cmdline())]
    tracker.kill()
    output, errors = process.communicate(timeout=30)
    assert process.returncode == 0, output
    assert [line for line in errors.splitlines() if not line.startswith("note: ")] == []
