"""The page at four widths: whole numbers, links below the bar, figures that enlarge, addresses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from tests.browser import browser
from tests.command import call

pytestmark = pytest.mark.slow

RESULTS = Path("results").resolve()
RUNS = ("fig1-quick", "kernel-theorem1-quick", "softmax-scores-quick")
SIZES = [
    pytest.param(ViewportSize(width=width, height=height), id=str(width))
    for width, height in ((390, 844), (768, 900), (1024, 800), (1440, 900))
]
CLAIM = "#claim-benign-vit-fig1-exponent"

BROKEN_NUMBERS = r"""() => {
    const broken = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        const parent = node.parentElement;
        if (parent.closest("script, style, pre, code, svg") || !parent.checkVisibility()) continue;
        const numbers = /(?<![\w.-])[-−]?\d[\d.]*(?:e[-+]?\d+)?(?![\w.-])/g;
        for (const match of node.data.matchAll(numbers)) {
            const range = document.createRange();
            range.setStart(node, match.index);
            range.setEnd(node, match.index + match[0].length);
            const lines = new Set([...range.getClientRects()].map((box) => Math.round(box.top)));
            if (lines.size > 1) broken.push(node.data.slice(match.index - 20, match.index + 20));
        }
    }
    return broken;
}"""

CLIPPED_STOPS = """() => [...document.querySelectorAll("a[href], button, select, input, summary")]
    .filter((element) => element.checkVisibility({checkVisibilityCSS: true}))
    .filter((element) => {
        for (let part = element; part; part = part.parentElement) {
            if (getComputedStyle(part).clipPath !== "none") return true;
        }
        return false;
    }).map((element) => element.outerHTML.slice(0, 100))"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of three kept runs."""
    folder = tmp_path_factory.mktemp("page")
    call("report", *(str(RESULTS / name) for name in RUNS), "--out", "report", cwd=folder)
    return (folder / "report" / "index.html").as_uri()


@pytest.fixture(scope="module")
def started() -> Iterator[Browser]:
    with browser() as chromium:
        yield chromium


@pytest.fixture(params=SIZES)
def page(request: pytest.FixtureRequest, started: Browser, address: str) -> Iterator[Page]:
    """The page at each width."""
    context = started.new_context(
        viewport=request.param, permissions=["clipboard-read", "clipboard-write"]
    )
    opened = context.new_page()
    opened.goto(address)
    yield opened
    context.close()


@pytest.fixture
def wide(started: Browser, address: str) -> Iterator[Page]:
    """The page on a desk."""
    context = started.new_context(viewport=ViewportSize(width=1440, height=900))
    opened = context.new_page()
    opened.goto(address)
    yield opened
    context.close()


def unfold(page: Page) -> None:
    """Open every fold of the page."""
    page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")


def test_no_number_is_broken_and_nothing_is_wider_than_the_screen(page: Page) -> None:
    unfold(page)
    assert page.evaluate(BROKEN_NUMBERS) == []
    size = page.viewport_size
    assert size is not None
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]


@pytest.mark.parametrize(
    "target",
    [CLAIM, "#run-kernel-theorem1-quick", "#figure-fig1-quick-heatmap", "#paper-song2024"],
)
def test_a_link_ends_below_the_bar_with_its_target_open(target: str, page: Page) -> None:
    page.evaluate("address => { location.hash = address; }", target)
    page.wait_for_timeout(150)
    box, bar = page.locator(target).bounding_box(), page.locator("#filters").bounding_box()
    assert box is not None
    assert bar is not None
    assert bar["y"] + bar["height"] <= box["y"] + 1
    assert box["y"] < bar["y"] + bar["height"] + 60
    if target == CLAIM:
        expect(page.locator(f"{target} details p").first).to_be_visible()


def test_an_enlarged_figure_is_larger_than_in_the_page(page: Page) -> None:
    unfold(page)
    for picture in page.locator(".pictures img").all():
        before = picture.bounding_box()
        picture.click()
        large = page.locator("#large")
        after = large.locator("img").bounding_box()
        around = large.bounding_box()
        assert before is not None
        assert after is not None
        assert around is not None
        assert after["width"] >= 1.15 * before["width"]
        size = page.viewport_size
        assert size is not None
        assert around["width"] <= size["width"]  # it scrolls inside
        page.keyboard.press("Escape")


