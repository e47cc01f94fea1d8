"""Cells that tests of figures share."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.fake_study import NS, SNRS, fake_cells


@pytest.fixture(scope="session")
def cells() -> pd.DataFrame:
    """Cells over ten n and 25 SNR, of three seeds."""
    return fake_cells(NS, SNRS)
