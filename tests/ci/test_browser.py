"""The report's page in a real browser: on a phone and a desk, by pointer and by keyboard."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Dialog, Locator, Page, ViewportSize, expect
from scipy import stats

import overfit_cli
from tests.ci.browser import browser
from tests.command import call
from tests.kept import RESULTS

DESK = ViewportSize(width=1280, height=900)
PHONE = ViewportSize(width=390, height=844)
on_a_phone = pytest.mark.parametrize("page", [PHONE], ids=["phone"], indirect=True)
everywhere = pytest.mark.parametrize("page", [DESK, PHONE], ids=["desk", "phone"], indirect=True)
PANELS = "softmax-table1-paper-quick"
"""A run whose map has three panels."""

RUNS = ("fig1-quick", "fig1-balanced-quick", "heads-fig6-quick", "kernel-theorem1-quick", PANELS)
CLAIM = "#claim-benign-vit-fig1-exponent"
TARGETS = (CLAIM, "#run-kernel-theorem1-quick", "#figure-fig1-quick-heatmap", "#paper-song2024")
LONG_NAME = "a name that takes much more room"
HOSTILE, SCRIPT = "<img src=x onerror=alert(1)>", "</script><script>alert(2)</script>"
PARTS = ("header", "#filters", "#study-multihead-sst2", "#study-kernel-regression .run", "#large")

HOSTILE_STUDY = '''
from typing import Literal

def train(
    kind: Literal["short", "{name}"] = "short",
    n: int = 1,
    seed: int = 0,
) -> dict[str, float]:
    """{script}"""
    if n == 2 or (n, seed) == (3, 0):
        raise ValueError("{reason}")
    return {{"loss": n * len(kind) + seed}}
'''

CLIPPED_STOPS = """() => [...document.querySelectorAll("*")]
    .filter(part => getComputedStyle(part).clipPath !== "none")
    .flatMap(part => [part, ...part.querySelectorAll("*")])
    .filter(one => one.matches("a[href], button, select, input, summary"))
    .filter(one => one.checkVisibility({checkVisibilityCSS: true}))
    .map(one => one.outerHTML.slice(0, 100))"""

CUT_LABELS = """pictures => pictures.flatMap(picture => {
    const whole = picture.getBoundingClientRect();
    return [...picture.querySelectorAll("text")].filter(text => {
        const box = text.getBoundingClientRect();
        return box.left < whole.left - 1 || box.right > whole.right + 1
            || box.top < whole.top - 1 || box.bottom > whole.bottom + 1;
    }).map(text => text.textContent);
})"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of five kept runs, and of one whose names and reasons are hostile."""
    folder = tmp_path_factory.mktemp("page")
    hostile = {"name": LONG_NAME, "script": SCRIPT, "reason": f"{HOSTILE}</script>"}
    (folder / "mine.py").write_text(HOSTILE_STUDY.format(**hostile))
    axes = ["--kind", f"short,{LONG_NAME}", "--n", "1:3", "--seeds", "4"]
    out = f"results/{HOSTILE}"
    call("sweep", "mine.py", *axes, "--jobs", "1", "--out", out, cwd=folder, expect=1)
    for name in RUNS:
        shutil.copytree(RESULTS / name, folder / "results" / name)
    call("report", "--out", "report", cwd=folder)
    return (folder / "report" / "index.html").as_uri()


@pytest.fixture(scope="module")
def started() -> Iterator[Browser]:
    with browser() as one:
        yield one


@contextmanager
def opened(started: Browser, address: str, **how: Any) -> Iterator[Page]:
    """The page, which must say nothing to the console, ask nothing and load nothing else."""
    said = list[str]()

    def refuse(dialog: Dialog) -> None:
        said.append(dialog.message)
        dialog.dismiss()

    context = started.new_context(permissions=["clipboard-read", "clipboard-write"], **how)
    page = context.new_page()
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", refuse)
    page.on("request", lambda request: said.append(request.url))
    page.goto(address)
    yield page
    context.close()
    own = re.split("[?#]", address)[0]
    assert [one for one in said if not one.startswith((own, "data:"))] == []