def test_details_take_the_width_of_the_table_below_the_whole_row(page: Page) -> None:
    row = page.locator(CLAIM)
    summary, measured = row.locator("summary").first, row.locator("td").nth(2)
    closed = row.bounding_box()
    summary.click()
    text = row.locator("details > p", has_text="Holds where")
    boxes = [part.bounding_box() for part in (row, text, measured, summary)]
    whole, said, number, first = (box for box in boxes if box is not None)
    assert closed is not None
    assert said["width"] > 0.68 * whole["width"]  # beside the figure
    size = page.viewport_size
    assert size is not None
    if size["width"] > 736:
        assert said["y"] - whole["y"] >= closed["height"] - 12
        assert abs(first["y"] - number["y"]) < 10
        assert first["width"] < 0.7 * whole["width"]
    row.locator("a.address").click(trial=True)  # no part of the details lies over it


def test_a_failing_claim_leads_with_what_it_contradicts(page: Page) -> None:
    row = page.locator("#claim-kernel-regression-theorem1-paper-two")
    meaning = row.locator(".meaning")
    expect(meaning).to_have_text(
        "Contradicts Song et al. 2024, Theorem 1, whose hypotheses are met."
    )
    number = row.locator("td").nth(2).locator(".number").first
    above, below = meaning.bounding_box(), number.bounding_box()
    assert above is not None
    assert below is not None
    assert above["x"] < below["x"] or above["y"] < below["y"]
    assert page.locator(f"{CLAIM} .meaning").count() == 0


def test_that_a_figure_enlarges_is_written_on_it_and_keys_open_and_close_it(page: Page) -> None:
    unfold(page)
    button = page.locator(".pictures button").first
    expect(button.get_by_text("Enlarge", exact=True)).to_be_visible()
    button.press("Enter")
    large = page.locator("#large")
    expect(large.locator("img")).to_be_visible()
    width = large.locator("img").evaluate("image => [image.width, image.naturalWidth]")
    assert width[0] >= width[1]  # every label is as large as it was drawn
    large.locator(".scrolled").press("End")
    page.keyboard.press("Escape")
    expect(large).to_be_hidden()
    expect(button).to_be_focused()


def test_no_tab_stop_is_out_of_sight(page: Page) -> None:
    assert page.evaluate(CLIPPED_STOPS) == []


def test_a_folded_page_of_many_claims_is_short(wide: Page) -> None:
    claims = wide.locator(".claims tbody tr:visible").count()
    assert claims > 60
    height = wide.evaluate("document.documentElement.scrollHeight")
    assert height < 100 * claims + 3000


def test_it_opens_with_the_question_the_findings_and_the_counts(wide: Page) -> None:
    expect(wide.get_by_role("heading", level=1)).to_have_text(
        "Do the claims of 3 papers hold when they are measured?"
    )
    finding = wide.locator(".findings li", has_text="N·SNRp = C")
    counts = wide.locator(".findings h2 .aside").first.inner_text()
    assert (
        sum(int(part.split()[0]) for part in counts.split(", "))
        == wide.locator("#paper-jiang2024 tr[data-kind=paper]").count()
    )
    expect(finding).to_be_in_viewport()
    finding.get_by_role("link").first.click()
    expect(wide.locator(f"{CLAIM} details p").first).to_be_visible()
    papers = wide.locator(".findings h2 > a").all_inner_texts()
    assert papers == ["Jiang et al. 2024", "Song et al. 2024"]
    rows = wide.locator("header > .summary tbody tr")
    totals = [int(text) for text in rows.locator("td:last-child").all_inner_texts()]
    assert sum(totals[:-1]) == totals[-1]
    shares = rows.last.locator("rect").evaluate_all(
        "bars => bars.map(bar => Number(bar.getAttribute('width')))"
    )
    assert sum(shares) == totals[-1]


def test_the_address_keeps_the_filter_the_order_and_the_words(wide: Page, started: Browser) -> None:
    wide.get_by_label("Words").fill('"test losses" 0.2')
    wide.get_by_role("checkbox", name="vacuous").uncheck()
    wide.get_by_label("Sort by").select_option("name descending")
    names = wide.locator(".claims tbody tr:visible strong").all_inner_texts()
    assert "fig1-exponent" in names
    other = started.new_context(viewport=ViewportSize(width=1440, height=900))
    again = other.new_page()
    again.goto(wide.url)
    assert again.locator(".claims tbody tr:visible strong").all_inner_texts() == names
    again.get_by_role("button", name="Show all").click()
    expect(again.locator("#show-all")).to_be_hidden()
    expect(again.get_by_label("Words")).to_have_value("")
    assert "?" not in again.url
    other.close()


