"""The report's page in a real browser: on a phone and a desk, by pointer and by keyboard."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from numpy.typing import NDArray
from playwright.sync_api import Browser, Dialog, Locator, Page, ViewportSize, expect
from scipy import stats

import overfit_cli
from overfit_cli.core.claim import KINDS
from tests.browser import browser
from tests.command import call

pytestmark = pytest.mark.slow

DESK = ViewportSize(width=1280, height=900)
PHONE = ViewportSize(width=390, height=844)
PANELS = "softmax-table1-paper-quick"
"""A run whose map has three panels."""

RUNS = ("fig1-quick", "heads-fig6-quick", "kernel-theorem1-quick", PANELS)
LONG_NAME = "a name that takes much more room"
HOSTILE = "<img src=x onerror=alert(1)>"
RESULTS = Path("results").resolve()
PARTS = ("header", "#filters", "#study-multihead-sst2", "#study-kernel-regression .run", "#large")

HOSTILE_STUDY = '''
from typing import Literal

def train(
    kind: Literal["short", "{name}"] = "short",
    n: int = 1,
    seed: int = 0,
) -> dict[str, float]:
    """</script><script>alert(2)</script>"""
    if n == 2 or (n, seed) == (3, 0):
        raise ValueError("{reason}")
    return {{"loss": n * len(kind) + seed}}
'''


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of three kept runs, and of one whose names and reasons are hostile."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "mine.py").write_text(
        HOSTILE_STUDY.format(name=LONG_NAME, reason=f"{HOSTILE}</script>")
    )
    axes = ["--kind", f"short,{LONG_NAME}", "--n", "1:3", "--seeds", "4"]
    call("sweep", "mine.py", *axes, "--jobs", "1", "--out", HOSTILE, cwd=folder, expect=1)
    runs = [HOSTILE, *(str(RESULTS / name) for name in RUNS)]
    call("report", *runs, "--out", "report", cwd=folder)
    return (folder / "report" / "index.html").as_uri()


@pytest.fixture(scope="module")
def started() -> Iterator[Browser]:
    with browser() as one:
        yield one


class Opened:
    """A page with what it said and asked for."""

    def __init__(self, page: Page, address: str, *, unfolded: bool = False) -> None:
        self.page, self.said, self.asked = page, list[str](), list[str]()
        page.on("console", lambda message: self.said.append(message.text))
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("dialog", self._refuse)
        page.on("request", lambda request: self.asked.append(request.url))
        page.goto(address)
        if unfolded:
            page.evaluate("for (const run of document.querySelectorAll('.run')) run.open = true")

    def _refuse(self, dialog: Dialog) -> None:
        self.said.append(dialog.message)
        dialog.dismiss()


@pytest.fixture
def opened(started: Browser, address: str) -> Iterator[Opened]:
    context = started.new_context(viewport=DESK, permissions=["clipboard-read", "clipboard-write"])
    yield Opened(context.new_page(), address, unfolded=True)
    context.close()


@pytest.fixture
def on_phone(started: Browser, address: str) -> Iterator[Opened]:
    context = started.new_context(viewport=PHONE, has_touch=True)
    yield Opened(context.new_page(), address, unfolded=True)
    context.close()


def shown(page: Page) -> list[str]:
    """The names of the claims that are shown."""
    rows = page.locator(".claims tbody tr:not([hidden]) strong")
    return [text.strip() for text in rows.all_text_contents()]


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
    # All of a long page takes a while. Colours alone are others in the dark: a part of each kind
    # is looked at there.
    some = scheme == "dark"
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
    expect(page.locator("#count")).to_have_text(
        f"{len(everything)} of {len(everything)} claims shown"
    )
    for name in ("vacuous", "not run", "holds", "inconclusive"):
        page.get_by_role("checkbox", name=name).uncheck()
    failing = shown(page)
    assert "theorem1-paper-two" in failing
    assert set(page.locator(".claims tbody tr:visible td > .verdict").all_inner_texts()) == {
        "✗ fails"
    }
    page.get_by_role("checkbox", name="holds").check()
    page.get_by_label("Paper", exact=True).select_option("jiang2024")
    assert "fig1-exponent" in shown(page)
    assert "theorem1-paper-two" not in shown(page)
    page.get_by_label("Words").fill("exponent fig1")
    assert shown(page) == ["fig1-exponent"]
    expect(page.locator("#count")).to_have_text(f"1 of {len(everything)} claims shown")
    assert page.locator(".run:visible h4").all_inner_texts() == ["fig1-quick"]
    page.get_by_label("Words").fill("nothing has these words")
    assert shown(page) == []
    expect(page.locator("#none")).to_be_visible()


def test_claims_are_filtered_by_whose_sentence_they_are(opened: Opened) -> None:
    page = opened.page
    everything = shown(page)
    boxes = page.get_by_role("group", name="Kind")
    by_kind = {}
    for kind in KINDS:
        for other in KINDS:
            boxes.get_by_label(other, exact=True).set_checked(other == kind)
        by_kind[kind] = shown(page)
        rows = page.locator(".claims tbody tr:visible")
        kinds = rows.evaluate_all("rows => rows.map(row => row.closest('details').dataset.kind)")
        assert set(kinds) <= {kind}
    assert "theorem1-paper-two" in by_kind["paper"]
    assert sorted(name for names in by_kind.values() for name in names) == sorted(everything)


def test_a_heading_sorts_up_down_and_back(opened: Opened) -> None:
    page = opened.page
    table = page.locator("#study-benign-vit .claims").first
    names = table.locator("tbody tr strong")
    before = names.all_inner_texts()
    button, heading = table.get_by_role("button", name="claim"), table.locator("th").first
    button.press("Enter")
    assert names.all_inner_texts() == sorted(before)
    assert heading.get_attribute("aria-sort") == "ascending"
    expect(page.get_by_label("Sort by")).to_have_value("name ascending")
    button.press("Enter")
    assert names.all_inner_texts() == sorted(before, reverse=True)
    button.press("Enter")
    assert names.all_inner_texts() == before
    assert heading.get_attribute("aria-sort") is None


def measured(table: Locator) -> list[str]:
    """The numbers of a table's claims from above, empty where one has none."""
    found: list[str] = table.locator("tbody tr").evaluate_all(
        "rows => rows.map(row => row.dataset.value)"
    )
    return found


