"""Studies made of plain functions."""
