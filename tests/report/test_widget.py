"""The phase diagram of a notebook: the page's own, as a widget in a real browser."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

import overfit_cli
from overfit_cli import UserError
from tests.browser import browser
from tests.kept import RESULTS
from tests.toy_runs import sweep_toy

RENDER = """async ([script, values]) => {
  const address = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
  const widget = (await import(address)).default;
  const show = () => {
    const el = document.body.appendChild(document.createElement("div"));
    widget.render({ model: { get: (name) => values[name] }, el });
  };
  show();
  show();
}"""
"""What anywidget does with the module of a widget: here in two views."""

NOTEBOOK = """<style>.panel, .place, .reading p { display: none; } body { color: #123456; }</style>
<div class="diagram" id="other">of the notebook</div>"""
"""A page whose style and elements have the same names."""


def shown(page: Page, widget: Any) -> list[str]:
    """Show a widget on a page; return what the page complains of, as it comes."""
    said = list[str]()
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.set_content(NOTEBOOK)
    page.evaluate(RENDER, [widget._esm, {"diagram": widget.diagram, "name": widget.name}])
    return said


@pytest.fixture(scope="module")
def started() -> Iterator[Browser]:
    with browser() as chromium:
        yield chromium


@pytest.mark.slow
def test_a_place_shows_its_numbers_when_it_is_pointed_at_tapped_or_reached_by_key(
    started: Browser,
) -> None:
    context = started.new_context(has_touch=True)
    page = context.new_page()
    said = shown(page, overfit_cli.explore(RESULTS / "fig1-quick"))
    view = page.get_by_role("grid").first
    expect(page.get_by_role("grid")).to_have_count(2)
    places, reading = view.get_by_role("gridcell"), page.locator(".reading").first
    expect(reading).to_contain_text("Point at a place")
    places.nth(10).hover()
    expect(reading).to_contain_text(places.nth(10).get_attribute("aria-label") or "no label")
    expect(reading).to_contain_text("95 % interval")
    places.nth(30).tap()
    expect(reading).to_contain_text(places.nth(30).get_attribute("aria-label") or "no label")
    page.keyboard.press("ArrowRight")
    expect(reading).to_contain_text(places.nth(31).get_attribute("aria-label") or "no label")
    expect(page.locator(".reading").nth(1)).to_contain_text("Point at a place")
    assert page.locator("#other").inner_text() == "of the notebook"
    assert page.locator("h5").count() == 2
    assert not said
    context.close()


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_its_text_has_the_colours_of_the_notebook(started: Browser, scheme: Any) -> None:
    page = started.new_page(color_scheme=scheme)
    shown(page, overfit_cli.explore(RESULTS / "fig1-quick"))
    page.evaluate("document.documentElement.style.colorScheme = 'light dark'")
    ink = "(holder) => getComputedStyle(holder).color"
    dark = page.locator(".reading").first.evaluate(ink) == "rgb(255, 255, 255)"
    assert dark == (scheme == "dark")
    page.evaluate("document.body.style.setProperty('--jp-content-font-color1', 'rgb(1, 2, 3)')")
    assert page.locator(".reading").first.evaluate(ink) == "rgb(1, 2, 3)"
    page.close()


def test_it_is_of_the_cells_that_are_asked_for_and_says_so_without_a_kernel(tmp_path: Path) -> None:
    run = sweep_toy(tmp_path / "mine", n="1:6")
    every, some = (overfit_cli.explore(run.path, where=where) for where in ((), "n>2"))
    assert every.diagram["y"]["values"] == ["1", "2", "3", "4", "5", "6"]
    assert some.diagram["y"]["values"] == ["3", "4", "5", "6"]
    assert repr(every).startswith("<Phase diagram of mine: ")
    assert "run the cell" in repr(every)


def test_cells_without_a_diagram_and_a_missing_extra_are_told_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = sweep_toy(tmp_path / "run", n="1:2")
    with pytest.raises(UserError, match="its cells make no phase diagram; it takes two"):
        overfit_cli.explore(run.path)
    with pytest.raises(UserError, match="nowhere"):
        overfit_cli.explore(tmp_path / "nowhere")
    monkeypatch.setitem(sys.modules, "anywidget", None)
    with pytest.raises(UserError, match=r"explore needs the package anywidget.*\[notebook\]"):
        overfit_cli.explore(run.path)
