"""The report's page in a real browser: on a phone and a desk, by pointer and by keyboard."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Dialog, Page, ViewportSize, expect
from scipy import stats

import overfit_cli
from tests.browser import browser
from tests.command import call

pytestmark = pytest.mark.xdist_group("browser")  # one page, and one browser, for all of them

DESK = ViewportSize(width=1280, height=900)
PHONE = ViewportSize(width=390, height=844)
RUNS = ("fig1-quick", "heads-fig6-quick", "kernel-theorem1-quick")
HOSTILE = "<img src=x onerror=alert(1)>"
RESULTS = Path("results").resolve()
PARTS = ("header", "#filters", "#study-multihead-sst2", "#study-kernel-regression .run", "#large")

HOSTILE_STUDY = '''
def train(n: int = 1, snr: float = 1.0, seed: int = 0) -> dict[str, float]:
    """</script><script>alert(2)</script>"""
    if n == 2:
        raise ValueError("{reason}")
    return {{"loss": n * snr + seed}}
'''


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of three kept runs, and of one whose names and reasons are hostile."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "mine.py").write_text(HOSTILE_STUDY.format(reason=f"{HOSTILE}</script>"))
    sweep = ["sweep", "mine.py", "--n", "1:3", "--snr", "1,2", "--jobs", "1", "--out", HOSTILE]
    call(*sweep, cwd=folder, expect=1)
    runs = [HOSTILE, *(str(RESULTS / name) for name in RUNS)]
    call("report", *(f"--from={run}" for run in runs), "--out", "report", cwd=folder)
    return (folder / "report" / "index.html").as_uri()


@pytest.fixture(scope="module")
def started() -> Iterator[Browser]:
    with browser() as one:
        yield one


class Opened:
    """A page with what it said and asked for."""

    def __init__(self, page: Page, address: str) -> None:
        self.page, self.said, self.asked = page, list[str](), list[str]()
        page.on("console", lambda message: self.said.append(message.text))
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("dialog", self._refuse)
        page.on("request", lambda request: self.asked.append(request.url))
        page.goto(address)

    def _refuse(self, dialog: Dialog) -> None:
        self.said.append(dialog.message)
        dialog.dismiss()


@pytest.fixture
def opened(started: Browser, address: str) -> Iterator[Opened]:
    context = started.new_context(viewport=DESK, permissions=["clipboard-read", "clipboard-write"])
    yield Opened(context.new_page(), address)
    context.close()


def shown(page: Page) -> list[str]:
    """The names of the claims that are shown."""
    return page.locator(".claims tbody tr:visible strong").all_inner_texts()


@pytest.mark.parametrize(
    ("size", "scheme"),
    [
        pytest.param(DESK, "light", id="desk-light", marks=pytest.mark.slow),
        pytest.param(PHONE, "dark", id="phone-dark"),
        pytest.param(DESK, "dark", id="desk-dark", marks=pytest.mark.slow),
        pytest.param(PHONE, "light", id="phone-light", marks=pytest.mark.slow),
    ],
)
def test_the_page_is_accessible_quiet_and_asks_for_nothing(
    size: ViewportSize, scheme: Literal["light", "dark"], started: Browser, address: str
) -> None:
    looked_at = started.new_context(viewport=size, color_scheme=scheme)
    opened = Opened(looked_at.new_page(), address)
    page = opened.page
    page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    assert page.locator(".diagram:visible").count() >= 2
    # All of a long page takes a while: a part of each kind is looked at unless there is time.
    some = size is PHONE and scheme == "dark"
    context = {"include": [[one] for one in PARTS]} if some else None
    found = Axe().run(page, context=context).response
    assert len(found["passes"]) > 25
    assert [(one["id"], one["nodes"][0]["html"]) for one in found["violations"]] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    assert opened.said == []
    assert [one for one in opened.asked if not one.startswith("data:")] == [address]
    looked_at.close()


def test_names_and_reasons_of_a_hostile_run_are_text(opened: Opened) -> None:
    page = opened.page
    run = page.locator(".run").filter(has=page.get_by_role("heading", name=HOSTILE, exact=True))
    expect(run).to_contain_text(f"ValueError: {HOSTILE}</script>")
    study = page.locator(".study").filter(has=run)
    expect(study).to_contain_text("</script><script>alert(2)</script>")
    assert page.locator("img[src=x]").count() == 0
    page.wait_for_timeout(100)
    assert opened.said == []


def test_claims_are_filtered_by_verdict_paper_and_words(opened: Opened) -> None:
    page = opened.page
    everything = shown(page)
    expect(page.locator("#count")).to_have_text(f"{len(everything)} of {len(everything)} claims")
    for name in ("vacuous", "not run", "holds", "inconclusive"):
        page.get_by_role("checkbox", name=name).uncheck()
    failing = shown(page)
    assert "theorem1-paper-several" in failing
    assert set(page.locator(".claims tbody tr:visible .verdict").all_inner_texts()) == {"✗ fails"}
    page.get_by_role("checkbox", name="holds").check()
    page.get_by_label("Paper").select_option("jiang2024")
    assert "fig1-exponent" in shown(page)
    assert "theorem1-paper-several" not in shown(page)
    page.get_by_label("Words").fill("exponent fig1")
    assert shown(page) == ["fig1-exponent"]
    expect(page.locator("#count")).to_have_text(f"1 of {len(everything)} claims")
    assert page.locator(".run:visible h4").all_inner_texts() == ["fig1-quick"]
    page.get_by_label("Words").fill("nothing has these words")
    assert shown(page) == []
    expect(page.locator("#none")).to_be_visible()


def test_a_heading_sorts_its_table_up_down_and_back(opened: Opened) -> None:
    page = opened.page
    table = page.locator("#study-benign-vit .claims")
    names = table.locator("tbody tr strong")
    before = names.all_inner_texts()
    button, heading = table.get_by_role("button", name="claim"), table.locator("th").first
    button.press("Enter")
    assert names.all_inner_texts() == sorted(before)
    assert heading.get_attribute("aria-sort") == "ascending"
    button.press("Enter")
    assert names.all_inner_texts() == sorted(before, reverse=True)
    button.press("Enter")
    assert names.all_inner_texts() == before
    assert heading.get_attribute("aria-sort") is None
    table.get_by_role("button", name="measured").click()
    numbers = [
        float(row)
        for row in table.locator("tr[data-value]").evaluate_all(
            "rows => rows.map(row => row.dataset.value).filter(Boolean)"
        )
    ]
    assert numbers == sorted(numbers)
    assert len(numbers) >= 6


def test_arrow_keys_read_the_numbers_of_a_place(opened: Opened) -> None:
    page = opened.page
    cells = overfit_cli.load(RESULTS / "fig1-quick")
    run = page.locator(".run").filter(has=page.get_by_role("heading", name="fig1-quick"))
    grid = run.get_by_role("grid")
    grid.locator("[tabindex='0']").focus()
    for key in ["ArrowUp"] * 18 + ["ArrowRight"] * 23 + ["ArrowLeft", "ArrowUp", "ArrowRight"]:
        page.keyboard.press(key)
    at = cells[(cells["n"] == 20) & (cells["snr"] == cells["snr"].max())]["test_loss"]
    low, high = stats.t.interval(0.95, len(at) - 1, at.mean(), stats.sem(at))
    said = run.locator(".reading p").first.inner_text()
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == said
    assert said.startswith("training samples N 20, signal-to-noise ratio SNR 15.6: test loss L_D")
    mean, *others = (float(one) for one in re.findall(r"\d\.\d+", said.partition("L_D")[2]))
    expected = [low, high, at.min(), at.max(), 0.2]
    assert mean == pytest.approx(at.mean(), rel=1e-3)
    assert others == pytest.approx(expected, rel=1e-3)
    assert said.endswith(f"Against the threshold 0.2: {int((at <= 0.2).sum())} seeds benign.")
    page.keyboard.press("Home")
    page.keyboard.press("PageDown")
    expect(run.locator(".reading")).to_contain_text("N 2, signal-to-noise ratio SNR 0.16:")
    assert page.locator("[role=gridcell][tabindex='0']:focus").count() == 1


def test_pointing_at_a_place_shows_the_losses_of_the_seed_in_the_middle(opened: Opened) -> None:
    page = opened.page
    cells = overfit_cli.load(RESULTS / "heads-fig6-quick")
    run = page.locator(".run").filter(has=page.get_by_role("heading", name="heads-fig6-quick"))
    run.get_by_role("gridcell").nth(0).hover()  # the most heads, the smallest step size
    least = cells["learning_rate"].min()
    at = cells[(cells["heads"] == cells["heads"].max()) & (cells["learning_rate"] == least)]
    middle = at.sort_values("mean_test_loss").iloc[(len(at) - 1) // 2]
    expect(run.locator(".reading")).to_contain_text(
        f"of seed {middle['seed']}, the one in the middle"
    )
    steps = overfit_cli.load(RESULTS / "heads-fig6-quick", trajectories=True)
    losses = steps[steps["key"] == middle["key"]].sort_values("step")["test_loss"].dropna()
    points = run.locator(".reading polyline").nth(1).get_attribute("points") or ""
    heights = np.array([float(point.split(",")[1]) for point in points.split()])
    assert len(heights) == len(losses)
    assert np.corrcoef(heights, losses)[0, 1] == pytest.approx(-1, abs=1e-6)  # up is smaller


def test_a_command_is_copied(opened: Opened) -> None:
    page = opened.page
    button = page.locator(".run figure .copy").first
    button.click()
    expect(button).to_have_text("Copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == button.get_attribute("data-copy")
    assert copied.startswith("overfit plot ")
    expect(page.get_by_role("status").last).to_contain_text(copied)


def test_a_figure_is_enlarged_and_put_back_with_the_keyboard(opened: Opened) -> None:
    page = opened.page
    button = page.locator(".enlarge").first
    button.focus()
    page.keyboard.press("Enter")
    large = page.get_by_role("dialog")
    expect(large).to_be_visible()
    image = large.locator("img")
    assert image.get_attribute("src") == button.locator("img").get_attribute("src")
    assert image.evaluate("image => image.complete && image.naturalWidth > 500")
    page.keyboard.press("Escape")
    expect(large).to_be_hidden()
    assert button.evaluate("button => button === document.activeElement")


def test_a_link_to_what_a_filter_hides_shows_it(opened: Opened) -> None:
    page = opened.page
    for _ in range(2):  # the second time its address is the page's already
        page.get_by_label("Paper").select_option("jiang2024")
        page.locator(".summary a", has_text="Song et al. 2024").click()
        expect(page.locator("#heading-song2024")).to_be_in_viewport()


def test_a_study_without_claims_follows_the_filter_of_papers(opened: Opened) -> None:
    page = opened.page
    own = page.locator(".run").filter(has=page.get_by_role("heading", name=HOSTILE, exact=True))
    page.get_by_role("checkbox", name="not run").uncheck()
    expect(own).to_be_visible()
    page.get_by_label("Paper").select_option("own")
    expect(own).to_be_visible()
    page.get_by_label("Paper").select_option("jiang2024")
    expect(own).to_be_hidden()


def test_without_scripts_every_claim_and_figure_is_there(started: Browser, address: str) -> None:
    context = started.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address)
    assert len(shown(page)) > 200
    assert page.locator(".pictures img:visible").count() >= 7
    expect(page.locator(".filters")).to_be_hidden()
    assert page.locator("button:visible").count() == 0
    context.close()


def test_it_prints_what_is_folded_and_no_controls(opened: Opened) -> None:
    page = opened.page
    page.emulate_media(media="print", color_scheme="dark")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    expect(page.locator(".filters")).to_be_hidden()
    expect(page.locator("#study-benign-vit .claims details p").first).to_be_visible()
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    assert len(page.pdf()) > 50_000
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen")
    expect(page.locator("#study-benign-vit .claims details p").first).to_be_hidden()
