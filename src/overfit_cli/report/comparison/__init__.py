"""Comparison of two runs, or of a run with published numbers."""
