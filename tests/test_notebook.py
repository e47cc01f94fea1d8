"""The notebook of the documents, in a real kernel."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest

from docs.notebook import NOTEBOOK, execute

KEPT = nbformat.read(NOTEBOOK, as_version=4)


def outputs(notebook: nbformat.NotebookNode) -> list[list[Any]]:
    """The outputs of each cell of code."""
    return [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]


@pytest.mark.slow
def test_the_notebook_of_the_documents_runs_to_the_verdicts_that_it_shows(tmp_path: Path) -> None:
    executed = nbformat.read(NOTEBOOK, as_version=4)
    execute(executed, tmp_path)
    again, kept = (
        re.findall(r"<Judged [^:]*: (\w+)", json.dumps(notebook)) for notebook in (executed, KEPT)
    )
    assert again == kept == ["holds", "inconclusive", "fails"]


def test_the_kept_notebook_is_small_and_names_no_machine() -> None:
    text = NOTEBOOK.read_text()
    assert len(text) < 400_000
    assert not re.search(r"/(tmp|home|root|work|Users|var)/|ipykernel_\d", text)
    nbformat.validate(KEPT)
    assert all(outputs(KEPT))
    counts = [cell.execution_count for cell in KEPT.cells if cell.cell_type == "code"]
    assert counts == list(range(1, len(counts) + 1)), "run from its first cell to its last"
    assert not any(output.output_type == "error" for cell in outputs(KEPT) for output in cell)
