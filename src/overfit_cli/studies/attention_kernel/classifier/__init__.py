"""The small transformer of `kernel-text`, `kernel-pathfinder` and `kernel-landscape`."""
