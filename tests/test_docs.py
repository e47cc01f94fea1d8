"""The documents say what the code does."""

from __future__ import annotations

import pkgutil
import re
import subprocess
from pathlib import Path

import pytest
import typer

import overfit_cli
from docs import generate
from overfit_cli.cli.app import app
from overfit_cli.core.parameters import describe, symbol_text
from overfit_cli.core.registry import installed_studies
from overfit_cli.sweeps.presets import preset_names
from tests.command import run

ROOT = Path(__file__).parents[1]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), *ROOT.glob("*.md"), ROOT / "results" / "README.md"]


def page_name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("document", generate.documents(), ids=page_name)
def test_generated_parts_are_what_the_code_would_write(document: Path) -> None:
    text = document.read_text()
    assert generate.regenerated(text) == text, "run `make docs`"


def _lines_outside_code(page: Path) -> list[str]:
    """Lines of a page with blocks and spans of code left out."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]*`", "code", text).split("\n")


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_names_in_a_page_exist_and_its_tables_and_formulas_render(page: Path) -> None:
    """All rows of a table have as many cells as its head: a bare | would break one in two."""
    for name in sorted(set(re.findall(r"\boverfit_cli(?:\.\w+)+", page.read_text()))):
        pkgutil.resolve_name(name)
    width = 0
    for line in _lines_outside_code(page):
        assert not re.search(r"\\[A-Za-z]{2,}|\^\{", line), line
        cells = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0
        assert not (width and cells) or cells == width, line
        width = cells


def anchors(page: Path) -> set[str]:
    """What the headings of a page are called in links, as GitHub makes it of them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    plain_words = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {words.replace(" ", "-") for words in plain_words}


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", "\n".join(_lines_outside_code(page))):
        if target.startswith("http"):
            continue
        path, _, anchor = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        assert found.exists(), target
        assert not anchor or anchor in anchors(found), target


def test_the_symbols_of_every_parameter_and_column_are_written_plainly() -> None:
    for study in installed_studies():
        symbols = [item.symbol for item in describe(study.parameters).values()]
        symbols += [item.symbol for item in (*study.columns, *study.trajectory_columns)]
        for symbol in symbols:
            assert not re.search(r"[\\{}]", symbol_text(symbol)), (study.name, symbol)
    assert symbol_text(r"\frac{1}{H}\sum \|W_h\|") == "1/H Σ ‖W_h‖"
    assert symbol_text(r"\tilde{\sigma}_p^{-1/2}") == "σ̃_p^(-1/2)"
    assert symbol_text(r"\bar{a}_{\mathrm{train}}") == "a\N{COMBINING MACRON}_train"
    assert symbol_text(r"\hat L \Phi \min S") == "L̂ Φmin S"
    assert (
        symbol_text(r"\lambda_{\mathrm{min}}(H)") == symbol_text(r"\lambda_{\min}(H)") == "λ_min(H)"
    )
    assert symbol_text(r"\log_{10}\gamma_{\mathrm{attn}}") == "log_10γ_attn"


@pytest.mark.unix
def test_make_alone_lists_its_targets() -> None:
    done = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True)
    listed = set(re.findall(r"^  ([a-z-]+) ", done.stdout, re.MULTILINE))
    match = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert match is not None
    assert listed == set(match[1].split()) - {"help"}


def test_the_citation_names_this_version_and_its_papers() -> None:
    citation = (ROOT / "CITATION.cff").read_text()
    assert generate.cited(citation) == citation, "run `make docs`"
    assert f"version: {overfit_cli.__version__}" in citation
    links = set(re.findall(r"arxiv\.org/abs/([\d.]+)", (ROOT / "README.md").read_text()))
    assert links == {"2409.19345", "2310.12680", "2411.07538", "2405.03251", "2402.03902"}
    assert all(link in citation for link in links)
    released = re.search(r"^date-released: \"(.*)\"$", citation, re.MULTILINE)
    assert released is not None
    changes = (ROOT / "CHANGELOG.md").read_text()
    assert f"## [{overfit_cli.__version__}] - {released[1]}\n" in changes
    assert generate.linked(changes) == changes, "run `make docs`"
    assert changes.index("## [Unreleased]") < changes.index(f"## [{overfit_cli.__version__}]")


def test_each_version_of_the_changelog_has_its_address() -> None:
    written = generate.linked("## [Unreleased]\n\n## [0.2.0] - x\n\n## [0.1.0] - y\n")
    assert generate.linked(written) == written
    foot = written.splitlines()[-3:]
    ends = ("compare/v0.2.0...HEAD", "compare/v0.1.0...v0.2.0", "releases/tag/v0.1.0")
    for line, name, end in zip(foot, ("Unreleased", "0.2.0", "0.1.0"), ends, strict=True):
        assert line.startswith(f"[{name}]: https://")
        assert line.endswith(f"/{end}")


