"""Figure 2 of Jiang et al. 2024: a Vision Transformer on handwritten digits in a ring of noise."""
