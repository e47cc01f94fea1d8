"""One folder per paper, all of the same shape."""