def test_no_preset_has_the_name_of_a_study() -> None:
    """`overfit sweep NAME` would run the study with its defaults, and never the preset."""
    presets = set(preset_names())
    assert presets
    assert not presets & {study.name for study in installed_studies()}


def test_every_command_is_documented() -> None:
    text = (ROOT / "docs" / "commands.md").read_text()
    documented = set(re.findall(r"^## overfit (\w+)$", text, re.MULTILINE))
    assert documented == set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


def test_every_benchmark_has_its_numbers_on_the_page_of_performance() -> None:
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    tools = {"__init__", "timing", "reproduce", "same_numbers"}  # what measures no speed
    modules = {path.stem for path in (ROOT / "benchmarks").glob("*.py")} - tools
    assert {name for name in modules if f"benchmarks.{name}" not in page} == set()


def test_every_paper_has_its_pages_and_every_study_is_in_its_guide() -> None:
    ours = [
        item
        for item in installed_studies()
        if type(item).__module__.startswith("overfit_cli.") and item.paper
    ]
    assert len(ours) >= 6
    for study in ours:
        assert study.paper is not None
        folder = ROOT / "docs" / study.paper.key
        assert f"`{study.name}`" in (folder / "guide.md").read_text()
        assert all((folder / f"{part}.md").exists() for part in ("results", "derivations"))
    for folder in (ROOT / "src" / "overfit_cli" / "studies").iterdir():
        assert not (folder / "study.py").exists() or (folder / "README.md").exists()


@pytest.mark.slow
def test_the_study_in_the_docs_works_as_it_stands(installed_here: Path) -> None:
    """Its code and its entry point, and the commands that the page gives."""
    tmp_path = installed_here
    page = (ROOT / "docs" / "adding-a-study.md").read_text()
    code = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    project = re.search(r"```toml\n(.*?)```", page, re.DOTALL)
    commands = re.search(r"```\n(overfit .*?)```", page, re.DOTALL)
    assert code is not None
    assert project is not None
    assert commands is not None
    assert len(code[1].splitlines()) <= 68, "the page promises a short one"
    (tmp_path / "mean_sign.py").write_text(code[1])
    info = tmp_path / "mean_sign-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mean-sign\nVersion: 0.1\n")
    entry = re.search(r'entry-points."overfit.studies"\]\n(.*)\n', project[1])
    assert entry is not None
    named = entry[1].replace('"', "")
    (info / "entry_points.txt").write_text(f"[overfit.studies]\n{named}\n")
    for line in commands[1].strip().splitlines():
        words = line.split()[1:]
        one_job = ["--jobs=1"] if words[0] == "sweep" else []
        done = run(*words, *one_job, cwd=tmp_path)
    assert re.search(r"gaussian-mean +\S+ +holds", done.stdout), done.stdout
    directory = tmp_path / "results" / "mean-sign-n-snr"
    cells = overfit_cli.load(directory)
    assert len(cells) == 20 * 20 * 5
    assert (
        tmp_path / "results" / "mean-sign-n-snr" / "figures" / "heatmap.png"
    ).stat().st_size > 1000


def test_every_make_target_that_a_page_names_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    named = {name for page in PAGES for name in re.findall(r"`make ([a-z-]+)", page.read_text())}
    assert {"demo", "test"} <= named
    for target in named:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


TOUR = (ROOT / "docs" / "tour.md").read_text()
TOUR_COMMANDS = re.findall(r"^\$ (overfit .*)$", TOUR, re.MULTILINE)


def test_the_readme_is_short() -> None:
    """It is read in half a minute: seven hundred words, and those that are generated."""
    text = re.sub(
        r"<!-- generated.*?<!-- end -->", "", (ROOT / "README.md").read_text(), flags=re.S
    )
    words = re.sub(r"<[^>]+>|\]\([^)]*\)|[|-]{2,}", " ", text).split()
    assert len(words) <= 700


def test_the_tour_leaves_the_kept_results_as_they_are() -> None:
    """It is taken in a folder of its own, and what it draws from kept runs goes there too."""
    assert "mkdir tour\ncd tour\n" in TOUR.partition("$ overfit")[0]
    for line in TOUR_COMMANDS:
        assert "../results" not in line or "--out " in line, line


@pytest.mark.slow
def test_the_world_in_the_docs_is_judged_as_the_page_says(
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = (ROOT / "docs" / "verdicts.md").read_text()
    code = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert code is not None
    exec(compile(code[1], "verdicts.md", "exec"), {})
    match = re.search(r"fails there, with (\d\.\d\d)", page)
    assert match is not None
    assert re.search(rf"fig1-exponent fails {match[1][:3]}", capsys.readouterr().out)