@pytest.fixture
def page(started: Browser, address: str, request: pytest.FixtureRequest) -> Iterator[Page]:
    """The page on a desk, or on the screen that a test names."""
    size = getattr(request, "param", DESK)
    with opened(started, address, viewport=size, has_touch=size is PHONE) as one:
        yield one


def shown(page: Page) -> list[str]:
    """The names of the claims that are shown."""
    rows = page.locator(".claims tbody tr:not([hidden]) strong")
    return [text.strip() for text in rows.all_text_contents()]


def search(page: Page, words: str) -> list[str]:
    page.get_by_label("Words").fill(words)
    return shown(page)


def run_called(page: Page, name: str) -> Locator:
    """The run of this name, unfolded."""
    run = page.locator(".run").filter(has=page.get_by_role("heading", name=name, exact=True))
    run.evaluate("run => { run.open = true; }")
    return run


def box_of(locator: Locator) -> Any:
    return locator.evaluate("one => one.getBoundingClientRect().toJSON()")


@pytest.mark.parametrize(("size", "scheme"), [(DESK, "light"), (PHONE, "dark")])
def test_the_page_is_accessible_and_no_wider_than_the_screen(
    size: ViewportSize, scheme: Literal["light", "dark"], started: Browser, address: str
) -> None:
    with opened(started, address, viewport=size, color_scheme=scheme) as page:
        assert page.evaluate(CLIPPED_STOPS) == []
        folds = "document.querySelectorAll('details')"
        page.evaluate(f"for (const part of {folds}) part.open = true")
        assert page.locator(".diagram:visible").count() >= 2
        # All of a long page takes a while: a part of each kind is looked at in the dark.
        context = {"include": [[one] for one in PARTS]} if scheme == "dark" else None
        found = Axe().run(page, context=context).response
        assert len(found["passes"]) > 25
        assert [(one["id"], one["nodes"][0]["html"]) for one in found["violations"]] == []
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]


def test_it_opens_with_the_question_the_findings_and_the_counts(page: Page) -> None:
    question = "Do the claims of 4 papers hold when they are measured?"
    expect(page.get_by_role("heading", level=1)).to_have_text(question)
    finding = page.locator(".findings li", has_text="N·SNRp = C")
    expect(finding).to_be_in_viewport()
    finding.get_by_title("fig1-exponent").click()
    details = page.locator(f"{CLAIM} details")
    expect(details.locator("p").first).to_be_visible()
    expect(page.locator(CLAIM)).to_contain_text("paper: 2; holds from 1.75 to 2.25")
    expect(details).to_contain_text("it held in 0 of 200 worlds (0.0 to 1.8 %) where it is false")
    details.get_by_role("link", name="Error rates").click()
    expect(page.locator("#errors p").first).to_be_in_viewport()
    figure = page.locator("#figure-fig1-quick-boundary img")
    small = page.locator(f"{CLAIM} a.thumbnail")
    assert small.locator("img").get_attribute("src") == figure.get_attribute("src")
    small.click()
    expect(figure).to_be_in_viewport()
    rows = page.locator("header > .summary tbody tr")
    totals = [int(text) for text in rows.locator("td:last-child").all_inner_texts()]
    assert sum(totals[:-1]) == totals[-1]


