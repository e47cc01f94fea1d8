"""Data sets: readers of public ones from their published files, and generators of others."""
