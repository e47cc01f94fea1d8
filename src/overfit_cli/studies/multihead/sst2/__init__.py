"""A study."""
