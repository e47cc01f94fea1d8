"""Notebooks in real kernels: what a sweep shows on its way, and the notebook of the documents."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from docs.notebook import NOTEBOOK, execute
from overfit_cli.core.notebook import SECONDS_BETWEEN_PICTURES
from overfit_cli.report import widget

KEPT = nbformat.read(NOTEBOOK, as_version=4)
STATE = "application/vnd.jupyter.widget-state+json"

SWEEPS = (
    """
import os, signal, threading, time
import overfit_cli

def train(n: int = 1, snr: float = 1.0, seed: int = 0):
    time.sleep(0.05)
    return {"loss": 1 / (1 + n * snr)}
""",
    'overfit_cli.sweep(train, n="1:6", snr="1:2:6", seeds=1, jobs=1, out="run");',
    'overfit_cli.sweep(train, n="1:6", seeds=2, jobs=1, out="line");',
    'overfit_cli.sweep(train, n="1:3", snr="1:2:3", seeds=1, jobs=1, out="quiet", quiet=True);',
    """
threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    overfit_cli.sweep(train, n="1:60", snr="1:2:6", seeds=1, jobs=1, out="long")
except KeyboardInterrupt:
    print("interrupted")
""",
    'overfit_cli.sweep(train, n="1:6", snr="1:2:6", seeds=1, jobs=1, out="run");',
)


class Listening(NotebookClient):
    """Runs a notebook, and keeps the kind and the cell of each message."""

    said: list[tuple[str, int]]

    def process_message(self, msg: Any, cell: Any, cell_index: int) -> Any:
        self.said = [*getattr(self, "said", []), (msg["msg_type"], cell_index)]
        return super().process_message(msg, cell, cell_index)


def outputs(notebook: nbformat.NotebookNode) -> list[list[Any]]:
    """The outputs of each cell of code."""
    return [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]


def pictures(cell: list[Any]) -> list[str]:
    """What a cell displays, as text."""
    return [output.data["text/plain"] for output in cell if output.output_type == "display_data"]


def printed(cell: list[Any]) -> str:
    return "".join(output.text for output in cell if output.output_type == "stream")


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Listening:
    """A notebook of sweeps, after its run."""
    cells = [nbformat.v4.new_code_cell(source) for source in SWEEPS]
    notebook = nbformat.v4.new_notebook(cells=cells)
    ran = execute(notebook, tmp_path_factory.mktemp("swept"), Listening)
    assert isinstance(ran, Listening)
    return ran


@pytest.mark.slow
def test_the_diagram_of_a_sweep_fills_in_within_one_output_and_stays(swept: Listening) -> None:
    _, cell, *_ = outputs(swept.nb)
    [picture] = pictures(cell)
    assert picture.startswith("loss over snr (across) and n (up)\n")
    assert "to come" not in picture
    assert len(picture.splitlines()) == 9, "no line of progress is left"
    changes = swept.said.count(("update_display_data", 1))
    assert 3 <= changes <= 2 + 36 * 0.2 / SECONDS_BETWEEN_PICTURES
    assert swept.said.count(("display_data", 1)) == 1
    first, second, done = printed(cell).splitlines()
    assert first.endswith("(n 6 × snr 6 × seeds 1), run")
    assert second == "36 to run, 1 job."
    assert done.startswith("Done: 36 trained")
    [html] = [output.data["text/html"] for output in cell if "data" in output]
    assert html.startswith("<pre")
    assert "background-color" in html
    assert "<script" not in html


@pytest.mark.slow
def test_what_is_shown_of_lines_and_of_quiet_interrupted_and_repeated_sweeps(
    swept: Listening,
) -> None:
    _, diagram, line, quiet, long, again = outputs(swept.nb)
    assert pictures(line) == ["12 of 12 cells.\n"]
    assert quiet == []
    [first], [reused] = pictures(diagram), pictures(again)
    assert reused.splitlines()[1:] == first.splitlines()[1:]
    [interrupted] = pictures(long)
    assert re.search(r"\d+ points to come", interrupted)
    *_, kept, last = printed(long).splitlines()
    assert re.match(r"Interrupted after \d+ of 360 cells; they are kept in long", kept)
    assert last == "interrupted"


@pytest.mark.slow
def test_the_notebook_of_the_documents_runs_to_the_verdicts_and_the_script_that_it_shows(
    tmp_path: Path,
) -> None:
    """Where it is only read, the diagram is drawn by the script that is kept in it."""
    executed = nbformat.read(NOTEBOOK, as_version=4)
    execute(executed, tmp_path)
    again, kept = (
        re.findall(r"<Judged [^:]*: (\w+)", json.dumps(notebook)) for notebook in (executed, KEPT)
    )
    assert again == kept == ["holds", "inconclusive", "fails"]
    models = KEPT.metadata.widgets[STATE].state.values()
    [model] = [model.state for model in models if "_esm" in model.state]
    assert model._esm == widget.script(), "run `python -m docs.notebook`"
