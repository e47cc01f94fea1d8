"""Cells of a study, trained in this process without a run directory."""

from __future__ import annotations

import itertools
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from overfit_cli import Study
from overfit_cli.core.cell import Cell, CellResult
from overfit_cli.core.parameters import StudyParameters
from overfit_cli.core.training import Execution
from overfit_cli.sweeps.worker import train_all

P = TypeVar("P", bound=StudyParameters)


def cell_of(study: Study[P], parameters: object = None, seed: int = 0) -> Cell[P]:
    """A cell of a study, with parameters as its model or as a mapping of some of them."""
    values = study.parameters.model_validate({} if parameters is None else parameters)
    return Cell(study.name, study.version, values, seed)


def train(study: Study[P], *cells: Cell[P], **execution: Any) -> list[CellResult[Any]]:
    """Train cells as one batch; the results are in the cells' order."""
    trained = train_all(study, cells, Execution(**execution))
    return sorted(trained, key=lambda result: cells.index(result.cell))


def train_in_batches(study: Study[P], *cells: Cell[P], **execution: Any) -> list[CellResult[Any]]:
    """Train cells in the batches of a sweep; the results are in the cells' order."""
    batches = [train(study, *batch, **execution) for batch in study.batches(cells, "cpu")]
    return sorted(itertools.chain(*batches), key=lambda result: cells.index(result.cell))


def begins_with(longer: NDArray[Any], shorter: NDArray[Any]) -> bool:
    """Whether an array is another with more rows, columns and so on behind its own."""
    return np.array_equal(longer[tuple(map(slice, shorter.shape))], shorter)
