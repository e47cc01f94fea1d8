"""Text for the `kernel-text` study: generated reviews, IMDb as bytes, and a shortcut's accuracy."""
