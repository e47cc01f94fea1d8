"""The shared drawing vocabulary, of any paper."""
