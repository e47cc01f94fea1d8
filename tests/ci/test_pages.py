"""Every command of every page runs as printed, in the order of the page, where the page says.

The README, the start and the recipes begin in the clone of the repository, with the kept runs that
they name; other pages begin in an empty folder `tour` there. What would take long is made
small by these rules:

- A sweep of a study or a preset, and `overfit reproduce`, is planned as printed (`--dry-run`), its
  probe cut. The kept run of the preset then lies where the sweep would have written.
- A sweep of a function is planned as printed, and then trained on few values of each range.
- A training of a study's cell is planned as a sweep of this cell.
- The folders that come from another machine are copies of the kept run of figure 1.
- A report of all runs is one of the smallest, and its page has no pictures.
- Figures are drawn, and not rendered where nothing on the page reads them again.
- What needs a cluster, a queue, another machine, the network or real data is left out.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pytest

import overfit_cli
from tests.command import call, python

ROOT = Path(__file__).parents[2]
TESTED_ELSEWHERE = {"verdicts.md"}
"""Pages that tests of their own run."""

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
IN_THE_CLONE = {"README.md", "start.md", "how-to.md"}
"""Where these pages say that one is; others begin in `tour`."""

WITH_TABLES = {"README.md", "how-to.md"}
"""Pages that say in a table what each command does."""

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NAMED = re.compile(r"`([\w.]+\.(?:toml|mplstyle))`:$")
"""The end of the sentence before a block that is a file's content."""

ASKS = """
import json, sys, duckdb
*queries, code = json.load(sys.stdin)
names = {}
exec(code, names)
frames = [*(duckdb.sql(query).df() for query in queries), names["shares"]]
print(json.dumps([frame.to_dict("list") for frame in frames]))
"""
"""Answers queries in SQL, and one in Python, with the columns of their tables."""

FOREIGN = re.compile(r"--backend (dask|ray)|\bDIR\b|^(sbatch|pip|duckdb|rsync|make)\b")
"""What is left out: other programs, clusters, and folders of data."""


class Step(NamedTuple):
    """A step of a page: a command, with what the page shows below it, or a file to write."""

    command: str = ""
    shown: str = ""
    file: str = ""
    content: str = ""


def steps_of(page: Path) -> Iterator[Step]:
    """Yield the commands and the files of a page; its Python blocks are one script at the end."""
    text, script = page.read_text(), ""
    if page.name in WITH_TABLES:
        table = text.partition("| command | what it does |")[2].partition("\n\n")[0]
        yield from map(Step, re.findall(r"^\| `(overfit [^`]*)` \|", table, re.MULTILINE))
    for match in BLOCK.finditer(text):
        language, content = match.groups()
        before = text[: match.start()].rstrip()
        if name := NAMED.search(before) or re.match(r"# (\w+\.py)\n", content):
            yield Step(file=name[1], content=content)
        elif language == "python" and re.search(r"^(import|from) overfit_cli", content, re.M):
            script += content + "\n"
        elif not language:
            content = content.replace("\\\n", " ")
            prompt = re.search(r"^\w*\$ ", content, re.M)
            at = r"\w*\$ " if prompt else "(?=overfit |cd |mkdir |cp )"
            if re.match(rf"\w*\$ |{at}", content):
                _, *parts = re.split(rf"^{at}", content, flags=re.M)
                yield from (Step(*part.partition("\n")[::2]) for part in parts)
    if script:
        yield Step(file="page.py", content=script)
        yield Step("python page.py")


