"""What is measured of a surface, and its points (Song et al. 2024, sections 5.2 and 5.3.2)."""

from __future__ import annotations

from overfit_cli.study import Column

MEASUREMENTS = (
    Column("rms_laplacian", "root mean square of the surface's Laplacian"),
    Column("interior_minima", "points below all of their eight neighbours", kind="int"),
    Column("quadratic_residual", "rms residual of the best quadratic, of the surface's deviation"),
    Column("sharpness", "largest rise over the centre's loss, over one plus that loss"),
    Column("centre_loss", "loss of the network, at the surface's centre"),
    Column("lowest_loss", "lowest loss of the surface"),
    Column("highest_loss", "highest loss of the surface"),
    Column("first_stage_loss", "loss after the first stage, on the same batch"),
)

TRAJECTORY = (
    Column("a", "step along the direction in W_Q", symbol="d_1"),
    Column("b", "step along the direction in W_K", symbol="d_2"),
    Column("loss", "loss"),
)
