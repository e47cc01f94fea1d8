"""Notebooks in real kernels: what a sweep shows on its way, and the notebook of the documents."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest

from docs.notebook import NOTEBOOK, execute

KEPT = nbformat.read(NOTEBOOK, as_version=4)

SWEEPS = (
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


def printed(cell: Any) -> list[str]:
    """The lines that a cell of code prints."""
    texts = [output.text for output in cell.outputs if output.output_type == "stream"]
    return "".join(texts).splitlines()


@pytest.mark.slow
def test_a_sweep_in_a_notebook_prints_lines_and_can_be_interrupted(tmp_path: Path) -> None:
    cells = [nbformat.v4.new_code_cell(source) for source in SWEEPS]
    ran = execute(nbformat.v4.new_notebook(cells=cells), tmp_path)
    _, swept, quiet, long = [cell for cell in ran.nb.cells if cell.cell_type == "code"]
    first, second, done = printed(swept)
    assert first.endswith("(n 6 × snr 6 × seeds 1), run")
    assert second == "36 to run, 1 job."
    assert done.startswith("Done: 36 trained")
    assert printed(quiet) == []
    *_, kept, last = printed(long)
    assert re.match(r"Interrupted after \d+ of 360 cells; they are kept in long", kept)
    assert last == "interrupted"


@pytest.mark.slow
def test_the_notebook_of_the_documents_runs_to_the_verdicts_that_it_shows(tmp_path: Path) -> None:
    executed = nbformat.read(NOTEBOOK, as_version=4)
    execute(executed, tmp_path)
    again, kept = (
        re.findall(r"<Judged [^:]*: (\w+)", json.dumps(notebook)) for notebook in (executed, KEPT)
    )
    assert again == kept == ["holds", "inconclusive", "fails"]
