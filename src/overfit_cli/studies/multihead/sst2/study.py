"""The study `multihead-sst2`, where it was installed."""

from overfit_cli.studies.multihead.study import sst2 as study

__all__ = ["study"]
