"""Bounds, margins and hypotheses of Deora et al. 2024, and what is measured beside them."""
