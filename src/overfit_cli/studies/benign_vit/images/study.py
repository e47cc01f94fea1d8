"""The place of the study in installations that are not renewed."""

from overfit_cli.studies.benign_vit.images_study import study

__all__ = ["study"]
