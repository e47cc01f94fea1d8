"""Made-up worlds for the study's claims, with noise as it was measured on ten seeds."""

from __future__ import annotations

from collections.abc import Mapping

from overfit_cli.claims.calibration import Worlds

WORLDS: Mapping[str, Worlds] = {}
