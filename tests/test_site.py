"""The documentation's site, as `make site` builds it: its links, its navigation, its formulas."""

from __future__ import annotations

import functools
import http.server
import json
import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import overfit_cli
from docs.formulas import mark_formulas, typeset
from docs.notebook_page import notebook_page
from docs.site import nest_lists
from tests.browser import browser
from tests.command import python

ROOT = Path(__file__).parents[1]
REPORT = "results/report/index.html"


class Reader(HTMLParser):
    """Reads what a page links to, what it loads, and the addresses within it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.addresses: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attributes if value}
        self.addresses |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif tag == "link" and values.get("rel") != "canonical":
            self.loaded.append(values["href"])
        elif "src" in values:
            self.loaded.append(values["src"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    build(folder)
    return folder


def build(folder: Path, *, root: Path = ROOT, expect: int = 0) -> str:
    """Build the site of a repository as `make site` does, and return what MkDocs says."""
    options = ("--strict", "--site-dir", folder)
    silent = {"NO_MKDOCS_2_WARNING": "1"}
    return python("-m", "mkdocs", "build", *options, cwd=root, expect=expect, env=silent).stderr


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Reader]:
    """The pages that MkDocs wrote, without the report's, by their files."""
    files = [
        path for path in site.rglob("*.html") if path not in (site / REPORT, site / "404.html")
    ]
    return {path: Reader(path.read_text()) for path in files}


