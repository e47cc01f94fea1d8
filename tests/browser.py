"""A real browser for the tests of the page."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

CHOSEN = "OVERFIT_TEST_BROWSER"
"""The variable that names a browser to test with."""

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_QUIET = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")


@contextmanager
def browser() -> Iterator[Browser]:
    """Start headless Chromium: the one that is named, else Playwright's, else the system's.

    Without one the test is skipped, and in CI it fails.
    """
    with sync_playwright() as playwright:
        named = os.environ.get(CHOSEN)
        found = (
            [named] if named else [playwright.chromium.executable_path, *map(shutil.which, _NAMES)]
        )
        path = next((path for path in found if path and Path(path).is_file()), None)
        if path is None:
            said = f"there is no Chromium {named or ''}: playwright install, or apt-get install it"
            if named or os.environ.get("CI"):
                pytest.fail(said)
            pytest.skip(said)
        started = playwright.chromium.launch(executable_path=path, args=[*_QUIET])
        try:
            yield started
        finally:
            started.close()
