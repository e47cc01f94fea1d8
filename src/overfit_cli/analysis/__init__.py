"""Statistics of a table of cells: crossings, fits, intervals, and users' equations."""
