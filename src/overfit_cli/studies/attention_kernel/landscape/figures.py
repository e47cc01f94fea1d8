"""The figures of `kernel-landscape`."""

from overfit_cli.figure import Figure

FIGURES: dict[str, Figure] = {}
