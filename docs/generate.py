"""Generated parts of the documents: tables of verdicts and pictures.

`make docs` runs it; a test fails where a document isn't what it would write. A generated part
stands between `<!-- generated: KIND NAME -->` and `<!-- end -->`. Tables of claims are made when
the site is built: the documents keep the command that prints them.
"""

from __future__ import annotations

import functools
import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

import overfit_cli
from docs.pictures import further_figures
from docs.tables import table1_beside_measured
from overfit_cli.core.cell import Paper
from overfit_cli.core.claim import KINDS, VERDICTS, Interval, number_with_interval
from overfit_cli.core.files import preset_folder
from overfit_cli.core.registry import find_study, installed_studies
from overfit_cli.sweeps.presets import ERROR_RATES

FOLDER = Path(__file__).parent
MOST_FINDINGS = 2
CITATION = FOLDER.parent / "CITATION.cff"
CHANGELOG = FOLDER.parent / "CHANGELOG.md"
PART = re.compile(r"(<!-- generated: (\w+) ([\w./-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def documents() -> list[Path]:
    """Return the documents that have generated parts."""
    every = [*sorted(FOLDER.rglob("*.md")), FOLDER.parent / "README.md"]
    return [path for path in every if PART.search(path.read_text(encoding="utf-8"))]


def regenerated(text: str, *, on_site: bool = False) -> str:
    """Return a document's text with its generated parts made anew."""
    return PART.sub(lambda part: part[1] + _part(part[2], part[3], on_site) + part[4], text)


def cited(text: str) -> str:
    """Return the text of the citation with the package's version and the repository's address."""
    for name, value in (("version", overfit_cli.__version__), ("repository-code", _address())):
        text = re.sub(rf"^{name}: .*$", f"{name}: {value}", text, flags=re.MULTILINE)
    return text


def linked(text: str) -> str:
    """Return the text of the changelog with the addresses of its versions at the foot."""
    body = re.sub(r"^\[[\w.]+\]: .*\n", "", text, flags=re.MULTILINE).rstrip()
    versions = re.findall(r"^## \[(\d[\w.]*)\]", body, re.MULTILINE)
    ends = ["HEAD", *(f"v{version}" for version in versions)]
    later = zip(["Unreleased", *versions], ends, strict=True)
    links = [
        f"[{name}]: {_address()}/compare/v{before}...{end}"
        for (name, end), before in zip(later, versions, strict=False)
    ]
    first = f"[{versions[-1]}]: {_address()}/releases/tag/v{versions[-1]}"
    return "\n".join([body, "", *links, first, ""])


def _address() -> str:
    """The repository's address."""
    project = tomllib.loads((FOLDER.parent / "pyproject.toml").read_text(encoding="utf-8"))
    return str(project["tool"]["hatch"]["metadata"]["hooks"]["custom"]["repository"])


def _part(kind: str, name: str, on_site: bool) -> str:
    """A generated part, by its kind and its name."""
    writers: dict[str, Callable[[str], str]] = {
        "figures": further_figures if on_site else _where_figures_are,
        "places": _claims_by_place if on_site else _command_of_places,
        "table1": lambda _: table1_beside_measured(),
        "claims": lambda rows: _claims_as_printed() if rows == "papers" else _claims_by_paper(),
        "preset": _claims_on if on_site else _command_of_claims,
        "findings": lambda _: _first_findings(),
        "clauses": lambda _: _clauses_caught(),
    }
    return writers[kind](name)


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    cells = [[cell.replace("|", r"\|").replace("*", r"\*") for cell in line] for line in lines]
    return "".join("| " + " | ".join(line) + " |\n" for line in cells)


def _claims_by_paper() -> str:
    """How many claims of each paper and kind have each verdict in the report that is kept."""
    judged = _judged()
    papers = _papers()
    rows = []
    for key in dict.fromkeys(claim["paper"] for claim in judged):
        claims = [claim for claim in judged if claim["paper"] == key]
        counts = Counter((claim["kind"], _headline(claim)) for claim in claims)
        title = f"[{papers[key]}]({papers[key].url}), *{papers[key].title}*"
        for kind in KINDS:
            numbers = [counts[kind, verdict] for verdict in VERDICTS]
            if any(numbers):
                rows.append([title, kind, *(str(number or "") for number in numbers)])
                title = ""
    lines = [["paper", "kind", *VERDICTS], ["---", "---", *("--:" for _ in VERDICTS)], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _papers() -> dict[str, Paper]:
    """The papers by key, in the order of their studies."""
    return {study.paper.key: study.paper for study in installed_studies() if study.paper}


def _claims_as_printed() -> str:
    """How many sentences of each paper as printed have each verdict, with links to its page."""
    rows = []
    for key, paper in _papers().items():
        claims = [claim for claim in _judged() if (claim["paper"], claim["kind"]) == (key, "paper")]
        counts = Counter(_headline(claim) for claim in claims)
        if claims:
            title = f"[*{paper.title.partition(':')[0]}*]({paper.url})"
            link = f"[{paper}](docs/{key}.md), {title}"
            rows.append([link, *(str(counts[verdict] or "") for verdict in VERDICTS)])
    lines = [["paper", *VERDICTS], ["---", *("--:" for _ in VERDICTS)], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _first_findings() -> str:
    """The first findings on the first papers, with the numbers of their claims."""
    judged = {claim["claim"]: claim for claim in _judged()}
    verdicts: Any = {name: _headline(claim) for name, claim in judged.items()}
    lines = []
    for paper in [paper for paper in _papers().values() if paper.findings][:MOST_FINDINGS]:
        for finding in [each for each in paper.findings if each.stands(verdicts)][:1]:
            numbers = {name: _number(judged[name]) for name in finding.verdicts}
            lines.append(f"- **{paper}.** {finding.text.format_map(numbers)}\n")
    return "".join(lines)


def _clauses_caught() -> str:
    """How many worlds that break a clause of a paper's claims have the verdict that is right."""
    rates = pd.read_csv(preset_folder() / ERROR_RATES)
    keys = [study.paper and study.paper.key for study in map(find_study, rates["study"])]
    sums = rates.groupby(keys)[["caught", "worlds"]].sum().to_dict("index")
    told = [
        f"{sums[key]['caught']} of {sums[key]['worlds']} on {paper}"
        for key, paper in _papers().items()
        if key in sums
    ]
    return f"Told are {', '.join(told)}.\n"


def _claims_on(preset: str) -> str:
    """The claims that are judged on a preset first: statement, number and both verdicts."""
    rows = []
    for claim in _judged():
        if claim["preset"] != preset:
            continue
        alone, together = _by_itself(claim), _headline(claim)
        verdict = alone if alone == together else f"{alone}; all together {together}"
        measured = f"{_number(claim)}; {claim['interval']['kind']}" if claim["interval"] else ""
        name = f"`{claim['claim']}`: {claim['statement']}"
        rows.append([name, claim["kind"], measured, verdict])
    return _table(["claim", "kind", "measured", "verdict"], rows)


def _command_of_claims(preset: str) -> str:
    """How to print the claims that are judged on a preset first."""
    about = [claim for claim in _judged() if claim["preset"] == preset]
    folders = {claim["directory"] for claim in about} - {None}
    if not folders:
        return f"Claims: `overfit reproduce {preset}`.\n"
    return f"Claims: `overfit judge {' '.join(sorted(folders))}`.\n"


def _claims_by_place(paper: str) -> str:
    """Which claims test which place of a paper, and whether its sentences and bounds hold."""
    places = dict[str, list[dict[str, Any]]]()
    for claim in _judged():
        if claim["paper"] == paper and claim["kind"] in ("paper", "sharp"):
            place = claim["source"].partition(", ")[2]
            places.setdefault(place, []).append(claim)
    rows = [
        [place, ", ".join(f"`{claim['claim']}` ({_headline(claim)})" for claim in claims)]
        for place, claims in places.items()
    ]
    return _table(["place in the paper", "claims"], rows)


def _command_of_places(paper: str) -> str:
    """How to print the claims on a paper with their places in it."""
    studies = [
        study.name for study in installed_studies() if study.paper and study.paper.key == paper
    ]
    commands = ", ".join(f"`overfit list claims {name}`" for name in studies)
    return f"Claims with their places in the paper: {commands}; the site has a table.\n"


def _where_figures_are(paper: str) -> str:
    """Where the kept figures on a paper are that its page doesn't show."""
    return "The site shows them here. In the repository they are in `results/*/figures`.\n"


def _number(claim: dict[str, Any]) -> str:
    """The number of a claim with its interval, in three digits."""
    interval = claim["interval"]
    return number_with_interval(claim["value"], Interval(**interval) if interval else None)


@functools.cache
def _judged() -> list[dict[str, Any]]:
    """The claims in the report that is kept."""
    content = json.loads(
        (FOLDER.parent / "results" / "report" / "claims.json").read_text(encoding="utf-8")
    )
    claims: list[dict[str, Any]] = content["claims"]
    return claims


def _by_itself(claim: dict[str, Any]) -> str:
    """The verdict of a claim by itself; up to schema 6 of the report it is `verdict`."""
    return str(claim.get("by_itself", claim["verdict"]))


def _headline(claim: dict[str, Any]) -> str:
    """The verdict of a claim at the level of all claims of its study together."""
    return str(claim["family"]["verdict"] if claim["family"] else claim["verdict"])


if __name__ == "__main__":
    for document in documents():
        document.write_text(regenerated(document.read_text(encoding="utf-8")), encoding="utf-8")
    CITATION.write_text(cited(CITATION.read_text(encoding="utf-8")), encoding="utf-8")
    CHANGELOG.write_text(linked(CHANGELOG.read_text(encoding="utf-8")), encoding="utf-8")
