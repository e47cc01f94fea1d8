"""The figures of the study `softmax-convergence`."""
