"""Pathfinder scenes and images, drawn after Linsley et al. 2018."""
