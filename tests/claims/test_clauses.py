"""Claims in worlds that break one clause of them."""

from __future__ import annotations

import pytest

from calibration.clauses import Broken, broken


@pytest.mark.parametrize("world", [*broken()], ids=lambda world: f"{world.claim}: {world.clause}")
def test_a_broken_clause_is_told(world: Broken) -> None:
    for name in world.claim.split():
        measured = world.judge(name)
        assert measured.verdict in world.verdicts, (name, measured.value, measured.note)
