"""A picture of the report's page, `page.png`: some parts of the page that is kept.

    python -m docs.page_picture

It needs Chromium, as the tests of the page do. The counts of claims that the picture shows are in
its metadata too, so that a test sees when the page has others.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path

from PIL import Image, ImageDraw
from PIL.PngImagePlugin import PngInfo
from playwright.sync_api import FloatRect, Page, ViewportSize

from tests.ci.browser import browser

ROOT = Path(__file__).parents[1]
PICTURE = Path(__file__).parent / "page.png"
SCREEN = ViewportSize(width=800, height=1000)
"""As wide as the README shows the picture, so that its letters have the size of a page's."""

SHARPNESS = 2
"""Pixels of the picture for each of the screen, for screens of high resolution."""

PARTS = (
    ("#top", ".findings > :first-child"),
    (".summary", ".summary"),
    ("#study-benign-vit .kind", "#claim-benign-vit-fig1-contour"),
    ("#claim-multihead-mixture-mixture-lemma2",) * 2,
)
"""The elements that begin and end each part: a paper's findings, counts, and two claims."""

LEFT_OUT = "#claim-benign-vit-fig1-fitted"
"""A claim between the head of its table and the one that is shown."""

COUNTS = "counts"
"""The key of the counts in the picture's metadata."""

COUNTED = """rows => Object.fromEntries(rows.map(row => [
    row.querySelector("th .aside").textContent,
    Object.fromEntries([...row.querySelectorAll("td[class]:has(a)")].map(
        cell => [cell.className, Number(cell.textContent)]))]))"""
"""The numbers of claims in the table's rows, by kind and verdict."""

MARGIN = 8
"""Pixels of the screen above and below a part."""


def main() -> None:
    """Draw the parts of the kept page below each other, with dashes where the page is cut."""
    with browser() as chromium:
        context = chromium.new_context(
            viewport=SCREEN, color_scheme="light", device_scale_factor=SHARPNESS
        )
        page = context.new_page()
        page.goto((ROOT / "results" / "report" / "index.html").as_uri())
        page.locator(LEFT_OUT).evaluate("row => row.remove()")
        parts = [_picture_of(page, *ends) for ends in PARTS]
        rows = page.locator(".summary").first.locator("tbody tr:has(th .aside)")
        record = PngInfo()
        record.add_text(COUNTS, json.dumps(rows.evaluate_all(COUNTED)))
        context.close()
    _join(parts).save(PICTURE, optimize=True, pnginfo=record)


def _picture_of(page: Page, first: str, last: str) -> Image.Image:
    """A picture of the page from the top of an element to the bottom of another."""
    boxes = [page.locator(selector).first.bounding_box() for selector in (first, last)]
    assert boxes[0] is not None and boxes[1] is not None, (first, last)
    top, bottom = boxes[0]["y"], boxes[1]["y"] + boxes[1]["height"]
    clip = FloatRect(x=0, y=top, width=SCREEN["width"], height=bottom - top)
    return Image.open(io.BytesIO(page.screenshot(clip=clip, full_page=True))).convert("RGB")


def _join(parts: Sequence[Image.Image]) -> Image.Image:
    """Pictures below each other, with dashes between them, in few colours."""
    margin = MARGIN * SHARPNESS
    heights = [part.height + 2 * margin for part in parts]
    joined = Image.new("RGB", (parts[0].width, sum(heights)), "white")
    draw, top = ImageDraw.Draw(joined), 0
    for part, height in zip(parts, heights, strict=True):
        joined.paste(part, (0, top + margin))
        for left in range(0, joined.width if top else 0, 8 * SHARPNESS):
            draw.line([(left, top), (left + 4 * SHARPNESS, top)], "#999999", SHARPNESS)
        top += height
    return joined.quantize(128, dither=Image.Dither.NONE)


if __name__ == "__main__":
    main()