class Reader:
    """Someone who types what a page says, in a fresh copy with the runs that the page names."""

    def __init__(self, clone: Path, page: Path) -> None:
        self.folder = self.clone = clone
        for name in ("docs", "experiments"):
            shutil.copytree(ROOT / name, clone / name)
        (clone / "results").mkdir()
        text = page.read_text()
        for name in sorted(set(re.findall(r"\bresults/(?!report\b)([\w-]+)", text))):
            self._keep(name, clone / "results" / name)
        if page.name not in IN_THE_CLONE:
            self.folder = clone / "tour"
            self.folder.mkdir()
        if page.name in WITH_TABLES:
            example = (ROOT / "docs" / "your-own-experiment.md").read_text()
            (clone / "my_experiment.py").write_text(BLOCK.findall(example)[0][1])
        for name in {"part-1", "part-2", "from-second"} & set(re.findall(r"[\w-]+", text)):
            self._keep("fig1-quick", self.folder / name)

    def _keep(self, name: str, target: Path) -> None:
        if (ROOT / "results" / name).is_dir() and not target.exists():
            shutil.copytree(ROOT / "results" / name, target)
            os.utime(target / "cells")  # as if it were swept now

    def follow(self, step: Step) -> None:
        """Do what a step says."""
        if step.file:
            (self.folder / step.file).write_text(step.content)
            return
        match shlex.split(step.command, comments=True):
            case ["cd", folder]:
                self.folder = self.folder / folder
            case ["mkdir", *_, folder]:
                (self.folder / folder).mkdir()
            case ["cp", source, target]:
                shutil.copy(self.folder / source, self.folder / target)
            case ["python", *words]:
                python(*words, cwd=self.folder)
            case ["overfit", *words]:
                self._overfit(words, step)

    def _overfit(self, words: list[str], step: Step) -> None:
        if words[0] in ("sweep", "train") and ".py" not in step.command:
            self._plan(["sweep", *words[1:]])
        elif words[0] == "sweep":
            self._run(*words, "--dry-run")
            self._run(*map(_fewer, words), "--jobs=1", expect=(0, 1))
        elif words[0] == "reproduce":
            self._run(*words, "--dry-run")
        elif words == ["report"]:
            runs = [path.parent for path in self.folder.glob("results/*/cells")]
            self._run(*words, str(min(runs, key=_size)))
        else:
            may_differ = {"--strict", "--tolerance"} & {*words}
            done = self._run(*words, expect=(0, 1) if may_differ else (0,))
            shown = {line for line in step.shown.splitlines() if line.startswith("Drawn: ")}
            assert shown <= {*done.splitlines()}

    def _plan(self, words: list[str]) -> None:
        """Plan a sweep, and put the kept run of its preset where it would have written."""
        subject = next((word for word in words[1:] if not word.startswith("-")), "")
        kept = f"{subject}-quick"
        if FOREIGN.search(shlex.join(words)):
            self._keep(kept, self.folder / "results" / kept)
        else:
            planned = self._run(*words, "--dry-run")
            [directory] = re.findall(r"\), (\S+)$", planned.splitlines()[0])
            self._keep(Path(directory).name, self.folder / directory)
        if "--out" in words:
            self._keep(kept, self.folder / words[words.index("--out") + 1])

    def _run(self, *words: str, expect: tuple[int, ...] = (0,)) -> str:
        """Run `overfit` and return what it says."""
        return call(*words, cwd=self.folder, expect=expect).stdout


def _size(folder: Path) -> int:
    """The bytes in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*.parquet"))


def _fewer(word: str) -> str:
    """A range of few values in place of one of many."""
    return re.sub(r"^([\d.]+):([\d.]+)(:[\d.]+)?$", r"\1,\2", word)


@pytest.mark.parametrize(
    "page",
    [
        page
        for page in PAGES
        if page.name not in TESTED_ELSEWHERE and any(step.command for step in steps_of(page))
    ],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_the_commands_of_a_page_run_as_printed(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("overfit_cli.sweeps.run.LONGEST_DRY_RUN", 0.0)
    monkeypatch.setattr("overfit_cli.report.pictures._illustrate", lambda *arguments: None)
    if "verify" not in page.read_text():
        monkeypatch.setattr("overfit_cli.figures.picture.file_content", lambda *drawn: b"")
    reader = Reader(tmp_path, page)
    for step in steps_of(page):
        if step.command.startswith("overfit sweep") or not FOREIGN.search(step.command):
            reader.follow(step)


def done(directory: str) -> pd.DataFrame:
    """The cells of a kept run that didn't fail."""
    cells = overfit_cli.load(ROOT / "results" / directory)
    return cells[cells["status"] == "done"]


def test_the_queries_of_the_recipes_answer_what_is_in_the_cells() -> None:
    page = (ROOT / "docs" / "how-to.md").read_text()
    in_shell = re.findall(r'^\$ duckdb -c "\n(.*?)"$', page, re.DOTALL | re.MULTILINE)
    alone = re.findall(r"^```sql\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    [code] = [text for name, text in BLOCK.findall(page) if name == "python" and "duckdb" in text]
    asked = json.dumps([*in_shell, *alone, code])
    answers = python("-W", "error", "-c", ASKS, cwd=ROOT, text=asked).stdout
    medians, steps, pairs, benign = json.loads(answers)
    cells = done("fig1-quick")
    logged = overfit_cli.load(ROOT / "results" / "dynamics-quick", trajectories=True)
    logged = logged[logged["step"] % 10 == 0]
    both = cells.merge(done("fig1-balanced-quick"), on=["n", "snr", "seed"])
    differences = (both["test_loss_x"] - both["test_loss_y"]).groupby(both["n"]).mean()
    of_cells = cells[cells["snr"] < 3].groupby(["n", "snr"])["test_loss"].median()
    of_steps = logged.groupby(["n", "snr", "step"])["test_loss"].median()
    shares = (cells["test_loss"] < 0.2).groupby(cells["n"]).mean()
    assert medians["test_loss"] == pytest.approx(of_cells.tolist())
    assert steps["test_loss"] == pytest.approx(of_steps.tolist())
    assert pairs["difference"] == pytest.approx(differences.tolist())
    assert benign["benign"] == pytest.approx(shares.tolist())
    assert len(steps["test_loss"]) > 6
    assert set(medians["seeds"]) == {40}
    assert pairs["n"] == differences.index.tolist()
    assert sum(pairs["pairs"]) == len(both)