def test_on_a_phone_claims_are_sorted_from_the_bar(on_phone: Opened) -> None:
    page = on_phone.page
    page.get_by_text("Filter and sort").focus()
    page.keyboard.press("Enter")
    for order, sign in (("least", 1), ("most", -1)):
        page.get_by_label("Sort by").select_option(f"measured, {order} first")
        for name in ("benign-vit", "kernel-regression"):  # every table, not one alone
            values = measured(page.locator(f"#study-{name} .claims").first)
            numbers = [float(value) for value in values if value]
            assert values[len(numbers) :] == [""] * (len(values) - len(numbers))
            assert numbers == sorted(numbers, key=lambda number: sign * number)
            assert len(numbers) >= 2


def test_on_a_phone_every_count_is_seen_and_the_top_is_near(on_phone: Opened) -> None:
    page = on_phone.page
    page.get_by_text("By paper, and the studies").click()
    whole = page.locator(".summary tr", has_text="Jiang et al. 2024")
    counts = [int(one) for one in whole.locator("td").all_inner_texts() if one]
    assert sum(counts[:-1]) == counts[-1]
    for one in page.locator(".summary td:visible").all():
        box = one.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= PHONE["width"]
    page.locator(".run").last.scroll_into_view_if_needed()
    expect(page.locator("#count")).to_be_in_viewport()
    bar = page.locator("#filters").bounding_box()
    assert bar is not None
    assert bar["height"] < 60
    page.get_by_role("link", name="To the top").tap()
    expect(page.get_by_role("heading", level=1)).to_be_in_viewport()


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


def run_called(page: Page, name: str) -> Locator:
    return page.locator(".run").filter(has=page.get_by_role("heading", name=name, exact=True))


def test_a_place_says_how_many_of_its_seeds_have_a_value(opened: Opened) -> None:
    run = run_called(opened.page, HOSTILE)
    assert [one.get_attribute("aria-label") for one in run.get_by_role("gridcell").all()] == [
        sentence
        for kind in (LONG_NAME, "short")  # from above; at n = 3 one seed of four failed
        for sentence in (
            f"kind {kind}, n 1: loss {over_seeds(len(kind) + np.arange(4))}",
            f"kind {kind}, n 2: no median over 4 seeds. 4 seeds of 4: failed.",
            f"kind {kind}, n 3: loss {over_seeds(3 * len(kind) + np.arange(1, 4))} "
            "1 seed of 4: failed.",
        )
    ]
    classes = [one.get_attribute("class") for one in run.locator(".panel .place").all()]
    assert classes == ["place whole", "place lost", "place partly"] * 2
    assert run.locator(".panel .corner").count() == 2
    assert run.locator(".legend li").all_inner_texts()[1:] == [
        "failed: fewer than half of the seeds",
        "failed: half of the seeds or more",
    ]


def over_seeds(values: NDArray[np.int64]) -> str:
    """What is said of the numbers of some of four seeds."""
    ends = f"seeds from {values.min()} to {values.max()}"
    return f"{np.median(values):g}, median of 4 seeds, {ends}."


def test_a_diagram_has_the_lines_of_the_figure(opened: Opened) -> None:
    run = run_called(opened.page, "fig1-quick")
    assert run.locator(".legend li").all_inner_texts()[1:] == [
        "test loss L_D = 0.2",
        "N·SNR² = 1000",
    ]
    plane, law = run.locator(".panel [role=row]").last, run.locator(".panel .line.law").last
    outer, inner = plane.bounding_box(), law.bounding_box()
    assert outer is not None
    assert inner is not None
    assert outer["x"] + outer["width"] / 3 < inner["x"], "SNR 7 and more"
    assert inner["x"] + inner["width"] == pytest.approx(outer["x"] + outer["width"], abs=3)


