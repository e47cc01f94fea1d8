"""What is measured of a cell, once and after each pass over the training samples."""

from __future__ import annotations

from overfit_cli.study import Column

_BOTH = (
    Column("train_loss", "training loss", symbol="L_S"),
    Column("test_loss", "test loss", symbol="L_D"),
    Column("train_error", "training error"),
    Column("test_error", "test error"),
)

MEASUREMENTS = (*_BOTH, Column("epochs", "passes over the training samples"))
TRAJECTORY = _BOTH
