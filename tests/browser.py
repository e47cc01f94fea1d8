"""A real browser for the tests of the page."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Playwright, sync_playwright

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_QUIET = [
    "--no-sandbox",  # in a container there is none
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@contextmanager
def browser() -> Iterator[Browser]:
    """Start headless Chromium; without one the test is skipped, and in CI it fails."""
    with sync_playwright() as playwright:
        path = _executable(playwright)
        if path is None:
            said = "there is no Chromium: apt-get install chromium, or playwright install chromium"
            if os.environ.get("CI"):
                pytest.fail(said)
            pytest.skip(said)
        started = playwright.chromium.launch(executable_path=path, args=_QUIET)
        try:
            yield started
        finally:
            started.close()


def _executable(playwright: Playwright) -> str | None:
    """The system's Chromium, or the one that Playwright has installed."""
    own = playwright.chromium.executable_path
    found = next((path for name in _NAMES if (path := shutil.which(name))), None)
    return found or (own if os.path.exists(own) else None)  # noqa: PTH110
