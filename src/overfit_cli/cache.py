"""Where what can be computed again is kept."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_cache_path


def cache_folder() -> Path:
    """Return the folder of `OVERFIT_CACHE`, else the user's cache folder; it may not exist yet."""
    given = os.environ.get("OVERFIT_CACHE")
    return Path(given) if given else user_cache_path("overfit")
