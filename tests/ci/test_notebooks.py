"""Notebooks run in real kernels."""

from __future__ import annotations

import json
import re
from pathlib import Path

import nbformat

from docs.notebook import NOTEBOOK, execute

CELLS = (
    """
import os, signal, threading, time
import overfit_cli

def train(n: int = 1, snr: float = 1.0, seed: int = 0):
    time.sleep(0.05)
    return {"loss": 1 / (1 + n * snr)}
""",
    'overfit_cli.sweep(train, n="1:6", snr="1:2:6", seeds=1, jobs=1, out="run");',
    'overfit_cli.sweep(train, n="1:3", snr="1:2:3", seeds=1, jobs=1, out="quiet", quiet=True);',
    """
threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    overfit_cli.sweep(train, n="1:60", snr="1:2:6", seeds=1, jobs=1, out="long")
except KeyboardInterrupt:
    print("interrupted")
""",
)


def test_a_sweep_in_a_notebook_prints_lines_and_can_be_interrupted(tmp_path: Path) -> None:
    notebook = nbformat.v4.new_notebook(cells=[*map(nbformat.v4.new_code_cell, CELLS)])
    cells = execute(notebook, tmp_path).nb.cells
    _, swept, quiet, long = ("".join(one.get("text", "") for one in cell.outputs) for cell in cells)
    plan = r".*\(n 6 × snr 6 × seeds 1\), run\n36 to run, 1 job\.\nDone: 36 trained.*\n"
    assert re.fullmatch(plan, swept)
    assert not quiet
    kept = r"\nInterrupted after \d+ of 360 cells; they are kept in long.*\ninterrupted\n$"
    assert re.search(kept, long)


def test_the_notebook_of_the_documents_runs_to_the_verdicts_that_it_shows(tmp_path: Path) -> None:
    kept, again = (nbformat.read(NOTEBOOK, as_version=4) for _ in range(2))
    execute(again, tmp_path)
    told = [re.findall(r"<Judged [^:]*: (\w+)", json.dumps(one)) for one in (kept, again)]
    assert told == 2 * [["holds", "inconclusive", "fails"]]
