"""The two-layer CNN on the data of Jiang et al. 2024, beside their Vision Transformer."""
