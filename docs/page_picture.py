"""A picture of the report's page, `page.png`: the first screen of the page that is kept.

    python -m docs.page_picture

It needs Chromium, as the tests of the page do.
"""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import ViewportSize

from tests.browser import browser

ROOT = Path(__file__).parents[1]
PICTURE = Path(__file__).parent / "page.png"
SCREEN = ViewportSize(width=1180, height=1000)
SHOWN_WIDTH = 800
"""Pixels of the picture: twice its width in the README, for screens of high resolution."""


def main() -> None:
    """Draw the first screen of the kept page."""
    with browser() as chromium:
        context = chromium.new_context(
            viewport=SCREEN,
            color_scheme="light",
            device_scale_factor=SHOWN_WIDTH / SCREEN["width"],
        )
        page = context.new_page()
        page.goto((ROOT / "results" / "report" / "index.html").as_uri())
        page.screenshot(path=PICTURE)
        context.close()


if __name__ == "__main__":
    main()