def test_claims_are_filtered_by_verdict_paper_and_words(page: Page) -> None:
    everything, count = shown(page), page.locator("#count")
    expect(count).to_have_text(f"{len(everything)} of {len(everything)} claims shown")
    for name in ("vacuous", "not run", "holds", "holds by far", "inconclusive"):
        page.get_by_role("checkbox", name=name, exact=True).uncheck()
    assert "theorem1-paper-two" in shown(page)
    verdicts = page.locator(".claims tbody tr:visible td > .verdict").all_inner_texts()
    assert set(verdicts) == {"✗ fails"}
    page.get_by_role("checkbox", name="holds", exact=True).check()
    page.get_by_label("Paper", exact=True).select_option("jiang2024")
    assert "fig1-contour" in shown(page)
    assert "theorem1-paper-two" not in shown(page)
    assert search(page, '"middle of the line" fig1') == ["fig1-contour"]
    expect(count).to_have_text(f"1 of {len(everything)} claims shown")
    assert page.locator(".run:visible h4").all_inner_texts() == ["fig1-quick"]
    assert search(page, "nothing has these words") == []
    expect(page.locator("#none")).to_be_visible()


def test_a_count_shows_its_claims_and_headings_count_what_is_shown(page: Page) -> None:
    row = page.locator("header > .summary tbody tr").filter(has_text="of the papers")
    link = row.locator("td.fails a")
    count = int(link.inner_text())
    link.click()
    rows = page.locator(".claims tbody tr:visible")
    assert rows.count() == count
    kinds = "rows => rows.map(row => `${row.dataset.kind} ${row.dataset.verdict}`)"
    assert set(rows.evaluate_all(kinds)) == {"paper fails"}
    assert page.url.endswith("?verdict=fails&kind=paper")
    headings = page.locator("details.kind:visible > summary .count").all_inner_texts()
    assert sum(int(text.split()[0]) for text in headings) == count
    for link in page.locator("header > p a[href^='?'], .findings h2 .aside a").all():
        count = int(link.inner_text().split()[0])
        link.click()
        assert rows.count() == count
        expect(page.locator("#count")).to_be_in_viewport()


def test_a_search_finds_phrases_whole_numbers_and_the_words_of_a_preset(page: Page) -> None:
    assert {*search(page, '"predicts curve"')} < {*search(page, "curve predicts")}
    assert "fig1-contour" in search(page, '"figure 1b"')
    assert search(page, "figure 1b") == search(page, '"figure 1b"')  # a place is a phrase
    assert search(page, "1e-12") == search(page, "10⁻¹²") == search(page, "1e-012") != []
    assert "fig1-exponent" not in search(page, "89")  # its exponent is 1.89
    assert "fig1-exponent" in search(page, "1.89")
    assert "fig1-exponent" in search(page, '"test loss over samples"')  # its preset's title


def test_the_address_keeps_the_filter_the_order_and_the_words(page: Page, started: Browser) -> None:
    page.get_by_role("checkbox", name="vacuous").uncheck()
    page.get_by_label("Sort by").select_option("name descending")
    names = search(page, '"test losses" 0.2')
    assert "fig1-exponent" in names
    with opened(started, page.url, viewport=DESK) as again:
        assert shown(again) == names
        again.get_by_role("button", name="Show all").click()
        expect(again.locator("#show-all")).to_be_hidden()
        expect(again.get_by_label("Words")).to_have_value("")
        assert "?" not in again.url


@pytest.mark.parametrize("hostile", ["?sort=foo", "?paper=x&verdict=y&kind=", "#%00%ff"])
def test_an_address_that_names_nothing_of_the_page_shows_all_of_it(
    hostile: str, started: Browser, address: str
) -> None:
    with opened(started, address) as page:
        every = shown(page)
    with opened(started, address + hostile) as page:
        assert shown(page) == every
        assert search(page, "zzz") == []


def test_a_heading_sorts_up_down_and_back(page: Page) -> None:
    table = page.locator("#study-benign-vit .claims").first
    names = table.locator("tbody tr strong")
    before = names.all_inner_texts()
    button, heading = table.get_by_role("button", name="claim"), table.locator("th").first
    up, down = sorted(before), sorted(before, reverse=True)
    for order, listed in (("ascending", up), ("descending", down), (None, before)):
        button.press("Enter")
        assert names.all_inner_texts() == listed
        assert heading.get_attribute("aria-sort") == order
        expect(page.get_by_label("Sort by")).to_have_value(f"name {order}" if order else "")


