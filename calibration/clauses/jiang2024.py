"""Worlds that break one clause of a claim on Jiang et al. 2024."""

from __future__ import annotations

from calibration.clauses import Broken

BROKEN: tuple[Broken, ...] = ()
