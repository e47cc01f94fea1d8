"""The study `kernel-landscape`: figure 4 of Song et al. 2024."""
