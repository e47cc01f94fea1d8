"""Pathfinder images, drawn as Linsley et al. 2018 do."""
