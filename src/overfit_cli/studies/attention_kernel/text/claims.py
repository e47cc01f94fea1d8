"""The claims of figure 2 of Song et al. 2024: text classification."""

from __future__ import annotations

from overfit_cli.studies.attention_kernel.classifier.claims import (
    SOURCE,
    above_shortcut,
    control_claims,
    faster,
    head_alive,
    more_accurate,
)
from overfit_cli.studies.attention_kernel.text.parameters import KernelTextParameters

CLAIMS = (
    faster(
        "text-gaussian-faster",
        KernelTextParameters,
        "gaussian",
        "Gaussian attention converges faster than softmax attention on text classification.",
        f"{SOURCE}, figure 2",
    ),
    more_accurate("text-gaussian-more-accurate", KernelTextParameters),
    *control_claims("text", KernelTextParameters),
    above_shortcut("text-above-shortcut", KernelTextParameters, "the bag-of-words rule"),
    head_alive("text-head-alive", KernelTextParameters),
)
