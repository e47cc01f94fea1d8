"""Jiang et al. 2024: benign and harmful overfitting of a two-layer Vision Transformer."""
