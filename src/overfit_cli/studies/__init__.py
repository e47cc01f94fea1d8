"""One folder a paper, all of the same shape."""
