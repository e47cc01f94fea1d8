"""Two-layer networks with softmax, exponential and ReLU hidden units (Cao et al. 2024)."""
