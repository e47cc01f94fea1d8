"""What is measured of a classifier, once and at each evaluation (Song et al. 2024, section 5)."""

from __future__ import annotations

from overfit_cli.study import Column

MEASUREMENTS = (
    Column("mean_test_loss", "test loss, averaged over the steps: lower is faster"),
    Column("test_loss", "final test loss"),
    Column("test_accuracy", "final test accuracy"),
    Column("best_accuracy", "best test accuracy at any evaluation"),
    Column("train_loss", "training loss since the last evaluation but one"),
    Column("shortcut_accuracy", "test accuracy of the shortcut rule"),
    Column("silent_head", "share of the head's units that are zero on every test sample"),
)

TRAJECTORY = (
    Column("train_loss", "training loss since the evaluation before"),
    Column("test_loss", "test loss"),
    Column("test_accuracy", "test accuracy"),
    Column("silent_head", "share of the head's units that are zero on every test sample"),
)
