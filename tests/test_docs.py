"""The documents say what the code does, and their examples run."""

from __future__ import annotations

import pkgutil
import re
import shutil
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from numpy.typing import NDArray

import overfit_cli
from docs import generate
from overfit_cli.cli.app import app
from overfit_cli.core.parameters import describe, symbol_text
from overfit_cli.core.registry import installed_studies
from overfit_cli.sweeps.presets import preset_names
from tests.command import run
from tests.kept import RESULTS, kept_claims

ROOT = RESULTS.parent
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), *ROOT.glob("*.md"), ROOT / "results" / "README.md"]
CLAIMS = [claim for claims in kept_claims().values() for claim in claims]
PAPERS = sorted({ROOT / "docs" / f"{claim['paper']}.md" for claim in CLAIMS})
WITH_INTERVALS = [*PAPERS, *(page for page in PAGES if page.name == "README.md")]

NUMBER = r"[−-]?\d[\d,]*\.?\d*(?: · 10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?"
INTERVAL = re.compile(rf"\[({NUMBER}), ({NUMBER})\](?!\()")
GENERATED = re.compile(r"<!-- generated.*?<!-- end", re.DOTALL)
EXPONENT = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")

ELSEWHERE = {
    "jiang2024": """
        [1.85, 2.27] [1.43, 1.93] [992, 1060] [1.82, 2.06] [937, 996] [919, 958] [2.07, 2.22]
    """,
}
"""Intervals on pages of kept cells that no claim has: other seeds, settings, powers or inverses.

They are those that stand there, and no others.
"""


@pytest.mark.parametrize("document", generate.documents(), ids=lambda path: path.name)
def test_generated_parts_are_what_the_code_would_write(document: Path) -> None:
    text = document.read_text()
    assert generate.regenerated(text) == text, "run `make docs`"


def test_the_citation_and_the_changelog_have_this_version_and_its_address() -> None:
    cited, logged = generate.CITATION.read_text(), generate.CHANGELOG.read_text()
    assert (generate.cited(cited), generate.linked(logged)) == (cited, logged), "run `make docs`"
    assert overfit_cli.__version__ in cited and overfit_cli.__version__ in logged
    foot = generate.linked("## [Unreleased]\n\n## [0.2.0] - x\n\n## [0.1.0] - y\n")
    ends = ["compare/v0.2.0...HEAD", "compare/v0.1.0...v0.2.0", "releases/tag/v0.1.0"]
    assert re.findall(r"(?:compare|releases)/\S+", foot) == ends


def test_names_of_the_package_targets_of_make_and_commands_of_a_page_exist() -> None:
    text = "\n".join(page.read_text() for page in PAGES)
    for name in sorted(set(re.findall(r"\boverfit_cli(?:\.\w+)+", text))):
        pkgutil.resolve_name(name)
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"`make ([a-z-]+)", text))
    assert {"demo", "test"} <= named <= targets
    page = (ROOT / "docs" / "reference.md").read_text()
    documented = set(re.findall(r"^## overfit (\w+)$", page, re.MULTILINE))
    assert documented == set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


def test_the_symbols_of_every_parameter_and_column_are_written_plainly() -> None:
    for study in installed_studies():
        symbols = [item.symbol for item in describe(study.parameters).values()]
        symbols += [item.symbol for item in (*study.columns, *study.trajectory_columns)]
        for symbol in symbols:
            assert not re.search(r"[\\{}]", symbol_text(symbol)), (study.name, symbol)
    for symbol, plain in {
        r"\frac{1}{H}\sum \|W_h\|": "1/H Σ ‖W_h‖",
        r"\tilde{\sigma}_p^{-1/2}": "σ̃_p^(-1/2)",
        r"\bar{a}_{\mathrm{train}}": "a\N{COMBINING MACRON}_train",
        r"\hat L \Phi \min S": "L̂ Φmin S",
        r"\lambda_{\mathrm{min}}(H)": "λ_min(H)",
        r"\lambda_{\min}(H)": "λ_min(H)",
        r"\log_{10}\gamma_{\mathrm{attn}}": "log_10γ_attn",
    }.items():
        assert symbol_text(symbol) == plain


def test_no_preset_has_the_name_of_a_study() -> None:
    """`overfit sweep NAME` would run the study with its defaults, and never the preset."""
    assert len(preset_names()) > 1
    assert not {*preset_names()} & {study.name for study in installed_studies()}


@pytest.mark.parametrize("page", PAPERS, ids=lambda page: page.stem)
def test_a_papers_page_has_the_claims_of_each_preset_and_names_tests_that_exist(page: Path) -> None:
    text = page.read_text()
    shown = set(re.findall(r"<!-- generated: preset (\S+) -->", text))
    assert shown == {claim["preset"] for claim in CLAIMS if claim["paper"] == page.stem}
    for name in re.findall(r"`(tests/[^`]+)`", text):
        assert (ROOT / name).exists(), name


