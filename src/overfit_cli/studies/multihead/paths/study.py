"""The study `multihead-paths`, where it was installed."""

from overfit_cli.studies.multihead.study import paths as study

__all__ = ["study"]
