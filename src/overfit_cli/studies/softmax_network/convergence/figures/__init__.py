"""Figures of `softmax-convergence`."""
