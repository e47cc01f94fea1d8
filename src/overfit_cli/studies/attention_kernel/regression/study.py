"""The study, under the name that installed packages know."""

from overfit_cli.studies.attention_kernel.study import study

__all__ = ["study"]
