"""Statistics and curves: numbers in, numbers out."""
