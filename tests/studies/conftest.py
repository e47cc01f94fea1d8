"""What the first training of a process takes beside is no test's."""

from __future__ import annotations

import importlib

import pytest


@pytest.fixture(scope="session", autouse=True)
def imported() -> None:
    """Import what PyTorch's optimisers and the rules of shortcuts import where they are used."""
    for name in ("torch._dynamo", "sklearn.ensemble"):
        importlib.import_module(name)
