"""What `kernel-text`, `kernel-pathfinder` and `kernel-landscape` share: a small transformer."""
