"""Text classification: the study `kernel-text`."""
