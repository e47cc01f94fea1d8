"""Columns of a classifier that is evaluated on the way."""

from __future__ import annotations

from overfit_cli.study import Column

COLUMNS = (
    Column(
        "mean_test_loss",
        "test loss, averaged over the steps: lower is faster",
        label="mean test loss",
    ),
    Column("test_loss", "final test loss"),
    Column("test_accuracy", "final test accuracy"),
    Column("best_accuracy", "best test accuracy at any evaluation", label="best test accuracy"),
    Column(
        "train_loss", "training loss since the last evaluation but one", label="final training loss"
    ),
    Column(
        "shortcut_accuracy", "test accuracy of the shortcut rule", label="shortcut's test accuracy"
    ),
)
"""Of a cell."""

TRAJECTORY_COLUMNS = (
    Column("train_loss", "training loss since the evaluation before", label="training loss"),
    Column("test_loss", "test loss"),
    Column("test_accuracy", "test accuracy"),
)
"""Of an evaluation."""