@pytest.mark.parametrize(("width", "rows"), [(1440, 1), (1024, 1), (700, 3)])
def test_panels_stand_side_by_side_on_a_wide_screen(width: int, rows: int, opened: Opened) -> None:
    page = opened.page
    page.set_viewport_size({"width": width, "height": 900})
    boxes = [panel.bounding_box() for panel in run_called(page, PANELS).locator(".panel").all()]
    page.set_viewport_size({"width": 1440, "height": 900})
    assert len({round(box["y"]) for box in boxes if box is not None}) == rows


@pytest.mark.parametrize("phone", [False, True])
def test_names_on_axes_are_whole(phone: bool, opened: Opened, on_phone: Opened) -> None:
    page = (on_phone if phone else opened).page
    assert run_called(page, HOSTILE).locator(".panel text", has_text=LONG_NAME).count() == 1
    assert run_called(page, HOSTILE).locator(".panel .upward").all_text_contents() == ["kind"]
    cut = page.locator(".panel svg").evaluate_all(
        """pictures => pictures.flatMap(picture => {
            const whole = picture.getBoundingClientRect();
            return [...picture.querySelectorAll("text")].filter(text => {
                const box = text.getBoundingClientRect();
                return box.left < whole.left - 1 || box.right > whole.right + 1
                    || box.top < whole.top - 1 || box.bottom > whole.bottom + 1;
            }).map(text => text.textContent);
        })"""
    )
    assert cut == []


@pytest.mark.parametrize("phone", [False, True])
def test_what_is_read_stays_in_sight_at_every_panel(
    phone: bool, opened: Opened, on_phone: Opened
) -> None:
    run = run_called((on_phone if phone else opened).page, PANELS)
    assert run.get_by_role("grid").count() == 3
    for grid in run.get_by_role("grid").all():
        place = grid.get_by_role("gridcell").first
        place.evaluate("place => place.scrollIntoView({block: 'center'})")
        place.focus()
        said = place.get_attribute("aria-label") or ""
        reading = run.locator(".reading p").first
        expect(reading).to_have_text(said)
        expect(reading).to_be_in_viewport(ratio=1)


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
    assert copied == button.locator("xpath=preceding-sibling::code").inner_text()
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
        page.get_by_label("Paper", exact=True).select_option("jiang2024")
        page.locator("header a", has_text="Song et al. 2024").first.click()
        expect(page.locator("#heading-song2024")).to_be_in_viewport()


def test_a_study_without_claims_follows_the_filter_of_papers(opened: Opened) -> None:
    page = opened.page
    own = page.locator(".run").filter(has=page.get_by_role("heading", name=HOSTILE, exact=True))
    page.get_by_role("checkbox", name="not run").uncheck()
    expect(own).to_be_visible()
    page.get_by_label("Paper", exact=True).select_option("own")
    expect(own).to_be_visible()
    page.get_by_label("Paper", exact=True).select_option("jiang2024")
    expect(own).to_be_hidden()


def test_without_scripts_every_claim_and_figure_is_there(started: Browser, address: str) -> None:
    context = started.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address)
    assert len(shown(page)) > 100
    for fold in page.locator(".run > summary").all():
        fold.click()
    assert page.locator(".pictures img:visible").count() >= 7
    expect(page.locator(".filters")).to_be_hidden()
    assert page.locator("button:visible").count() == 0
    context.close()


def test_figures_are_printed_whole_and_on_few_sheets(opened: Opened) -> None:
    page = opened.page
    claims = len(shown(page))
    sheets = len(re.findall(rb"/Type /Page\b", page.pdf(format="A4")))
    assert 5 < sheets < claims / 4
    page.set_viewport_size({"width": 700, "height": 1030})  # A4 within its margins
    page.emulate_media(media="print")
    for figure in page.locator("figure").all():
        box = figure.bounding_box()
        assert box is not None
        assert box["width"] < 350
        assert box["height"] < 700
        assert figure.evaluate("one => getComputedStyle(one).breakInside") == "avoid"


def test_it_prints_what_is_unfolded_with_the_rules_and_no_controls(opened: Opened) -> None:
    page = opened.page
    unfolded, folded = page.locator("#study-benign-vit .claims details").all()[:2]
    unfolded.locator("summary").click()
    page.emulate_media(media="print", color_scheme="dark")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    expect(page.locator(".filters")).to_be_hidden()
    expect(unfolded.locator("p").first).to_be_visible()
    expect(folded.locator("p").first).to_be_hidden()
    expect(page.locator("#rules p").first).to_be_visible()
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    heading = page.locator(".claims th").first
    shown = heading.evaluate("heading => getComputedStyle(heading, '::before').content")
    assert shown == '"claim"'  # as text, which is repeated on each sheet
    expect(heading.get_by_role("button")).to_be_hidden()
    expect(run_called(page, "fig1-quick").locator(".diagram")).to_be_hidden()  # its figure is there
    expect(run_called(page, HOSTILE).locator(".diagram")).to_be_hidden()
    expect(run_called(page, PANELS).locator(".panel").first).to_be_visible()
    expect(run_called(page, PANELS).locator(".reading")).to_be_hidden()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen")
    expect(page.locator("#rules p").first).to_be_hidden()
