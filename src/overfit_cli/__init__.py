"""overfit: run and judge the experiments of the theory of benign overfitting in attention."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

__version__ = "0.1.0"

__all__ = ["__version__", "load"]


def load(directory: str | Path) -> pd.DataFrame:
    """Return the cells of a run directory, one row each, failed ones too.

    Raises:
        UserError: if `directory` holds no cells.
    """
    from overfit_cli.sweep.store import RunDirectory

    return RunDirectory(Path(directory)).load_cells()
