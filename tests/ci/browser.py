"""A real browser for the tests of the page."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_QUIET = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")


@contextmanager
def browser() -> Iterator[Browser]:
    """Start headless Chromium: $OVERFIT_TEST_BROWSER, else Playwright's, else the system's.

    Without one the test is skipped, and in CI it fails.
    """
    with sync_playwright() as playwright:
        named = os.environ.get("OVERFIT_TEST_BROWSER")
        others = [playwright.chromium.executable_path, *map(shutil.which, _NAMES)]
        found = [named] if named else others
        path = next((path for path in found if path and Path(path).is_file()), None)
        if path is None:
            said = f"there is no Chromium {named or ''}: playwright install, or apt-get install it"
            if named or os.environ.get("CI"):
                pytest.fail(said)
            pytest.skip(said)
        with playwright.chromium.launch(executable_path=path, args=[*_QUIET]) as started:
            yield started
