"""The notebook of the documents, `notebook.ipynb`, run anew with its outputs kept.

    python -m docs.notebook

runs its cells in an empty folder.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).with_suffix(".ipynb")
SECONDS = 60
"""The time that a cell may take."""


def execute(
    notebook: nbformat.NotebookNode, folder: Path, client: type[NotebookClient] = NotebookClient
) -> NotebookClient:
    """Run a notebook's cells in a folder, on this Python and its packages.

    Args:
        notebook: it, whose outputs are replaced.
        folder: the working folder of its kernel.
        client: what runs it.

    Returns:
        What has run it.

    Raises:
        CellExecutionError: if a cell raises.
    """
    running = client(
        notebook,
        timeout=SECONDS,
        kernel_name="python3",
        record_timing=False,
        resources={"metadata": {"path": str(folder)}},
    )
    paths = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    absolute = os.pathsep.join(str(Path(path).resolve()) for path in paths)
    running.execute(env={**os.environ, "PYTHONPATH": absolute})
    return running


def main() -> None:
    """Run the notebook of the documents, and write it with its outputs."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        execute(notebook, Path(folder))
    nbformat.write(notebook, NOTEBOOK)


if __name__ == "__main__":
    main()
