"""The place of the study in installations that are not renewed."""

from overfit_cli.studies.softmax_network.study import study

__all__ = ["study"]
