"""The study, under the name that installed packages know."""

from overfit_cli.studies.attention_kernel.classifiers import pathfinder as study

__all__ = ["study"]
