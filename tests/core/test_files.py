"""What a killed process left beside a file is cleared when a file is written there again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command import python

WRITE = """
import os, signal, sys
from pathlib import Path
from overfit_cli.core import files
if sys.argv[1] == "killed":
    os.fsync = lambda file: os.kill(os.getpid(), signal.SIGKILL)
files.write_user_file(Path("out.csv"), b"1", "out")
"""


@pytest.mark.unix
def test_a_temporary_file_of_a_killed_process_is_cleared_and_another_machines_stays(
    tmp_path: Path,
) -> None:
    foreign = tmp_path / ".part-elsewhere-1-0"
    foreign.touch()
    python("-c", WRITE, "killed", cwd=tmp_path, expect=-9)
    assert len(list(tmp_path.glob(".part-*"))) == 2
    python("-c", WRITE, "whole", cwd=tmp_path)
    assert sorted(tmp_path.iterdir()) == [foreign, tmp_path / "out.csv"]
