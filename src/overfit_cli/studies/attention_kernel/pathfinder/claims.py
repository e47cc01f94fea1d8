"""The claims of figure 3 of Song et al. 2024: Pathfinder."""

from __future__ import annotations

from overfit_cli.studies.attention_kernel.classifier.claims import (
    SOURCE,
    above_shortcut,
    faster,
    head_alive,
    more_accurate,
    steadier,
)
from overfit_cli.studies.attention_kernel.pathfinder.parameters import KernelPathfinderParameters

CLAIMS = (
    faster(
        "pathfinder-gaussian-faster",
        KernelPathfinderParameters,
        "gaussian",
        "Gaussian attention converges faster than softmax attention on Pathfinder.",
        f"{SOURCE}, figure 3",
    ),
    more_accurate("pathfinder-gaussian-more-accurate", KernelPathfinderParameters),
    steadier("pathfinder-gaussian-steadier", KernelPathfinderParameters),
    above_shortcut(
        "pathfinder-above-shortcut", KernelPathfinderParameters, "the distance-only rule"
    ),
    head_alive("pathfinder-head-alive", KernelPathfinderParameters),
)
