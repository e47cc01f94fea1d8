"""Where what took long to make is kept, for every study; all of it can be deleted at any time."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

VARIABLE = "OVERFIT_CACHE"


def cache_folder() -> Path:
    """Return the folder that `OVERFIT_CACHE` names, else the user's own; it need not exist."""
    named = os.environ.get(VARIABLE)
    return Path(named).expanduser() if named else platformdirs.user_cache_path("overfit")