def number(text: str) -> tuple[float, float]:
    """The number of a text, and half of its last digit; whole numbers have three digits."""
    plain, _, exponent = text.replace("−", "-").replace(",", "").partition(" · 10")
    scale = 10.0 ** int(exponent.translate(EXPONENT) or 0)
    whole, _, part = plain.lstrip("-").partition(".")
    digits = len(part) or min(3 - len(whole), 0)
    return float(plain) * scale, 0.501 * 10.0**-digits * scale


@cache
def kept() -> NDArray[np.float64]:
    """The intervals of kept claims, of their details and of captions, as they are and in percent.

    Details have their ends under the names `p, from` and `p, to`.
    """
    pairs = list[tuple[Any, Any]]()
    for claim in CLAIMS:
        details, interval = claim["details"] or {}, claim["interval"] or {}
        pairs.append((interval.get("low"), interval.get("high")))
        pairs += [(details[of], details[f"{of[:-4]}to"]) for of in details if of.endswith(", from")]
    for caption in RESULTS.glob("*/figures/*.txt"):
        ends = INTERVAL.findall(" ".join(caption.read_text().split()))
        pairs += [(number(low)[0], number(high)[0]) for low, high in ends]
    known = np.array(pairs, dtype=float)
    return np.concatenate([known, 100 * known])


def strange(text: str) -> set[str]:
    """The intervals of a text, outside of its generated parts, that are no kept ones."""
    found = set[str]()
    for match in INTERVAL.finditer(GENERATED.sub("", text)):
        ends, rounding = np.transpose([number(match[1]), number(match[2])])
        if not (np.abs(kept() - ends) <= rounding).all(axis=1).any():
            found.add(match[0])
    return found


def test_every_interval_of_a_page_is_a_kept_one() -> None:
    found = defaultdict[str, set[str]](set)
    for page in WITH_INTERVALS:
        found[page.stem] |= strange(page.read_text())
    known = {name: {one[0] for one in INTERVAL.finditer(ELSEWHERE[name])} for name in ELSEWHERE}
    assert {name: intervals for name, intervals in found.items() if intervals} == known


def test_an_interval_of_an_older_run_is_noticed() -> None:
    assert strange("| 1.234 [1.2303, 1.2377] | and a [link](to.md) |\n") == {"[1.2303, 1.2377]"}


def first_block(page: str) -> str:
    """The first block of Python in a page."""
    return str(re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0])


@pytest.mark.slow
def test_the_study_in_the_docs_works(install: Callable[..., None], tmp_path: Path) -> None:
    """Its code and its entry point, and the commands that the page gives."""
    page = (ROOT / "docs" / "your-own-experiment.md").read_text()
    page = page.partition("## A study as a class")[2]
    [entry] = re.findall(r'entry-points."overfit.studies"\]\n(\S+) = "(\S+)"\n', page)
    install(dict([entry]), mean_sign=first_block(page))
    for line in re.findall(r"^overfit (.*)", page, re.MULTILINE):
        words = line.split()
        done = run(*words, *["--jobs=1"] * (words[0] == "sweep"), cwd=tmp_path)
    assert re.search(r"gaussian-mean +\S+ +holds", done.stdout), done.stdout
    directory = tmp_path / "results" / "mean-sign-n-snr"
    assert len(overfit_cli.load(directory)) == 20 * 20 * 5
    assert (directory / "figures" / "heatmap.png").stat().st_size > 1000


@pytest.mark.slow
def test_the_world_in_the_docs_is_judged_as_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "verdicts.md").read_text()
    exec(compile(first_block(page), "verdicts.md", "exec"), {})
    [number] = re.findall(r"fails there, with (\d\.\d\d)", page)
    assert re.search(rf"fig1-exponent fails {number[:3]}", capsys.readouterr().out)


SWEEPS = {
    "random_features.py": "--n 20,30,40,50,70,100,200 --seeds 8",
    "spiked_matrix.py": "--n 200:3200:5:log --snr 0.2:1.6:16:log --seeds 20",
    "max_margin.py": "--horizon 100,1000,10000,30000 --seeds 20",
    "xor.py": "--d 2,4,8,16,32 --seeds 8",
    "quadratic.py": "--kappa 10,30,100,300,1000 --seeds 8",
}


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(ROOT.glob("docs/examples/*.py")), ids=lambda one: one.stem)
def test_an_examples_true_claim_holds_and_its_false_one_fails(path: Path, tmp_path: Path) -> None:
    shutil.copy(path, tmp_path)
    run("sweep", path.name, *SWEEPS[path.name].split(), "--out", "run", cwd=tmp_path)
    said = run("judge", "run", cwd=tmp_path).stdout.splitlines()
    verdicts = [word for line in said[:5] for word in line.split() if word in ("holds", "fails")]
    assert verdicts == ["holds", "fails"]