@contextmanager
def served(site: Path) -> Iterator[str]:
    """The address at which the site is served."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.slow
def test_every_link_leads_somewhere_and_nothing_is_loaded_from_elsewhere(
    pages: dict[Path, Reader],
) -> None:
    for path, reader in pages.items():
        assert not [target for target in reader.loaded if urlsplit(target).netloc], path
        for target in [*reader.links, *reader.loaded]:
            parts = urlsplit(target)
            if parts.scheme in ("http", "https", "data"):
                continue
            file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            file = file / "index.html" if file.is_dir() else file
            assert file.is_file(), (path, target)
            if parts.fragment and file in pages:
                assert unquote(parts.fragment) in pages[file].addresses, (path, target)


@pytest.mark.slow
def test_a_link_that_leads_nowhere_stops_the_build(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "docs").mkdir()
    for name in ("__init__.py", "site.py", "formulas.py", "notebook_page.py", "site.css"):
        shutil.copy(ROOT / "docs" / name, tmp_path / "docs")
    for name in ("CHANGELOG.md", "CONTRIBUTING.md"):
        (tmp_path / name).write_text("# A page\n")
    (tmp_path / "README.md").write_text("# A page\n\n[Gone](docs/gone.md), [low](#down)\n")
    config = (ROOT / "mkdocs.yml").read_text()
    short = re.sub(r"^nav:\n.*?\n\n", "nav:\n  - Start: [README.md]\n\n", config, flags=re.S | re.M)
    (tmp_path / "mkdocs.yml").write_text(short)
    said = build(tmp_path / "site", root=tmp_path, expect=1)
    assert "docs/gone.md" in said
    assert "#down" in said


@pytest.mark.slow
def test_the_reference_has_every_public_name_of_the_package(
    site: Path, pages: dict[Path, Reader]
) -> None:
    """And the page of commands has their help."""
    documented = pages[site / "docs" / "api.html"].addresses
    for name in set(overfit_cli.__all__) - {"__version__"}:
        assert f"overfit_cli.{name}" in documented
    assert "overfit_cli.report.judge.Judged.lacks_seeds" not in documented, "users need it not"
    assert "Usage: overfit sweep " in (site / "docs" / "commands.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_pages_open_without_errors_fit_a_phone_and_lead_back_from_the_report(site: Path) -> None:
    requests, problems = list[str](), list[str]()
    with served(site) as address, browser() as chromium:
        page = chromium.new_page(viewport={"width": 390, "height": 844})
        page.on("request", lambda request: requests.append(request.url))
        page.on("pageerror", lambda error: problems.append(str(error)))
        for name in ("index", "docs/gallery", "docs/api", "docs/jiang2024/results"):
            page.goto(f"{address}/{name}.html")
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, name
        page.goto(f"{address}/{REPORT}")
        page.get_by_role("link", name="Documentation").click()
        assert page.url == f"{address}/index.html"
    assert not problems
    assert not [url for url in requests if not url.startswith((address, "data:", "blob:"))]


@pytest.mark.slow
def test_search_puts_commands_and_the_words_of_the_glossary_first(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    boosts = {entry["location"].split("#")[0]: entry.get("boost", 1) for entry in index["docs"]}
    assert "CHANGELOG.html" not in boosts
    assert boosts["docs/glossary.html"] > boosts["docs/commands.html"] > boosts["docs/tour.html"]


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("W_Q and σ_p²", "<i>W</i><sub><i>Q</i></sub> and <i>σ</i><sub><i>p</i></sub>²"),
        ("N·SNR^p = C.", "<i>N</i>·SNR<sup><i>p</i></sup> = <i>C</i>."),
        ("r_{t+1} &lt; 3M", "<i>r</i><sub><i>t</i>+1</sub> &lt; 3<i>M</i>"),
        ("log(6N²) of a claim", "log(6<i>N</i>²) of a claim"),
        (
            "dz_r = 0, dS_i,r",
            "<i>dz</i><sub><i>r</i></sub> = 0, <i>dS</i><sub><i>i</i>,<i>r</i></sub>",
        ),
        ("n^−0.37 in a row", "<i>n</i><sup>−0.37</sup> in a row"),
        ("A cell, and I: train_loss is 1e-9", "A cell, and I: train_loss is 1e-9"),
    ],
)
def test_formulas_are_typeset_and_words_are_left(written: str, shown: str) -> None:
    assert typeset(f"<p>{written}</p>") == f"<p>{shown}</p>"


def test_code_and_preformatted_text_are_left_and_an_indented_formula_stands_alone() -> None:
    code = '<p><code>W_Q = N^2</code></p><pre>d_h\nσ²</pre><a href="a_b.html#n_L">σ</a>'
    assert typeset(code) == code.replace(">σ<", "><i>σ</i><")
    fenced = "```\n\n    d_h = 1\n\n```\n"
    marked = mark_formulas(f"So\n\n    d_h < 1,\n    N = 2\n\n{fenced}")
    assert marked == f'So\n\n<p class="formula">d_h &lt; 1,\nN = 2</p>\n\n{fenced}'
    assert "<i>d</i><sub><i>h</i></sub> &lt; 1,\n<i>N</i>" in typeset(marked)
    diagram = '<pre class="output">8 |\n\n    ▓▓░░\n    ▓░░░\n   n  2    4\n</pre>\n'
    assert nest_lists(mark_formulas(f"# A\n\n{diagram}")) == f"# A\n\n{diagram}"
    assert nest_lists("- a\n  - b\n") == "- a\n    - b\n"


def test_a_notebook_is_shown_with_its_outputs() -> None:
    outputs = [
        {"output_type": "stream", "text": ["3 < 4\n"]},
        {"data": {"text/html": ["<table>\n", "\n", "</table>"], "text/plain": "a table"}},
        {"data": {"image/png": "aGk=\n", "text/plain": "a picture"}},
    ]
    cells = [
        {"cell_type": "markdown", "source": ["# A sweep\n", "in a notebook"]},
        {"cell_type": "code", "source": "sweep(f)", "outputs": outputs},
    ]
    page = notebook_page(json.dumps({"cells": cells}))
    assert page == (
        "# A sweep\nin a notebook\n\n```python\nsweep(f)\n```\n\n"
        '<pre class="output">3 &lt; 4</pre>\n\n'
        '<figure class="output">\n<table>\n</table>\n</figure>\n\n'
        '<p><img alt="" src="data:image/png;base64,aGk="></p>\n'
    )
