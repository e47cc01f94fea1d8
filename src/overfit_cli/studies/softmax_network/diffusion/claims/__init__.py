"""The claims of Cao et al. 2024 on score estimation."""

from __future__ import annotations

from overfit_cli.studies.softmax_network.diffusion.claims.scores import CLAIMS

__all__ = ["CLAIMS"]
