"""The study `multihead-planted`, where it was installed."""

from overfit_cli.studies.multihead.study import planted as study

__all__ = ["study"]
