"""The place of the study in installations that are not renewed."""
