"""The claims of Theorems 1 to 3, their lemmas and remarks, and section 4.2.2's example."""

from __future__ import annotations

from overfit_cli.studies.attention_kernel.regression.claims import (
    convergence,
    example,
    layers,
    ranks,
    rates,
    spectra,
    tangent,
)
from overfit_cli.studies.attention_kernel.regression.claims.bounds import LEMMA_CLAIMS, SIZE_CLAIMS

CLAIMS = (
    *rates.CLAIMS,
    *layers.CLAIMS,
    *spectra.CLAIMS,
    *convergence.CLAIMS,
    *tangent.CLAIMS,
    *example.CLAIMS,
    *SIZE_CLAIMS,
    *ranks.CLAIMS,
    *LEMMA_CLAIMS,
)
