"""Theorems 1 to 3 and the vanishing gradient: the study `kernel-regression`."""
