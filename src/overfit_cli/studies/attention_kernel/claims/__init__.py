"""The claims of Song et al. 2024: those of `kernel-regression`, by section of the paper."""

from __future__ import annotations

from overfit_cli.studies.attention_kernel.claims import appendix, section_4_1, section_4_2
from overfit_cli.studies.attention_kernel.claims.cells import song

__all__ = ["appendix", "section_4_1", "section_4_2"]

CLAIMS = song.claims
