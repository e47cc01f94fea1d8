"""The study `kernel-regression`: Theorems 1 to 3 and the vanishing gradient of Song et al. 2024."""
