"""The claims on `softmax-convergence`: Table 1, sections 4, 5 and F of Cao et al. 2024."""

from __future__ import annotations

from overfit_cli.studies.softmax_network.claims import powers, proof, table1

CLAIMS = (*table1.cao.claims, *powers.cao.claims, *proof.cao.claims)
