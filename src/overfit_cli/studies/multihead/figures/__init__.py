"""Figures of Deora et al. 2024, and of what is added to it."""
