"""Pathfinder, the images of Linsley et al. 2018: the study `kernel-pathfinder`."""
