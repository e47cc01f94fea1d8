"""Speed, as ratios measured side by side. `make bench` runs all of them."""
