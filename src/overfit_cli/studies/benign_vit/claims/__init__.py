"""All claims of `benign-vit`, by the section of the paper."""

from __future__ import annotations

from overfit_cli.studies.benign_vit.claims import figures, limits, stages, theorems

CLAIMS = (
    *figures.jiang.claims,
    *theorems.jiang.claims,
    *stages.jiang.claims,
    *limits.jiang.claims,
)
