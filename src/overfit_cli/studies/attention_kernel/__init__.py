"""Song et al. 2024: gradient descent of attention with a softmax and with a Gaussian kernel."""
