"""What the first training of a process takes beside is no test's."""

from __future__ import annotations

import importlib

import pytest


@pytest.fixture(scope="session", autouse=True)
def first_step() -> None:
    """Import what optimisers import at their first step, and claims where they are read."""
    for name in ("torch._dynamo", "scipy.stats"):
        importlib.import_module(name)


@pytest.fixture(scope="session")
def first_trees() -> None:
    """Import what the rule of places imports where it is used."""
    importlib.import_module("sklearn.ensemble")
