"""Deora et al. 2024: optimisation and generalisation of multi-head attention."""
