"""Sweeps: from ranges to rows in a run directory, and back."""
