"""The study `benign-vit`: a two-layer Vision Transformer on signal and noise tokens."""
