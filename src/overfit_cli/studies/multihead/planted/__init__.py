"""The planted model DM2: labels from a single attention head."""