def test_a_count_shows_its_claims_and_headings_count_what_is_shown(wide: Page) -> None:
    row = wide.locator("header > .summary tbody tr").filter(has_text="of the papers")
    link = row.locator("td.fails a")
    count = int(link.inner_text())
    link.click()
    rows = wide.locator(".claims tbody tr:visible")
    assert rows.count() == count
    assert set(rows.evaluate_all("rows => rows.map(row => row.dataset.verdict)")) == {"fails"}
    assert wide.url.endswith("?verdict=fails&kind=paper")
    total = wide.locator(".claims tbody tr").count()
    expect(wide.locator("#count")).to_have_text(f"{count} of {total} claims shown")
    headings = wide.locator("details.kind:visible > summary .count").all_inner_texts()
    assert sum(int(text.split()[0]) for text in headings) == count
    wide.get_by_label("Sort by").select_option("value descending")
    expect(wide.locator("#count")).to_have_text(
        f"{count} of {total} claims shown; each table by measured, most first"
    )


def test_the_counts_of_the_first_sentence_and_of_a_paper_show_their_claims(wide: Page) -> None:
    rows = wide.locator(".claims tbody tr:visible")
    for link in wide.locator("header > p a[href^='?'], .findings h2 .aside a").all():
        count = int(link.inner_text().split()[0])
        link.click()
        assert rows.count() == count
        expect(wide.locator("#count")).to_have_class("some")
        expect(wide.locator("#count")).to_be_in_viewport()
    wide.locator(".summary td:last-child a").first.click()
    assert set(rows.evaluate_all("rows => rows.map(row => row.dataset.kind)")) == {"paper"}


def test_details_say_how_often_the_verdict_errs_in_simulated_worlds(wide: Page) -> None:
    details = wide.locator("#claim-benign-vit-fig1-exponent details")
    details.locator("summary").click()
    expect(details).to_contain_text("it held in 0 of 60 worlds (0.0 to 6.0 %) where it is false")
    rules = wide.locator("#errors p").first
    expect(rules).to_be_hidden()
    details.get_by_role("link", name="Error rates").click()
    expect(rules).to_be_in_viewport()


def test_the_number_that_a_claim_states_is_marked_beside_its_margin(wide: Page) -> None:
    row = wide.locator("#claim-benign-vit-fig1-exponent")
    expect(row).to_contain_text("paper: 2; holds from 1.75 to 2.25")
    tick, dot = row.locator(".drawing .target").bounding_box(), row.locator(".drawing circle")
    assert tick is not None
    around = dot.bounding_box()
    assert around is not None
    assert tick["x"] > around["x"]


def test_a_search_finds_phrases_whole_numbers_and_the_words_of_a_preset(wide: Page) -> None:
    def names(words: str) -> set[str]:
        wide.get_by_label("Words").fill(words)
        return set(wide.locator(".claims tbody tr:visible strong").all_inner_texts())

    apart = names("curve predicts")
    assert names('"predicts curve"') < apart
    assert "fig1-contour" in names('"figure 1b"')
    texts = wide.locator(".claims tbody tr:visible").all_text_contents()
    assert all("figure 1b" in text for text in texts)
    assert names("figure 1b") == names('"figure 1b"')  # a place of a paper is a phrase
    assert names("1e-12") == names("10⁻¹²") == names("1e-012")
    assert len(names("1e-12")) > 0
    assert "fig1-exponent" not in names("97")  # its exponent is 1.97
    assert "fig1-exponent" in names("1.97")
    assert "fig1-exponent" in names('"test loss over samples"')  # its preset's title


def test_a_claims_address_is_copied_and_opens_it_in_another_page(
    started: Browser, address: str
) -> None:
    context = started.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(address)
    page.locator(f"{CLAIM} a.address").click()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.endswith(CLAIM)
    other = context.new_page()
    other.goto(copied)
    expect(other.locator(f"{CLAIM} details p").first).to_be_visible()
    expect(other.locator(CLAIM)).to_be_in_viewport()
    context.close()


def test_a_claims_figure_stands_in_its_details(wide: Page) -> None:
    wide.locator(f"{CLAIM} summary").click()
    small = wide.locator(f"{CLAIM} a.thumbnail")
    expect(small.locator("img")).to_be_visible()
    figure = wide.locator("#figure-fig1-quick-boundary img")
    assert small.locator("img").get_attribute("src") == figure.get_attribute("src")
    small.click()
    expect(figure).to_be_in_viewport()
