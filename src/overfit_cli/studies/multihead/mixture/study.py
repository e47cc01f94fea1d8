"""The study `multihead-mixture`, where it was installed."""

from overfit_cli.studies.multihead.study import mixture as study

__all__ = ["study"]
