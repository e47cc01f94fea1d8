"""The documentation's site, as `make site` builds it: its links, its navigation, its formulas."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import overfit_cli
from docs.formulas import mark_formulas, typeset
from docs.notebook_page import notebook_page
from docs.site import nest_lists
from tests.ci.browser import browser
from tests.command import python

ROOT = Path(__file__).parents[2]
REPORT = "results/report/index.html"


class Reader:
    """Reads what a page links to, what it loads, and the addresses within it."""

    def __init__(self, page: str) -> None:
        def values(tag: str, attribute: str) -> list[str]:
            found = re.findall(rf'<{tag}\b[^>]*\s(?:{attribute})="([^"]*)"', page)
            return [html.unescape(one) for one in found]

        self.links = values("a", "href")
        self.loaded = values(r'link(?! rel="canonical")', "href") + values(r"\w+", "src")
        self.addresses = {*values(r"\w+", "id"), *values(r"\w+", "name")}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make site` builds it."""
    folder, env = tmp_path_factory.mktemp("site"), {"NO_MKDOCS_2_WARNING": "1"}
    python("-m", "mkdocs", "build", "--strict", "--site-dir", folder, cwd=ROOT, env=env)
    return folder


Pages = dict[Path, Reader]


@pytest.fixture(scope="module")
def pages(site: Path) -> Pages:
    """The pages that MkDocs wrote, without the report's, by their files."""
    files = {*site.rglob("*.html")} - {site / REPORT, site / "404.html"}
    return {path: Reader(path.read_text()) for path in files}


def test_every_link_leads_somewhere_and_nothing_is_loaded_from_elsewhere(pages: Pages) -> None:
    for path, reader in pages.items():
        assert not [target for target in reader.loaded if urlsplit(target).netloc], path
        for target in [*reader.links, *reader.loaded]:
            parts = urlsplit(target)
            if not parts.scheme:
                file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
                file = file / "index.html" if file.is_dir() else file
                assert file.is_file(), (path, target)
                if parts.fragment and file in pages:
                    assert unquote(parts.fragment) in pages[file].addresses, (path, target)


def test_the_reference_has_every_public_name_of_the_package(site: Path, pages: Pages) -> None:
    """And the help of every command."""
    documented = pages[site / "docs" / "reference.html"].addresses
    for name in set(overfit_cli.__all__) - {"__version__"}:
        assert f"overfit_cli.{name}" in documented
    assert "overfit_cli.report.judge.Judged.lacks_seeds" not in documented, "users need it not"
    assert "Usage: overfit sweep " in (site / "docs" / "reference.html").read_text(encoding="utf-8")


def test_pages_open_without_errors_fit_a_phone_and_lead_back_from_the_report(site: Path) -> None:
    requests, problems, address = list[str](), list[str](), "http://documentation"
    with browser() as chromium:
        page = chromium.new_page(viewport={"width": 390, "height": 844})
        at = f"{address}/**"
        page.route(at, lambda one: one.fulfill(path=f"{site}{urlsplit(one.request.url).path}"))
        page.on("request", lambda request: requests.append(request.url))
        page.on("pageerror", lambda error: problems.append(str(error)))
        for name in ("index", "docs/reference", "docs/jiang2024"):
            page.goto(f"{address}/{name}.html")
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, name
        page.goto(f"{address}/{REPORT}")
        page.get_by_role("link", name="Documentation").click()
        assert page.url == f"{address}/index.html"
    assert not problems
    assert not [url for url in requests if not url.startswith((address, "data:", "blob:"))]


def test_search_puts_the_reference_and_the_verdicts_first(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    boosts = {entry["location"].split("#")[0]: entry.get("boost", 1) for entry in index["docs"]}
    assert "CHANGELOG.html" not in boosts
    assert boosts["docs/reference.html"] > boosts["docs/verdicts.html"] > boosts["docs/start.html"]


FORMULAS = {
    "W_Q and σ_p²": "<i>W</i><sub><i>Q</i></sub> and <i>σ</i><sub><i>p</i></sub>²",
    "N·SNR^p = C.": "<i>N</i>·SNR<sup><i>p</i></sup> = <i>C</i>.",
    "r_{t+1} &lt; 3M": "<i>r</i><sub><i>t</i>+1</sub> &lt; 3<i>M</i>",
    "log(6N²) of a claim": "log(6<i>N</i>²) of a claim",
    "dS_i,r": "<i>dS</i><sub><i>i</i>,<i>r</i></sub>",
    "n^−0.37 in a row": "<i>n</i><sup>−0.37</sup> in a row",
    "A cell, and I: train_loss is 1e-9": "A cell, and I: train_loss is 1e-9",
    "<code>W_Q = N^2</code>": "<code>W_Q = N^2</code>",
    '<a href="a_b.html#n_L">σ</a>': '<a href="a_b.html#n_L"><i>σ</i></a>',
}


def test_formulas_are_typeset_and_words_code_and_addresses_are_left() -> None:
    for written, shown in FORMULAS.items():
        assert typeset(f"<p>{written}</p>") == f"<p>{shown}</p>"
    assert typeset("<pre>d_h\nσ²</pre>") == "<pre>d_h\nσ²</pre>"


def test_an_indented_formula_stands_alone_and_preformatted_text_is_left() -> None:
    fenced = "```\n\n    d_h = 1\n\n```\n"
    marked = mark_formulas(f"So\n\n    d_h < 1,\n    N = 2\n\n{fenced}")
    assert marked == f'So\n\n<p class="formula">d_h &lt; 1,\nN = 2</p>\n\n{fenced}'
    diagram = '<pre class="output">8 |\n\n    ▓▓░░\n    ▓░░░\n   n  2    4\n</pre>\n'
    assert nest_lists(mark_formulas(f"# A\n\n{diagram}")) == f"# A\n\n{diagram}"
    assert nest_lists("- a\n  - b\n") == "- a\n    - b\n"


def test_a_notebook_is_shown_with_its_outputs() -> None:
    table = {"text/html": ["<table>\n", "\n", "</table>"], "text/plain": "a table"}
    picture = {"image/png": "aGk=\n", "text/plain": "a picture"}
    stream = {"output_type": "stream", "text": ["3 < 4\n"]}
    words = {"cell_type": "markdown", "source": ["# A sweep\n", "in a notebook"]}
    code = {"cell_type": "code", "source": "sweep(f)"}
    cells = [words, {**code, "outputs": [stream, {"data": table}, {"data": picture}]}]
    assert notebook_page(json.dumps({"cells": cells})).split("\n\n") == [
        "# A sweep\nin a notebook",
        "```python\nsweep(f)\n```",
        '<pre class="output">3 &lt; 4</pre>',
        '<figure class="output">\n<table>\n</table>\n</figure>',
        '<p><img alt="" src="data:image/png;base64,aGk="></p>\n',
    ]
