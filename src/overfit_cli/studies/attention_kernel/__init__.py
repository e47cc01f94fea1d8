"""Song et al. 2024: how the attention kernel decides what gradient descent can reach."""
