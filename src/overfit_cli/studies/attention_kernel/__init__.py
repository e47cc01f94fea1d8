"""Song et al. 2024: gradient descent on attention with a softmax and with a Gaussian kernel."""
