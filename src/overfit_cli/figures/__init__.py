"""The shared drawing vocabulary. It knows no paper."""