@on_a_phone
def test_on_a_phone_claims_are_sorted_from_the_bar(page: Page) -> None:
    page.get_by_text("Filter and sort").focus()
    page.keyboard.press("Enter")
    for order, sign in (("least", 1), ("most", -1)):
        page.get_by_label("Sort by").select_option(f"measured, {order} first")
        for name in ("benign-vit", "kernel-regression"):  # every table, not one alone
            rows = page.locator(f"#study-{name} .claims").first.locator("tbody tr")
            values = rows.evaluate_all("rows => rows.map(row => row.dataset.value)")
            numbers = [sign * float(value) for value in values if value]
            assert values[len(numbers) :] == [""] * (len(values) - len(numbers))
            assert numbers == sorted(numbers)
            assert len(numbers) >= 2


def test_a_link_to_what_a_filter_hides_shows_it(page: Page) -> None:
    own = run_called(page, HOSTILE)  # of a study without claims
    page.get_by_role("checkbox", name="not run").uncheck()
    expect(own).to_be_visible()
    page.get_by_text("By paper, and the studies of each").click()
    for _ in range(2):  # the second time its address is the page's already
        page.get_by_label("Paper", exact=True).select_option("jiang2024")
        expect(own).to_be_hidden()
        page.locator("header a", has_text="Song et al. 2024").first.click()
        expect(page.locator("#heading-song2024")).to_be_in_viewport()


@everywhere
def test_a_link_ends_below_the_bar_with_its_target_open(page: Page) -> None:
    for target in TARGETS:
        page.evaluate("address => { location.hash = address; }", target)
        page.wait_for_timeout(150)
        top, bar = box_of(page.locator(target))["top"], box_of(page.locator("#filters"))["bottom"]
        assert bar - 1 <= top < bar + 60, target
    expect(page.locator(f"{CLAIM} details p").first).to_be_visible()


def test_arrow_keys_read_the_numbers_of_a_place(page: Page) -> None:
    cells = overfit_cli.load(RESULTS / "fig1-quick")
    run = run_called(page, "fig1-quick")
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


def test_a_place_counts_its_seeds_and_names_of_a_hostile_run_are_text(page: Page) -> None:
    run = run_called(page, HOSTILE)
    assert [one.get_attribute("aria-label") for one in run.get_by_role("gridcell").all()] == [
        f"kind {LONG_NAME}, n 1: loss 33.5, median of 4 seeds, seeds from 32 to 35.",
        f"kind {LONG_NAME}, n 2: no median over 4 seeds. 4 seeds of 4: failed.",
        f"kind {LONG_NAME}, n 3: loss 98.5, median of 4 seeds, seeds from 97 to 99. "
        "1 seed of 4: failed.",
        "kind short, n 1: loss 6.5, median of 4 seeds, seeds from 5 to 8.",
        "kind short, n 2: no median over 4 seeds. 4 seeds of 4: failed.",
        "kind short, n 3: loss 17.5, median of 4 seeds, seeds from 16 to 18. 1 seed of 4: failed.",
    ]
    classes = [one.get_attribute("class") for one in run.locator(".panel .place").all()]
    assert classes == ["place whole", "place lost", "place partly"] * 2
    half = ["failed: fewer than half of the seeds", "failed: half of the seeds or more"]
    assert run.locator(".legend li").all_inner_texts()[1:] == half
    expect(run).to_contain_text(f"ValueError: {HOSTILE}</script>")
    expect(page.locator(".study").filter(has=run)).to_contain_text(SCRIPT)
    assert page.locator("img[src=x]").count() == 0


