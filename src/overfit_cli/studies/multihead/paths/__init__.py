"""Gradient descent's path from zero, as the proofs of Deora et al. 2024 follow it."""
