"""The study `softmax-diffusion`: score estimation (Cao et al. 2024, section 6)."""
