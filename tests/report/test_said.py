"""Output of `overfit report` on a terminal: counts, a table, what is not settled, and the page."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from overfit_cli.cli.report import counts_in_words
from overfit_cli.core.claim import Verdict
from tests.command import call
from tests.screen import shown
from tests.terminal import on_a_terminal

NEEDED = ["6"]
"""The seeds that claims on a median need."""

FILE = """
import numpy as np
import overfit_cli

@overfit_cli.experiment(claims=[
    "small: error < 0.2 where n >= 10",
    "smaller: error < 0.05",
    "close: error < 0.05 where n = 20",
])
def train(n: int = 10, seed: int = 0):
    return {"error": (1 + 0.01 * np.random.default_rng(seed).normal()) / n}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a claim that holds, one that fails, and one that is open."""
    folder = tmp_path_factory.mktemp("said")
    (folder / "decay.py").write_text(FILE)
    call("sweep", "decay.py", "--n=10,20,40", "--seeds=8", "--jobs=1", "--out=run", cwd=folder)
    return folder


def test_counts_come_first_then_the_table_then_what_does_not_hold(folder: Path) -> None:
    said = call("report", "run", cwd=folder).stdout.splitlines()
    starts = [line.split()[:1] for line in said]
    assert starts[0] == ["paper"]
    assert starts.index(["claim"]) < starts.index(["smaller:"])
    assert not [line for line in said if line.startswith("small:")], "it holds"
    assert said[-3:] == [
        "Written beside the page: report.md, claims.json",
        "1 hold, 1 fail, 1 inconclusive.",
        "Page: results/report/index.html",
    ]


@pytest.mark.slow
def test_too_few_seeds_are_one_sentence_and_the_sweep_that_adds_them(folder: Path) -> None:
    few = ("--n=10,20,40", "--seeds=3", "--jobs=1", "--out=few")
    call("sweep", "decay.py", *few, cwd=folder)
    said = call("report", "few", "--out=rep", cwd=folder).stdout
    [needed] = re.findall(r"^More seeds are needed in few: (.*)\.$", said, re.MULTILINE)
    assert [part.split(" for ")[0] for part in needed.split("; ")] == NEEDED
    assert "∞" not in said
    assert "Holds where" not in said, "a claim that only lacks seeds has no paragraph"
    [command] = re.findall(r"^Next: overfit (.*)$", said, re.MULTILINE)
    assert command.endswith(f"--seeds {NEEDED[-1]} --out few")
    call(*shlex.split(command), cwd=folder)
    again = call("report", "few", "--out=rep", cwd=folder).stdout
    assert "More seeds are needed" not in again


@pytest.mark.slow
def test_details_describe_what_holds_with_its_level_and_seeds(folder: Path) -> None:
    said = call("report", "run", "--details", cwd=folder).stdout
    assert re.search(r"^small: \d\S* \[.*\] 95 % \w.* over 8 seeds\. ", said, re.MULTILINE)
    table = [line for line in said.splitlines() if line.startswith("  ")]
    assert not [line for line in table if "seeds" in line]
    assert said.splitlines()[-1] == "Page: results/report/index.html"


def test_the_report_of_a_run_fits_a_terminal_of_80_columns(folder: Path) -> None:
    code, stream = on_a_terminal("report", "run", cwd=folder)
    lines = shown(stream)
    assert code == 0
    assert max(map(len, lines)) <= 80
    assert "…" not in stream
    [small] = [line for line in lines if line.startswith("  small ")]
    assert re.fullmatch(r"  small +ours +holds +\S+ \[\S+, \S+\]", small), "a row is one line"


@pytest.mark.slow
def test_a_claim_of_another_preset_without_a_number_is_not_said(tmp_path: Path) -> None:
    run = Path(__file__).parents[2] / "results" / "theorem-regime-quick"
    said = call("report", str(run), cwd=tmp_path).stdout
    content = json.loads((tmp_path / "results" / "report" / "claims.json").read_text())
    own = {"theorem-regime"}
    foreign = {
        claim["claim"]
        for claim in content["claims"]
        if claim["value"] is None and claim["preset"] not in own
    }
    names = set(re.findall(r"^  ([\w-]+) +(?:paper|sharp|ours) ", said, re.MULTILINE))
    assert {"theorem-regime-benign", "theorem-harmful-steps"} & names
    assert "theorem-benign-steps" in foreign
    assert not names & foreign
    assert re.search(r"^\d+ other claims are not tested by these runs; see report", said, re.M)


def test_verdicts_are_counted_and_claims_that_were_not_run_are_said() -> None:
    verdicts: list[Verdict] = ["holds", "vacuous"]
    assert counts_in_words(verdicts) == "1 hold, 0 fail, 1 vacuous."
    assert counts_in_words([*verdicts, "not run"]) == "1 hold, 0 fail, 1 vacuous, 1 not run."
