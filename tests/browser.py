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
        path = executable(Path(playwright.chromium.executable_path))
        if path is None:
            said = "there is no Chromium: playwright install chromium, or apt-get install chromium"
            if os.environ.get("CI"):
                pytest.fail(said)
            pytest.skip(said)
        started = playwright.chromium.launch(executable_path=path, args=_QUIET)
        try:
            yield started
        finally:
            started.close()


def executable(own: Path) -> Path | None:
    """Return the browser that is named, Playwright's `own`, or the system's; None without any."""
    if chosen := os.environ.get(CHOSEN):
        if not Path(chosen).is_file():
            pytest.fail(f"{CHOSEN}={chosen}: there is no such file")
        return Path(chosen)
    if own.is_file():
        return own
    return next((Path(path) for name in _NAMES if (path := shutil.which(name))), None)
