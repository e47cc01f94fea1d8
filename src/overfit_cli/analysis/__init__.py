"""Statistics of a table of cells: crossings, fits, intervals, and laws written by a user."""
