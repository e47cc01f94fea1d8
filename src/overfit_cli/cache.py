"""The cache folder, for what took long to make; all of it can be deleted at any time."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import platformdirs

VARIABLE = "OVERFIT_CACHE"


def cache_folder() -> Path:
    """Return the folder that `OVERFIT_CACHE` names, else the user's own; it need not exist."""
    named = os.environ.get(VARIABLE)
    return Path(named).expanduser() if named else platformdirs.user_cache_path("overfit")


@contextlib.contextmanager
def temporary_cache() -> Iterator[None]:
    """Keep what is made in the meantime for the meantime only."""
    before = os.environ.get(VARIABLE)
    with tempfile.TemporaryDirectory() as folder:
        os.environ[VARIABLE] = folder
        try:
            yield
        finally:
            if before is None:
                del os.environ[VARIABLE]
            else:
                os.environ[VARIABLE] = before
