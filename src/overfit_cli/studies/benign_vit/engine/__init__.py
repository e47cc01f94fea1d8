"""The fast training: gradient descent in token space."""