@on_a_phone
def test_on_a_phone_labels_are_whole_and_what_is_read_stays_in_sight(page: Page) -> None:
    assert run_called(page, HOSTILE).locator(".panel text", has_text=LONG_NAME).count() == 1
    run = run_called(page, PANELS)
    assert page.locator(".run[open] .panel svg").evaluate_all(CUT_LABELS) == []
    assert run.get_by_role("grid").count() == 3
    for grid in run.get_by_role("grid").all():
        place = grid.get_by_role("gridcell").first
        place.evaluate("place => place.scrollIntoView({block: 'center'})")
        place.focus()
        reading = run.locator(".reading p").first
        expect(reading).to_have_text(place.get_attribute("aria-label") or "")
        expect(reading).to_be_in_viewport(ratio=1)


def test_a_command_and_the_address_of_a_claim_are_copied(page: Page, started: Browser) -> None:
    button = run_called(page, "fig1-quick").locator("figure .copy").first
    button.click()
    expect(button).to_have_text("Copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == button.locator("xpath=preceding-sibling::code").inner_text()
    assert copied.startswith("overfit plot ")
    expect(page.get_by_role("status").last).to_contain_text(copied)
    page.locator(f"{CLAIM} a.address").click()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.endswith(CLAIM)
    with opened(started, copied) as other:
        expect(other.locator(f"{CLAIM} details p").first).to_be_visible()
        expect(other.locator(CLAIM)).to_be_in_viewport()


@everywhere
def test_a_figure_is_enlarged_and_put_back_with_the_keyboard(page: Page) -> None:
    button = run_called(page, "fig1-quick").locator(".enlarge").first
    expect(button.get_by_text("Enlarge", exact=True)).to_be_visible()
    small = box_of(button.locator("img"))
    button.press("Enter")
    large = page.get_by_role("dialog")
    image = large.locator("img")
    expect(image).to_be_visible()
    assert image.get_attribute("src") == button.locator("img").get_attribute("src")
    assert image.evaluate("image => image.complete && image.width >= image.naturalWidth")
    assert box_of(image)["width"] >= 1.15 * small["width"]
    assert box_of(large)["width"] <= page.evaluate("innerWidth")  # it scrolls inside
    page.keyboard.press("Escape")
    expect(large).to_be_hidden()
    expect(button).to_be_focused()


def test_without_scripts_every_claim_and_figure_is_there(started: Browser, address: str) -> None:
    with opened(started, address, java_script_enabled=False) as page:
        assert page.locator(".claims tbody tr").count() > 100
        for fold in page.locator(".run > summary").all():
            fold.click()
        assert page.locator(".pictures img:visible").count() >= 7
        expect(page.locator(".filters")).to_be_hidden()
        assert page.locator("button:visible").count() == 0


def test_it_prints_what_is_unfolded_with_the_rules_and_no_controls(page: Page) -> None:
    unfolded, folded = page.locator("#study-benign-vit .claims details").all()[:2]
    unfolded.locator("summary").click()
    runs = [run_called(page, name) for name in (*RUNS, HOSTILE)]
    sheets = len(re.findall(rb"/Type /Page\b", page.pdf(format="A4")))
    assert 5 < sheets < len(shown(page)) / 4
    page.set_viewport_size({"width": 700, "height": 1030})  # A4 within its margins
    page.emulate_media(media="print", color_scheme="dark")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    expect(page.locator(".filters")).to_be_hidden()
    expect(unfolded.locator("p").first).to_be_visible()
    expect(folded.locator("p").first).to_be_hidden()
    expect(page.locator("#rules p").first).to_be_visible()
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    expect(page.locator(".claims th").first.get_by_role("button")).to_be_hidden()
    expect(runs[0].locator(".diagram")).to_be_hidden()  # its figure is there
    expect(runs[RUNS.index(PANELS)].locator(".panel").first).to_be_visible()
    for figure in page.locator("figure:visible").all():
        assert box_of(figure)["height"] < 700
        assert figure.evaluate("one => getComputedStyle(one).breakInside") == "avoid"
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen")
    expect(page.locator("#rules p").first).to_be_hidden()
