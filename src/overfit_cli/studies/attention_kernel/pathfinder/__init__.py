"""The Pathfinder images of Linsley et al. 2018: drawn here, or read as the LRA ships them."""
