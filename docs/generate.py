"""Generated parts of the documents: tables of parameters, columns and verdicts, and help texts.

`make docs` runs it; a test fails where a document isn't what it would write. A generated part
stands between `<!-- generated: KIND NAME -->` and `<!-- end -->`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from docs.pictures import gallery
from docs.tables import table1_beside_measured
from overfit_cli.cli.list import COLUMN_HEADINGS, PARAMETER_HEADINGS, column_rows, parameter_rows
from overfit_cli.core.claim import KINDS, VERDICTS
from overfit_cli.core.registry import find_study, installed_studies

FOLDER = Path(__file__).parent
PART = re.compile(r"(<!-- generated: (\w+) ([\w./-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def documents() -> list[Path]:
    """Return the documents that have generated parts."""
    every = [*sorted(FOLDER.rglob("*.md")), FOLDER.parent / "README.md"]
    return [path for path in every if PART.search(path.read_text())]


def regenerated(text: str) -> str:
    """Return a document's text with its generated parts made anew."""
    return PART.sub(lambda found: found[1] + _part(found[2], found[3]) + found[4], text)


def _part(kind: str, name: str) -> str:
    if kind == "parameters":
        return _table(PARAMETER_HEADINGS, parameter_rows(find_study(name)))
    if kind == "columns":
        return _table(COLUMN_HEADINGS, column_rows(find_study(name)))
    if kind == "trajectories":
        return _table(COLUMN_HEADINGS, column_rows(find_study(name), trajectories=True))
    if kind == "file":
        language = {".py": "python", ".sbatch": "bash"}[Path(name).suffix]
        return f"```{language}\n{(FOLDER / name).read_text()}```\n"
    if kind in ("help", "together"):
        return f"```\n{_help(name)}\n```\n" if kind == "help" else _together(name)
    tables = {"gallery": gallery, "claims": _claims_by_paper, "table1": table1_beside_measured}
    return tables[kind]()


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    cells = [[cell.replace("|", r"\|").replace("*", r"\*") for cell in line] for line in lines]
    return "".join("| " + " | ".join(line) + " |\n" for line in cells)


def _claims_by_paper() -> str:
    """How many claims of each paper and kind have each verdict in the report that is kept."""
    judged = _judged()
    papers = {study.paper.key: study.paper for study in installed_studies() if study.paper}
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


def _together(study: str) -> str:
    """The claims of a study whose verdict all together is another than alone."""
    rows = [
        [f"`{claim['claim']}`", claim["kind"], claim["verdict"], _headline(claim)]
        for claim in _judged()
        if claim["study"] == study and claim["verdict"] != _headline(claim)
    ]
    if not rows:
        return "None.\n"
    return _table(["claim", "kind", "alone", "all together"], rows)


def _judged() -> list[dict[str, Any]]:
    """The claims in the report that is kept."""
    content = json.loads((FOLDER.parent / "results" / "report" / "claims.json").read_text())
    claims: list[dict[str, Any]] = content["claims"]
    return claims


def _headline(claim: dict[str, Any]) -> str:
    """The verdict of a claim at the level of all claims of its study together."""
    return str(claim["family"]["verdict"] if claim["family"] else claim["verdict"])


def _help(command: str) -> str:
    """The help text of a command as a user sees it, without colours."""
    done = subprocess.run(
        [sys.executable, "-m", "overfit_cli", command, "--help"],
        env={**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"},
        capture_output=True,
        text=True,
        check=True,
    )
    text = done.stdout.split("Parameters of")[0]
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


if __name__ == "__main__":
    for document in documents():
        document.write_text(regenerated(document.read_text()))
