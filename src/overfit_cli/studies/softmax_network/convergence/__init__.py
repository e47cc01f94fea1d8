"""The study's place in installations that are not renewed."""
