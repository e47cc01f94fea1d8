"""What the paper predicts, and how its quantities are read off cells."""
