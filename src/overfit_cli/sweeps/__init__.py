"""Planning, training and storing of cells, of any paper."""
